//! Constants of the model next to values from the measurements.

use std::fmt::Write;

use planner::calibration::Outcome;
use serde_json::Value;

use super::device::{AttentionRow, Device};
use super::fitted::{Calibrated, operations};
use super::layers;
use super::summary::median;

/// Fits rate = R s / (s + h) to (length, rate) pairs by least squares of 1 / rate over 1 / s. Returns R and h; `None` with
/// fewer than three lengths, or if the rate does not grow with the length.
fn half_length(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    if points.len() < 3 {
        return None;
    }
    let count = points.len() as f64;
    let pairs: Vec<(f64, f64)> = points.iter().map(|(length, rate)| (1.0 / length, 1.0 / rate)).collect();
    // Relative errors of the rate count alike.
    let weight = |y: f64| 1.0 / (y * y);
    let total: f64 = pairs.iter().map(|&(_, y)| weight(y)).sum::<f64>() / count;
    let mean =
        |of: &dyn Fn(f64, f64) -> f64| pairs.iter().map(|&(x, y)| weight(y) * of(x, y)).sum::<f64>() / count / total;
    let (mx, my) = (mean(&|x, _| x), mean(&|_, y| y));
    let slope = mean(&|x, y| (x - mx) * (y - my)) / mean(&|x, _| (x - mx) * (x - mx));
    let inverse = my - slope * mx;
    (inverse > 0.0 && slope > 0.0).then(|| (1.0 / inverse, slope / inverse))
}

/// Returns a table of R and h of the attention kernels, and the ratio of the rates of backward and forward.
pub(super) fn attention(device: &Device) -> String {
    let mut text = "| kernel | head size | mask | forward: R TFLOP/s | half length | backward: R TFLOP/s | half length | backward / forward at 1k | 4k | 16k \
                    |\n|---|---:|---|---:|---:|---:|---:|---:|---:|---:|\n"
        .to_owned();
    for backend in ["flash", "cudnn", "efficient"] {
        for head in [64.0, 128.0, 256.0] {
            for causal in [true, false] {
                let points = |backward: bool| -> Vec<(f64, f64)> {
                    let own = |row: &&AttentionRow| {
                        row.backend == backend
                            && row.causal == causal
                            && row.backward == backward
                            && (row.qk_dim - head).abs() < 0.5
                    };
                    let rows = device.attention.iter().filter(own);
                    rows.filter_map(|row| {
                        Some((row.plain_length()?, operations(&row.sample().kernel) / row.time_us * 1e-6))
                    })
                    .collect()
                };
                let passes = [points(false), points(true)];
                let curves = passes.each_ref().map(|points| {
                    half_length(points)
                        .map_or_else(|| "– | –".to_owned(), |(rate, half)| format!("{rate:.0} | {half:.0}"))
                });
                if curves.iter().all(|curve| curve == "– | –") {
                    continue;
                }
                let ratio = |length: f64| {
                    let rate = |points: &[(f64, f64)]| {
                        points.iter().find(|(own, _)| (own - length).abs() < 1.0).map(|point| point.1)
                    };
                    rate(&passes[1])
                        .zip(rate(&passes[0]))
                        .map_or_else(|| "–".to_owned(), |(a, b)| format!("{:.2}", a / b))
                };
                let _ = writeln!(
                    text,
                    "| {backend} | {head} | {} | {} | {} | {} |",
                    if causal { "causal" } else { "full" },
                    curves[0],
                    curves[1],
                    [1024.0, 4096.0, 16_384.0].map(ratio).join(" | ")
                );
            }
        }
    }
    text.push('\n');
    text
}

/// Returns a table of the constants that the calibration moved.
pub(super) fn constants(device: &Device, calibrated: &Calibrated) -> String {
    let mut text = "| constant | preset | fitted | shapes |\n|---|---:|---:|---:|\n".to_owned();
    let before = serde_json::to_value(&device.cluster).unwrap_or_default();
    for coefficient in calibrated.fitted.parts.iter().flat_map(|part| &part.coefficients) {
        let pointer = format!("/{}", coefficient.name.replace('.', "/"));
        let Some(old) = before.pointer(&pointer).and_then(Value::as_f64) else { continue };
        let Outcome::Fitted(bound) = coefficient.outcome else { continue };
        let at = if bound.is_some() { " (a bound of the fit)" } else { "" };
        let _ = writeln!(
            text,
            "| `{}` | {old:.3} | {:.3}{at} | {} |",
            coefficient.name, coefficient.value, coefficient.shapes
        );
    }
    text.push('\n');
    text
}

