//! Rates of named attention kernels by device generation (docs/models.md, section 3).

use super::kernel::Attention;
use planscope_core::cluster::Device;
use planscope_core::training::AttentionKernel;

/// Rate of an attention kernel: asymptote x length / (length + half length).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct NamedCurve {
    forward: Pass,
    backward: Pass,
}

/// One direction with a causal mask and 128 values per head.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Pass {
    /// Rate of long sequences in operations per second, without masked scores.
    asymptote: f64,
    /// Sequence length with half of the rate.
    half_length: f64,
}

const fn pass(tera: f64, half_length: f64) -> Pass {
    Pass { asymptote: tera * 1e12, half_length }
}

/// Rate with 64 values per head relative to 128: 312 against 380 TFLOP/s (FlashAttention 2 on
/// H100), 525 against 639 (FlashAttention 3).
const SMALL_HEAD: f64 = 0.82;
/// Half length without a mask relative to a causal mask. FlashAttention 3 has 400 to 500 against
/// 1,200 to 2,500, cuDNN 125 to 500 against 900 to 1,500.
const FULL_MASK: f64 = 0.35;

/// Bf16 peaks of the devices on which kernels were measured, in TFLOP/s.
const A100_PEAK: f64 = 312.0;
const H100_PEAK: f64 = 989.0;
const B200_PEAK: f64 = 2250.0;

/// True if the rate of a named kernel is known on the generation of a device.
pub fn has_rate(kernel: AttentionKernel, device: &Device) -> bool {
    NamedCurve::of(kernel, device).is_some()
}

impl NamedCurve {
    /// Returns the curve of a kernel on the generation of a device, or `None` for the device's own
    /// curve. Generations differ by the bf16 peak. The rates of slower devices of a generation are
    /// those of its measured device in proportion to the peak.
    pub(super) fn of(kernel: AttentionKernel, device: &Device) -> Option<Self> {
        let peak = device.peak().get() * 1e-12;
        let sustained = device.curves.as_ref().map_or(1.0, |curves| curves.sustained);
        let measured_peak = match peak {
            ..500.0 => A100_PEAK,
            500.0..1500.0 => H100_PEAK,
            _ => B200_PEAK,
        };
        let scale = sustained * (peak / measured_peak).min(1.0);
        let on_device = |pass: Pass| Pass { asymptote: pass.asymptote * scale, ..pass };
        let curve = |forward, backward| Some(Self { forward: on_device(forward), backward: on_device(backward) });
        match (kernel, peak) {
            // FlashAttention 2 paper: version 1 reaches about 100 TFLOP/s with a causal mask on A100.
            (AttentionKernel::Flash1, ..500.0) => curve(pass(115.0, 250.0), pass(95.0, 250.0)),
            (AttentionKernel::Flash1, _) => curve(pass(190.0, 250.0), pass(175.0, 250.0)),
            (AttentionKernel::Flash2, ..500.0) => curve(pass(210.0, 500.0), pass(175.0, 500.0)),
            // Measured with 64 values per head: 310 forward, 299 backward at 8,192 tokens.
            (AttentionKernel::Flash2, 500.0..1500.0) => curve(pass(390.0, 600.0), pass(330.0, 900.0)),
            (AttentionKernel::Flash3, 500.0..1500.0) => curve(pass(770.0, 1000.0), pass(750.0, 3200.0)),
            (AttentionKernel::Cudnn, 500.0..1500.0) => curve(pass(710.0, 900.0), pass(625.0, 1400.0)),
            (AttentionKernel::Cudnn, 1500.0..) => curve(pass(1700.0, 900.0), pass(1350.0, 1400.0)),
            _ => None,
        }
    }

    /// Returns the rate in operations per second.
    pub(super) fn rate(&self, attention: &Attention) -> f64 {
        let pass = if attention.backward { self.backward } else { self.forward };
        let length = attention.squared / attention.tokens;
        let half = if attention.causal { pass.half_length } else { pass.half_length * FULL_MASK };
        let head = if attention.qk_dim < 128.0 { SMALL_HEAD } else { 1.0 };
        pass.asymptote * head * length / (length + half)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planscope_core::cluster::presets::cluster;

    fn tera(kernel: AttentionKernel, device: &str, (length, dim, causal, backward): (f64, f64, bool, bool)) -> f64 {
        let mut device = cluster(device).unwrap().device;
        // Measurements are bursts, not runs at the power limit.
        if let Some(curves) = &mut device.curves {
            curves.sustained = 1.0;
        }
        let attention = Attention {
            tokens: length,
            squared: length * length,
            heads: 32.0,
            kv_heads: 32.0,
            qk_dim: dim,
            v_dim: dim,
            causal,
            backward,
        };
        NamedCurve::of(kernel, &device).unwrap().rate(&attention) * 1e-12
    }

    /// Published rates on H100 and H200 in TFLOP/s.
    #[test]
    fn rates_agree_with_measurements() {
        for (kernel, case, measured) in [
            (AttentionKernel::Flash3, (1024.0, 128.0, true, false), 364.0),
            (AttentionKernel::Flash3, (8192.0, 128.0, true, false), 685.0),
            (AttentionKernel::Flash3, (2048.0, 128.0, true, true), 316.0),
            (AttentionKernel::Flash3, (8192.0, 128.0, true, true), 539.0),
            (AttentionKernel::Flash2, (8192.0, 64.0, false, false), 310.0),
            (AttentionKernel::Flash2, (4096.0, 64.0, false, true), 280.0),
        ] {
            let rate = tera(kernel, "h100", case);
            assert!((rate / measured - 1.0).abs() < 0.12, "{kernel:?} {case:?}: {rate:.0}, measured {measured}");
        }
    }

    /// No kernel is faster than the peak of its device.
    #[test]
    fn slow_devices_scale_the_rates() {
        for device in ["rtx-3090", "l20", "l4", "a10", "h20", "v100-32gb", "h100-pcie"] {
            let peak = cluster(device).unwrap().device.peak().get() * 1e-12;
            let rate = tera(AttentionKernel::Flash2, device, (131_072.0, 128.0, true, false));
            assert!(rate < 0.7 * peak, "{device}: {rate:.0} of {peak:.0} TFLOP/s");
        }
    }

    #[test]
    fn kernels_without_measurements_take_the_curve_of_the_device() {
        let a100 = cluster("a100-80gb").unwrap().device;
        assert_eq!(NamedCurve::of(AttentionKernel::Flash3, &a100), None);
        assert_eq!(NamedCurve::of(AttentionKernel::Flash, &a100), None);
        assert!(NamedCurve::of(AttentionKernel::Flash1, &a100).is_some());
    }
}
