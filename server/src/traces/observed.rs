//! Annotated actions in column format, and iterations assembled from the actions of several ranks.

use std::collections::BTreeMap;

use api::trace::{BreakdownSource, TimeBreakdown};
use ingest::trace::{Action, ActionKind, Kind, Trace};
use planner::timeline::SpanKind;
use planner::trace_alignment;
use planner::trace_alignment::{Iteration, MAX_NUMBER, MeasuredAction, iterations};
use serde::{Deserialize, Serialize};

/// Maximum number of stored actions per trace.
const MAX_ACTIONS: usize = 1_000_000;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Actions {
    pub(crate) rows: Vec<ActionRow>,
    /// Number of actions that have no span kind, by grammar keyword.
    pub(crate) left_out: BTreeMap<String, u64>,
    /// Number of actions beyond the limits for stage, microbatch or total.
    pub(crate) refused: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ActionRow {
    /// Rank of the process, if known.
    pub(crate) rank: Option<u32>,
    /// Index of the span kind.
    pub(crate) kind: u8,
    pub(crate) stage: u32,
    pub(crate) microbatch: u32,
    /// Start relative to the first event in the trace.
    pub(crate) start_ns: u64,
    pub(crate) duration_ns: u64,
    /// Enclosing training step, if annotated.
    pub(crate) step: Option<u64>,
}

impl Actions {
    /// Collects the annotated actions of a trace. Uses device annotations if they exist, because
    /// host annotations have the times of the launch.
    pub(crate) fn from_trace(trace: &Trace) -> Self {
        let kind = |slice: u32| trace.slices.kind[slice as usize];
        let on_device = trace.actions.iter().any(|located| kind(located.slice) == Kind::DeviceAnnotation);
        let steps = Steps::collect(trace, on_device);
        let mut actions = Self::default();
        for located in &trace.actions {
            if on_device && kind(located.slice) != Kind::DeviceAnnotation {
                continue;
            }
            let Action { stage, microbatch, kind } = located.value;
            let Some(span_kind) = span_kind(kind) else {
                *actions.left_out.entry(letters(kind).to_owned()).or_default() += 1;
                continue;
            };
            let microbatch = microbatch.unwrap_or(0);
            if stage >= MAX_NUMBER || microbatch >= MAX_NUMBER || actions.rows.len() >= MAX_ACTIONS {
                actions.refused += 1;
                continue;
            }
            let slice = located.slice as usize;
            let process = &trace.processes[trace.lanes[trace.slices.lane[slice] as usize].process as usize];
            let start_ns = trace.slices.start_ns[slice].saturating_sub(trace.origin_ns);
            actions.rows.push(ActionRow {
                // Some traces have a process per rank and no rank field.
                rank: process.rank.or_else(|| process.id.parse().ok()).filter(|&rank| rank < MAX_NUMBER),
                kind: span_kind as u8,
                stage,
                microbatch,
                start_ns,
                duration_ns: trace.slices.duration_ns[slice],
                step: steps.at(start_ns),
            });
        }
        actions
    }

    /// Returns the actions on a common clock. `rank` is the rank of the trace, if it has a single
    /// rank.
    pub(crate) fn on_clock(&self, rank: Option<u32>, clock_ns: u64) -> impl Iterator<Item = MeasuredAction> + '_ {
        self.rows.iter().filter_map(move |row| {
            Some(MeasuredAction {
                rank: rank.or(row.rank).unwrap_or(0),
                kind: SpanKind::from_index(row.kind)?,
                stage: row.stage,
                microbatch: row.microbatch,
                start_ns: row.start_ns.saturating_add(clock_ns),
                duration_ns: row.duration_ns,
                step: row.step,
            })
        })
    }

    /// Returns the time usage per rank, derived from the actions.
    pub(crate) fn time_breakdowns(&self) -> Vec<TimeBreakdown> {
        let actions: Vec<MeasuredAction> = self.on_clock(None, 0).collect();
        let rows = trace_alignment::timeline(&actions);
        let time = |rank_time: trace_alignment::RankBreakdown| {
            let rank = rows.ranks.get(rank_time.rank as usize).copied();
            TimeBreakdown {
                trace: String::new(),
                rank,
                device: rank.map_or_else(String::new, |rank| format!("rank {rank}")),
                source: BreakdownSource::Actions,
                span_ns: rank_time.span_ns,
                compute_ns: rank_time.compute_ns,
                communication_ns: rank_time.communication_ns,
                exposed_ns: rank_time.exposed_ns,
                copy_ns: 0,
                busy_ns: rank_time.compute_ns + rank_time.exposed_ns,
                idle_ns: rank_time.idle_ns,
            }
        };
        trace_alignment::breakdown(&rows.timeline).into_iter().map(time).collect()
    }
}

