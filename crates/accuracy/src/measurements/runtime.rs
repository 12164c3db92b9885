//! Measurements without a prediction of their own: sustained rates, launches, optimizer, contention.

use std::fmt::Write;

use super::device::{Device, OptimizerRow};

/// Returns the section about sustained rates.
pub(super) fn sustained(device: &Device) -> String {
    let mut text = "| m x k x n | operands | burst TFLOP/s | back to back TFLOP/s | ratio | clock MHz | power W |\n|---|---|---:|---:|---:|---:|---:|\n".to_owned();
    for row in &device.sustained {
        let rate = |time: f64| 2.0 * row.m * row.k * row.n / time * 1e-6;
        let _ = writeln!(
            text,
            "| {} x {} x {} | {} | {:.0} | {:.0} | {:.2} | {} | {} |",
            row.m,
            row.k,
            row.n,
            row.operands,
            rate(row.burst_us),
            rate(row.time_us),
            row.burst_us / row.time_us,
            row.sm_mhz,
            row.watts
        );
    }
    text.push('\n');
    text
}

/// Returns the section about host time.
pub(super) fn launch(device: &Device) -> String {
    let calls: Vec<String> = device
        .launch
        .iter()
        .filter(|row| row.op == "call")
        .map(|row| format!("{} {:.1}", row.call, row.time_us))
        .collect();
    let mut text = format!(
        "Host time of a call on small tensors, us: {}.\n\nA layer with 16 tokens, us:\n\n| layer | variant | forward | backward | both | both, device \
         alone |\n|---|---|---:|---:|---:|---:|\n",
        calls.join(", ")
    );
    let cell = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.0}"));
    for row in device.launch.iter().filter(|row| row.op == "layer_launch") {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {:.0} | {} |",
            row.model,
            row.variant,
            cell(row.forward_us),
            cell(row.backward_us),
            row.time_us,
            cell(row.layer_device_us)
        );
    }
    text.push('\n');
    text
}

/// Returns the section about the optimizer.
pub(super) fn optimizer(device: &Device) -> String {
    let mut text = "| step | parameters | tensors | ms | device alone ms |\n|---|---:|---:|---:|---:|\n".to_owned();
    let mut rows: Vec<&OptimizerRow> = device.optimizer.iter().collect();
    rows.sort_by(|a, b| a.op.cmp(&b.op).then(a.parameters.total_cmp(&b.parameters)).then(a.tensors.cmp(&b.tensors)));
    for row in rows {
        let alone = row.device_us.map_or_else(|| "–".to_owned(), |time| format!("{:.2}", time * 1e-3));
        let _ = writeln!(
            text,
            "| {} | {:.1}B | {} | {:.2} | {alone} |",
            row.op,
            row.parameters * 1e-9,
            row.tensors,
            row.time_us * 1e-3
        );
    }
    text.push('\n');
    text
}

/// Returns the section about contention.
pub(super) fn contention(device: &Device) -> String {
    let mut text = "| measured | with | us | alone us | factor |\n|---|---|---:|---:|---:|\n".to_owned();
    for row in device.contention.iter().filter(|row| row.background != "none") {
        let alone = device.contention.iter().find(|other| other.background == "none" && other.measured == row.measured);
        if let Some(alone) = alone {
            let _ = writeln!(
                text,
                "| {} | {} | {:.0} | {:.0} | {:.2} |",
                row.measured,
                row.background,
                row.time_us,
                alone.time_us,
                row.time_us / alone.time_us
            );
        }
    }
    text.push('\n');
    text
}
