//! Parses logs of training runs into one point per logged step.
//!
//! [`LogParser`] parses a growing log of a live run. [`import`] parses a complete file in one of
//! these formats:
//!
//! | format | detected by |
//! |---|---|
//! | Megatron-LM and variants, BLOOM, Megatron-DeepSpeed | `iteration 10/ 1000 \|` |
//! | NeMo 2 | `Training epoch 0, iteration 120/149 \|` |
//! | NeMo 1 and Lightning | a progress bar with metrics |
//! | torchtitan | `step: 20  loss: ...` |
//! | DeepSpeed | `step=10, skipped=4, lr=[...]`, `RunningAvgSamplesPerSec=`, `steps: 10 loss: ... iter time (s): ...` |
//! | Hugging Face trainer, axolotl, ms-swift, LLaMA-Factory | dicts with `'loss'`; `trainer_state.json` with the key `log_history` |
//! | MLPerf | `:::MLLOG` |
//! | Megatron-LM golden curves | JSON metrics with `step_interval` and `values` |
//! | Weights & Biases, LLaMA-Factory, ms-swift, DLLogger | JSON lines with a step, or a list of such rows; the column names of a panel CSV |
//! | Lightning, MLflow, `run.history().to_csv()`, notebooks | a table with a step column; MLflow metric files |
//! | TensorBoard | first record of an event file; CSV header `Wall time,Step,Value` |
//! | nanotron, MaxText, OLMo, composer, litgpt, fairseq, torchtune, verl and others | `trainers.toml`, a [`LogTable`] |
//!
//! Lines that accompany Megatron-LM steps are parsed too: timers in four formats, memory,
//! validation. Terminal colors and rank prefixes are removed, a carriage return terminates a line,
//! and a [`Report`] counts every line.

mod bars;
mod clock;
mod cut;
mod deepspeed;
mod docker;
mod error;
mod header;
mod hugging_face;
mod json_lines;
mod labels;
mod lines;
mod listed;
mod megatron;
mod metric;
mod microbatches;
mod mlperf;
mod order;
mod pace;
mod parser;
mod point;
mod prefix;
mod progress_bar;
mod quantity;
mod reading;
mod report;
mod rows;
mod setup;
mod shapes;
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

/// Limits for reading. Content beyond a limit is counted and not allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum line length, in bytes. Step lines have a few hundred bytes.
    pub line_bytes: usize,
    /// Maximum number of values per point besides its fields. Mixture-of-experts runs print one per
    /// layer.
    pub values: usize,
    /// Maximum number of distinct ranks, and memory entries per point.
    pub ranks: usize,
    /// Maximum number of timers per point.
    pub timers: usize,
    /// Maximum number of notes per point.
    pub notes: usize,
    /// Maximum name length, in characters.
    pub name_chars: usize,
    /// Maximum number of torn lines in the report.
    pub torn_lines: usize,
    /// Maximum length per torn line, in characters.
    pub torn_chars: usize,
    /// Maximum unpacked file size for [`import`], in bytes. [`LogParser`] has no limit.
    pub file_bytes: usize,
    /// Maximum record size in an event file, in bytes. Scalars have a few hundred bytes; larger
    /// images and graphs are skipped.
    pub record_bytes: usize,
    /// Maximum number of points per file.
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

/// A complete log.
#[derive(Debug, Clone, PartialEq)]
pub struct Log {
    /// Points in file order.
    pub points: Vec<Point>,
    /// Timers before the first step.
    pub setup: Vec<Timer>,
    /// Report.
    pub report: Report,
}

/// Reads a complete file, optionally gzip-compressed. The format is detected from the content.
///
/// # Errors
/// The file is not a log, or contains no step.
pub fn import(bytes: &[u8], limits: &Limits) -> Result<Log, LogError> {
    import_with(bytes, limits, None)
}

/// Like [`import`], with the user's table of line patterns.
///
/// # Errors
/// Same as [`import`].
pub fn import_with(bytes: &[u8], limits: &Limits, table: Option<&LogTable>) -> Result<Log, LogError> {
    let unpacked = sniff::narrow(sniff::unpack(bytes, limits)?);
    let bytes = unpacked.as_ref();
    // A history line contains all metrics of a model.
    let long = Limits { line_bytes: limits.line_bytes.max(10 << 20), ..*limits };
    let mut log = match sniff::content(bytes, limits)? {
        Content::Text => text(bytes, *limits, table),
        Content::JsonLines => text(bytes, long, table),
        Content::LongLines => step_csv::import_long_lines(bytes, limits),
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
    // Rows of several runs can be mixed.
    log.points.sort_by_key(|point| point.segment);
    order::restore(&mut log, limits);
    microbatches::merge(&mut log, limits);
    // Readers stop after the limit, so that skipped content is detected here.
    if log.points.len() > limits.points {
        log.points.truncate(limits.points);
        log.report.points = limits.points as u64;
        log.report.assume("there are more points than can be stored; the rest of the file is not read");
    }
    Ok(log)
}

fn text(bytes: &[u8], limits: Limits, table: Option<&LogTable>) -> Log {
    let mut parser = LogParser::for_file(limits, table.cloned());
    let mut points = Vec::new();
    // Reads in pieces, so that a file with only steps stops at the limit.
    for piece in bytes.chunks(1 << 20) {
        points.append(&mut parser.push(piece));
        if points.len() > limits.points {
            break;
        }
    }
    let setup = parser.setup().to_vec();
    let (points, report) = parser.finish_file(points);
    Log { points, setup, report }
}

#[cfg(test)]
mod tests;