/// Actions from one input trace.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// Identifier of the trace.
    pub(crate) trace: String,
    /// Rank, if the trace has a single rank.
    pub(crate) rank: Option<u32>,
    /// Start time in ns since 1970, if known.
    pub(crate) began_ns: Option<i64>,
    /// Time from the earliest start to the latest end.
    pub(crate) span_ns: u64,
    pub(crate) actions: Actions,
}

/// Iterations from all traces.
#[derive(Debug, Clone)]
pub(crate) struct AlignedIterations {
    /// Traces with actions.
    pub(crate) traces: Vec<String>,
    /// Iterations, sorted by time.
    pub(crate) iterations: Vec<Iteration>,
    /// Notes for the user.
    pub(crate) notes: Vec<String>,
}

/// Aligns the actions from several traces on a common clock and splits them into iterations.
pub(crate) fn together(parts: &[Part]) -> AlignedIterations {
    let parts: Vec<&Part> = parts.iter().filter(|part| !part.actions.rows.is_empty()).collect();
    let mut notes = Vec::new();
    let clocks: Option<Vec<i64>> = parts.iter().map(|part| part.began_ns).collect();
    // Traces that never overlap in time have unrelated clocks.
    let clocks = clocks.filter(|clocks| {
        let first_end =
            parts.iter().zip(clocks).map(|(part, &began)| began.saturating_add_unsigned(part.span_ns)).min();
        first_end >= clocks.iter().copied().max()
    });
    if parts.len() > 1 && clocks.is_none() {
        notes.push("The traces have no common clock: each begins at its own first event.".to_owned());
    }
    let first = clocks.as_ref().and_then(|clocks| clocks.iter().copied().min()).unwrap_or_default();
    let mut actions = Vec::new();
    let mut left_out: BTreeMap<&str, u64> = BTreeMap::new();
    let mut rejected = 0;
    for (index, part) in parts.iter().enumerate() {
        let clock = clocks.as_ref().map_or(0, |clocks| clocks[index].abs_diff(first));
        actions.extend(part.actions.on_clock(part.rank, clock));
        for (word, count) in &part.actions.left_out {
            *left_out.entry(word).or_default() += count;
        }
        rejected += part.actions.refused;
    }
    if !left_out.is_empty() {
        let counts: Vec<String> = left_out.iter().map(|(word, count)| format!("{count} {word}")).collect();
        notes.push(format!("Without a place in a timeline: {}.", counts.join(", ")));
    }
    if rejected > 0 {
        notes.push(format!("{rejected} actions were left out: stages and microbatches go to {}.", MAX_NUMBER - 1));
    }
    let traces = parts.iter().map(|part| part.trace.clone()).collect();
    AlignedIterations { traces, iterations: iterations(actions), notes }
}

/// Steps sorted by time.
struct Steps(Vec<(u64, u64, u64)>);

