//! The calibration report: files read, fit quality and changed values.

use std::io::{Result, Write};

use ingest::profile::{Kinds, Profile, Refusal};
use planner::calibration::{Bound, CoefficientReport, Fitted, Outcome, PartReport, Unchanged};
use planner::cluster::{Calibration, Cluster, Curves, LinkCurve};
use serde_json::Value;

use super::profiles::Measured;
use super::start::Start;

/// Mean residual above which the report warns that the curves do not describe the timings.
const POOR_FIT: f64 = 0.25;
/// Relative tolerance for unchanged values.
const UNCHANGED_TOLERANCE: f64 = 1e-4;

/// Reports the content of each file and the refused rows.
pub(crate) fn files(out: &mut dyn Write, measured: &Measured, start: &Start) -> Result<()> {
    for file in &measured.files {
        match &file.read {
            Ok(profile) => read(out, &file.name, profile, start)?,
            Err(error) => writeln!(out, "{}: error: {error:#}", file.name)?,
        }
    }
    Ok(())
}

fn read(out: &mut dyn Write, name: &str, profile: &Profile, start: &Start) -> Result<()> {
    let report = &profile.report;
    let Kinds { matmul, attention, streaming, collective } = report.by_kind;
    let kinds: Vec<String> = [
        (matmul, "matrix products"),
        (attention, "attention kernels"),
        (streaming, "memory-bound kernels"),
        (collective, "collectives"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, label)| format!("{count} {label}"))
    .collect();
    let (format, rejected) = (profile.format.name(), report.refused.iter().map(|refusal| refusal.count).sum::<u64>());
    let (rows, used, kinds) = (report.rows, report.used, kinds.join(", "));
    writeln!(out, "{name}: {format}; {rows} values, {used} read ({kinds}), {rejected} refused")?;
    for Refusal { reason, count, first } in &report.refused {
        writeln!(out, "  refused: {count} x {reason}; first {first}")?;
    }
    if !report.unfitted.is_empty() {
        let counts: Vec<String> = report.unfitted.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        writeln!(out, "  read, not fitted: {}", counts.join(", "))?;
    }
    for assumption in &report.assumptions {
        writeln!(out, "  assumed: {assumption}")?;
    }
    let preset = &start.name;
    match &profile.device {
        Some(device) if !start.may_be(device) => {
            writeln!(out, "  confirmed: measured on {device}, fitted to {preset}")
        }
        Some(device) => writeln!(out, "  measured on {device}, fitted to {preset}"),
        None => writeln!(out, "  the file names no device; it is fitted to {preset}, as chosen"),
    }
}

/// Reports the fit quality per part.
pub(crate) fn parts(out: &mut dyn Write, fitted: &Fitted) -> Result<()> {
    for part in &fitted.parts {
        let PartReport {
            part: name, samples: count, fitted, mean_before, p90_before, mean_residual, p90_residual, ..
        } = part;
        if *fitted {
            let mean = format!("{} -> {}", percent(*mean_before), percent(*mean_residual));
            let p90 = format!("{} -> {}", percent(*p90_before), percent(*p90_residual));
            writeln!(out, "{name}: fitted to {count} timings; residual mean {mean}, p90 {p90}")?;
        } else if *mean_residual > 0.0 {
            let (mean, p90) = (percent(*mean_residual), percent(*p90_residual));
            writeln!(out, "{name}: not fitted, {count} timings; residual mean {mean}, p90 {p90}")?;
        } else {
            writeln!(out, "{name}: not fitted, {count} timings")?;
        }
        if !part.note.is_empty() {
            writeln!(out, "  {}", part.note)?;
        }
        coefficients(out, part)?;
        if *fitted && *mean_residual > POOR_FIT {
            let off = percent(*mean_residual);
            writeln!(
                out,
                "  warning: the residual is {off}: other kernels than those of training, another device, or times in another unit"
            )?;
        }
    }
    Ok(())
}

