//! Tables of the difference between two traces.

use planner::trace_comparison::TraceDifference;

use super::times::activity;
use super::{Cell, Table};

/// Returns kernels, phases and steps.
pub(crate) fn difference(difference: &TraceDifference) -> Vec<Table> {
    let kernel = |row: &planner::trace_comparison::KernelDifference| {
        vec![
            Cell::Text(row.name.clone()),
            Cell::Text(activity(row.activity).to_owned()),
            Cell::Time(row.before_ns),
            Cell::Time(row.after_ns),
            Cell::Change(row.difference_ns),
            Cell::Count(row.before_count),
            Cell::Count(row.after_count),
        ]
    };
    let phase = |row: &planner::trace_comparison::PhaseDifference| {
        vec![
            Cell::Text(row.phase.replace('_', " ")),
            Cell::Time(row.before_ns),
            Cell::Time(row.after_ns),
            Cell::Change(row.difference_ns),
        ]
    };
    let step = |row: &planner::trace_comparison::StepDifference| {
        vec![
            Cell::Count(row.before),
            Cell::Count(row.after),
            Cell::Time(row.before_ns),
            Cell::Time(row.after_ns),
            Cell::Change(row.difference_ns),
        ]
    };
    vec![
        Table {
            id: "kernels",
            title: "Kernels, largest difference first",
            head: &["name", "activity", "before_ns", "after_ns", "difference_ns", "count_before", "count_after"],
            rows: difference.kernels.iter().map(kernel).collect(),
        },
        Table {
            id: "phases",
            title: "Phases",
            head: &["phase", "before_ns", "after_ns", "difference_ns"],
            rows: difference.phases.iter().map(phase).collect(),
        },
        Table {
            id: "steps",
            title: "Steps",
            head: &["step_before", "step_after", "before_ns", "after_ns", "difference_ns"],
            rows: difference.steps.iter().map(step).collect(),
        },
    ]
}