/// Returns measured values next to constants that a calibration does not fit.
pub(super) fn unfitted(device: &Device) -> String {
    let mut lines: Vec<(String, String, String)> = Vec::new();
    let curves = device.cluster.device.curves.as_ref();
    let ratios = |operands: &str| -> Vec<f64> {
        device.sustained.iter().filter(|row| row.operands == operands).map(|row| row.burst_us / row.time_us).collect()
    };
    if let Some(curves) = curves {
        lines.push((
            "`device.curves.sustained`: back to back / burst, random operands".to_owned(),
            format!("{:.2}", curves.sustained),
            format!("{:.2}", median(&ratios("random"))),
        ));
        for row in device.launch.iter().filter(|row| row.op == "layer_launch" && row.variant == "eager") {
            let shape = device.validation.iter().find(|layer| layer.model == row.model);
            lines.push((
                format!("host time of an eager layer of {}, forward and backward, us", row.model),
                shape.map_or_else(String::new, |shape| format!("{:.0}", layers::host_us(shape, &device.cluster))),
                format!("{:.0}", row.time_us),
            ));
        }
        lines.push((
            "`device.curves.attention.half_length`, all kernels".to_owned(),
            format!("{:.0}", curves.attention.half_length),
            "table above".to_owned(),
        ));
    }
    let bandwidth = device.cluster.device.memory_gb_per_s;
    let streams = |op: &str, backward: bool| {
        let own = device
            .pointwise
            .iter()
            .filter(|row| row.op == op && row.backward == backward && row.variant == "eager" && row.bytes > 1.2e8);
        median(&own.map(|row| row.bytes / row.time_us * 1e-3 / bandwidth).collect::<Vec<_>>())
    };
    let efficiency = device.cluster.device.memory_efficiency;
    if let Some(curves) = curves {
        let shares = &curves.streaming;
        for (name, share, op) in [
            ("elementwise", shares.elementwise, "residual"),
            ("norm", shares.norm, "rms_norm"),
            ("activation", shares.activation, "swiglu"),
            ("softmax", shares.softmax, "softmax"),
            ("loss", shares.loss, "cross_entropy"),
            ("embedding", shares.embedding, "embedding"),
        ] {
            let back = if op == "residual" { String::new() } else { format!(" / {:.2}", streams(op, true)) };
            lines.push((
                format!("share of the memory bandwidth, {name} ({op}, eager, forward / backward)"),
                format!("{:.2}", efficiency * share),
                format!("{:.2}{back}", streams(op, false)),
            ));
        }
        let adam = device
            .optimizer
            .iter()
            .filter(|row| row.op == "adamw_fused")
            .filter_map(|row| Some(28.0 * row.parameters / row.device_us? * 1e-3));
        lines.push((
            "share of the memory bandwidth, fused AdamW of fp32 parameters (28 bytes each)".to_owned(),
            format!("{:.2}", efficiency * shares.optimizer),
            format!("{:.2}", median(&adam.map(|rate| rate / bandwidth).collect::<Vec<_>>())),
        ));
    }
    let mut text = "| constant | preset | measured |\n|---|---:|---:|\n".to_owned();
    for (name, preset, measured) in lines {
        let _ = writeln!(text, "| {name} | {preset} | {measured} |");
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_recovered_from_its_points() {
        let points: Vec<(f64, f64)> = [512.0, 2048.0, 8192.0].map(|s: f64| (s, 600.0 * s / (s + 900.0))).to_vec();
        let (rate, half) = half_length(&points).unwrap();
        assert!((rate - 600.0).abs() < 1e-6 && (half - 900.0).abs() < 1e-6, "{rate} {half}");
        assert_eq!(half_length(&points[..2]), None);
        assert_eq!(half_length(&[(1.0, 9.0), (2.0, 8.0), (3.0, 7.0)]), None);
    }
}
