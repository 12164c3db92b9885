//! Values for a training step in a log.

use serde::{Deserialize, Serialize};

/// Kind of line or file that a point was first read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Megatron-LM and derived projects: `iteration 10/ 1000 | ...`.
    Megatron,
    /// NeMo 2 with its progress printer.
    Nemo2,
    /// NeMo 1 and other PyTorch Lightning progress bars.
    ProgressBar,
    /// torchtitan.
    Torchtitan,
    /// DeepSpeed lines with steps, skips and learning rates.
    DeepspeedStep,
    /// DeepSpeed's throughput timer.
    DeepspeedTimer,
    /// DeepSpeed's pipeline engine.
    DeepspeedPipeline,
    /// Python dicts printed by the Hugging Face trainer.
    HuggingFaceDict,
    /// Hugging Face `trainer_state.json`.
    TrainerState,
    /// MLPerf's `:::MLLOG`.
    Mlperf,
    /// TensorBoard event files and TensorBoard CSV.
    Tensorboard,
    /// Weights & Biases history, or other JSON lines with a step.
    JsonLines,
    /// CSV export of a Weights & Biases panel.
    PanelCsv,
    /// Reference curves in Megatron-LM's tests.
    GoldenCurves,
    /// Lines matched by a pattern table; [`Report::tables`](super::Report::tables) lists the
    /// entries.
    Table,
    /// DeepSpeed's `wall_clock_breakdown`.
    DeepspeedBreakdown,
    /// Lightning `metrics.csv`, MLflow exports and other CSV with a step column.
    StepCsv,
}

/// Origin of a step time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepTimeOrigin {
    /// Printed by the log, directly or as steps per second.
    Log,
    /// Tokens per step divided by tokens per second.
    TokenRate,
    /// Difference between two clock times, divided by the number of steps.
    Clock,
    /// Difference between two elapsed times, divided by the number of steps.
    Elapsed,
    /// Progress bar average.
    ProgressBar,
    /// Average since the run start.
    RunAverage,
    /// Sum of the step timers.
    Timers,
}

impl StepTimeOrigin {
    /// Returns the display name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Log => "printed by the log",
            Self::TokenRate => "tokens of a step divided by tokens per second",
            Self::Clock => "difference of times of day",
            Self::Elapsed => "difference of elapsed times",
            Self::ProgressBar => "moving average of the progress bar",
            Self::RunAverage => "average since the start of the run",
            Self::Timers => "sum of the timers",
        }
    }
}

impl Source {
    /// Returns true for trainers that print all values of a step in one line.
    pub(super) const fn is_line(self) -> bool {
        matches!(self, Self::Megatron | Self::Nemo2 | Self::Torchtitan | Self::DeepspeedPipeline | Self::Table)
    }

    /// Returns the display name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Megatron => "Megatron-LM log",
            Self::Nemo2 => "NeMo 2 log",
            Self::ProgressBar => "progress bar of NeMo 1 or Lightning",
            Self::Torchtitan => "torchtitan log",
            Self::DeepspeedStep | Self::DeepspeedTimer => "DeepSpeed log",
            Self::DeepspeedPipeline => "DeepSpeed pipeline log",
            Self::HuggingFaceDict => "Hugging Face trainer output",
            Self::TrainerState => "Hugging Face trainer_state.json",
            Self::Mlperf => "MLPerf log",
            Self::Tensorboard => "TensorBoard events",
            Self::JsonLines => "JSON lines (W&B history)",
            Self::PanelCsv => "W&B panel CSV",
            Self::GoldenCurves => "Megatron-LM golden curves",
            Self::Table => "lines described by a table",
            Self::DeepspeedBreakdown => "DeepSpeed wall_clock_breakdown",
            Self::StepCsv => "CSV with a column of steps",
        }
    }
}

/// A named number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Named {
    /// Name in the log.
    pub name: String,
    /// Finite value.
    pub value: f64,
}

/// Memory per device, in GiB.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// Rank, if stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Allocated memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocated_gib: Option<f64>,
    /// Peak allocated memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_allocated_gib: Option<f64>,
    /// Memory reserved by the caching allocator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserved_gib: Option<f64>,
    /// Peak reserved memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_reserved_gib: Option<f64>,
    /// Memory in use on the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_gib: Option<f64>,
}

impl Memory {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self { rank: self.rank, ..Self::default() }
    }
}

