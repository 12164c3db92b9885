//! `planscope sweep`: plans the points of a sweep, or of a shard, without a server and without
//! communication between shards.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use planner::engine::Unobserved;
use planner::host::Workers;
use planner::scenario::validate::Datasets;
use planner::sweep::{self, Heading, Point, PointOutcome, PointRow, Shard, Sheet, Sweep};

use crate::config::SweepArguments;
use crate::plan_command::{Files, read};
use crate::sweeps::STOPPED;
use crate::workers::Threads;

/// Exit code for an invalid sweep.
const INVALID: u8 = 2;
/// Exit code if points failed due to an internal error.
const FAULTY: u8 = 3;
/// Points per batch and thread. Large enough that threads rarely wait for the slowest point in a
/// batch.
const BATCH: usize = 16;
/// Interval for syncing lines to disk. After a power loss, the lines of the last interval are
/// planned again.
const SYNC: Duration = Duration::from_secs(2);
/// Interval for progress messages.
const TELL: Duration = Duration::from_secs(5);

/// Plans a sweep file, in point order.
pub fn run(arguments: &SweepArguments) -> anyhow::Result<ExitCode> {
    let datasets = Files::read(&arguments.datasets, arguments.preprocessing)?;
    let sweep = match Sweep::parse(&read(&arguments.sweep)?) {
        Ok(sweep) => sweep,
        Err(errors) => {
            let mut out = std::io::stderr().lock();
            for error in &errors {
                writeln!(out, "{}", crate::field_names::describe(error, crate::field_names::in_scenario))?;
            }
            return Ok(ExitCode::from(INVALID));
        }
    };
    let shard = arguments.shard;
    let heading = Heading::new(&sweep, shard).line();
    let points: Vec<u32> = shard.points(sweep.points()).collect();
    let (mut sheet, Resumed { rows: done, mut invalid, bytes }) = match &arguments.out {
        None => (Sink::Output(std::io::stdout()), Resumed::default()),
        Some(path) => open(path, arguments.resume, &heading, &points)?,
    };
    if bytes == 0 {
        sheet.write(format!("{heading}\n").as_bytes())?;
    }
    let shard_text = if shard == Shard::FULL { String::new() } else { format!(" of shard {shard}") };
    eprintln!("sweep {}: {} points{shard_text}, {done} there already", sweep.id(), points.len());
    let threads = arguments.threads();
    let began = Instant::now();
    let (mut reported, mut synced) = (began, began);
    let mut failed = 0_usize;
    let mut written = done;
    for batch in points[done..].chunks(threads.count() * BATCH) {
        let rows = plan(&sweep, batch, &datasets, threads);
        let mut lines = String::new();
        for row in &rows {
            failed += usize::from(matches!(row.answer, PointOutcome::Failed { .. }));
            invalid += usize::from(matches!(row.answer, PointOutcome::Invalid { .. }));
            lines.push_str(&serde_json::to_string(row)?);
            lines.push('\n');
        }
        sheet.write(lines.as_bytes())?;
        written += rows.len();
        if synced.elapsed() >= SYNC {
            sheet.sync()?;
            synced = Instant::now();
        }
        if reported.elapsed() >= TELL {
            eprintln!("{}", progress(written, points.len(), written - done, began.elapsed()));
            reported = Instant::now();
        }
    }
    sheet.sync()?;
    eprintln!("{}", progress(written, points.len(), written - done, began.elapsed()));
    if invalid > 0 {
        eprintln!(
            "{invalid} points are no valid scenarios; their lines say why. A dataset that they name is given with \
             --dataset, and the lines into a new file: those that are there stay"
        );
    }
    if failed > 0 {
        eprintln!("{failed} points failed by a fault of Planscope; their lines say which");
        return Ok(ExitCode::from(FAULTY));
    }
    Ok(ExitCode::SUCCESS)
}

/// Plans a point. If the planner panics, returns a row with the error.
pub(crate) fn plan_point(point: &Point, datasets: &dyn Datasets) -> PointRow {
    std::panic::catch_unwind(AssertUnwindSafe(|| sweep::plan_point(point, datasets, &mut Unobserved)))
        .ok()
        .and_then(Result::ok)
        // The panic hook has already logged location and message.
        .unwrap_or_else(|| PointRow::failed(point, STOPPED))
}

