//! What a log says of one training step.

use serde::{Deserialize, Serialize};

/// The kind of line or file that a point was first read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Megatron-LM and its relatives: `iteration 10/ 1000 | ...`.
    Megatron,
    /// NeMo 2 with its progress printer.
    Nemo2,
    /// NeMo 1 and other progress bars of PyTorch Lightning.
    ProgressBar,
    /// torchtitan.
    Torchtitan,
    /// DeepSpeed's line of steps, skips and learning rates.
    DeepspeedStep,
    /// DeepSpeed's throughput timer.
    DeepspeedTimer,
    /// DeepSpeed's pipeline engine.
    DeepspeedPipeline,
    /// Python dicts that the Hugging Face trainer prints.
    HuggingFaceDict,
    /// The Hugging Face trainer's `trainer_state.json`.
    TrainerState,
    /// MLPerf's `:::MLLOG`.
    Mlperf,
    /// TensorBoard event files and its CSV.
    Tensorboard,
    /// History of Weights & Biases, or other JSON lines with a step.
    JsonLines,
    /// CSV of a panel of Weights & Biases.
    PanelCsv,
    /// Curves that Megatron-LM's tests compare with.
    GoldenCurves,
    /// Lines that a table of patterns describes; [`Report::tables`](super::Report::tables) names the entries.
    Table,
    /// DeepSpeed's `wall_clock_breakdown`.
    DeepspeedBreakdown,
    /// Lightning's `metrics.csv`, MLflow's exports and other CSV with a column of steps.
    StepCsv,
}

/// How the time of a step was obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepTimeOrigin {
    /// The log prints it, or steps per second.
    Log,
    /// Tokens of a step divided by tokens per second.
    TokenRate,
    /// Difference of two times of day, divided by the steps between.
    Clock,
    /// Difference of two times since the start, divided by the steps between.
    Elapsed,
    /// Moving average of a progress bar.
    ProgressBar,
    /// Average since the start of the run.
    RunAverage,
    /// Sum of the timers of a step.
    Timers,
}

impl StepTimeOrigin {
    /// The origin in words.
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
    /// What people call it.
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

/// A number by the name that the log gives it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Named {
    /// The name as written.
    pub name: String,
    /// The value, finite.
    pub value: f64,
}

/// Memory of one device, in GiB.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// Whose, where the line says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Allocated now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocated_gib: Option<f64>,
    /// Most that was allocated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_allocated_gib: Option<f64>,
    /// Reserved by the caching allocator now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserved_gib: Option<f64>,
    /// Most that was reserved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_reserved_gib: Option<f64>,
    /// What the whole device has in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_gib: Option<f64>,
}

impl Memory {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self { rank: self.rank, ..Self::default() }
    }
}

/// A timer of a step, in seconds per iteration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Timer {
    /// Its name, for example "forward-compute".
    pub name: String,
    /// Time of the rank that prints, where the log has one time only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_s: Option<f64>,
    /// Least over the ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_s: Option<f64>,
    /// Most over the ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_s: Option<f64>,
    /// Time of every rank, where the log has a table of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<RankTime>,
}

/// A rank's time, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RankTime {
    /// The rank.
    pub rank: u32,
    /// Its time.
    pub time_s: f64,
}

/// What a note is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// Losses on held-out data.
    Validation,
    /// Figures of a whole run.
    Summary,
    /// An event of MLPerf.
    Event,
}

/// What stands beside the steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// What it is of.
    pub kind: NoteKind,
    /// Its name: the key of an event, the line's title otherwise.
    pub name: String,
    /// The step that it names itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// When, as in [`Point::time_us`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_us: Option<i64>,
    /// Its numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<Named>,
    /// Its words, where it has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// What a log says of one training step, or of the steps since the point before it.
///
/// Missing is what the log does not say; a value that is NaN or infinite is missing too, and its name stands in
/// [`Point::not_finite`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Point {
    /// Part of the run: a restart, where the step goes back, opens the next.
    pub segment: u32,
    /// The step, as the trainer counts from 1.
    pub step: u64,
    /// Whether steps were counted here, because the log does not number them.
    #[serde(skip_serializing_if = "is_false")]
    pub step_counted: bool,
    /// Steps of the whole training; never zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_steps: Option<u64>,
    /// Kind of the first line that spoke of the step.
    pub source: Source,
    /// That line, counting from 1 by line feeds; of event files the record, of lists the row.
    pub line: u64,
    /// First byte of that line or record.
    pub offset: u64,
    /// Time of day in microseconds since 1970-01-01T00:00:00Z. A log without a time zone is read as if it were in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_us: Option<i64>,
    /// Time of one step, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_time_s: Option<f64>,
    /// How that time was obtained; `None` where there is no time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_time_origin: Option<StepTimeOrigin>,
    /// Time since the start of the run, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed_s: Option<f64>,
    /// Samples since the training began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumed_samples: Option<u64>,
    /// Tokens since the training began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumed_tokens: Option<u64>,
    /// Samples of one step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub global_batch: Option<u64>,
    /// Tokens per second of all devices together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_s: Option<f64>,
    /// Tokens per second of one device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_s_per_device: Option<f64>,
    /// Samples per second of all devices together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples_per_s: Option<f64>,
    /// 10^12 floating-point operations per second and device, as the trainer counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tflops_per_device: Option<f64>,
    /// Share of the peak of a device that is used, from 0 to 1, as the trainer counts operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mfu: Option<f64>,
    /// Loss of the language model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Learning rate; of several groups of parameters, the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning_rate: Option<f64>,
    /// Norm of the gradient.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grad_norm: Option<f64>,
    /// Steps since the last point whose update was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped_iterations: Option<u64>,
    /// Steps since the last point whose loss was not a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nan_iterations: Option<u64>,
    /// Further losses and every other number, in the order of the log.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Named>,
    /// Names whose value was NaN or infinite.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_finite: Vec<String>,
    /// Memory by device.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<Memory>,
    /// Timers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timers: Vec<Timer>,
    /// Validation, summaries and events that followed the step.
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
            global_batch: None,
            tokens_per_s: None,
            tokens_per_s_per_device: None,
            samples_per_s: None,
            tflops_per_device: None,
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

/// Serde asks by reference.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_false(value: &bool) -> bool {
    !*value
}