/// Reports the coefficients: fitted, unchanged with the reason, or fitted at a bound.
fn coefficients(out: &mut dyn Write, part: &PartReport) -> Result<()> {
    let named = |predicate: &dyn Fn(Outcome) -> bool, describe: &dyn Fn(&CoefficientReport) -> String| -> Vec<String> {
        part.coefficients.iter().filter(|coefficient| predicate(coefficient.outcome)).map(describe).collect()
    };
    let lists = [
        ("fitted", named(&|outcome| matches!(outcome, Outcome::Fitted(_)), &|entry| entry.name.to_owned())),
        (
            "unchanged, too few different shapes determine them",
            named(&|outcome| outcome == Outcome::Unchanged(Unchanged::NoBatchClock), &|entry| {
                format!("{} ({} of {})", entry.name, entry.shapes, entry.fewest)
            }),
        ),
        (
            "unchanged, no better value found",
            named(&|outcome| outcome == Outcome::Unchanged(Unchanged::NoBetterFit), &|entry| entry.name.to_owned()),
        ),
    ];
    for (title, names) in lists.into_iter().filter(|(_, names)| !names.is_empty()) {
        writeln!(out, "  {title}: {}", names.join(", "))?;
    }
    for CoefficientReport { name, outcome, value, .. } in &part.coefficients {
        let bound = match outcome {
            Outcome::Fitted(Some(Bound::Lower)) => "smallest",
            Outcome::Fitted(Some(Bound::Upper)) => "largest",
            _ => continue,
        };
        writeln!(out, "  warning: {name} ended at {}, the {bound} value that a fit may give it", figure(*value))?;
    }
    Ok(())
}

/// Reports the old and new values of changed fields.
pub(crate) fn changes(out: &mut dyn Write, before: &Cluster, after: &Cluster) -> Result<()> {
    let (before, after) = (numeric_fields(before), numeric_fields(after));
    for ((path, old), (_, new)) in before.iter().zip(&after) {
        if (new - old).abs() > UNCHANGED_TOLERANCE * old.abs().max(new.abs()) {
            writeln!(out, "{path}: {} -> {}", figure(*old), figure(*new))?;
        }
    }
    Ok(())
}

/// All numbers in a cluster with their paths. Missing curves are replaced by those of a typical
/// device.
fn numeric_fields(cluster: &Cluster) -> Vec<(String, f64)> {
    let mut stated = cluster.clone();
    stated.device.curves.get_or_insert_with(Curves::generic).calibration = Calibration::default();
    stated.intra_node.curve.get_or_insert(LinkCurve::GENERIC);
    let mut numbers = Vec::new();
    collect("", &serde_json::to_value(stated).unwrap_or_default(), &mut numbers);
    numbers
}

fn collect(path: &str, value: &Value, numbers: &mut Vec<(String, f64)>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                collect(&path, value, numbers);
            }
        }
        Value::Number(number) => numbers.extend(number.as_f64().map(|number| (path.to_owned(), number))),
        _ => {}
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Formats with four significant digits.
fn figure(value: f64) -> String {
    let digits = (3.0 - value.abs().log10().floor()).clamp(0.0, 6.0);
    format!("{value:.0$}", if value == 0.0 { 0 } else { digits as usize })
}

#[cfg(test)]
mod tests {
    use planner::cluster::presets;

    use super::*;

    fn changes_text(before: &Cluster, after: &Cluster) -> String {
        let mut out = Vec::new();
        changes(&mut out, before, after).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_changed_values_are_reported() {
        let mut before = presets::cluster("h100").unwrap();
        (before.device.launch_us, before.intra_node.efficiency) = (6.356, 0.7967);
        let mut after = before.clone();
        assert_eq!(changes_text(&before, &after), "");
        after.device.launch_us = 7.25;
        after.intra_node.efficiency = 0.512_34;
        let expected = "device.launch_us: 6.356 -> 7.250\nintra_node.efficiency: 0.7967 -> 0.5123\n";
        assert_eq!(changes_text(&before, &after), expected);
    }

    #[test]
    fn cluster_without_curves_uses_typical_curves() {
        let mut before = presets::cluster("h100").unwrap();
        before.device.curves = None;
        let mut after = before.clone();
        after.device.curves = Some(Curves::generic());
        assert_eq!(changes_text(&before, &after), "");
        after.device.curves.get_or_insert_with(Curves::generic).matmul.fill = 0.0;
        assert_eq!(changes_text(&before, &after), "device.curves.matmul.fill: 100.0 -> 0\n");
    }
}