/// Plans points in parallel. Returns their rows in order.
fn plan(sweep: &Sweep, batch: &[u32], datasets: &(dyn Datasets + Sync), threads: Threads) -> Vec<PointRow> {
    let rows: Vec<OnceLock<PointRow>> = batch.iter().map(|_| OnceLock::new()).collect();
    threads.run(batch.len(), &|number| {
        if let Some(point) = sweep.point(batch[number]) {
            // Each job has a separate cell, which is still empty.
            let _ = rows[number].set(plan_point(&point, datasets));
        }
    });
    rows.into_iter().filter_map(OnceLock::into_inner).collect()
}

fn progress(written: usize, all: usize, planned: usize, elapsed: Duration) -> String {
    let rate = planned as f64 / elapsed.as_secs_f64().max(1e-3);
    let left = (all - written) as f64 / rate.max(1e-9);
    let left = if written == all { String::new() } else { format!(", {left:.0} s left") };
    format!("{written} of {all} points, {rate:.1} a second{left}")
}

/// Output destination.
enum Sink {
    Output(std::io::Stdout),
    File(File),
}

impl Sink {
    fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        match self {
            Self::Output(out) => out.lock().write_all(bytes)?,
            Self::File(file) => file.write_all(bytes).context("cannot write the lines")?,
        }
        Ok(())
    }

    fn sync(&self) -> anyhow::Result<()> {
        match self {
            Self::Output(out) => Ok(out.lock().flush()?),
            Self::File(file) => file.sync_data().context("cannot write the lines"),
        }
    }
}

/// Valid content of an existing output file.
#[derive(Debug, Clone, Copy, Default)]
struct Resumed {
    /// Number of rows, without the heading.
    rows: usize,
    /// Number of rows with an invalid scenario.
    invalid: usize,
    /// Offset after the last complete line, 0 if there is no heading.
    bytes: u64,
}

/// Opens the output file and seeks to the end of the complete lines.
fn open(path: &Path, resume: bool, heading: &str, points: &[u32]) -> anyhow::Result<(Sink, Resumed)> {
    if !resume {
        let opened = OpenOptions::new().write(true).create_new(true).open(path);
        let file = opened.with_context(|| format!("cannot make {}; --resume goes on with one", path.display()))?;
        return Ok((Sink::File(file), Resumed::default()));
    }
    let there = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    let mut file = there.with_context(|| format!("cannot make or go on with {}", path.display()))?;
    let resumed = complete_rows(&file, heading, points).with_context(|| path.display().to_string())?;
    file.set_len(resumed.bytes)?;
    file.seek(SeekFrom::End(0))?;
    Ok((Sink::File(file), resumed))
}

/// Validates the rows of a file. An incomplete last line is ignored.
fn complete_rows(file: &File, heading: &str, points: &[u32]) -> anyhow::Result<Resumed> {
    let mut reader = BufReader::new(file);
    let (mut rows, mut invalid, mut end) = (0, 0, 0_u64);
    let mut line = Vec::new();
    let mut sheet: Option<Sheet> = None;
    for number in 1_usize.. {
        line.clear();
        let length = reader.read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            break;
        }
        let text = std::str::from_utf8(&line).unwrap_or_default().trim_end_matches('\n');
        match &sheet {
            None => {
                ensure!(text == heading, "line 1 is not the heading of this sweep, shard and engine");
                sheet = Some(Sheet::open(text)?);
            }
            Some(sheet) => match sheet.row(text) {
                Ok(row) if points.get(rows) == Some(&row.index) => {
                    rows += 1;
                    invalid += usize::from(matches!(row.answer, PointOutcome::Invalid { .. }));
                }
                // After a machine crash, data that was not synced can be corrupt, but only at the
                // end of the file.
                Err(_) if reader.fill_buf()?.is_empty() => break,
                Ok(row) => bail!("line {number}: point {} is out of order", row.index),
                Err(error) => bail!("line {number}: {error}"),
            },
        }
        end += length as u64;
    }
    Ok(Resumed { rows, invalid, bytes: end })
}
