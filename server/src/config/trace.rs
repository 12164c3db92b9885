//! Arguments of `planscope trace`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::help;

/// Time unit of Chrome traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Unit {
    /// Microseconds, as in the format.
    Us,
    /// Milliseconds.
    Ms,
    /// Nanoseconds.
    Ns,
}

/// Arguments of `planscope trace`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = help::TRACE)]
pub struct TraceArguments {
    /// Traces: Kineto or other Chrome trace events, Perfetto, SQLite export of Nsight Systems.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Compare the ranks of one run: waits in collectives, and the straggler.
    #[arg(long, conflicts_with = "compare")]
    pub ranks: bool,
    /// Compare two traces, before and after a change, by kernel, phase and step.
    #[arg(long)]
    pub compare: bool,
    /// Rank or device to use from a file with several; not with --ranks.
    #[arg(long, conflicts_with = "ranks")]
    pub rank: Option<u32>,
    /// Number of rows per table in the text.
    #[arg(long, default_value_t = 20)]
    pub rows: usize,
    /// Write JSON.
    #[arg(long)]
    pub json: bool,
    /// Write one table completely, as CSV with times in ns: kernels, phases, steps, ranks, groups, collectives.
    /// Default: kernels; with --ranks: ranks.
    #[arg(long, value_name = "TABLE", num_args = 0..=1, require_equals = true, default_missing_value = "", conflicts_with = "json")]
    pub csv: Option<String>,
    /// Unit of the times in Chrome traces.
    #[arg(long, value_enum, default_value = "us")]
    pub unit: Unit,
}
