//! Measured kernels and collectives: what a device is calibrated with.
//!
//! Understood are
//!
//! | format | a measured value is |
//! |---|---|
//! | Vidur compute profile, CSV | one operator of a row: a row holds up to ten |
//! | Vidur network profile, CSV | a row |
//! | vTrain all-reduce table, CSV | a row |
//! | SimuMax system description, JSON | a shape with its efficiency |
//! | Galvatron hardware profile, JSON | a key with its time or bandwidth |
//! | nccl-tests or rccl-tests output, text or JSON | a message size |
//! | `all_reduce_bench.py` output, text | a trial of a rank, or a payload |
//! | aiconfigurator table, Parquet or CSV | a row |
//! | Planscope's own table, CSV | a row |
//!
//! Recognised and refused, because no time of a kernel can be had from them, are SimAI's tables of ratios and profiles
//! of whole layers, which [`layers`] reads, by sequence length and scheme [`schemes`].
//!
//! # Planscope's own table
//!
//! A header in any order, one measured kernel per row, `#` before comments. A column that no row needs may be
//! missing, a cell that its row does not need may be empty; rows count from 1, which is the header.
//!
//! | column | holds | for |
//! |---|---|---|
//! | `kernel` | `matmul`, `attention`, `streaming` or `collective` | every row |
//! | `time_us` | the median time; or one of `time_ms`, `time_s`, `time_ns` | every row |
//! | `m`, `k`, `n` | shape of the product (m x k) (k x n) | matmul |
//! | `batch` | equal products that run together; 1 when empty | matmul |
//! | `product` | `forward`, `input_grad` or `weight_grad`; `forward` when empty | matmul |
//! | `format` | `bf16` (or `fp16`), `fp8` or `fp32`; `bf16` when empty | matmul |
//! | `tokens` | tokens of all sequences | attention |
//! | `squared` | sum over sequences of query length x key length | attention |
//! | `heads`, `kv_heads` | heads on the device; `kv_heads` as `heads` when empty | attention |
//! | `qk_dim`, `v_dim` | width of a head; `v_dim` as `qk_dim` when empty | attention |
//! | `causal` | `true` or `false` | attention |
//! | `backward` | `true` or `false`; `false` when empty | attention |
//! | `class` | `norm`, `elementwise`, `embedding`, `softmax`, `loss`, `permute` or `optimizer` | streaming |
//! | `bytes` | bytes read and written; of a collective, those of the whole vector | streaming, collective |
//! | `operation` | `all_reduce`, `all_gather`, `reduce_scatter`, `all_to_all` or `send_receive` | collective |
//! | `ranks` | devices of the group; 2 when empty and the operation is `send_receive` | collective |
//! | `ranks_per_node` | of them on one node; all of them when empty | collective |
//!
//! Two time columns of a row must agree within 1 %. Every default that was taken is told in
//! [`Report::assumptions`].

mod aiconfigurator;
mod all_reduce_bench;
mod error;
mod galvatron;
mod hints;
mod json;
pub mod layers;
mod ledger;
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

use planner::calibration::Sample;
use serde::{Deserialize, Serialize};

use ledger::Ledger;
use sniff::Content;

/// Largest file that is read.
pub const MAX_BYTES: usize = 64 << 20;
/// Most measured values that one file may hold.
pub const MAX_VALUES: usize = 1_000_000;

/// A format that measured kernels come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Operators of a transformer by tokens and tensor-parallel degree.
    VidurCompute,
    /// Collectives by size and group.
    VidurNetwork,
    /// All-reduce by size, one file per group.
    VtrainAllReduce,
    /// Efficiencies of matrix products and attention by shape.
    SimuMax,
    /// Times of collectives by size and group.
    Galvatron,
    /// Collectives by message size, as nccl-tests and rccl-tests print them.
    NcclTests,
    /// All-reduce, as `all_reduce_bench.py` prints it.
    AllReduceBench,
    /// Tables of aiconfigurator.
    Aiconfigurator,
    /// Planscope's own table.
    Planscope,
}

impl Format {
    /// What people call it.
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
        }
    }
}

/// Measured kernels and how they were read.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Format that was recognised.
    pub format: Format,
    /// The device, where the file or its name says which.
    pub device: Option<String>,
    /// What was measured, in the order of the file.
    pub samples: Vec<Sample>,
    /// What was read and what was not.
    pub report: Report,
}

/// What was read of a profile and what was not.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Report {
    /// Values of the file; each is either used or refused. A row of several measured times is several values.
    pub rows: u64,
    /// Values that became samples.
    pub used: u64,
    /// Values that did not, by reason.
    pub refused: Vec<Refusal>,
    /// What the file does not say and was taken so.
    pub assumptions: Vec<String>,
    /// Samples by what they measure.
    pub by_kind: Kinds,
}

/// Values that were refused for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Why.
    pub reason: String,
    /// How many.
    pub count: u64,
    /// The first of them, for example "row 17, column time_ms: -0.3".
    pub first: String,
}

/// Samples by what they measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Kinds {
    /// Matrix products.
    pub matmul: u64,
    /// Attention kernels.
    pub attention: u64,
    /// Kernels limited by memory.
    pub streaming: u64,
    /// Collectives and sends.
    pub collective: u64,
}

/// Reads a profile, whose format is recognised by its content.
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
        Content::AllReduceBench => all_reduce_bench::read(text, hints),
    }
}

#[cfg(test)]
mod tests;
