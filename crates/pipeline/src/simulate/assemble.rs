//! Converts simulated times to a timeline: span columns, memory curves, critical path.

use super::execution::{Execution, Start};
use super::memory;
use planscope_core::action::{Action, ActionKind, Schedule};
use planscope_core::stage_graph::Flows;
use planscope_core::timeline::{Join, NO_SPAN, SpanKind, Timeline};
use planscope_core::units::Nanos;
use planscope_cost::cost::PipelineCosts;

/// Earliest gradient synchronization time per rank, after all replicas have finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepEnd {
    /// Synchronization start per rank.
    pub sync_start: Vec<Nanos>,
    /// True if ranks synchronize and all belong to the same rank list.
    pub joined: bool,
}

impl StepEnd {
    /// Computes the times from all replicas.
    pub fn from_executions<'a>(ranks: usize, executions: impl Iterator<Item = &'a Execution>) -> Self {
        let mut sync_start = vec![Nanos::ZERO; ranks];
        for execution in executions {
            for (rank, start) in sync_start.iter_mut().enumerate() {
                *start = (*start).max(execution.rank_end(rank));
            }
        }
        Self { sync_start, joined: false }
    }

    /// Sets a common start per synchronization group. `first[rank]` is the first rank of the group
    /// that contains `rank`.
    pub fn join(&mut self, first: &[usize]) {
        for (rank, &group) in first.iter().enumerate() {
            self.sync_start[group] = self.sync_start[group].max(self.sync_start[rank]);
        }
        for (rank, &group) in first.iter().enumerate() {
            self.sync_start[rank] = self.sync_start[group];
        }
    }

    /// Returns the iteration end, after the last optimizer step.
    pub fn iteration_end(&self, costs: &PipelineCosts) -> Nanos {
        let ends =
            self.sync_start.iter().enumerate().map(|(rank, &start)| start + costs.sync[rank] + costs.optimizer[rank]);
        ends.max().unwrap_or(Nanos::ZERO)
    }
}

/// Creates the timeline for a replica.
pub fn assemble(schedule: &Schedule, execution: &Execution, costs: &PipelineCosts, end: &StepEnd) -> Timeline {
    let mut builder = Builder {
        schedule,
        execution,
        costs,
        timeline: Timeline { ranks: schedule.ranks() as u32, lane_offsets: vec![0], ..Timeline::default() },
        producer: vec![(NO_SPAN, NO_SPAN); 2 * costs.flows.cells()],
        ready: Vec::new(),
        last_come: Vec::new(),
        last_compute: Vec::new(),
    };
    builder.number_spans();
    for rank in 0..schedule.ranks() {
        builder.compute_lane(rank, end);
        builder.communication_lane(rank);
    }
    let mut timeline = builder.timeline;
    timeline.makespan_ns = end.iteration_end(costs).get();
    timeline.memory = (0..schedule.ranks()).map(|rank| memory::curve(rank, schedule, execution, costs)).collect();
    timeline.microbatches.clone_from(&costs.shapes);
    timeline.joins = joins(&costs.flows);
    timeline.overlapped = overlapped(schedule, &timeline);
    if timeline.exposed_ns.iter().all(|&exposed| exposed == 0) {
        timeline.exposed_ns.clear();
    }
    if end.joined {
        join_phases(&mut timeline);
    }
    timeline.critical_path = critical_path(&timeline);
    timeline
}

/// If a span starts late and has no input, links it to the span that ends at this time, in the
/// previous phase.
fn join_phases(timeline: &mut Timeline) {
    for span in 0..timeline.len() {
        let start = timeline.start_ns[span];
        if timeline.bound_by[span] == NO_SPAN && start > 0 {
            let ended = |other: &usize| timeline.start_ns[*other] < start && timeline.end_ns(*other) == start;
            let before = (0..timeline.len()).find(ended);
            timeline.bound_by[span] = before.map_or(NO_SPAN, |before| before as u32);
        }
    }
}

fn joins(flows: &Flows) -> Vec<Join> {
    let into = |into: usize| flows.inputs(into).iter().map(move |&from| Join { from, into: into as u32 });
    (0..flows.microbatches()).flat_map(into).collect()
}

/// Returns the spans overlapped with their successor.
fn overlapped(schedule: &Schedule, timeline: &Timeline) -> Vec<u32> {
    let rank_overlaps = |(rank, order): (usize, &Vec<Action>)| {
        let first = timeline.compute_lane(rank).start;
        let places = order.iter().enumerate().filter(|(_, action)| action.with_next);
        places.map(|(index, _)| (first + index) as u32).collect::<Vec<_>>()
    };
    schedule.orders.iter().enumerate().flat_map(rank_overlaps).collect()
}

struct Builder<'a> {
    schedule: &'a Schedule,
    execution: &'a Execution,
    costs: &'a PipelineCosts,
    timeline: Timeline,
    /// For each forward (even) and gradient (odd) cell: the computing span and the delivering span.
    producer: Vec<(u32, u32)>,
    /// End time per span.
    ready: Vec<Nanos>,
    /// Per rank group, forward and backward: the span before the arrival of the last rank.
    last_come: Vec<u32>,
    /// Last compute span per rank.
    last_compute: Vec<u32>,
}

