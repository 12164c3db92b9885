//! Fitted figures for measured devices: the output of `planscope calibrate` for published operator
//! and collective timings.
//!
//! - A100: products, residual additions and collectives from SXM machines (microsoft/vidur,
//!   VIA-Research/vTrain, PKU-DAIR/Hetu-Galvatron). Gradients relative to forward products, grouped
//!   products and attention from an A100 PCIe (MooreThreads/SimuMax).
//! - H100: microsoft/vidur. Attention is between the published 35 % (FlashAttention-2) and 75 %
//!   (FlashAttention-3). The sustained rate is assumed.
//! - B200: MooreThreads/SimuMax, including its fits for collectives.
//!
//! Loss and permutation relative to plain streams: SimuMax's fits on both of its machines, with the
//! H100 between them. Norms and softmax in training are not measured. The assumed three quarters of
//! a plain stream is between inference norms (0.4, vidur) and the loss (0.9, SimuMax).

use crate::cluster::curves::{H100_SUSTAINED, HOST_MICROBATCH_US, HOST_US, LATER_HOST_MICROBATCH_US, LATER_HOST_US};
use crate::cluster::{AttentionCurve, Calibration, Curves, Link, LinkCurve, MatMulCurve, StreamingCurve};

/// Maximum fraction of the peak for matrix products.
pub(super) const A100_MATMUL: f64 = 0.8103;
/// Maximum fraction of the peak for fused attention.
pub(super) const A100_ATTENTION: f64 = 0.6461;
/// Fraction of the memory bandwidth for streams.
pub(super) const A100_MEMORY: f64 = 0.8991;
/// Launch overhead per kernel in µs.
pub(super) const A100_LAUNCH_US: f64 = 2.422;

pub(super) fn a100() -> Curves {
    Curves {
        calibration: Calibration {
            source: "microsoft/vidur, VIA-Research/vTrain, PKU-DAIR/Hetu-Galvatron (SXM); MooreThreads/SimuMax (PCIe: gradients, groups, attention)".to_owned(),
            matmul: 12_723,
            attention: 24,
            streaming: 424,
            collective: 7_234,
            residual: 0.04851,
        },
        matmul: MatMulCurve {
            fill: 189.3,
            tile_128: 0.9695,
            tile_64: 0.7739,
            tile_small: 0.7972,
            last_wave: 0.4197,
            traffic: 0.7398,
            input_grad: 0.999,
            weight_grad: 0.9638,
            grouped: 0.9501,
            power_drop: 0.04452,
            power_ms: 0.3,
        },
        attention: AttentionCurve { half_blocks: 137.8, half_length: 250.0, backward: 0.7553 },
        streaming: StreamingCurve {
            norm: 0.75,
            softmax: 0.75,
            loss: 0.888,
            permute: 0.2065,
            ..StreamingCurve::GENERIC
        },
        sustained: 1.0,
        host_us: HOST_US,
        host_microbatch_us: HOST_MICROBATCH_US,
    }
}

pub(super) const fn a100_nvlink() -> Link {
    let curve = LinkCurve {
        base_us: 51.97,
        per_rank_us: 0.56,
        small_bytes: 5736.0,
        pair: 0.8784,
        half_collectives: 0.95,
        all_to_all: 0.7917,
    };
    Link { gb_per_s: 300.0, efficiency: 0.8135, latency_us: 5.0, curve: Some(curve) }
}

/// Maximum fraction of the peak for matrix products.
pub(super) const H100_MATMUL: f64 = 0.8062;
/// Maximum fraction of the peak for fused attention.
pub(super) const H100_ATTENTION: f64 = 0.5;
/// Fraction of the memory bandwidth for streams.
pub(super) const H100_MEMORY: f64 = 0.95;
/// Launch overhead per kernel in µs.
pub(super) const H100_LAUNCH_US: f64 = 6.353;

pub(super) fn h100() -> Curves {
    Curves {
        calibration: Calibration {
            source: "microsoft/vidur; gradients, groups, attention and the rate at the power limit are assumed"
                .to_owned(),
            matmul: 12_528,
            attention: 0,
            streaming: 424,
            collective: 2_982,
            residual: 0.08908,
        },
        matmul: MatMulCurve {
            fill: 0.0,
            tile_128: 0.8473,
            tile_64: 0.5416,
            tile_small: 0.6756,
            last_wave: 0.4874,
            traffic: 0.8937,
            input_grad: 1.0,
            weight_grad: 0.95,
            grouped: 0.85,
            power_drop: 0.1437,
            power_ms: 0.3,
        },
        attention: AttentionCurve { half_blocks: 195.0, half_length: 250.0, backward: 0.8 },
        streaming: StreamingCurve { norm: 0.75, softmax: 0.75, loss: 0.69, permute: 0.48, ..StreamingCurve::GENERIC },
        sustained: H100_SUSTAINED,
        host_us: LATER_HOST_US,
        host_microbatch_us: LATER_HOST_MICROBATCH_US,
    }
}

pub(super) const fn h100_nvlink() -> Link {
    let curve = LinkCurve {
        base_us: 26.36,
        per_rank_us: 0.382,
        small_bytes: 0.0,
        pair: 0.9162,
        half_collectives: 0.95,
        all_to_all: 0.85,
    };
    Link { gb_per_s: 450.0, efficiency: 0.7967, latency_us: 5.0, curve: Some(curve) }
}

/// Maximum fraction of the peak for matrix products.
pub(super) const B200_MATMUL: f64 = 0.573;
/// Maximum fraction of the peak for fused attention.
pub(super) const B200_ATTENTION: f64 = 0.5443;
/// Launch overhead per kernel in µs.
pub(super) const B200_LAUNCH_US: f64 = 7.809;

pub(super) fn b200() -> Curves {
    Curves {
        calibration: Calibration {
            source: "MooreThreads/SimuMax; collectives are its own fits".to_owned(),
            matmul: 622,
            attention: 64,
            streaming: 0,
            collective: 0,
            residual: 0.1219,
        },
        matmul: MatMulCurve {
            fill: 97.3,
            tile_128: 0.9905,
            tile_64: 0.7043,
            tile_small: 0.7486,
            last_wave: 0.1167,
            traffic: 0.654,
            input_grad: 0.9777,
            weight_grad: 0.9549,
            grouped: 0.8577,
            power_drop: 0.169,
            power_ms: 0.3,
        },
        attention: AttentionCurve { half_blocks: 382.7, half_length: 250.0, backward: 0.8019 },
        streaming: StreamingCurve { norm: 0.75, softmax: 0.75, loss: 0.487, permute: 0.758, ..StreamingCurve::GENERIC },
        sustained: 1.0,
        host_us: LATER_HOST_US,
        host_microbatch_us: LATER_HOST_MICROBATCH_US,
    }
}

pub(super) const fn b200_nvlink() -> Link {
    let curve = LinkCurve {
        base_us: 22.0,
        per_rank_us: 0.8,
        small_bytes: 0.0,
        pair: 1.0,
        half_collectives: 0.907,
        all_to_all: 0.804,
    };
    Link { gb_per_s: 900.0, efficiency: 0.7424, latency_us: 5.0, curve: Some(curve) }
}
