//! Single operators on one device: matrix products, attention, streaming kernels (docs/models.md, section 3).

use crate::cluster::Device;
use crate::units::{Flops, Seconds};

/// Bytes of a bf16 value.
pub const BF16: f64 = 2.0;

/// Edge of the output tile that one multiprocessor works on; the size that vendor libraries use most for bf16.
const TILE: f64 = 128.0;
/// Columns of the inner dimension that pass before a tile's software pipeline is full.
const PIPELINE_FILL: f64 = 128.0;
/// Length at which a fused attention kernel reaches half of its efficiency: fitted by eye to the published
/// forward curve of FlashAttention-2 on an A100 (110 TFLOP/s at 512, 170 at 2,048, 190 at 16,384 tokens).
const ATTENTION_HALF_LENGTH: f64 = 350.0;
/// A fused backward pass has five products where the forward has two.
pub const FUSED_ATTENTION_BACKWARD: f64 = 2.5;
/// Separate kernels: two products forward, four backward.
pub const UNFUSED_ATTENTION_BACKWARD: f64 = 2.0;
/// Passes over the score matrix of separate kernels (scale, mask, softmax, dropout; read and write).
const SCORE_PASSES: f64 = 6.0;

/// `batch` matrix products (m x k) (k x n) in bf16.
///
/// launch + max(operations / (peak x efficiency), bytes / bandwidth), the efficiency being the best measured one
/// times the share of the last tiles and of the last wave that is used, times the share of k behind the fill.
pub fn matmul(device: &Device, batch: f64, m: f64, k: f64, n: f64) -> Seconds {
    if m <= 0.0 || batch <= 0.0 {
        return Seconds::ZERO;
    }
    let tiles = batch * (m / TILE).ceil() * (n / TILE).ceil();
    let multiprocessors = f64::from(device.multiprocessors);
    let waves = (tiles / multiprocessors).ceil();
    let used_tiles = batch * m * n / (waves * multiprocessors * TILE * TILE);
    let efficiency = device.matmul_efficiency * used_tiles * (k / (k + PIPELINE_FILL));
    let compute = Flops::new(2.0 * batch * m * k * n) / device.peak() / efficiency;
    let traffic = streaming(device, BF16 * batch * (m * k + k * n + m * n));
    device.launch() + compute.max(traffic)
}

/// One fused attention kernel of `flops` operations over sequences whose token-weighted mean length is `length`.
pub fn fused_attention(device: &Device, flops: Flops, length: f64) -> Seconds {
    if flops.get() <= 0.0 {
        return Seconds::ZERO;
    }
    let efficiency = device.attention_efficiency * (length / (length + ATTENTION_HALF_LENGTH));
    device.launch() + flops / device.peak() / efficiency
}

/// Attention by separate kernels: the products at the efficiency of a matrix product, and the score matrix of
/// `scores` elements streamed through memory.
pub fn unfused_attention(device: &Device, flops: Flops, scores: f64) -> Seconds {
    if flops.get() <= 0.0 {
        return Seconds::ZERO;
    }
    device.launch() * 5.0
        + flops / device.peak() / device.matmul_efficiency
        + streaming(device, SCORE_PASSES * BF16 * scores)
}

/// A kernel limited by memory: launch and traffic.
pub fn memory_bound(device: &Device, bytes: f64) -> Seconds {
    if bytes <= 0.0 { Seconds::ZERO } else { device.launch() + streaming(device, bytes) }
}

fn streaming(device: &Device, bytes: f64) -> Seconds {
    device.achieved_memory_bandwidth().time_for(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::presets::cluster;

    fn tflops(m: f64, k: f64, n: f64) -> f64 {
        2e-12 * m * k * n / matmul(&cluster("h100").unwrap().device, 1.0, m, k, n).secs()
    }

    /// Llama-2 70B's gate and up projection on an H100, measured by vidur: 368, 740 and 669 TFLOP/s at 128, 512 and
    /// 4,096 tokens, 3 at one token. This model has no power limit, hence the bound above at 4,096.
    #[test]
    fn a_matrix_product_is_as_fast_as_its_shape_lets_it() {
        assert!((tflops(128.0, 8192.0, 57_344.0) / 368.0 - 1.0).abs() < 0.10);
        assert!((tflops(512.0, 8192.0, 57_344.0) / 740.0 - 1.0).abs() < 0.10);
        assert!((tflops(4096.0, 8192.0, 57_344.0) / 669.0 - 1.0).abs() < 0.20);
        assert!((tflops(1.0, 8192.0, 57_344.0) / 3.0 - 1.0).abs() < 0.20);
    }

    #[test]
    fn no_work_takes_no_time() {
        let device = cluster("h100").unwrap().device;
        assert_eq!(matmul(&device, 1.0, 0.0, 4096.0, 4096.0), Seconds::ZERO);
        assert_eq!(fused_attention(&device, Flops::ZERO, 0.0), Seconds::ZERO);
        assert_eq!(memory_bound(&device, 0.0), Seconds::ZERO);
    }
}