impl Builder<'_> {
    fn send(&self, action: Action) -> Nanos {
        let cell = self.costs.cell(action.stage as usize, action.microbatch as usize);
        match action.kind {
            ActionKind::Forward => self.costs.send_forward[cell],
            ActionKind::Backward | ActionKind::InputGrad => self.costs.send_backward[cell],
            ActionKind::WeightGrad => Nanos::ZERO,
        }
    }

    fn slot(&self, action: Action) -> usize {
        let cell = self.costs.cell(action.stage as usize, action.microbatch as usize);
        2 * cell + usize::from(action.kind != ActionKind::Forward)
    }

    /// Assigns all span indices before spans are written. Lanes are ordered by rank.
    fn number_spans(&mut self) {
        let mut next = 0_u32;
        self.last_come = vec![NO_SPAN; 2 * self.costs.flows.gangs()];
        for (rank, order) in self.schedule.orders.iter().enumerate() {
            self.last_compute.push(if order.is_empty() { NO_SPAN } else { next + order.len() as u32 - 1 });
            let first_send = next + order.len() as u32 + self.tail(rank).len() as u32;
            let mut sends = 0;
            self.ready.extend_from_slice(&self.execution.end[rank]);
            self.ready.resize(first_send as usize, Nanos::ZERO);
            for (index, &action) in order.iter().enumerate() {
                if let Some(meeting) = self.meeting(action)
                    && self.execution.bound_by[rank][index] == Start::Rank
                {
                    self.last_come[meeting] = next + index as u32 - 1;
                }
                if action.kind == ActionKind::WeightGrad {
                    continue;
                }
                let computed = next + end_index(order, index) as u32;
                let mut delivered = computed;
                let send = self.send(action);
                if send > Nanos::ZERO {
                    delivered = first_send + sends;
                    sends += 1;
                    self.ready.push(self.execution.send_start[rank][index] + send);
                }
                let slot = self.slot(action);
                self.producer[slot] = (computed, delivered);
            }
            next = first_send + sends;
        }
    }

    /// Returns the rendezvous index for an action in a rank group.
    fn meeting(&self, action: Action) -> Option<usize> {
        let gang = self.costs.flows.microbatch_gang(action.microbatch as usize)?;
        Some(2 * gang + usize::from(action.kind != ActionKind::Forward))
    }

    fn tail(&self, rank: usize) -> Vec<(SpanKind, Nanos)> {
        let parts =
            [(SpanKind::GradientSync, self.costs.sync[rank]), (SpanKind::Optimizer, self.costs.optimizer[rank])];
        parts.into_iter().filter(|part| part.1 > Nanos::ZERO).collect()
    }

    fn push(&mut self, kind: SpanKind, stage: u32, microbatch: u32, start: Nanos, end: Nanos, bound_by: u32) {
        let timeline = &mut self.timeline;
        timeline.exposed_ns.push(0);
        timeline.kind.push(kind as u8);
        timeline.stage.push(stage);
        timeline.microbatch.push(microbatch);
        timeline.start_ns.push(start.get());
        timeline.duration_ns.push((end - start).get());
        timeline.bound_by.push(bound_by);
    }

    fn compute_lane(&mut self, rank: usize, end: &StepEnd) {
        let first = self.timeline.len() as u32;
        for (index, &action) in self.schedule.orders[rank].iter().enumerate() {
            let bound_by = match self.execution.bound_by[rank][index] {
                Start::Begin => NO_SPAN,
                Start::Rank => first + index as u32 - 1,
                Start::Input => self.last_input(&self.schedule.orders[rank], index),
            };
            let kind = match action.kind {
                ActionKind::Forward => SpanKind::Forward,
                ActionKind::Backward => SpanKind::Backward,
                ActionKind::InputGrad => SpanKind::InputGrad,
                ActionKind::WeightGrad => SpanKind::WeightGrad,
            };
            let (start, stop) = (self.execution.start[rank][index], self.execution.end[rank][index]);
            // All ranks in a group have the complete model, which is stage 0.
            let stage = if self.meeting(action).is_some() { 0 } else { action.stage };
            self.push(kind, stage, action.microbatch, start, stop, bound_by);
            if let Some(exposed) = self.timeline.exposed_ns.last_mut() {
                *exposed = exposed_in(self.costs, action).get();
            }
        }
        let mut at = end.sync_start[rank];
        let tail = self.tail(rank);
        let first_kind = tail.first().map_or(SpanKind::Optimizer, |part| part.0);
        for (kind, duration) in tail {
            // A wait for other replicas has no span in this pipeline, so `bound_by` is the rank's
            // previous span. If the awaited ranks are in the same list, `bound_by` is the span that
            // ended at this time.
            let waited = (kind == first_kind && end.joined && self.execution.rank_end(rank) < at).then(|| {
                let other = (0..self.last_compute.len()).find(|&other| self.execution.rank_end(other) == at);
                other.map_or(NO_SPAN, |other| self.last_compute[other])
            });
            let before = (self.timeline.len() as u32).checked_sub(1).filter(|&span| span >= first).unwrap_or(NO_SPAN);
            self.push(kind, rank as u32, 0, at, at + duration, waited.unwrap_or(before));
            at += duration;
        }
        self.timeline.lane_offsets.push(self.timeline.len() as u32);
    }

    /// Returns the span that delivered the latest input. Overlapped actions require the inputs of
    /// both.
    fn last_input(&self, order: &[Action], index: usize) -> u32 {
        let waiting = &order[index..=end_index(order, index)];
        let inputs = waiting.iter().map(|&action| self.input_span(action)).filter(|&span| span != NO_SPAN);
        inputs.max_by_key(|&span| self.ready[span as usize]).unwrap_or(NO_SPAN)
    }

    /// Returns the span that delivered the latest input.
    fn input_span(&self, action: Action) -> u32 {
        if let Some(meeting) = self.meeting(action) {
            return self.last_come[meeting];
        }
        let (flows, microbatch) = (&self.costs.flows, action.microbatch as usize);
        let cell = self.costs.cell(action.stage as usize, microbatch);
        let cells = flows.microbatch_cells(microbatch);
        let (forward, gradient) = (|cell: usize| self.producer[2 * cell], |cell: usize| self.producer[2 * cell + 1]);
        match action.kind {
            ActionKind::Forward if cell > cells.start => forward(cell - 1).1,
            ActionKind::Forward => {
                self.latest(flows.inputs(microbatch), |input| forward(flows.microbatch_cells(input).end - 1).1)
            }
            // The forward pass ran earlier on this rank, so the pending input is a gradient, if
            // there is one.
            ActionKind::Backward | ActionKind::InputGrad if cell + 1 < cells.end => gradient(cell + 1).1,
            ActionKind::Backward | ActionKind::InputGrad if flows.outputs(microbatch).is_empty() => forward(cell).0,
            ActionKind::Backward | ActionKind::InputGrad => {
                self.latest(flows.outputs(microbatch), |output| gradient(flows.microbatch_cells(output).start).1)
            }
            ActionKind::WeightGrad => gradient(cell).0,
        }
    }

    /// Returns the span with the latest delivery to the given microbatches.
    fn latest(&self, feeding: &[u32], delivered: impl Fn(usize) -> u32) -> u32 {
        let last = feeding.iter().max_by_key(|&&other| self.ready[delivered(other as usize) as usize]);
        last.map_or(NO_SPAN, |&other| delivered(other as usize))
    }

    fn communication_lane(&mut self, rank: usize) {
        let mut free = Nanos::ZERO;
        let mut previous = NO_SPAN;
        for (index, &action) in self.schedule.orders[rank].iter().enumerate() {
            let duration = self.send(action);
            if duration == Nanos::ZERO {
                continue;
            }
            let start = self.execution.send_start[rank][index];
            let order = &self.schedule.orders[rank];
            let waited_for_stream = previous != NO_SPAN && start > self.execution.end[rank][end_index(order, index)];
            let bound_by = if waited_for_stream { previous } else { self.producer[self.slot(action)].0 };
            debug_assert!(start >= free, "sends of a rank follow each other");
            let kind = if action.kind == ActionKind::Forward { SpanKind::SendForward } else { SpanKind::SendBackward };
            previous = self.timeline.len() as u32;
            free = start + duration;
            self.push(kind, action.stage, action.microbatch, start, free, bound_by);
        }
        self.timeline.lane_offsets.push(self.timeline.len() as u32);
    }
}

/// Returns the communication time that blocks the computation of an action.
fn exposed_in(costs: &PipelineCosts, action: Action) -> Nanos {
    let cell = costs.cell(action.stage as usize, action.microbatch as usize);
    match action.kind {
        ActionKind::Forward => costs.exposed_forward[cell],
        ActionKind::Backward | ActionKind::InputGrad => costs.exposed_backward[cell],
        ActionKind::WeightGrad => Nanos::ZERO,
    }
}

/// Returns the position whose end makes the result available: for overlapped actions, the
/// successor.
fn end_index(order: &[Action], index: usize) -> usize {
    if order[index].with_next && index + 1 < order.len() { index + 1 } else { index }
}

/// Follows `bound_by` backward from the span with the latest end.
fn critical_path(timeline: &Timeline) -> Vec<u32> {
    let last = (0..timeline.len()).max_by_key(|&span| (timeline.end_ns(span), std::cmp::Reverse(span)));
    let mut path = Vec::new();
    let mut at = last.map_or(NO_SPAN, |span| span as u32);
    while at != NO_SPAN {
        path.push(at);
        at = timeline.bound_by[at as usize];
    }
    path.reverse();
    path
}
