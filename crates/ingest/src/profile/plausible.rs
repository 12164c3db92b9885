//! Rejects samples that no device can reach, which usually indicates a wrong unit.

use planner::calibration::Sample;
use planner::cost::kernel::{Collective, Kernel, Operation};

use super::refused::Rejection;

/// Upper bound in FLOP/s: the fastest 2025 device reaches 10,000 TFLOP/s with 4 bits.
const MAX_FLOPS: f64 = 20_000e12;
/// Upper bound for memory bandwidth in bytes/s: the fastest 2025 memory reaches 8 TB/s, and caches
/// up to twice this value.
const MAX_MEMORY: f64 = 20e12;
/// Upper bound for link bandwidth in bytes/s: the fastest 2025 link reaches 0.9 TB/s per direction.
const MAX_LINK: f64 = 5e12;
/// Upper bound for a kernel or collective in seconds.
const MAX_SECONDS: f64 = 60.0;

/// Lower bound in FLOP/s for products of at least [`LARGE_FLOPS`]: all training devices reach more than 10 TFLOP/s.
const MIN_FLOPS: f64 = 1e12;
/// Size of a product from which the time is that of the arithmetic and not of the launch, in FLOP.
const LARGE_FLOPS: f64 = 30e9;

const TOO_FAST: &str = "faster than any device: is the time in another unit?";
const TOO_SLOW_FOR_A_DEVICE: &str = "slower than any device: is the time in another unit?";
const TOO_SLOW: &str = "longer than a minute: is the time in another unit?";
const NO_GROUP: &str = "devices of the group and of a node do not fit together";

/// Returns the sample if it is plausible.
pub(super) fn check(sample: Sample, location: &dyn Fn() -> String) -> Result<Sample, Rejection> {
    let seconds = sample.time.secs();
    let (amount, limit, scale, unit) = match &sample.kernel {
        Kernel::MatMul(product) => (product.flops(), MAX_FLOPS, 1e12, "TFLOP/s"),
        Kernel::Attention(attention) => (attention.flops(), MAX_FLOPS, 1e12, "TFLOP/s"),
        Kernel::Streaming(streaming) => (streaming.bytes, MAX_MEMORY, 1e9, "GB/s of memory"),
        Kernel::Collective(collective) => {
            let Collective { ranks, ranks_per_node, .. } = *collective;
            if ranks < 2 || ranks_per_node < 1 || ranks_per_node > ranks {
                return Err(Rejection::new(
                    NO_GROUP,
                    format!("{}: {ranks} devices, {ranks_per_node} on a node", location()),
                ));
            }
            (bus_bytes(collective), MAX_LINK, 1e9, "GB/s of bus bandwidth")
        }
    };
    let rate = amount / seconds;
    if rate.is_nan() || rate > limit {
        let rate = grouped(rate / scale);
        return Err(Rejection::new(TOO_FAST, format!("{}: implies {rate} {unit}", location())));
    }
    if seconds > MAX_SECONDS {
        return Err(Rejection::new(TOO_SLOW, format!("{}: takes {} s", location(), grouped(seconds))));
    }
    let is_product = matches!(sample.kernel, Kernel::MatMul(_) | Kernel::Attention(_));
    if is_product && amount >= LARGE_FLOPS && rate < MIN_FLOPS {
        let rate = rate / scale;
        return Err(Rejection::new(TOO_SLOW_FOR_A_DEVICE, format!("{}: implies {rate:.3} {unit}", location())));
    }
    Ok(sample)
}

/// Bytes per link in the nccl-tests convention: factor 2 (n - 1) / n for all-reduce, (n - 1) / n
/// for single-pass collectives.
pub(super) fn bus_bytes(collective: &Collective) -> f64 {
    let ranks = f64::from(collective.ranks);
    let share = (ranks - 1.0) / ranks;
    match collective.operation {
        Operation::AllReduce => 2.0 * share * collective.bytes,
        Operation::AllGather | Operation::ReduceScatter | Operation::AllToAll => share * collective.bytes,
        Operation::SendReceive => collective.bytes,
    }
}

/// Formats a rate with thousands separators.
fn grouped(rate: f64) -> String {
    if rate >= 1e15 {
        return format!("{rate:.1e}");
    }
    let digits = format!("{rate:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        for (rate, expected) in
            [(7.2, "7"), (999.0, "999"), (51_000.4, "51,000"), (1_234_567.0, "1,234,567"), (1e20, "1.0e20")]
        {
            assert_eq!(grouped(rate), expected);
        }
    }

    /// 64 MiB in 0.58 ms: 115.7 GB/s, with bus bandwidth 202.5 GB/s among 8 devices.
    #[test]
    fn bus_bytes_follow_nccl_tests() {
        let collective = |operation| Collective { operation, bytes: 67_108_864.0, ranks: 8, ranks_per_node: 8 };
        let rate = |operation| bus_bytes(&collective(operation)) / 0.58e-3 / 1e9;
        assert!((rate(Operation::AllReduce) - 202.5).abs() < 0.1);
        assert!((rate(Operation::AllToAll) - 101.2).abs() < 0.1);
        assert!((rate(Operation::SendReceive) - 115.7).abs() < 0.1);
    }
}
