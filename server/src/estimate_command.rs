//! `planscope estimate`: evaluates a table of configurations row by row.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use ingest::configurations::{self, ANSWERS, MAX_BYTES, Obstacle, Summary, Table};
use planner::estimate::estimate;

use crate::config::EstimateArguments;

/// Estimates all rows of a table. Writes the result to a file or to standard output, and the
/// summary to standard error.
pub fn run(arguments: &EstimateArguments) -> anyhow::Result<ExitCode> {
    let bytes = read(&arguments.configurations)?;
    let table = configurations::read(&bytes)?;
    let started = Instant::now();
    let summary = match arguments.out.as_deref().filter(|path| *path != Path::new("-")) {
        Some(path) => {
            let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
            let answered = configurations::write(&table, estimate, BufWriter::new(file));
            answered.with_context(|| format!("cannot write {}", path.display()))?
        }
        None => configurations::write(&table, estimate, std::io::stdout().lock())?,
    };
    report(&table, &summary, started.elapsed())?;
    let is_clean =
        summary.infeasible.is_empty() && summary.without_effect.columns.is_empty() && table.ignored().next().is_none();
    Ok(if arguments.strict && !is_clean { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    // Read one byte beyond the limit to detect a table that is too large.
    let limit = MAX_BYTES as u64 + 1;
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().take(limit).read_to_end(&mut bytes).context("cannot read standard input")?;
    } else {
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        file.take(limit).read_to_end(&mut bytes).with_context(|| format!("cannot read {}", path.display()))?;
    }
    Ok(bytes)
}

fn report(table: &Table<'_>, summary: &Summary, elapsed: Duration) -> std::io::Result<()> {
    let mut out = std::io::stderr().lock();
    let Summary { rows, feasible, infeasible, without_effect } = summary;
    let rate = *rows as f64 / elapsed.as_secs_f64().max(1e-9);
    writeln!(out, "{rows} rows, {feasible} feasible, {} infeasible; {rate:.0} rows per second", rows - feasible)?;
    for Obstacle { check: subject, rows, first, reason } in infeasible {
        writeln!(out, "infeasible by {subject}: {rows}, first in row {first}: {reason}")?;
    }
    if let Some((first, says)) = &without_effect.first {
        let (cells, rows) = (without_effect.cells, without_effect.rows);
        writeln!(out, "cells without effect: {cells} in {rows} rows, first in row {first}: {says}")?;
    }
    if !without_effect.columns.is_empty() {
        writeln!(out, "columns without effect in all rows: {}", without_effect.columns.join(", "))?;
    }
    let ignored: Vec<String> = table.ignored().map(|name| format!("{name:?}")).collect();
    if !ignored.is_empty() {
        writeln!(out, "columns copied to the output and not used: {}", ignored.join(", "))?;
    }
    for (name, column) in table.ignored().filter_map(|name| Some((name, configurations::similar(name)?))) {
        writeln!(out, "column {name:?} is ignored; did you mean {column}?")?;
    }
    for name in table.ignored().filter(|name| ANSWERS.contains(name)) {
        writeln!(out, "the table has a column {name} of its own: that of the answer is the last of that name")?;
    }
    Ok(())
}
