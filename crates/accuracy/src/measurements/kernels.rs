//! Errors of operators.

use std::fmt::Write;

use super::device::{AttentionRow, Device, ExpertRow, Fp8Row, ProductRow};
use super::fitted::{Calibrated, operations};
use super::summary::{Group, table};

const DIRECTIONS: [&str; 3] = ["forward", "input_grad", "weight_grad"];
/// Products with a feature dimension up to this size are narrow.
const NARROW: f64 = 1024.0;

/// Returns the section about matrix products.
pub(super) fn products(device: &Device, calibrated: &Calibrated) -> String {
    let group = |test: &dyn Fn(&&ProductRow) -> bool| -> Group {
        device.products.iter().filter(test).map(|row| calibrated.times(&row.sample())).collect()
    };
    let plain = |row: &&ProductRow| row.accumulate == "none";
    let mut groups = vec![("all plain products".to_owned(), group(&plain))];
    for direction in DIRECTIONS {
        groups.push((direction.to_owned(), group(&|row| plain(row) && row.product == direction)));
    }
    groups
        .push((format!("narrow: a feature dimension <= {NARROW}"), group(&|row| plain(row) && row.width() <= NARROW)));
    groups.push((format!("wide: both > {NARROW}"), group(&|row| plain(row) && row.width() > NARROW)));
    for (name, low, high) in [
        ("below 20 us", 0.0, 20.0),
        ("20 to 100 us", 20.0, 100.0),
        ("100 us to 1 ms", 100.0, 1e3),
        ("above 1 ms", 1e3, f64::MAX),
    ] {
        groups.push((name.to_owned(), group(&|row| plain(row) && row.time_us >= low && row.time_us < high)));
    }
    groups.push((
        "weight_grad, fp32 accumulation in the product".to_owned(),
        group(&|row| row.accumulate == "fp32_fused"),
    ));
    groups
        .push(("weight_grad, fp32 accumulation by an addition".to_owned(), group(&|row| row.accumulate == "fp32_add")));
    let mut text = table("products, bf16", groups);
    let _ = writeln!(
        text,
        "Median errors by tokens, preset / calibrated, in percent:\n\n| tokens | {} |",
        DIRECTIONS.join(" | ")
    );
    text.push_str("|---:|---:|---:|---:|\n");
    for tokens in [1024.0, 2048.0, 4096.0, 8192.0, 16_384.0, 32_768.0] {
        let cells = DIRECTIONS.map(|direction| {
            group(&|row| plain(row) && row.product == direction && (row.tokens() - tokens).abs() < 1.0).medians()
        });
        let _ = writeln!(text, "| {tokens} | {} |", cells.join(" | "));
    }
    text.push('\n');
    text
}

/// Returns the section about products of experts and in fp8, and about memory-bound kernels.
pub(super) fn others(device: &Device, calibrated: &Calibrated) -> String {
    let mut groups = Vec::new();
    for direction in DIRECTIONS {
        for rows in [64.0, 256.0, 1024.0, 4096.0] {
            let found = device.experts.iter().filter(|row| {
                row.function == "_grouped_mm"
                    && row.product == direction
                    && row.rows().is_some_and(|count: f64| (count - rows).abs() < 1.0)
            });
            let group = found.filter_map(ExpertRow::sample).map(|sample| calibrated.times(&sample)).collect();
            groups.push((format!("experts, {direction}, {rows} rows each"), group));
        }
    }
    for (op, name) in [("linear_fp8", "fp8 product"), ("linear_fp8_with_cast", "fp8 product with dynamic cast, eager")]
    {
        for scales in ["tensor", "row"] {
            let found = device.fp8.iter().filter(|row| row.op == op && row.scales == scales);
            let group = found.filter_map(Fp8Row::sample).map(|sample| calibrated.times(&sample)).collect();
            groups.push((format!("{name}, a scale for each {scales}"), group));
        }
    }
    let mut text = table("other products", groups);
    let mut groups = Vec::new();
    for op in [
        "residual",
        "dropout",
        "rms_norm",
        "layer_norm",
        "swiglu",
        "gelu",
        "rope",
        "embedding",
        "softmax",
        "cross_entropy",
    ] {
        for (variant, backward) in [("eager", false), ("eager", true), ("compiled", false), ("compiled", true)] {
            let found = device
                .pointwise
                .iter()
                .filter(|row| row.op == op && row.variant == variant && row.backward == backward);
            let direction = if backward { "backward" } else { "forward" };
            groups.push((
                format!("{op}, {direction}, {variant}"),
                found.map(|row| calibrated.times(&row.sample())).collect(),
            ));
        }
    }
    text.push_str(&table("memory-bound kernels", groups));
    text
}

