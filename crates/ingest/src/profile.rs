//! Parses kernel and collective measurements for device calibration.
//!
//! Supported formats:
//!
//! | format | measured value |
//! |---|---|
//! | Vidur compute profile, CSV | one operator; a row contains up to ten |
//! | Vidur network profile, CSV | a row |
//! | vTrain all-reduce table, CSV | a row |
//! | SimuMax system description, JSON | a shape with its efficiency |
//! | Galvatron hardware profile, JSON | a key with a time or bandwidth |
//! | nccl-tests or rccl-tests output, text or JSON | a message size |
//! | `all_reduce_bench.py` output, text | a trial on a rank, or a payload |
//! | aiconfigurator table, Parquet or CSV | a row |
//! | Planscope measurements, JSON (`planscope measure`) | a row of a section |
//! | Planscope table, CSV | a row |
//!
//! SimAI ratio tables and layer profiles are detected and rejected because they contain no kernel
//! times. [`layers`] parses layer profiles, and [`schemes`] parses layer times by sequence length
//! and scheme.
//!
//! # Planscope table
//!
//! CSV with columns in any order, one measured kernel per row, and `#` comments. Columns and cells
//! that a row does not need may be missing or empty. Rows count from 1, which is the header.
//!
//! | column | value | used by |
//! |---|---|---|
//! | `kernel` | `matmul`, `attention`, `streaming` or `collective` | all rows |
//! | `time_us` | median time; alternatives are `time_ms`, `time_s`, `time_ns` | all rows |
//! | `m`, `k`, `n` | shape of the product (m x k) (k x n) | matmul |
//! | `batch` | batch size of a batched product; default 1 | matmul |
//! | `product` | `forward`, `input_grad` or `weight_grad`; default `forward` | matmul |
//! | `format` | `bf16` (or `fp16`), `fp8` or `fp32`; default `bf16` | matmul |
//! | `tokens` | tokens over all sequences | attention |
//! | `squared` | sum over sequences of query length x key length | attention |
//! | `heads`, `kv_heads` | heads on the device; default for `kv_heads` is `heads` | attention |
//! | `qk_dim`, `v_dim` | head size; default for `v_dim` is `qk_dim` | attention |
//! | `causal` | `true` or `false` | attention |
//! | `backward` | `true` or `false`; default `false` | attention |
//! | `class` | `norm`, `elementwise`, `embedding`, `softmax`, `loss`, `permute` or `optimizer` | streaming |
//! | `bytes` | bytes read and written; for a collective, size of the full vector | streaming, collective |
//! | `operation` | `all_reduce`, `all_gather`, `reduce_scatter`, `all_to_all` or `send_receive` | collective |
//! | `ranks` | group size; default 2 for `send_receive` | collective |
//! | `ranks_per_node` | group members per node; default all | collective |
//!
//! If a row contains several time columns, they must agree within 1 %. [`Report::assumptions`]
//! lists all applied defaults.

mod aiconfigurator;
mod all_reduce_bench;
mod cells;
mod error;
mod galvatron;
mod hints;
mod json;
pub mod layers;
mod ledger;
mod measurements;
mod nccl_tests;
mod own;
mod parquet;
mod plausible;
mod refused;
pub mod schemes;
mod simumax;
mod sniff;
mod table;
mod text;
mod vidur_compute;
mod vidur_network;
mod vtrain;

pub use error::ProfileError;
pub use hints::Hints;

use std::collections::BTreeMap;

use planner::calibration::Sample;
use serde::{Deserialize, Serialize};

use ledger::Ledger;
use sniff::Content;

/// Maximum file size in bytes.
pub const MAX_BYTES: usize = 64 << 20;
/// Maximum number of measured values per file.
pub const MAX_VALUES: usize = 1_000_000;

