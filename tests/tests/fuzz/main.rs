//! A short fuzz of every parser: the seeds of `fuzz/seeds` and a fixed number of changes of them, the same in every run.
//!
//! Hours of coverage-guided fuzzing are described in docs/fuzzing.md. This test needs neither nightly nor cargo-fuzz.
//! `PLANSCOPE_FUZZ=20000` makes it as many inputs for each parser, `PLANSCOPE_FUZZ_SEED=7` makes them other ones.

mod memory;
mod mutations;
#[allow(unreachable_pub, reason = "it is a library for cargo-fuzz")]
#[path = "../../../fuzz/readers/lib.rs"]
mod readers;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use memory::Peak;
use mutations::{Mutations, SMALL};

/// Inputs of a parser, its seeds included.
const INPUTS: usize = 900;
/// Memory that an input of at most 8 KiB may take above what the process had before: what a parser may allocate for a
/// header that lies, not what it keeps.
const MEMORY: u64 = 192 << 20;

fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().map_or(otherwise, |number| number.parse().expect("a number"))
}

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package stands in the workspace").to_owned()
}

/// The seeds of a parser, in the order of their names.
fn seeds(name: &str) -> Vec<Vec<u8>> {
    let folder = top().join("fuzz/seeds").join(name);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let seeds: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).expect("a seed")).collect();
    assert!(!seeds.is_empty(), "{name} has no seeds");
    seeds
}

/// What one parser did.
struct FuzzReport {
    inputs: usize,
    took: Duration,
    slowest: Duration,
    max_bytes: u64,
    failures: Vec<String>,
}

/// Gives a parser its inputs, one after the other. The input at work is in a file: a stack overflow or an abort ends
/// the process, and the file remains.
fn exercise(name: &str, read: fn(&[u8]), inputs: usize, seed: u64, folder: &Path) -> FuzzReport {
    let current = folder.join(format!("{name}-at-work"));
    let start = Instant::now();
    let mut report =
        FuzzReport { inputs, took: Duration::ZERO, slowest: Duration::ZERO, max_bytes: 0, failures: Vec::new() };
    for (number, input) in Mutations::new(seeds(name), seed).take(inputs).enumerate() {
        std::fs::write(&current, &input).expect("a file for the input");
        let peak = Peak::begin();
        let began = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| read(&input)));
        report.slowest = report.slowest.max(began.elapsed());
        let memory = peak.grown();
        report.max_bytes = report.max_bytes.max(memory);
        let fault = match result {
            Err(_) => "panicked".to_owned(),
            Ok(()) if memory > MEMORY && input.len() <= SMALL => format!("took {} MiB", memory >> 20),
            Ok(()) => continue,
        };
        let file = folder.join(format!("{name}-{number}"));
        std::fs::rename(&current, &file).expect("the input is kept");
        report.failures.push(format!("{name} {fault}: {}", file.display()));
    }
    drop(std::fs::remove_file(&current));
    report.took = start.elapsed();
    report
}

#[test]
fn no_parser_panics_or_takes_much_memory() {
    let inputs = number("PLANSCOPE_FUZZ", INPUTS);
    let seed = number("PLANSCOPE_FUZZ_SEED", 1) as u64;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz");
    std::fs::create_dir_all(&folder).expect("a folder for inputs");
    // One failure of a parser must not hide those of others.
    let mut failures = Vec::new();
    for (name, read) in readers::ALL {
        let report = exercise(name, read, inputs, seed, &folder);
        println!(
            "{name:>16}: {} inputs, {:.1} s, slowest {} ms, at most {} MiB",
            report.inputs,
            report.took.as_secs_f64(),
            report.slowest.as_millis(),
            report.max_bytes >> 20
        );
        failures.extend(report.failures);
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

/// The same seed gives the same inputs: what fails here fails everywhere.
#[test]
fn inputs_are_the_same_in_every_run() {
    let inputs = |seed| Mutations::new(seeds("log"), seed).take(200).collect::<Vec<_>>();
    assert_eq!(inputs(1), inputs(1));
    assert_ne!(inputs(1), inputs(2));
    assert!(inputs(1).iter().skip(seeds("log").len()).all(|input| input.len() <= SMALL));
}