/// Returns the section about attention.
pub(super) fn attention(device: &Device, calibrated: &Calibrated) -> String {
    let group = |test: &dyn Fn(&&AttentionRow) -> bool| -> Group {
        device.attention.iter().filter(test).map(|row| calibrated.times(&row.sample())).collect()
    };
    let selected = device.selected_attention();
    let pass = |backward: bool| if backward { "backward" } else { "forward" };
    let mask = |causal: bool| if causal { "causal" } else { "full" };
    let mut groups = Vec::new();
    for backend in ["flash", "cudnn", "efficient", "flex_compiled", "math"] {
        for backward in [false, true] {
            groups.push((
                format!("{backend}, {}", pass(backward)),
                group(&|row| row.backend == backend && row.backward == backward),
            ));
        }
    }
    for (causal, backward) in [(true, false), (true, true), (false, false), (false, true)] {
        groups.push((
            format!("{selected}, {}, {}", mask(causal), pass(backward)),
            group(&|row| row.backend == selected && row.causal == causal && row.backward == backward),
        ));
    }
    for head in [64.0, 72.0, 80.0, 96.0, 128.0, 192.0, 256.0] {
        groups.push((
            format!("{selected}, head size {head}"),
            group(&|row| row.backend == selected && (row.qk_dim - head).abs() < 0.5),
        ));
    }
    groups.push((
        format!("{selected}, fewer key heads"),
        group(&|row| row.backend == selected && row.kv_heads < row.heads),
    ));
    groups
        .push((format!("{selected}, packed lengths"), group(&|row| row.backend == selected && row.queries.is_none())));
    let mut text = table("attention", groups);
    let _ = writeln!(
        text,
        "Head size 128, as many key heads as query heads, 16,384 tokens: measured TFLOP/s (errors in percent, preset / calibrated):\n\n\
         | kernel | mask | direction | 512 | 1k | 2k | 4k | 8k | 16k | 32k |\n|---|---|---|---:|---:|---:|---:|---:|---:|---:|"
    );
    for backend in ["flash", "cudnn", "efficient"] {
        for (causal, backward) in [(true, false), (true, true), (false, false), (false, true)] {
            let cells = [512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16_384.0, 32_768.0].map(|length| {
                let found = device.attention.iter().find(|row| {
                    row.backend == backend
                        && row.causal == causal
                        && row.backward == backward
                        && (row.qk_dim - 128.0).abs() < 0.5
                        && row.plain_length().is_some_and(|own| (own - length).abs() < 1.0)
                });
                found.map_or_else(
                    || "–".to_owned(),
                    |row| {
                        let sample = row.sample();
                        let rate = operations(&sample.kernel) / row.time_us * 1e-6;
                        let errors: Group = [calibrated.times(&sample)].into_iter().collect();
                        format!("{rate:.0} ({})", errors.medians())
                    },
                )
            });
            if cells.iter().any(|cell| cell != "–") {
                let _ = writeln!(text, "| {backend} | {} | {} | {} |", mask(causal), pass(backward), cells.join(" | "));
            }
        }
    }
    text.push('\n');
    text
}
