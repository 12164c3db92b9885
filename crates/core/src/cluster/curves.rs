//! Efficiency curves for devices and links: the fraction of a peak that a kernel reaches, by shape.
//!
//! [`Device`](super::Device) and [`Link`](super::Link) contain the peaks. Curves are relative to
//! them, so that editing a peak changes all predictions (formulas: docs/models.md, section 3).

use serde::{Deserialize, Serialize};

/// Fitted curves for a device, with their source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Curves {
    /// Data source of the fit.
    pub calibration: Calibration,
    /// Matrix products.
    pub matmul: MatMulCurve,
    /// Fused attention.
    pub attention: AttentionCurve,
    /// Memory-bound kernels.
    pub streaming: StreamingCurve,
    /// Rate of matrix products and attention in continuous operation at the power limit, relative
    /// to separately timed kernels.
    pub sustained: f64,
    /// Host time per operator in µs. It is hidden while the device is slower.
    pub host_us: f64,
    /// Additional host time per microbatch and stage in µs (data, loss, bookkeeping).
    pub host_microbatch_us: f64,
}

/// Measurements behind the curves of a device.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// Measurement source, or an explanation if there are no measurements.
    pub source: String,
    /// Number of fitted matrix product timings.
    #[serde(default)]
    pub matmul: u32,
    /// Number of fitted attention timings.
    #[serde(default)]
    pub attention: u32,
    /// Number of fitted timings for memory-bound kernels.
    #[serde(default)]
    pub streaming: u32,
    /// Number of fitted collective timings.
    #[serde(default)]
    pub collective: u32,
    /// Mean relative residual of fitted timings.
    #[serde(default)]
    pub residual: f64,
}

impl Calibration {
    /// Total number of fitted timings.
    pub const fn samples(&self) -> u32 {
        self.matmul + self.attention + self.streaming + self.collective
    }
}

/// Rate of a matrix product by shape, relative to the device's `matmul_efficiency`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct MatMulCurve {
    /// Inner-dimension columns processed before a tile's pipeline is full.
    pub fill: f64,
    /// Rate of 128 x 128 output tiles relative to 256 x 128.
    pub tile_128: f64,
    /// Rate of 128 x 64 tiles relative to 256 x 128.
    pub tile_64: f64,
    /// Rate of 64 x 64 tiles relative to 256 x 128.
    pub tile_small: f64,
    /// Lost fraction of the last, partially filled tile wave: 1 if it costs a full wave, 0 if it
    /// costs only its tiles.
    pub last_wave: f64,
    /// Fraction of the memory bandwidth for operands and result.
    pub traffic: f64,
    /// Rate of an input gradient relative to a forward product.
    pub input_grad: f64,
    /// Rate of an accumulated weight gradient relative to a forward product.
    pub weight_grad: f64,
    /// Rate of grouped products (experts) relative to a single product with the same tiles.
    pub grouped: f64,
    /// Maximum relative slowdown of long kernels, because the power limit reduces the clock.
    pub power_drop: f64,
    /// Kernel duration with half of the maximum slowdown, in ms.
    pub power_ms: f64,
}

/// Rate of fused attention by shape, relative to the device's `attention_efficiency`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct AttentionCurve {
    /// Number of 128-query blocks (over heads and sequences) for half of the rate.
    pub half_blocks: f64,
    /// Sequence length for half of the rate.
    pub half_length: f64,
    /// Rate of the backward relative to the forward.
    pub backward: f64,
}

/// Fraction of the memory bandwidth by kernel class, relative to the device's `memory_efficiency`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct StreamingCurve {
    /// Norms.
    pub norm: f64,
    /// Residual additions, dropout.
    pub elementwise: f64,
    /// Activation functions, rotary embedding.
    pub activation: f64,
    /// Embedding lookups.
    pub embedding: f64,
    /// Softmax over stored scores.
    pub softmax: f64,
    /// Cross entropy.
    pub loss: f64,
    /// Token permutation for experts.
    pub permute: f64,
    /// Optimizer step.
    pub optimizer: f64,
}

/// Rate of a link by message size.
///
/// time = `base_us` + `per_rank_us` (n - 1) + wire bytes / bandwidth x (1 + (`small_bytes` /
/// bytes)^(1/5)) / share
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LinkCurve {
    /// Start of a collective in µs.
    pub base_us: f64,
    /// Additional time per rank in µs.
    pub per_rank_us: f64,
    /// Scale of the small-message term in bytes.
    pub small_bytes: f64,
    /// Rate between two devices relative to larger groups.
    pub pair: f64,
    /// Rate of all-gather and reduce-scatter relative to all-reduce.
    pub half_collectives: f64,
    /// Rate of all-to-all relative to all-reduce.
    pub all_to_all: f64,
}

impl Curves {
    /// Curves for unmeasured devices: the middle of the measured ones.
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

/// Sustained rate of an H100 at the power limit. No kernel measurements exist. Products longer than
/// a millisecond reach 84 % of the maximum rate on A100s (vidur and SimuMax agree), 61 % on a B200
/// timed without pauses (SimuMax), and 85 % on an H100 timed with pauses (vidur). The midpoint
/// between A100 and B200 is 72 %, which is 0.85 of 85 %.
pub const H100_SUSTAINED: f64 = 0.85;

/// Host time per operator on machines from 2022 (Megatron-DeepSpeed on DGX A100), fitted to 16 rows
/// of a published table (see docs/accuracy.md).
pub const HOST_US: f64 = 56.0;

/// Host time per microbatch, fitted to the same rows.
pub const HOST_MICROBATCH_US: f64 = 3250.0;

/// Host time per operator on later machines. No published value exists. Assumes half of [`HOST_US`]
/// for faster hosts and fused modules.
pub const LATER_HOST_US: f64 = 28.0;

/// Host time per microbatch on later machines (assumed).
pub const LATER_HOST_MICROBATCH_US: f64 = 1000.0;

impl MatMulCurve {
    /// Assumed values for unmeasured devices.
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
    /// Assumed values for unmeasured devices.
    pub const GENERIC: Self = Self { half_blocks: 195.0, half_length: 250.0, backward: 0.8 };
}

impl StreamingCurve {
    /// Assumed values for unmeasured devices. Reductions reach three quarters of a plain stream's
    /// rate.
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
    /// Assumed values for unmeasured links.
    pub const GENERIC: Self =
        Self { base_us: 20.0, per_rank_us: 4.0, small_bytes: 5e4, pair: 0.9, half_collectives: 0.95, all_to_all: 0.85 };
}