/// File format of kernel measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Transformer operators by token count and tensor-parallel degree.
    VidurCompute,
    /// Collectives by message size and group size.
    VidurNetwork,
    /// All-reduce by message size, one file per group.
    VtrainAllReduce,
    /// Matrix product and attention efficiencies by shape.
    SimuMax,
    /// Collective times by message size and group size.
    Galvatron,
    /// Collectives by message size, from nccl-tests or rccl-tests output.
    NcclTests,
    /// All-reduce, from `all_reduce_bench.py` output.
    AllReduceBench,
    /// aiconfigurator tables.
    Aiconfigurator,
    /// Planscope table.
    Planscope,
    /// Output of `planscope measure`.
    Measurements,
}

impl Format {
    /// Returns the display name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::VidurCompute => "Vidur compute profile",
            Self::VidurNetwork => "Vidur network profile",
            Self::VtrainAllReduce => "vTrain all-reduce table",
            Self::SimuMax => "SimuMax system description",
            Self::Galvatron => "Galvatron hardware profile",
            Self::NcclTests => "nccl-tests output",
            Self::AllReduceBench => "all_reduce_bench output",
            Self::Aiconfigurator => "aiconfigurator table",
            Self::Planscope => "Planscope table of measurements",
            Self::Measurements => "Planscope measurements",
        }
    }
}

/// Parsed kernel measurements with a report.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Detected format.
    pub format: Format,
    /// Device name from the file content or file name.
    pub device: Option<String>,
    /// Samples in file order.
    pub samples: Vec<Sample>,
    /// Counts of used and rejected values.
    pub report: Report,
}

/// Counts of used and rejected values.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Report {
    /// Values in the file, each either used, rejected or unfitted. A row with several times has several
    /// values.
    pub rows: u64,
    /// Values converted to samples.
    pub used: u64,
    /// Rejected values by reason.
    pub refused: Vec<Refusal>,
    /// Number of valid values that are not for a fit, by kind.
    pub unfitted: BTreeMap<String, u64>,
    /// Assumptions about information missing in the file.
    pub assumptions: Vec<String>,
    /// Sample count by kernel kind.
    pub by_kind: Kinds,
}

/// Values rejected for the same reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Reason text.
    pub reason: String,
    /// Number of values.
    pub count: u64,
    /// First rejected value, for example "row 17, column time_ms: -0.3".
    pub first: String,
}

/// Sample count by kernel kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Kinds {
    /// Matrix products.
    pub matmul: u64,
    /// Attention kernels.
    pub attention: u64,
    /// Memory-bound kernels.
    pub streaming: u64,
    /// Collectives and point-to-point sends.
    pub collective: u64,
}

/// Parses a profile. The format is detected from content.
pub fn read(bytes: &[u8], hints: &Hints) -> Result<Profile, ProfileError> {
    let unpacked;
    let text = if bytes.starts_with(b"PAR1") && bytes.len() <= MAX_BYTES {
        unpacked = parquet::text(bytes)?;
        unpacked.as_str()
    } else {
        text::text(bytes)?
    };
    match sniff::content(text)? {
        Content::Table(format, mut table) => {
            let mut ledger = Ledger::new(format);
            if format == Format::Aiconfigurator {
                let device = aiconfigurator::read(&mut table, &mut ledger)?;
                let device = device.or_else(|| hints.device(&mut ledger));
                return ledger.finish(device);
            }
            let device = hints.device(&mut ledger);
            match format {
                Format::VidurCompute => vidur_compute::read(&mut table, &mut ledger)?,
                Format::VidurNetwork => vidur_network::read(&mut table, &mut ledger)?,
                Format::VtrainAllReduce => vtrain::read(&mut table, hints, &mut ledger)?,
                _ => own::read(&mut table, &mut ledger)?,
            }
            ledger.finish(device)
        }
        Content::SimuMax => simumax::read(text),
        Content::Galvatron => galvatron::read(text, hints),
        Content::NcclTests => nccl_tests::read(text, hints),
        Content::NcclTestsJson => nccl_tests::read_json(text, hints),
        Content::Measurements => measurements::read(text, hints),
        Content::AllReduceBench => all_reduce_bench::read(text, hints),
    }
}

#[cfg(test)]
mod tests;
