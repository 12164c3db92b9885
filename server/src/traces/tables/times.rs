//! Tables of single traces.

use planner::trace_comparison::{Activity, TraceTimes};

use super::{Cell, Table};

/// Returns kernels, phases and steps of ranks.
pub(crate) fn times(ranks: &[TraceTimes]) -> Vec<Table> {
    let rank = |rank: &TraceTimes| Cell::Count(u64::from(rank.rank));
    let total = |rank: &TraceTimes| rank.kernels.iter().map(|kernel| kernel.time_ns).sum::<u64>();
    let kernels = ranks.iter().flat_map(|times| {
        let total = total(times).max(1);
        times.kernels.iter().map(move |row| {
            vec![
                rank(times),
                Cell::Text(row.name.clone()),
                Cell::Text(activity(row.activity).to_owned()),
                Cell::Time(row.time_ns),
                Cell::Count(row.count),
                Cell::Time(row.time_ns / row.count.max(1)),
                Cell::Share(row.time_ns as f64 / total as f64),
            ]
        })
    });
    let phases = ranks.iter().flat_map(|times| {
        let phase = |row: &planner::trace_comparison::PhaseTime| {
            vec![rank(times), Cell::Text(row.phase.replace('_', " ")), Cell::Time(row.time_ns)]
        };
        times.phases.iter().map(phase).collect::<Vec<_>>()
    });
    let steps = ranks.iter().flat_map(|times| {
        let step = |row: &planner::trace_comparison::StepTime| {
            vec![rank(times), Cell::Count(row.step), Cell::Time(row.time_ns)]
        };
        times.steps.iter().map(step).collect::<Vec<_>>()
    });
    vec![
        Table {
            id: "kernels",
            title: "Kernels, longest first",
            head: &["rank", "name", "activity", "time_ns", "count", "mean_ns", "share"],
            rows: kernels.collect(),
        },
        Table { id: "phases", title: "Phases", head: &["rank", "phase", "time_ns"], rows: phases.collect() },
        Table { id: "steps", title: "Steps", head: &["rank", "step", "time_ns"], rows: steps.collect() },
    ]
}

/// Returns the name of an activity.
pub(super) const fn activity(activity: Activity) -> &'static str {
    match activity {
        Activity::Compute => "compute",
        Activity::Communication => "communication",
        Activity::Copy => "copy",
    }
}
