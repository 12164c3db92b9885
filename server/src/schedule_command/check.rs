//! `planscope schedule check`: validates schedule tables.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use planner::schedule::csv::{self, Imported};

/// Prints a summary per table, or all its errors.
pub(super) fn run(tables: &[PathBuf]) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    let mut code = ExitCode::SUCCESS;
    for path in tables {
        let name = path.display();
        match csv::read(&super::asked::read(path)?) {
            Ok(Imported { schedule, notes, .. }) => {
                writeln!(
                    out,
                    "{name}: sound: {} ranks, {} stages, {} microbatches, {} actions",
                    schedule.ranks(),
                    schedule.stages,
                    schedule.microbatches,
                    schedule.len()
                )?;
                notes.iter().try_for_each(|note| writeln!(out, "{name}: {note}"))?;
            }
            Err(invalid) => {
                code = ExitCode::FAILURE;
                invalid.problems.iter().try_for_each(|problem| writeln!(out, "{name}: {problem}"))?;
                if invalid.problems.is_empty() {
                    writeln!(out, "{name}: {invalid}")?;
                }
                if invalid.further > 0 {
                    writeln!(out, "{name}: and {} more", invalid.further)?;
                }
            }
        }
    }
    Ok(code)
}
