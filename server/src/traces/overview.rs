//! Trace overview for the viewer: processes, lanes, steps and totals.

use api::trace::{
    BreakdownSource, SliceKind, TimeBreakdown, TraceLane, TraceProblem, TraceProcess, TraceReport, TraceStep,
};
use ingest::trace::{Kind, Report, Trace};
use serde::{Deserialize, Serialize};

use super::observed::Actions;

/// Maximum number of stored steps.
const MAX_STEPS: usize = 10_000;

/// Data that the viewer needs before it requests a view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Overview {
    /// Start time in ns since 1970.
    pub(crate) began_ns: Option<i64>,
    /// Processes and devices.
    pub(crate) processes: Vec<TraceProcess>,
    /// Lanes, grouped by process.
    pub(crate) lanes: Vec<TraceLane>,
    /// Annotated training steps.
    pub(crate) steps: Vec<TraceStep>,
    /// Number of counter values.
    pub(crate) counters: u64,
    /// Number of arrows.
    pub(crate) flows: u64,
    /// Bin widths of the levels above the exact slices.
    pub(crate) level_widths_ns: Vec<u64>,
    /// Time usage per device. The trace identifier is set when the overview is read.
    pub(crate) busy: Vec<TimeBreakdown>,
}

impl Overview {
    pub(crate) fn new(trace: &Trace, level_widths_ns: Vec<u64>, actions: &Actions) -> Self {
        let process = |process: &ingest::trace::Process| TraceProcess {
            id: process.id.clone(),
            name: process.name.clone(),
            labels: process.labels.clone(),
            rank: process.rank,
        };
        let mut rows = vec![(1_u32, 0_u64); trace.lanes.len()];
        for (lane, depth) in trace.slices.lane.iter().zip(&trace.slices.depth) {
            if let Some((rows, slices)) = rows.get_mut(*lane as usize) {
                *rows = (*rows).max(u32::from(*depth) + 1);
                *slices += 1;
            }
        }
        let lane = |(lane, (rows, slices)): (&ingest::trace::Lane, (u32, u64))| TraceLane {
            process: lane.process,
            thread: lane.thread.clone(),
            name: lane.name.clone(),
            overflow: lane.overflow,
            rows,
            slices,
        };
        let step = |step: &ingest::trace::Step| {
            let slice = step.slice as usize;
            TraceStep {
                number: step.number,
                lane: trace.slices.lane[slice],
                start_ns: trace.slices.start_ns[slice].saturating_sub(trace.origin_ns),
                duration_ns: trace.slices.duration_ns[slice],
                on_device: step.on_device,
            }
        };
        Self {
            began_ns: trace.base_ns.and_then(|base| base.checked_add_unsigned(trace.origin_ns)),
            processes: trace.processes.iter().map(process).collect(),
            lanes: trace.lanes.iter().zip(rows).map(lane).collect(),
            steps: trace.steps.iter().take(MAX_STEPS).map(step).collect(),
            counters: trace.counters.len() as u64,
            flows: trace.flows.len() as u64,
            level_widths_ns,
            busy: time_breakdowns(trace, actions),
        }
    }
}

/// Uses kernels if the trace contains any, otherwise annotated actions.
fn time_breakdowns(trace: &Trace, actions: &Actions) -> Vec<TimeBreakdown> {
    let kernels = trace.totals.iter().map(|total| TimeBreakdown {
        trace: String::new(),
        rank: total.rank,
        device: process_label(&trace.processes, total.process),
        source: BreakdownSource::Kernels,
        span_ns: total.span_ns,
        compute_ns: total.compute_ns,
        communication_ns: total.communication_ns,
        exposed_ns: total.communication_ns - total.overlapped_ns,
        copy_ns: total.copy_ns,
        busy_ns: total.busy_ns,
        idle_ns: total.idle_ns,
    });
    let kernels: Vec<TimeBreakdown> = kernels.collect();
    if kernels.is_empty() { actions.time_breakdowns() } else { kernels }
}

/// Returns the display name of a process.
fn process_label(processes: &[ingest::trace::Process], process: u32) -> String {
    let Some(process) = processes.get(process as usize) else { return String::new() };
    let name = process.name.as_deref().unwrap_or("process");
    match &process.labels {
        Some(labels) => format!("{name} {} ({labels})", process.id),
        None => format!("{name} {}", process.id),
    }
}

/// Converts the parser report to the API type.
pub(crate) fn report(report: Report) -> TraceReport {
    let problem = |problem: ingest::trace::Problem| TraceProblem {
        reason: problem.reason,
        count: problem.count,
        event: problem.event,
        offset: problem.offset,
    };
    TraceReport {
        bytes: report.bytes,
        events: report.events,
        used: report.used,
        repaired: report.repaired,
        skipped: report.skipped,
        overflowed: report.overflowed,
        cut: report.cut,
        problems: report.problems.into_iter().map(problem).collect(),
        assumptions: report.assumptions,
    }
}

/// Converts a slice kind to the API type.
pub(crate) fn kind(kind: Kind) -> SliceKind {
    SliceKind::ALL[kind.index()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_the_same_in_both_worlds() {
        for parser_kind in Kind::ALL {
            let travelled = serde_json::to_string(&kind(parser_kind)).expect("a word");
            assert_eq!(travelled, serde_json::to_string(&parser_kind).expect("a word"));
        }
    }
}
