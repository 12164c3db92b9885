//! Zero bubble schedules made for the times at hand, with split backwards and a memory cap (Qi et al., 2023, "Zero Bubble
//! Pipeline Parallelism", the automatic schedule).
//!
//! Every rank first runs forwards until its first gradient arrives or its memory is full. Then it takes one forward and
//! one input gradient in turn, in the order of the microbatches. Weight gradients need no other rank, so they fill the
//! time in which nothing has arrived, give back memory where a forward needs it, and run at the end else. Three
//! questions have no answer that is best for all times; all eight combinations are tried, and two fixed orders. The
//! shortest schedule is kept, of equally short ones that whose ranks are occupied the shortest.

mod builder;

use super::interleaved_zero_bubble::lagging;
use super::{Action, Schedule, ScheduleError, ScheduleKind};
use crate::cost::PipelineCosts;
use crate::schedule::ActionKind;
use crate::simulate::execute;
use crate::units::{Bytes, Nanos};

use builder::Builder;

/// The three questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Heuristics {
    /// Before the first gradient, one more forward runs although the gradient then waits for it.
    fill_before_first: bool,
    /// A forward that would make a gradient wait is put off where the next rank has enough to do.
    gradients_first: bool,
    /// A weight gradient runs in a gap shorter than itself, where the gap would be the longest of any rank.
    fill_short_gaps: bool,
}

impl Heuristics {
    fn all() -> impl Iterator<Item = Self> {
        (0..8_u8).map(|bits| Self {
            fill_before_first: bits & 1 != 0,
            gradients_first: bits & 2 != 0,
            fill_short_gaps: bits & 4 != 0,
        })
    }
}

/// ZB-H1: the memory of 1F1B, p activations on every rank.
///
/// Bubble with equal times: `(p - 1)(F + I - W)`.
///
/// # Errors
/// Names a rank on which one microbatch does not fit; ranks must hold one stage each.
pub fn zb_h1(costs: &PipelineCosts, limit: Option<Bytes>) -> Result<Schedule, ScheduleError> {
    automatic(ScheduleKind::ZbH1, costs, limit, &[])
}

/// ZB-H2: twice the memory of 1F1B, 2 p activations on every rank.
///
/// Bubble with equal times and m >= 2 p - 1: `(p - 1)(F + I - 2 W)`, nothing where F = I = W.
///
/// # Errors
/// Names a rank on which one microbatch does not fit; ranks must hold one stage each.
pub fn zb_h2(costs: &PipelineCosts, limit: Option<Bytes>) -> Result<Schedule, ScheduleError> {
    automatic(ScheduleKind::ZbH2, costs, limit, &[])
}

/// The best schedule under the kind's cap, and under `limit` bytes on each rank where that is less. `released` is what
/// the input gradient of each cell gives back of its activation; nothing where it is empty.
pub(crate) fn automatic(
    kind: ScheduleKind,
    costs: &PipelineCosts,
    limit: Option<Bytes>,
    released: &[Bytes],
) -> Result<Schedule, ScheduleError> {
    if !costs.flows.is_cyclic() || costs.stages() != costs.ranks() {
        return Err(ScheduleError::Costs { kind });
    }
    let deepest = if kind == ScheduleKind::ZbH2 { 2 } else { 1 };
    let mut candidates = Vec::new();
    // What needs less memory is tried too, so that ZB-H2 is never behind ZB-H1.
    for depth in 1..=deepest {
        let caps = caps(kind, costs, depth * costs.ranks(), limit)?;
        candidates.extend(Heuristics::all().map(|heuristics| {
            let built = Builder::new(costs, &caps, released, heuristics).build();
            (built.occupied(costs), built.orders)
        }));
        let late = |rank: usize| depth * rank;
        candidates.extend(by_hand(costs, depth, late, &caps, released));
        candidates.extend(by_hand(costs, depth, |_| 0, &caps, released));
    }
    let best = candidates.into_iter().min_by_key(|&(occupied, _)| occupied);
    let (_, orders) = best.expect("there are eight at least");
    Ok(Schedule { stages: costs.stages(), microbatches: costs.microbatches(), orders })
}