impl Steps {
    /// Collects the steps on the device if the actions are on the device, otherwise the steps on
    /// the host.
    fn collect(trace: &Trace, on_device: bool) -> Self {
        let step = |step: &ingest::trace::Step| {
            let slice = step.slice as usize;
            let start = trace.slices.start_ns[slice].saturating_sub(trace.origin_ns);
            (start, start.saturating_add(trace.slices.duration_ns[slice]), step.number)
        };
        let mut steps: Vec<_> = trace.steps.iter().filter(|step| step.on_device == on_device).map(step).collect();
        steps.sort_unstable();
        Self(steps)
    }

    /// Returns the latest step that starts at or before the given time, if it has not finished.
    fn at(&self, time: u64) -> Option<u64> {
        let after = self.0.partition_point(|&(start, ..)| start <= time);
        let &(_, end, number) = self.0.get(after.checked_sub(1)?)?;
        (time < end).then_some(number)
    }
}

/// Returns the span kind of an action. Receives are represented by the matching send, and
/// resharding (dropping weights) has zero duration.
const fn span_kind(kind: ActionKind) -> Option<SpanKind> {
    match kind {
        ActionKind::Forward => Some(SpanKind::Forward),
        ActionKind::Backward => Some(SpanKind::Backward),
        ActionKind::InputGrad => Some(SpanKind::InputGrad),
        ActionKind::WeightGrad => Some(SpanKind::WeightGrad),
        ActionKind::SendForward => Some(SpanKind::SendForward),
        ActionKind::SendBackward => Some(SpanKind::SendBackward),
        ActionKind::ReduceGrad | ActionKind::Unshard => Some(SpanKind::GradientSync),
        ActionKind::Reshard | ActionKind::ReceiveForward | ActionKind::ReceiveBackward => None,
    }
}

/// Returns the grammar keyword.
pub(crate) const fn letters(kind: ActionKind) -> &'static str {
    match kind {
        ActionKind::Forward => "F",
        ActionKind::Backward => "B",
        ActionKind::InputGrad => "I",
        ActionKind::WeightGrad => "W",
        ActionKind::Unshard => "UNSHARD",
        ActionKind::Reshard => "RESHARD",
        ActionKind::ReduceGrad => "REDUCE_GRAD",
        ActionKind::SendForward => "SEND_F",
        ActionKind::ReceiveForward => "RECV_F",
        ActionKind::SendBackward => "SEND_B",
        ActionKind::ReceiveBackward => "RECV_B",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(rank: u32, began_ns: Option<i64>, starts: &[u64]) -> Part {
        let row = |&start_ns: &u64| ActionRow {
            rank: None,
            kind: 0,
            stage: rank,
            microbatch: start_ns as u32,
            start_ns,
            duration_ns: 1,
            step: None,
        };
        let actions = Actions { rows: starts.iter().map(row).collect(), ..Actions::default() };
        Part { trace: format!("trace{rank}"), rank: Some(rank), began_ns, span_ns: 100, actions }
    }

    fn starts(together: &AlignedIterations) -> Vec<(u32, u64)> {
        together
            .iterations
            .iter()
            .flat_map(|iteration| &iteration.actions)
            .map(|action| (action.rank, action.start_ns))
            .collect()
    }

    #[test]
    fn traces_in_a_run_share_the_wall_clock() {
        let found = together(&[part(1, Some(1030), &[0]), part(0, Some(1000), &[4, 5])]);
        assert_eq!(starts(&found), [(0, 4), (0, 5), (1, 30)]);
        assert!(found.notes.is_empty());
        assert_eq!(found.traces, ["trace1", "trace0"]);
        // Either a clock is missing, or the traces never overlap.
        for clocks in [[None, Some(0)], [Some(5000), Some(0)]] {
            let found = together(&[part(1, clocks[0], &[0]), part(0, clocks[1], &[4])]);
            assert_eq!(starts(&found), [(0, 4), (1, 0)]);
            assert_eq!(found.notes.len(), 1);
        }
        assert!(together(&[]).iterations.is_empty());
    }
}
