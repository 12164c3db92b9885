//! Efficiency curves of a device and its links: how much of a peak a kernel of some shape reaches.
//!
//! Peaks stand in [`Device`](super::Device) and [`Link`](super::Link); a curve is relative to them, so that an
//! edited peak moves every prediction. docs/models.md, section 3, has the formulas.

use serde::{Deserialize, Serialize};

/// Fitted curves of a device, with their source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Curves {
    /// What was fitted and on what.
    pub calibration: Calibration,
    /// Matrix products.
    pub matmul: MatMulCurve,
    /// Fused attention.
    pub attention: AttentionCurve,
    /// Kernels limited by memory.
    pub streaming: StreamingCurve,
    /// Rate of matrix products and attention in continuous operation, at the power limit, relative to when they are
    /// timed alone.
    pub sustained: f64,
    /// Time of the host for one operator, in µs; it hides behind the device's work where that is longer.
    pub host_us: f64,
    /// Time of the host for one microbatch of one stage beside its operators (data, loss, bookkeeping), in µs.
    pub host_microbatch_us: f64,
}

/// What a device's curves stand on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// Where the measurements come from, or why there are none.
    pub source: String,
    /// Timings of matrix products that were fitted.
    #[serde(default)]
    pub matmul: u32,
    /// Timings of attention kernels that were fitted.
    #[serde(default)]
    pub attention: u32,
    /// Timings of memory-bound kernels that were fitted.
    #[serde(default)]
    pub streaming: u32,
    /// Timings of collectives that were fitted.
    #[serde(default)]
    pub collective: u32,
    /// Mean relative residual of the fitted timings.
    #[serde(default)]
    pub residual: f64,
}

impl Calibration {
    /// All fitted timings.
    pub const fn samples(&self) -> u32 {
        self.matmul + self.attention + self.streaming + self.collective
    }
}

/// How a matrix product's rate depends on its shape, relative to the device's `matmul_efficiency`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct MatMulCurve {
    /// Columns of the inner dimension that pass before a tile's pipeline is full.
    pub fill: f64,
    /// Rate of output tiles of 128 x 128 relative to 256 x 128.
    pub tile_128: f64,
    /// Rate of tiles of 128 x 64.
    pub tile_64: f64,
    /// Rate of tiles of 64 x 64.
    pub tile_small: f64,
    /// Share of the last, partly filled wave of tiles that is lost: 1 as if it were full, 0 as if it cost nothing.
    pub last_wave: f64,
    /// Share of the memory bandwidth that operands and result reach.
    pub traffic: f64,
    /// Rate of an input gradient relative to a forward product.
    pub input_grad: f64,
    /// Rate of an accumulated weight gradient relative to a forward product.
    pub weight_grad: f64,
    /// Rate of grouped products (experts) relative to one product of the same tiles.
    pub grouped: f64,
    /// How much longer a long kernel takes than its first part says, because the power limit lowers the clock.
    pub power_drop: f64,
    /// Duration at which half of that drop is reached, in ms.
    pub power_ms: f64,
}

/// How a fused attention kernel's rate depends on its shape, relative to the device's `attention_efficiency`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct AttentionCurve {
    /// Blocks of 128 queries (over heads and sequences) at which half of the rate is reached.
    pub half_blocks: f64,
    /// Length at which half of the rate is reached.
    pub half_length: f64,
    /// Rate of the backward pass relative to the forward.
    pub backward: f64,
}

/// Shares of the memory bandwidth, relative to the device's `memory_efficiency`, by what a kernel does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct StreamingCurve {
    /// Norms.
    pub norm: f64,
    /// Residual additions, dropout.
    pub elementwise: f64,
    /// Activation functions, rotary positions.
    pub activation: f64,
    /// Embedding lookups.
    pub embedding: f64,
    /// Softmax over stored scores.
    pub softmax: f64,
    /// Cross entropy.
    pub loss: f64,
    /// Permutation of tokens to experts.
    pub permute: f64,
    /// Optimizer step.
    pub optimizer: f64,
}

/// How a link's rate depends on the message.
///
/// time = `base_us` + `per_rank_us` (n - 1) + wire bytes / bandwidth x (1 + (`small_bytes` / bytes)^(1/5)) / share
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LinkCurve {
    /// Start of a collective, in µs.
    pub base_us: f64,
    /// What each further rank adds, in µs.
    pub per_rank_us: f64,
    /// Scale of the slow approach to the full rate, in bytes.
    pub small_bytes: f64,
    /// Rate between two devices relative to larger groups.
    pub pair: f64,
    /// Rate of all-gather and reduce-scatter relative to all-reduce.
    pub half_collectives: f64,
    /// Rate of all-to-all relative to all-reduce.
    pub all_to_all: f64,
}

impl Curves {
    /// What is assumed of a device that nobody measured: the middle of the measured ones.
    pub fn generic() -> Self {
        Self {
            calibration: Calibration {
                source: "not measured: curves of a typical device".to_owned(),
                ..Calibration::default()
            },
            matmul: MatMulCurve::GENERIC,
            attention: AttentionCurve::GENERIC,
            streaming: StreamingCurve::GENERIC,
            sustained: 1.0,
            host_us: LATER_HOST_US,
            host_microbatch_us: LATER_HOST_MICROBATCH_US,
        }
    }
}

/// What an H100 keeps at its power limit, which nobody measured kernel by kernel. Products beyond a millisecond reach 84 %
/// of the largest measured product on A100s (vidur and SimuMax agree), 61 % on a B200 timed back to back (SimuMax), and
/// 85 % on an H100 timed with pauses (vidur): halfway between A100 and B200 is 72 %, or 0.85 of the latter.
pub const H100_SUSTAINED: f64 = 0.85;

/// Host time of one operator on the machines of 2022 (Megatron-DeepSpeed on DGX A100), fitted on sixteen rows of a
/// published table (docs/accuracy.md names them).
pub const HOST_US: f64 = 56.0;

/// Host time of one microbatch, fitted on the same rows.
pub const HOST_MICROBATCH_US: f64 = 3250.0;

/// Host time of one operator on later machines: nobody published it; half of the above for faster hosts and fused
/// modules.
pub const LATER_HOST_US: f64 = 28.0;

/// Host time of one microbatch on later machines, assumed likewise.
pub const LATER_HOST_MICROBATCH_US: f64 = 1000.0;

impl MatMulCurve {
    /// Assumed of a device that nobody measured.
    pub const GENERIC: Self = Self {
        fill: 100.0,
        tile_128: 0.95,
        tile_64: 0.75,
        tile_small: 0.7,
        last_wave: 0.3,
        traffic: 0.8,
        input_grad: 1.0,
        weight_grad: 0.95,
        grouped: 0.85,
        power_drop: 0.15,
        power_ms: 0.3,
    };
}

impl AttentionCurve {
    /// Assumed of a device that nobody measured.
    pub const GENERIC: Self = Self { half_blocks: 195.0, half_length: 250.0, backward: 0.8 };
}

impl StreamingCurve {
    /// Assumed of a device that nobody measured: reductions reach three quarters of a plain stream.
    pub const GENERIC: Self = Self {
        norm: 0.75,
        elementwise: 1.0,
        activation: 0.9,
        embedding: 0.5,
        softmax: 0.75,
        loss: 0.75,
        permute: 0.5,
        optimizer: 1.0,
    };
}

impl LinkCurve {
    /// Assumed of a link that nobody measured.
    pub const GENERIC: Self =
        Self { base_us: 20.0, per_rank_us: 4.0, small_bytes: 5e4, pair: 0.9, half_collectives: 0.95, all_to_all: 0.85 };
}
