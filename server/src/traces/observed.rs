//! Annotated actions of a trace, kept in columns, and the iterations that they make together with those of other ranks.

use std::collections::BTreeMap;

use api::trace::{BusySource, BusyTime};
use ingest::trace::{Action, ActionKind, Kind, Trace};
use planner::timeline::SpanKind;
use planner::trace_alignment;
use planner::trace_alignment::{Iteration, MOST_NUMBER, ObservedAction, iterations};
use serde::{Deserialize, Serialize};

/// Most actions that are kept of one trace.
const MOST_ACTIONS: usize = 1_000_000;

/// Annotated actions of a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Actions {
    /// The actions.
    pub(crate) rows: Vec<ActionRow>,
    /// Actions that a timeline has no kind for, by the word of the grammar.
    pub(crate) left_out: BTreeMap<String, u64>,
    /// Actions whose stage or microbatch is larger than any plan's, or that are too many.
    pub(crate) refused: u64,
}

/// An annotated action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ActionRow {
    /// Rank of its process, where the trace says it.
    pub(crate) rank: Option<u32>,
    /// Number of the span kind.
    pub(crate) kind: u8,
    /// Stage.
    pub(crate) stage: u32,
    /// Microbatch.
    pub(crate) microbatch: u32,
    /// Start, since the trace's first.
    pub(crate) start_ns: u64,
    /// Duration.
    pub(crate) duration_ns: u64,
    /// Step that the program announced around it.
    pub(crate) step: Option<u64>,
}