/// A step timer, in seconds per iteration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Timer {
    /// Timer name, for example "forward-compute".
    pub name: String,
    /// Time on the printing rank, if the log has a single time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_s: Option<f64>,
    /// Minimum over ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_s: Option<f64>,
    /// Maximum over ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_s: Option<f64>,
    /// Time per rank, if the log contains a table.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<RankTime>,
}

/// Time of a rank, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RankTime {
    /// Rank number.
    pub rank: u32,
    /// Time in seconds.
    pub time_s: f64,
}

/// Kind of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// Validation losses.
    Validation,
    /// Values for the complete run.
    Summary,
    /// An MLPerf event.
    Event,
}

/// A note between steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// Kind.
    pub kind: NoteKind,
    /// Event key, otherwise the line title.
    pub name: String,
    /// Step, if the note states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// Time, as in [`Point::time_us`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_us: Option<i64>,
    /// Numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<Named>,
    /// Text, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Values for a training step, or for the steps since the previous point.
///
/// Values missing in the log are `None`. NaN and infinite values are `None` too, with their names
/// in [`Point::not_finite`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Point {
    /// Run segment. A restart, where the step number decreases, begins a segment.
    pub segment: u32,
    /// Step number in the trainer's count, from 1.
    pub step: u64,
    /// True if the reader counted the steps because the log has no step numbers.
    #[serde(skip_serializing_if = "is_false")]
    pub step_counted: bool,
    /// Total number of training steps; never zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_steps: Option<u64>,
    /// Kind of the first line for the step.
    pub source: Source,
    /// Number of this line, from 1. For event files the record, for lists the row.
    pub line: u64,
    /// Offset of this line or record, in bytes.
    pub offset: u64,
    /// Clock time in microseconds since 1970-01-01T00:00:00Z. Logs without a time zone are read as
    /// UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_us: Option<i64>,
    /// Step time, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_time_s: Option<f64>,
    /// Origin of the step time. `None` without a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_time_origin: Option<StepTimeOrigin>,
    /// Time since the run start, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed_s: Option<f64>,
    /// Samples since the training start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumed_samples: Option<u64>,
    /// Tokens since the training start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumed_tokens: Option<u64>,
    /// Smallest difference that the printed value of `consumed_tokens` shows, if it is rounded (`1.258B`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_rounding: Option<u64>,
    /// Samples per step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub global_batch: Option<u64>,
    /// Tokens per second over all devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_s: Option<f64>,
    /// Tokens per second per device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_s_per_device: Option<f64>,
    /// Samples per second over all devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples_per_s: Option<f64>,
    /// TFLOP/s per device, with the trainer's FLOP count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tflops_per_device: Option<f64>,
    /// True if the log names the value as Megatron-LM does, which counts operations of the model.
    #[serde(skip_serializing_if = "is_false")]
    pub is_megatron_flops: bool,
    /// Model FLOPs utilization from 0 to 1, with the trainer's FLOP count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mfu: Option<f64>,
    /// Language model loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Learning rate; the first if there are several parameter groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning_rate: Option<f64>,
    /// Gradient norm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grad_norm: Option<f64>,
    /// Skipped updates since the previous point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped_iterations: Option<u64>,
    /// Steps with NaN loss since the previous point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nan_iterations: Option<u64>,
    /// Further losses and numbers, in log order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Named>,
    /// Names with NaN or infinite values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_finite: Vec<String>,
    /// Memory per device.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<Memory>,
    /// Timers of the step.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timers: Vec<Timer>,
    /// Validation, summaries and events after the step.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

impl Default for Point {
    fn default() -> Self {
        Self {
            segment: 0,
            step: 0,
            step_counted: false,
            total_steps: None,
            source: Source::Megatron,
            line: 0,
            offset: 0,
            time_us: None,
            step_time_s: None,
            step_time_origin: None,
            elapsed_s: None,
            consumed_samples: None,
            consumed_tokens: None,
            token_rounding: None,
            global_batch: None,
            tokens_per_s: None,
            tokens_per_s_per_device: None,
            samples_per_s: None,
            tflops_per_device: None,
            is_megatron_flops: false,
            mfu: None,
            loss: None,
            learning_rate: None,
            grad_norm: None,
            skipped_iterations: None,
            nan_iterations: None,
            others: Vec::new(),
            not_finite: Vec::new(),
            memory: Vec::new(),
            timers: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// serde passes references.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_false(value: &bool) -> bool {
    !*value
}
