//! Planning per batch. Reports progress, measures time and supports cancellation.

use crate::planners::SearchError;
use planscope_core::host::{jobs_per_round, measured, side_by_side};
use planscope_core::workload::PackedBatch;
use planscope_plan::observer::{Cancelled, Observer, go_on};
use planscope_plan::plan::Plan;
use planscope_plan::plan::{IterationPlan, ReplicaPlan};
use planscope_plan::scenario::PlannerKind;
use planscope_plan::scenario::budget::Spans;

/// The batches of a run, and the planner that processes them.
#[derive(Clone, Copy)]
pub(crate) struct EachBatch<'a> {
    pub kind: PlannerKind,
    /// Name of the phase in progress reports.
    pub phase: &'static str,
    pub batches: &'a [PackedBatch],
}

/// A draft plan with a span count.
pub(crate) trait SpanCount {
    fn spans(&self) -> u64;
}

impl SpanCount for ReplicaPlan {
    fn spans(&self) -> u64 {
        self.schedule.len() as u64
    }
}

impl SpanCount for IterationPlan {
    fn spans(&self) -> u64 {
        self.replicas.iter().map(SpanCount::spans).sum()
    }
}

impl<T> SpanCount for (IterationPlan, T) {
    fn spans(&self) -> u64 {
        self.0.spans()
    }
}

impl EachBatch<'_> {
    /// Plans the batches sequentially and stops at the first error, so `plan` can reuse state from earlier batches. `plan` may
    /// poll the observer for cancellation; its result is then discarded.
    pub(crate) fn in_turn<T: SpanCount, E>(
        self,
        observer: &mut dyn Observer,
        mut plan: impl FnMut(usize, &PackedBatch, &dyn Observer) -> Result<T, E>,
    ) -> Result<Vec<T>, SearchError<E>> {
        let (mut planned, mut spans) = (Vec::with_capacity(self.batches.len()), 0);
        for (index, batch) in self.batches.iter().enumerate() {
            self.tell(observer, index)?;
            let result = measured(observer.batch_clock(), index as u32, || plan(index, batch, observer));
            go_on(observer)?;
            let own = result.map_err(SearchError::Infeasible)?;
            spans += own.spans();
            planned.push(own);
            observer.drafted(spans);
            go_on(observer)?;
        }
        Ok(planned)
    }

    /// Plans the batches in rounds on the worker threads. `plan` may use these workers too and may
    /// poll the observer for cancellation; its result is then discarded.
    pub(crate) fn side_by_side<T: SpanCount + Send, E: Send>(
        self,
        observer: &mut dyn Observer,
        plan: impl Fn(usize, &PackedBatch, &dyn Observer) -> Result<T, E> + Sync,
    ) -> Result<Vec<T>, SearchError<E>> {
        let (mut planned, mut spans) = (Vec::with_capacity(self.batches.len()), 0);
        for round in self.batches.chunks(jobs_per_round(observer.workers())) {
            let first = planned.len();
            self.tell(observer, first)?;
            let shared_observer: &dyn Observer = observer;
            let answers = side_by_side(shared_observer.workers(), round.len(), |offset| {
                let index = first + offset;
                measured(shared_observer.batch_clock(), index as u32, || plan(index, &round[offset], shared_observer))
            });
            go_on(observer)?;
            for result in answers {
                let own = result.map_err(SearchError::Infeasible)?;
                spans += own.spans();
                planned.push(own);
            }
            observer.drafted(spans);
            go_on(observer)?;
        }
        Ok(planned)
    }

    fn tell(self, observer: &mut dyn Observer, done: usize) -> Result<(), Cancelled> {
        go_on(observer)?;
        observer.progress(self.kind, self.phase, done as u32, self.batches.len() as u32);
        Ok(())
    }
}

/// Returns the spans of a plan. Each iteration stores the timeline of one replica, counted as the
/// largest.
pub(crate) fn plan_spans(plan: &Plan) -> Spans {
    let iteration_spans = |iteration: &IterationPlan| {
        let replica_spans = || iteration.replicas.iter().map(SpanCount::spans);
        Spans { stored: replica_spans().max().unwrap_or(0), simulated: replica_spans().sum() }
    };
    plan.iterations.iter().map(iteration_spans).fold(Spans::default(), Spans::and)
}