/// A fixed order, if it stays within the memory: `depth (p - 1 - r)` forwards first, weight gradients `lag(r)` late. With
/// `depth r` it is the one made for F = I = W; with none it is never behind 1F1B.
fn by_hand(
    costs: &PipelineCosts,
    depth: usize,
    lag: impl Fn(usize) -> usize,
    caps: &[Cap],
    released: &[Bytes],
) -> Option<(Occupied, Vec<Vec<Action>>)> {
    let (ranks, microbatches) = (costs.ranks(), costs.microbatches());
    let order = |rank: usize| {
        let own = || (0..microbatches).map(move |microbatch| (rank, microbatch));
        lagging(own(), own(), depth * (ranks - 1 - rank), lag(rank))
    };
    let schedule = Schedule { stages: costs.stages(), microbatches, orders: (0..ranks).map(order).collect() };
    if !schedule.orders.iter().zip(caps).all(|(order, &cap)| fits(order, costs, cap, released)) {
        return None;
    }
    let execution = execute(&schedule, costs).ok()?;
    let start = execution.start.iter().map(|starts| starts.first().copied().unwrap_or(Nanos::ZERO)).collect();
    let end = (0..ranks).map(|rank| execution.rank_end(rank)).collect();
    let built = Built { orders: schedule.orders, start, end };
    Some((built.occupied(costs), built.orders))
}

/// Whether an order stays within a rank's memory.
fn fits(order: &[Action], costs: &PipelineCosts, cap: Cap, released: &[Bytes]) -> bool {
    let mut held = Bytes::ZERO;
    order.iter().all(|action| {
        let cell = costs.cell(action.stage as usize, action.microbatch as usize);
        let (taken, given) = change(action.kind, cell, costs, released);
        let most = held + taken;
        held = most.saturating_sub(given);
        most <= cap.held
    })
}

/// What an action of a split backward takes of memory when it starts, and gives back when it ends.
fn change(kind: ActionKind, cell: usize, costs: &PipelineCosts, released: &[Bytes]) -> (Bytes, Bytes) {
    let (activation, transient) = (costs.activation[cell], costs.transient[cell]);
    let released = released.get(cell).copied().unwrap_or(Bytes::ZERO);
    match kind {
        ActionKind::Forward => (activation, Bytes::ZERO),
        ActionKind::InputGrad => (transient, released),
        ActionKind::WeightGrad | ActionKind::Backward => {
            (Bytes::ZERO, (activation + transient).saturating_sub(released))
        }
    }
}

/// What each rank may hold above its static memory, and how much of that forwards must leave for the largest input
/// gradient.
#[derive(Debug, Clone, Copy)]
struct Cap {
    held: Bytes,
    kept_free: Bytes,
}

fn caps(
    kind: ScheduleKind,
    costs: &PipelineCosts,
    activations: usize,
    limit: Option<Bytes>,
) -> Result<Vec<Cap>, ScheduleError> {
    let mut largest = vec![(Bytes::ZERO, Bytes::ZERO); costs.ranks()];
    for cell in costs.cells() {
        let (activation, transient) = &mut largest[costs.rank_of(cell.stage)];
        *activation = (*activation).max(costs.activation[cell.index]);
        *transient = (*transient).max(costs.transient[cell.index]);
    }
    let cap = |(rank, (activation, transient)): (usize, (Bytes, Bytes))| {
        let fixed = costs.static_memory[rank];
        let own = Bytes::new((activation + transient).get().saturating_mul(activations as u64));
        let held = limit.map_or(own, |limit| own.min(limit.saturating_sub(fixed)));
        let needs = activation + transient;
        match limit {
            Some(limit) if needs > held => Err(ScheduleError::Memory { kind, rank, needs: fixed + needs, limit }),
            _ => Ok(Cap { held, kept_free: transient }),
        }
    };
    largest.into_iter().enumerate().map(cap).collect()
}

/// End of the iteration, and the longest time from the first to the last action of a rank.
type Occupied = (Nanos, Nanos);

/// A schedule as it was built.
struct Built {
    orders: Vec<Vec<Action>>,
    start: Vec<Nanos>,
    end: Vec<Nanos>,
}

impl Built {
    fn occupied(&self, costs: &PipelineCosts) -> Occupied {
        let ends = self.end.iter().enumerate().map(|(rank, &end)| end + costs.sync[rank] + costs.optimizer[rank]);
        let spans = self.end.iter().zip(&self.start).map(|(&end, &start)| end - start);
        (ends.max().unwrap_or(Nanos::ZERO), spans.max().unwrap_or(Nanos::ZERO))
    }
}

#[cfg(test)]
mod tests;
