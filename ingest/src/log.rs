//! Logs of training runs to points: one for every step that a log speaks of.
//!
//! [`LogParser`] reads text as it grows, for runs that are live; [`import`] reads a whole file, in any of
//!
//! | format | recognised by |
//! |---|---|
//! | Megatron-LM in all its variants, BLOOM's, Megatron-DeepSpeed | `iteration 10/ 1000 \|` |
//! | NeMo 2 | `Training epoch 0, iteration 120/149 \|` |
//! | NeMo 1 and Lightning | a progress bar with figures |
//! | torchtitan | `step: 20  loss: ...` |
//! | DeepSpeed | `step=10, skipped=4, lr=[...]`, `RunningAvgSamplesPerSec=`, `steps: 10 loss: ... iter time (s): ...` |
//! | Hugging Face trainer, axolotl, ms-swift, LLaMA-Factory | dicts with `'loss'`; `trainer_state.json` by its key `log_history` |
//! | MLPerf | `:::MLLOG` |
//! | Megatron-LM's golden curves | JSON of figures with `step_interval` and `values` |
//! | Weights & Biases, LLaMA-Factory, ms-swift, DLLogger | JSON lines with a step, or a list of such rows; the CSV of a panel by its columns |
//! | Lightning, MLflow, `run.history().to_csv()`, notebooks | a table with a column of steps; MLflow's metric files |
//! | TensorBoard | event files by their first record; CSV by `Wall time,Step,Value` |
//! | nanotron, MaxText, OLMo, composer, litgpt, fairseq, torchtune, verl and others | `trainers.toml`, a [`LogTable`] |
//!
//! Companions of Megatron-LM's steps are read too: timers in their four forms, memory, validation. Colours and tags
//! of ranks are removed, a carriage return ends a line, and every line is accounted for in a [`Report`].

mod clock;
mod deepspeed;
mod docker;
mod error;
mod hugging_face;
mod json_lines;
mod lines;
mod listed;
mod megatron;
mod metric;
mod mlperf;
mod order;
mod pace;
mod parser;
mod point;
mod progress_bar;
mod quantity;
mod reading;
mod report;
mod rows;
mod setup;
mod sniff;
mod step_csv;
mod steps;
mod table;
pub mod tensorboard;
mod text;
mod torchtitan;
mod utf16;

pub use error::LogError;
pub use parser::LogParser;
pub use point::{Memory, Named, Note, NoteKind, Point, RankTime, Source, StepTimeOrigin, Timer};
pub use report::{Problem, Report, SourceCount, TornLine};
pub use setup::{JobSetup, JobSetups, job_setup};
pub use table::{LogTable, TableError};

use sniff::Content;

/// How much is read and kept. What goes beyond is counted, never an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest line, in bytes: lines of steps have a few hundred.
    pub line_bytes: usize,
    /// Values of one point besides its fields: mixture-of-experts runs print one per layer.
    pub values: usize,
    /// Ranks that are told apart, and memory entries of one point.
    pub ranks: usize,
    /// Timers of one point.
    pub timers: usize,
    /// Notes of one point.
    pub notes: usize,
    /// Longest name, in characters.
    pub name_chars: usize,
    /// Torn lines that are kept as they stand.
    pub torn_lines: usize,
    /// Longest torn line, in characters.
    pub torn_chars: usize,
    /// Largest whole file that [`import`] reads, in bytes, unpacked; what [`LogParser`] reads has no end.
    pub file_bytes: usize,
    /// Longest record of an event file, in bytes; scalars have a few hundred, images and graphs are larger and are
    /// left out anyway.
    pub record_bytes: usize,
    /// Most points of a whole file: beyond it no chart tells them apart.
    pub points: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            line_bytes: 64 << 10,
            values: 512,
            ranks: 4096,
            timers: 512,
            notes: 1000,
            name_chars: 200,
            torn_lines: 100,
            torn_chars: 500,
            file_bytes: 256 << 20,
            record_bytes: 16 << 20,
            points: 1_000_000,
        }
    }
}

/// A whole log.
#[derive(Debug, Clone, PartialEq)]
pub struct Log {
    /// Its points, in the order of the file.
    pub points: Vec<Point>,
    /// Timers that came before the first step.
    pub setup: Vec<Timer>,
    /// What was read and what was not.
    pub report: Report,
}

/// Reads a whole file, packed with gzip or not, whose format is recognised by its content.
///
/// # Errors
/// What the file is instead of a log, or that no step is in it.
pub fn import(bytes: &[u8], limits: &Limits) -> Result<Log, LogError> {
    import_with(bytes, limits, None)
}

/// Reads a whole file as [`import`] does, with a table of patterns of the user's own for its lines.
///
/// # Errors
/// As [`import`].
pub fn import_with(bytes: &[u8], limits: &Limits, table: Option<&LogTable>) -> Result<Log, LogError> {
    let unpacked = sniff::narrow(sniff::unpack(bytes, limits)?);
    let bytes = unpacked.as_ref();
    // A line of a history holds every metric of a model.
    let long = Limits { line_bytes: limits.line_bytes.max(10 << 20), ..*limits };
    let mut log = match sniff::content(bytes, limits)? {
        Content::Text => text(bytes, *limits, table),
        Content::JsonLines => text(bytes, long, table),
        Content::TrainerState(document) => rows::trainer_state(document, limits)?,
        Content::Curves(curves) => rows::curves(&curves, limits),
        Content::PanelCsv => rows::panel(bytes, limits)?,
        Content::ScalarCsv => rows::scalars(bytes, limits),
        Content::StepCsv(delimiter) => step_csv::import(bytes, delimiter, limits)?,
        Content::Listed(lines) => text(lines.as_bytes(), long, table),
        Content::MlflowMetric => step_csv::mlflow_metric(bytes, limits),
        Content::Tensorboard => tensorboard::import(bytes, limits)?,
    };
    if log.points.is_empty() {
        return Err(LogError::NoSteps { report: Box::new(log.report) });
    }
    // Rows of several runs may be mixed.
    log.points.sort_by_key(|point| point.segment);
    order::restore(&mut log, limits);
    // Readers stop behind the limit, never at it, so that what is left unread is known here.
    if log.points.len() > limits.points {
        log.points.truncate(limits.points);
        log.report.points = limits.points as u64;
        log.report.assume("there are more points than are kept; the rest of the file is not read");
    }
    Ok(log)
}

fn text(bytes: &[u8], limits: Limits, table: Option<&LogTable>) -> Log {
    let mut parser = LogParser::with_table(limits, table.cloned());
    let mut points = Vec::new();
    // In pieces, so that a file of nothing but steps stops growing at the limit.
    for piece in bytes.chunks(1 << 20) {
        points.append(&mut parser.push(piece));
        if points.len() > limits.points {
            break;
        }
    }
    let setup = parser.setup().to_vec();
    let (last, report) = parser.finish();
    points.extend(last);
    Log { points, setup, report }
}

#[cfg(test)]
mod tests;
