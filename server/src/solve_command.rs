//! `planscope solve`: solves a raw problem with an inner solver.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};
use planner::host::{Cancellation, NeverCancelled};
use planner::scenario::FieldError;
use planner::solve::{Response, SolveRequest, parse, respond};
use serde::Serialize;

use crate::config::SolveArguments;
use crate::deadline::Deadline;

/// Exit code for an invalid problem.
const INVALID: u8 = 2;
/// Maximum problem size in bytes.
const MAX_BYTES: u64 = 64 << 20;
/// Default time limit for a search.
const BUDGET: Duration = Duration::from_secs(10);

/// Solves a problem file and writes the result to standard output.
pub fn run(arguments: &SolveArguments) -> anyhow::Result<ExitCode> {
    let text = read(&arguments.problem)?;
    let parsed = match parse(&text) {
        Ok(request) => request,
        Err(errors) => return report_errors(&errors),
    };
    let SolveRequest { problem, budget } = parsed;
    let budget = budget.map_or(BUDGET, |seconds| Duration::from_secs_f64(seconds.secs()));
    let deadline = Deadline::start(&NeverCancelled, budget);
    let solution = match respond(&problem, &arguments.search_threads(), &deadline) {
        Ok(solved) => solved,
        Err(errors) => return report_errors(&errors),
    };
    let timed = Timed { answer: &solution, wall_s: deadline.seconds() };
    let mut out = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, &timed)?;
    writeln!(out)?;
    Ok(ExitCode::SUCCESS)
}

/// A result with the computation time.
#[derive(Serialize)]
struct Timed<'a> {
    #[serde(flatten)]
    answer: &'a Response,
    wall_s: f64,
}

fn read(path: &Path) -> anyhow::Result<String> {
    // Read one byte beyond the limit to detect a problem that is too large.
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().take(MAX_BYTES + 1).read_to_end(&mut bytes).context("cannot read standard input")?;
    } else {
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).with_context(|| format!("cannot read {}", path.display()))?;
    }
    ensure!(bytes.len() as u64 <= MAX_BYTES, "{} is larger than {} MiB", path.display(), MAX_BYTES >> 20);
    String::from_utf8(bytes).with_context(|| format!("{} is not UTF-8", path.display()))
}

/// Prints a line per invalid field.
fn report_errors(errors: &[FieldError]) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stderr().lock();
    for error in errors {
        if error.pointer.is_empty() {
            writeln!(out, "planscope: {}", error.detail)?;
        } else {
            writeln!(out, "planscope: {error}")?;
        }
    }
    Ok(ExitCode::from(INVALID))
}
