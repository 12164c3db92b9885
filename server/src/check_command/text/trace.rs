//! A profiler trace next to the prediction, as text.

use planner::trace_prediction::TracePrediction;

/// Describes parts of a step, kernels by type, and idle time by cause.
pub(super) fn describe(found: &TracePrediction) -> Vec<String> {
    let TracePrediction { name, rank, pipeline_rank, steps, parts, kernels, idle, unassigned, other_job, notes } =
        found;
    let mut lines = vec![
        String::new(),
        format!("trace {name}: rank {rank}, pipeline rank {pipeline_rank}, mean of {steps} steps, times in s"),
    ];
    lines.extend(other_job.iter().map(|reason| format!("  NOT THE SAME JOB: {reason}")));
    lines.push(row("part of a step", "measured", "predicted", "difference", ""));
    lines.extend(parts.iter().map(|part| times(part.part.title(), part.measured_s, Some(part.predicted_s), "")));
    lines.push(row("kernels by type", "measured", "predicted", "difference", "kernels"));
    lines.extend(
        kernels
            .iter()
            .map(|kind| times(kind.kind.title(), kind.measured_s, kind.predicted_s, &format!("{:.0}", kind.kernels))),
    );
    if !idle.is_empty() {
        lines.push("  idle time by cause".to_owned());
    }
    for gap in idle {
        lines.push(format!(
            "  {:>9.4}  {}: {:.0} gaps, longest {:.4} s",
            gap.time_s,
            gap.cause.title(),
            gap.gaps,
            gap.longest_s
        ));
        lines.push(format!("             {}", gap.cause.confirm()));
    }
    let unknown = unassigned.iter().map(|kernel| format!("{} ({:.4} s)", kernel.name, kernel.measured_s));
    let unknown = unknown.collect::<Vec<_>>().join("; ");
    lines.extend((!unknown.is_empty()).then(|| format!("  kernels of unknown type: {unknown}")));
    lines.extend(notes.iter().map(|note| format!("  {note}")));
    lines
}

fn row(name: &str, measured: &str, predicted: &str, difference: &str, kernels: &str) -> String {
    format!("  {name:<26} {measured:>10} {predicted:>10} {difference:>11} {kernels:>8}").trim_end().to_owned()
}

fn times(name: &str, measured: f64, predicted: Option<f64>, kernels: &str) -> String {
    let figure = |seconds: f64| format!("{seconds:.4}");
    let difference = predicted.map_or_else(|| "-".to_owned(), |predicted| format!("{:+.4}", measured - predicted));
    row(name, &figure(measured), &predicted.map_or_else(|| "-".to_owned(), figure), &difference, kernels)
}
