//! A profiler trace next to the prediction, as text.

use planner::trace_prediction::TracePrediction;

/// Describes parts of a step, kernels by type, and idle time by cause.
pub(super) fn describe(found: &TracePrediction) -> Vec<String> {
    let TracePrediction { name, rank, pipeline_rank, steps, parts, kernels, idle, unassigned, other_job, notes } =
        found;
    let unit = Unit::of(found.step_s());
    let mut lines = vec![
        String::new(),
        format!(
            "trace {name}: rank {rank}, pipeline rank {pipeline_rank}, mean of {steps} steps, times in {}",
            unit.name
        ),
    ];
    lines.extend(other_job.iter().map(|reason| format!("  NOT THE SAME JOB: {reason}")));
    lines.push(row("part of a step", "measured", "predicted", "difference", ""));
    lines.extend(parts.iter().map(|part| unit.times(part.part.title(), part.measured_s, Some(part.predicted_s), "")));
    lines.push(row("kernels by type", "measured", "predicted", "difference", "kernels"));
    lines.extend(
        kernels.iter().map(|kind| {
            unit.times(kind.kind.title(), kind.measured_s, kind.predicted_s, &format!("{:.0}", kind.kernels))
        }),
    );
    if !idle.is_empty() {
        lines.push("  idle time by cause".to_owned());
    }
    for gap in idle {
        lines.push(format!(
            "  {:>9}  {}: {:.0} gaps, longest {} {}",
            unit.figure(gap.time_s),
            gap.cause.title(),
            gap.gaps,
            unit.figure(gap.longest_s),
            unit.name
        ));
        lines.push(format!("             {}", gap.cause.confirm()));
    }
    let unknown =
        unassigned.iter().map(|kernel| format!("{} ({} {})", kernel.name, unit.figure(kernel.measured_s), unit.name));
    let unknown = unknown.collect::<Vec<_>>().join("; ");
    lines.extend((!unknown.is_empty()).then(|| format!("  kernels of unknown type: {unknown}")));
    lines.extend(notes.iter().map(|note| format!("  {note}")));
    lines
}

fn row(name: &str, measured: &str, predicted: &str, difference: &str, kernels: &str) -> String {
    format!("  {name:<26} {measured:>10} {predicted:>10} {difference:>11} {kernels:>8}").trim_end().to_owned()
}

/// Unit of the times of a trace.
#[derive(Clone, Copy)]
struct Unit {
    name: &'static str,
    per_s: f64,
    decimals: usize,
}

impl Unit {
    /// Steps below a second are in ms: gaps are then some µs.
    fn of(step_s: f64) -> Self {
        if step_s < 1.0 {
            Self { name: "ms", per_s: 1e3, decimals: 3 }
        } else {
            Self { name: "s", per_s: 1.0, decimals: 4 }
        }
    }

    fn figure(self, seconds: f64) -> String {
        format!("{:.*}", self.decimals, seconds * self.per_s)
    }

    fn times(self, name: &str, measured: f64, predicted: Option<f64>, kernels: &str) -> String {
        let change = |predicted: f64| format!("{:+.*}", self.decimals, (measured - predicted) * self.per_s);
        let difference = predicted.map_or_else(|| "-".to_owned(), change);
        let predicted = predicted.map_or_else(|| "-".to_owned(), |predicted| self.figure(predicted));
        row(name, &self.figure(measured), &predicted, &difference, kernels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_steps_are_in_ms() {
        let row = Unit::of(0.021).times("idle", 0.000_02, Some(0.001), "");
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["idle", "0.020", "1.000", "-0.980"]);
        assert_eq!(Unit::of(2.0).figure(2.1), "2.1000");
    }
}