impl Actions {
    /// The annotated actions of a trace. Where a device saw annotations, its times are taken: on the host they are those of
    /// the launch.
    pub(crate) fn of(trace: &Trace) -> Self {
        let kind = |slice: u32| trace.slices.kind[slice as usize];
        let on_device = trace.actions.iter().any(|located| kind(located.slice) == Kind::DeviceAnnotation);
        let steps = Steps::of(trace, on_device);
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
            if stage >= MOST_NUMBER || microbatch >= MOST_NUMBER || actions.rows.len() >= MOST_ACTIONS {
                actions.refused += 1;
                continue;
            }
            let slice = located.slice as usize;
            let process = &trace.processes[trace.lanes[trace.slices.lane[slice] as usize].process as usize];
            let start_ns = trace.slices.start_ns[slice].saturating_sub(trace.origin_ns);
            actions.rows.push(ActionRow {
                // Some traces have one process per rank and no rank field.
                rank: process.rank.or_else(|| process.id.parse().ok()).filter(|&rank| rank < MOST_NUMBER),
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

    /// The actions on a clock that several traces share. `rank` is that of the trace, where it is of one rank.
    pub(crate) fn observed(&self, rank: Option<u32>, clock_ns: u64) -> impl Iterator<Item = ObservedAction> + '_ {
        self.rows.iter().filter_map(move |row| {
            Some(ObservedAction {
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

    /// Where the time of every rank went, by its actions.
    pub(crate) fn busy(&self) -> Vec<BusyTime> {
        let actions: Vec<ObservedAction> = self.observed(None, 0).collect();
        let rows = trace_alignment::timeline(&actions);
        let time = |busy: trace_alignment::RankBusy| {
            let rank = rows.ranks.get(busy.rank as usize).copied();
            BusyTime {
                trace: String::new(),
                rank,
                device: rank.map_or_else(String::new, |rank| format!("rank {rank}")),
                source: BusySource::Actions,
                span_ns: busy.span_ns,
                compute_ns: busy.compute_ns,
                communication_ns: busy.communication_ns,
                exposed_ns: busy.exposed_ns,
                copy_ns: 0,
                busy_ns: busy.compute_ns + busy.exposed_ns,
                idle_ns: busy.idle_ns,
            }
        };
        trace_alignment::busy(&rows.timeline).into_iter().map(time).collect()
    }
}

/// Actions of one trace among those that are put together.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// The trace.
    pub(crate) trace: String,
    /// Its rank, where it is of one rank.
    pub(crate) rank: Option<u32>,
    /// Time of day of its first start in nanoseconds since 1970, where it says it.
    pub(crate) began_ns: Option<i64>,
    /// From its first start to its last end.
    pub(crate) span_ns: u64,
    /// Its actions.
    pub(crate) actions: Actions,
}

/// Iterations of all parts together.
#[derive(Debug, Clone)]
pub(crate) struct Together {
    /// Traces with actions.
    pub(crate) traces: Vec<String>,
    /// The iterations, in time.
    pub(crate) iterations: Vec<Iteration>,
    /// What a reader should know.
    pub(crate) notes: Vec<String>,
}

/// Puts the actions of several traces on one clock and tells iterations apart.
pub(crate) fn together(parts: &[Part]) -> Together {
    let parts: Vec<&Part> = parts.iter().filter(|part| !part.actions.rows.is_empty()).collect();
    let mut notes = Vec::new();
    let clocks: Option<Vec<i64>> = parts.iter().map(|part| part.began_ns).collect();
    // Clocks that have nothing in common are told by traces that never overlap.
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
    let mut refused = 0;
    for (place, part) in parts.iter().enumerate() {
        let clock = clocks.as_ref().map_or(0, |clocks| clocks[place].abs_diff(first));
        actions.extend(part.actions.observed(part.rank, clock));
        for (word, count) in &part.actions.left_out {
            *left_out.entry(word).or_default() += count;
        }
        refused += part.actions.refused;
    }
    if !left_out.is_empty() {
        let words: Vec<String> = left_out.iter().map(|(word, count)| format!("{count} {word}")).collect();
        notes.push(format!("Without a place in a timeline: {}.", words.join(", ")));
    }
    if refused > 0 {
        notes.push(format!("{refused} actions were left out: stages and microbatches go to {}.", MOST_NUMBER - 1));
    }
    let traces = parts.iter().map(|part| part.trace.clone()).collect();
    Together { traces, iterations: iterations(actions), notes }
}

/// Steps of a trace by time.
struct Steps(Vec<(u64, u64, u64)>);

impl Steps {
    /// Those of the device where actions are the device's, where it saw any.
    fn of(trace: &Trace, on_device: bool) -> Self {
        let step = |step: &ingest::trace::Step| {
            let slice = step.slice as usize;
            let start = trace.slices.start_ns[slice].saturating_sub(trace.origin_ns);
            (start, start.saturating_add(trace.slices.duration_ns[slice]), step.number)
        };
        let mut steps: Vec<_> = trace.steps.iter().filter(|step| step.on_device == on_device).map(step).collect();
        steps.sort_unstable();
        Self(steps)
    }

    /// The step that begins last before a time, if it has not ended.
    fn at(&self, time: u64) -> Option<u64> {
        let after = self.0.partition_point(|&(start, ..)| start <= time);
        let &(_, end, number) = self.0.get(after.checked_sub(1)?)?;
        (time < end).then_some(number)
    }
}

/// The span kind of an action; receives are the other end of a send, and dropping weights takes no time.
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

/// The word of the grammar.
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

    fn starts(together: &Together) -> Vec<(u32, u64)> {
        together.iterations.iter().flat_map(|one| &one.actions).map(|action| (action.rank, action.start_ns)).collect()
    }

    #[test]
    fn traces_of_a_run_share_the_time_of_day() {
        let found = together(&[part(1, Some(1030), &[0]), part(0, Some(1000), &[4, 5])]);
        assert_eq!(starts(&found), [(0, 4), (0, 5), (1, 30)]);
        assert!(found.notes.is_empty());
        assert_eq!(found.traces, ["trace1", "trace0"]);
        // One of them does not say it, or they never overlap.
        for clocks in [[None, Some(0)], [Some(5000), Some(0)]] {
            let found = together(&[part(1, clocks[0], &[0]), part(0, clocks[1], &[4])]);
            assert_eq!(starts(&found), [(0, 4), (1, 0)]);
            assert_eq!(found.notes.len(), 1);
        }
        assert!(together(&[]).iterations.is_empty());
    }
}
