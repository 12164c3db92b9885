//! Tables of the ranks of a run.

use planner::trace_comparison::{GroupWait, KernelExcess, Occurrence, RankReport, RankWait, StepWait};

use super::times::activity;
use super::{Cell, Table};

/// Returns ranks, kernels of the straggler, groups, steps and collectives.
pub(crate) fn ranks(report: &RankReport) -> Vec<Table> {
    let straggler = report.straggler.iter().flat_map(|straggler| &straggler.kernels);
    vec![
        Table {
            id: "ranks",
            title: "Ranks",
            head: &[
                "rank",
                "trace",
                "caused_ns",
                "late_ns",
                "waited_ns",
                "exposed_ns",
                "last",
                "last_steps",
                "span_ns",
                "compute_ns",
                "communication_ns",
                "copies_ns",
                "idle_ns",
                "clock_ns",
            ],
            rows: report.ranks.iter().map(rank).collect(),
        },
        Table {
            id: "kernels",
            title: "Kernels that take longer on the straggler",
            head: &["name", "activity", "straggler_ns", "median_ns", "excess_ns", "count", "median_count"],
            rows: straggler.map(kernel).collect(),
        },
        Table {
            id: "groups",
            title: "Collectives by group",
            head: &["group", "operation", "collectives", "wait_ns", "transfer_ns", "last_rank", "caused_ns"],
            rows: report.groups.iter().map(group).collect(),
        },
        Table {
            id: "steps",
            title: "Steps",
            head: &["step", "wait_ns", "last_rank", "caused_ns"],
            rows: report.steps.iter().map(step).collect(),
        },
        Table {
            id: "collectives",
            title: "Collectives, longest wait first",
            head: &[
                "operation",
                "group",
                "number",
                "step",
                "end_ns",
                "transfer_ns",
                "first_rank",
                "last_rank",
                "wait_ns",
                "longest_wait_ns",
            ],
            rows: report.longest.iter().map(collective).collect(),
        },
    ]
}

fn number(rank: u32) -> Cell {
    Cell::Count(u64::from(rank))
}

fn rank(rank: &RankWait) -> Vec<Cell> {
    vec![
        number(rank.rank),
        Cell::Text(rank.name.clone()),
        Cell::Time(rank.caused_ns),
        Cell::Time(rank.late_ns),
        Cell::Time(rank.waited_ns),
        Cell::Time(rank.exposed_ns),
        Cell::Count(rank.last),
        Cell::Count(rank.last_steps),
        Cell::Time(rank.span_ns),
        Cell::Time(rank.compute_ns),
        Cell::Time(rank.communication_ns),
        Cell::Time(rank.copy_ns),
        Cell::Time(rank.idle_ns),
        rank.clock_ns.map_or(Cell::Blank, Cell::Change),
    ]
}

fn kernel(kernel: &KernelExcess) -> Vec<Cell> {
    vec![
        Cell::Text(kernel.name.clone()),
        Cell::Text(activity(kernel.activity).to_owned()),
        Cell::Time(kernel.time_ns),
        Cell::Time(kernel.median_ns),
        Cell::Change(kernel.excess_ns),
        Cell::Count(kernel.count),
        Cell::Count(kernel.median_count),
    ]
}

fn group(group: &GroupWait) -> Vec<Cell> {
    vec![
        Cell::Text(group.group.clone()),
        Cell::Text(group.operation.clone()),
        Cell::Count(group.collectives),
        Cell::Time(group.wait_ns),
        Cell::Time(group.transfer_ns),
        number(group.last),
        Cell::Time(group.caused_ns),
    ]
}

fn step(step: &StepWait) -> Vec<Cell> {
    vec![Cell::Count(step.step), Cell::Time(step.wait_ns), number(step.last), Cell::Time(step.caused_ns)]
}

fn collective(collective: &Occurrence) -> Vec<Cell> {
    vec![
        Cell::Text(collective.operation.clone()),
        Cell::Text(collective.group.clone()),
        Cell::Count(collective.number),
        collective.step.map_or(Cell::Blank, Cell::Count),
        Cell::Time(collective.end_ns),
        Cell::Time(collective.transfer_ns),
        number(collective.first),
        number(collective.last),
        Cell::Time(collective.wait_ns),
        Cell::Time(collective.waits.iter().map(|wait| wait.wait_ns).max().unwrap_or_default()),
    ]
}
