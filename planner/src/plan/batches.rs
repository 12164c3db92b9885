//! What is planned anew for every judged batch: told, measured, and stopped where the observer asks for it.

use super::{IterationPlan, ReplicaPlan};
use crate::host::{measured, round_of, side_by_side};
use crate::observer::{Cancelled, Observer, go_on};
use crate::scenario::PlannerKind;
use crate::workload::PackedBatch;

/// The judged batches of a run, and who plans each of them.
#[derive(Clone, Copy)]
pub(super) struct EachBatch<'a> {
    pub kind: PlannerKind,
    /// What is done with them, in words.
    pub phase: &'static str,
    pub batches: &'a [PackedBatch],
}

/// What was planned for a batch, and how many spans it has.
pub(super) trait Drafted {
    /// Spans of all replicas.
    fn spans(&self) -> u64;
}

impl Drafted for ReplicaPlan {
    fn spans(&self) -> u64 {
        self.schedule.len() as u64
    }
}

impl Drafted for IterationPlan {
    fn spans(&self) -> u64 {
        self.replicas.iter().map(Drafted::spans).sum()
    }
}

impl<T> Drafted for (IterationPlan, T) {
    fn spans(&self) -> u64 {
        self.0.spans()
    }
}

/// What every batch came to, or the first that could not be planned.
type Planned<T, E> = Result<Result<Vec<T>, E>, Cancelled>;

impl EachBatch<'_> {
    /// One after the other: what was planned for one counts for the next. Each may ask the observer whether to stop; what it came to
    /// is dropped then.
    pub(super) fn in_turn<T: Drafted, E>(
        self,
        observer: &mut dyn Observer,
        mut plan: impl FnMut(usize, &PackedBatch, &dyn Observer) -> Result<T, E>,
    ) -> Planned<T, E> {
        let (mut planned, mut spans) = (Vec::with_capacity(self.batches.len()), 0);
        for (index, batch) in self.batches.iter().enumerate() {
            self.tell(observer, index)?;
            let own = measured(observer.batch_clock(), index as u32, || plan(index, batch, observer));
            go_on(observer)?;
            match own {
                Ok(own) => {
                    spans += own.spans();
                    planned.push(own);
                }
                Err(error) => return Ok(Err(error)),
            }
            observer.drafted(spans);
            go_on(observer)?;
        }
        Ok(Ok(planned))
    }

    /// As many at once as there are workers, each of which may use them too and ask the observer whether to stop; what they came to is
    /// dropped then.
    pub(super) fn side_by_side<T: Drafted + Send, E: Send>(
        self,
        observer: &mut dyn Observer,
        plan: impl Fn(usize, &PackedBatch, &dyn Observer) -> Result<T, E> + Sync,
    ) -> Planned<T, E> {
        let (mut planned, mut spans) = (Vec::with_capacity(self.batches.len()), 0);
        for round in self.batches.chunks(round_of(observer.workers())) {
            let first = planned.len();
            self.tell(observer, first)?;
            let asked: &dyn Observer = observer;
            let answers = side_by_side(asked.workers(), round.len(), |place| {
                let index = first + place;
                measured(asked.batch_clock(), index as u32, || plan(index, &round[place], asked))
            });
            go_on(observer)?;
            for answer in answers {
                match answer {
                    Ok(own) => {
                        spans += own.spans();
                        planned.push(own);
                    }
                    Err(error) => return Ok(Err(error)),
                }
            }
            observer.drafted(spans);
            go_on(observer)?;
        }
        Ok(Ok(planned))
    }

    fn tell(self, observer: &mut dyn Observer, done: usize) -> Result<(), Cancelled> {
        go_on(observer)?;
        observer.progress(self.kind, self.phase, done as u32, self.batches.len() as u32);
        Ok(())
    }
}
