//! Computes the metrics for a simulated schedule.

use super::costs::{ACTIVATION_BYTES, BenchCosts, activation_bytes, activations};
use super::memory;
use super::{CapReport, Clock, ClosedFormReport, LimitViolation, ScheduleReport, ScheduleRequest};
use planscope_core::action::Schedule;
use planscope_core::timeline::Timeline;
use planscope_core::units::{Bytes, Nanos};
use planscope_cost::cost::PipelineCosts;
use planscope_pipeline::export::schedule_csv;
use planscope_pipeline::lower_bound::lower_bound;
use planscope_pipeline::schedule::{ScheduleKind, Shape, StageTimes};
use planscope_pipeline::simulate::{Execution, StepEnd, assemble};

/// A simulated schedule.
pub(crate) struct Run<'a> {
    pub request: &'a ScheduleRequest,
    pub clock: Clock,
    pub bench: &'a BenchCosts,
    pub schedule: &'a Schedule,
    pub execution: &'a Execution,
}

impl Run<'_> {
    /// Builds the report. For a published kind it includes the closed-form values.
    pub(crate) fn report(&self, published: Option<(ScheduleKind, Shape)>, notes: Vec<String>) -> ScheduleReport {
        let (schedule, costs) = (self.schedule, &self.bench.costs);
        let ranks = schedule.ranks();
        let units = |time: Nanos| self.clock.units(time);
        let makespan = self.execution.makespan();
        let (rank_spans, active_times): (Vec<Nanos>, Vec<Nanos>) = (0..ranks).map(|rank| self.occupied(rank)).unzip();
        let span = rank_spans.iter().copied().max().unwrap_or(Nanos::ZERO);
        let min_active = active_times.iter().copied().min().unwrap_or(Nanos::ZERO);
        let work = units(active_times.iter().copied().sum());
        let idle = |time: f64| if time > 0.0 { (1.0 - work / (ranks as f64 * time)).max(0.0) } else { 0.0 };
        let bound = units(lower_bound(costs));
        let timeline = self.timeline();
        let peaks: Vec<Bytes> = timeline.memory.iter().map(|curve| Bytes::new(curve.peak_bytes)).collect();
        ScheduleReport {
            ranks: ranks as u32,
            stages: schedule.stages as u32,
            microbatches: schedule.microbatches as u32,
            actions: schedule.len() as u64,
            stage_ranks: (0..schedule.stages).map(|stage| costs.rank_for_stage(stage) as u32).collect(),
            makespan: units(makespan),
            span: units(span),
            rank_spans: rank_spans.into_iter().map(units).collect(),
            stage_spans: self.stage_spans().into_iter().map(units).collect(),
            busy: active_times.into_iter().map(units).collect(),
            bubble_of_makespan: idle(units(makespan)),
            bubble_of_span: idle(units(span)),
            bubble: units(span.saturating_sub(min_active)),
            lower_bound: bound,
            gap: if bound > 0.0 { units(makespan) / bound - 1.0 } else { 0.0 },
            cap: self.request.memory_cap.map(|limit| cap(limit, &peaks)),
            peak_activations: peaks.into_iter().map(activations).collect(),
            closed_form: published.and_then(|(kind, shape)| self.closed_form(kind, shape)),
            notes,
            csv: schedule_csv(schedule),
            timeline,
        }
    }

    /// Returns span and busy time for a rank. The span is the time between its first start and its
    /// last end.
    fn occupied(&self, rank: usize) -> (Nanos, Nanos) {
        let (start, end) = (&self.execution.start[rank], &self.execution.end[rank]);
        let active_time = start.iter().zip(end).map(|(&start, &end)| end - start).sum();
        let first = start.first().copied().unwrap_or(Nanos::ZERO);
        (self.execution.rank_end(rank) - first, active_time)
    }

    fn stage_spans(&self) -> Vec<Nanos> {
        let mut ends: Vec<Option<(Nanos, Nanos)>> = vec![None; self.schedule.stages];
        for (rank, order) in self.schedule.orders.iter().enumerate() {
            for (index, action) in order.iter().enumerate() {
                let (start, end) = (self.execution.start[rank][index], self.execution.end[rank][index]);
                let stage_bounds = &mut ends[action.stage as usize];
                *stage_bounds =
                    Some(stage_bounds.map_or((start, end), |(first, last)| (first.min(start), last.max(end))));
            }
        }
        ends.into_iter().map(|bounds| bounds.map_or(Nanos::ZERO, |(first, last)| last - first)).collect()
    }

    /// Timeline in nanoseconds and activation bytes.
    fn timeline(&self) -> Timeline {
        let end = StepEnd::from_executions(self.schedule.ranks(), std::iter::once(self.execution));
        let mut timeline = assemble(self.schedule, self.execution, &self.bench.costs, &end);
        let curve = |rank| memory::curve(rank, self.schedule, self.execution, self.bench);
        timeline.memory = (0..self.schedule.ranks()).map(curve).collect();
        let step = self.clock.step_ns;
        timeline.makespan_ns *= step;
        let columns = [&mut timeline.start_ns, &mut timeline.duration_ns];
        let curves = timeline.memory.iter_mut().map(|curve| &mut curve.time_ns);
        columns.into_iter().chain(curves).flatten().for_each(|time| *time *= step);
        timeline
    }

    /// Closed-form bubble and memory for the kind. The numeric values require equal times and free
    /// sends.
    fn closed_form(&self, kind: ScheduleKind, shape: Shape) -> Option<ClosedFormReport> {
        let form = kind.closed_form()?;
        let costs = &self.bench.costs;
        let activation = equal(&costs.activation).filter(|_| self.bench.released.is_empty());
        Some(ClosedFormReport {
            bubble: form.bubble.to_owned(),
            memory: form.memory.to_owned(),
            conditions: form.conditions.to_owned(),
            expected_bubble: stage_times(costs)
                .filter(|_| self.request.times.communication <= 0.0)
                .and_then(|times| kind.expected_bubble(shape, times))
                .map(|bubble| self.clock.units(bubble)),
            expected_peak: activation
                .and_then(|each| Some((kind.expected_peak(shape)? * each.get()) as f64 / ACTIVATION_BYTES as f64)),
        })
    }
}

fn cap(limit: f64, peaks: &[Bytes]) -> CapReport {
    let max_peak = peaks.iter().enumerate().max_by_key(|&(rank, peak)| (peak, std::cmp::Reverse(rank)));
    let broken = max_peak.filter(|(_, peak)| **peak > activation_bytes(limit));
    CapReport {
        limit,
        broken: broken.map(|(rank, &peak)| LimitViolation { rank: rank as u32, needed: activations(peak) }),
    }
}

fn stage_times(costs: &PipelineCosts) -> Option<StageTimes> {
    let forward = equal(&costs.forward)?;
    let (input_grad, weight_grad) = (equal(&costs.input_grad)?, equal(&costs.weight_grad)?);
    let overlapped = costs.overlapped(forward, input_grad + weight_grad);
    Some(StageTimes { forward, input_grad, weight_grad, overlapped })
}

/// Returns the value that all entries share, or `None` if values differ.
fn equal<T: Copy + PartialEq>(column: &[T]) -> Option<T> {
    let first = *column.first()?;
    column.iter().all(|value| *value == first).then_some(first)
}
