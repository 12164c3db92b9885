//! `planscope simulate`: simulates an execution plan file again.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use ingest::execution_file::{self, MAX_BYTES};
use planner::check::{FileReplay, check_execution_file};
use planner::units::{Bytes, Nanos};

use crate::config::SimulateArguments;

/// Checks a file and writes time, idle share and memory to standard output. The first violation is an error.
pub fn run(arguments: &SimulateArguments) -> anyhow::Result<ExitCode> {
    let name = arguments.file.display();
    let bytes = read(&arguments.file)?;
    let file = execution_file::read(&bytes).with_context(|| name.to_string())?;
    drop(bytes);
    let replay = check_execution_file(&file).with_context(|| name.to_string())?;
    let mut out = std::io::stdout().lock();
    if arguments.json {
        serde_json::to_writer_pretty(&mut out, &replay)?;
        writeln!(out)?;
    } else {
        write!(out, "{}", describe(&replay))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads at most one byte more than allowed, so that a larger file is recognised.
fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = MAX_BYTES as u64 + 1;
    if path == Path::new("-") {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes).context("cannot read standard input")?;
    } else {
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        file.take(limit).read_to_end(&mut bytes).with_context(|| format!("cannot read {}", path.display()))?;
    }
    Ok(bytes)
}

fn describe(replay: &FileReplay) -> String {
    let ranks = replay.peak_bytes.iter().enumerate();
    let rows: Vec<String> =
        ranks.map(|(rank, &bytes)| format!("{rank:>4}  {:>8.3}\n", Bytes::new(bytes).gib())).collect();
    let rows = rows.concat();
    format!(
        "iteration: {:.6} s ({} ns)\nidle: {:.2} %\nrank  peak GiB\n{rows}",
        Nanos::new(replay.iteration_ns).secs(),
        replay.iteration_ns,
        100.0 * replay.idle_share
    )
}
