//! Zero bubble schedules for given times, with split backwards and a memory cap (Qi et al., 2023,
//! "Zero Bubble Pipeline Parallelism", the automatic schedule).
//!
//! In the warm-up, a rank runs forwards up to the arrival of the first gradient, or up to the
//! memory cap. Then it alternates forwards and input gradients, in microbatch order. No other rank
//! depends on weight gradients: they fill idle time, release memory for a forward, or run at the
//! end. No heuristic is optimal for all times. The builder tries all eight combinations of three
//! heuristics, plus four list schedules in time order and two fixed orders, and selects the schedule
//! with the minimum iteration time, then with the minimum rank span. If memory holds fewer
//! activations than ranks, the list schedules are the fastest.

mod builder;
mod list;

use super::interleaved_zero_bubble::lagging;
use super::{Action, Schedule, ScheduleError, ScheduleKind};
use crate::simulate::execute;
use planscope_core::action::ActionKind;
use planscope_core::units::{Bytes, Nanos};
use planscope_cost::cost::PipelineCosts;

use builder::Builder;
use list::{Rules, list_schedule};

/// The three heuristics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Heuristics {
    /// In the warm-up, run another forward even if this delays the first gradient.
    fill_before_first: bool,
    /// Defer a forward that would delay a gradient, if the following rank has enough work.
    gradients_first: bool,
    /// Run a weight gradient in a gap that is too short, if the rank would otherwise have the
    /// maximum total idle time.
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

/// Creates a ZB-H1 schedule. Memory: p activations per rank, as in 1F1B.
///
/// Bubble for equal times: `(p - 1)(F + I - W)`.
///
/// # Errors
/// If a rank has more than one stage, or if a single microbatch does not fit on a rank.
pub fn zb_h1(costs: &PipelineCosts, limit: Option<Bytes>) -> Result<Schedule, ScheduleError> {
    automatic(ScheduleKind::ZbH1, costs, limit, &[])
}

/// Creates a ZB-H2 schedule. Memory: 2 p activations per rank, twice the memory of 1F1B.
///
/// Bubble for equal times and m >= 2 p - 1: `(p - 1)(F + I - 2 W)`, zero for F = I = W.
///
/// # Errors
/// If a rank has more than one stage, or if a single microbatch does not fit on a rank.
pub fn zb_h2(costs: &PipelineCosts, limit: Option<Bytes>) -> Result<Schedule, ScheduleError> {
    automatic(ScheduleKind::ZbH2, costs, limit, &[])
}

/// Returns the schedule with the minimum iteration time, subject to the kind's memory cap and
/// `limit` bytes per rank. `released` contains the activation bytes released by the input gradient,
/// per cell; empty for none.
pub fn automatic(
    kind: ScheduleKind,
    costs: &PipelineCosts,
    limit: Option<Bytes>,
    released: &[Bytes],
) -> Result<Schedule, ScheduleError> {
    if !costs.flows.is_cyclic() || costs.stages() != costs.ranks() {
        return Err(ScheduleError::Costs { kind });
    }
    let deepest = if kind == ScheduleKind::ZbH2 { 2 } else { 1 };
    let mut best: Option<Candidate> = None;
    // Try smaller memory caps too, so that ZB-H2 is never slower than ZB-H1.
    for depth in 1..=deepest {
        let caps = caps(kind, costs, depth * costs.ranks(), limit)?;
        let mut consider = |priority: usize, built: Option<Built>| {
            let Some(built) = built else { return best.as_ref().map(Candidate::end) };
            let candidate = Candidate { occupied: built.occupied(costs), depth, priority, orders: built.orders };
            if best.as_ref().is_none_or(|best| candidate.key() < best.key()) {
                best = Some(candidate);
            }
            best.as_ref().map(Candidate::end)
        };
        // Fixed orders need little time and have the lowest priority. The others stop once they are slower.
        let late = |rank: usize| depth * rank;
        consider(12, by_hand(costs, depth, late, &caps, released));
        let mut before = consider(13, by_hand(costs, depth, |_| 0, &caps, released));
        for (priority, heuristics) in Heuristics::all().enumerate() {
            before = consider(priority, Builder::new(costs, &caps, released, heuristics).build(before));
        }
        for (priority, rules) in Rules::all().enumerate() {
            before = consider(8 + priority, list_schedule(costs, &caps, released, rules, before));
        }
    }
    let best = best.expect("the first of at least twelve runs to its end");
    Ok(Schedule { stages: costs.stages(), microbatches: costs.microbatches(), orders: best.orders })
}

/// A schedule, how long it occupies the ranks, and its place among schedules of equal times.
struct Candidate {
    occupied: Occupied,
    depth: usize,
    priority: usize,
    orders: Vec<Vec<Action>>,
}

impl Candidate {
    const fn end(&self) -> Nanos {
        self.occupied.0
    }

    const fn key(&self) -> (Occupied, usize, usize) {
        (self.occupied, self.depth, self.priority)
    }
}

/// Lower bound on the end of an iteration while a schedule is built: the work that a rank has left.
struct Remaining {
    /// Work left, synchronization and optimizer step, per rank.
    left: Vec<Nanos>,
    /// End that must not be exceeded.
    before: Option<Nanos>,
}

impl Remaining {
    fn new(costs: &PipelineCosts, before: Option<Nanos>) -> Self {
        let mut left: Vec<Nanos> = costs.sync.iter().zip(&costs.optimizer).map(|(&sync, &step)| sync + step).collect();
        for cell in costs.cells() {
            let index = cell.index;
            left[costs.rank_for_stage(cell.stage)] +=
                costs.forward[index] + costs.input_grad[index] + costs.weight_grad[index];
        }
        Self { left, before }
    }

    /// Counts an action that ends at `end`. Returns whether the end of the iteration is exceeded for certain.
    fn run(&mut self, rank: usize, duration: Nanos, end: Nanos) -> bool {
        self.left[rank] = self.left[rank].saturating_sub(duration);
        self.before.is_some_and(|before| end + self.left[rank] > before)
    }
}

/// Builds a fixed order with `depth (p - 1 - r)` initial forwards and weight gradients that lag by
/// `lag(r)`. Returns `None` if it exceeds the memory cap. A lag of `depth r` is optimal for F = I =
/// W. Without lag, the order is never slower than 1F1B.
fn by_hand(
    costs: &PipelineCosts,
    depth: usize,
    lag: impl Fn(usize) -> usize,
    caps: &[Cap],
    released: &[Bytes],
) -> Option<Built> {
    let (ranks, microbatches) = (costs.ranks(), costs.microbatches());
    let order = |rank: usize| {
        let cells = || (0..microbatches).map(move |microbatch| (rank, microbatch));
        lagging(cells(), cells(), depth * (ranks - 1 - rank), lag(rank))
    };
    let schedule = Schedule { stages: costs.stages(), microbatches, orders: (0..ranks).map(order).collect() };
    if !schedule.orders.iter().zip(caps).all(|(order, &cap)| fits(order, costs, cap, released)) {
        return None;
    }
    let execution = execute(&schedule, costs).ok()?;
    let start = execution.start.iter().map(|starts| starts.first().copied().unwrap_or(Nanos::ZERO)).collect();
    let end = (0..ranks).map(|rank| execution.rank_end(rank)).collect();
    Some(Built { orders: schedule.orders, start, end })
}

/// Returns whether an order fits in a rank's memory.
fn fits(order: &[Action], costs: &PipelineCosts, cap: Cap, released: &[Bytes]) -> bool {
    let mut allocated = Bytes::ZERO;
    order.iter().all(|action| {
        let cell = costs.cell(action.stage as usize, action.microbatch as usize);
        let (taken, given) = change(action.kind, cell, costs, released);
        let peak = allocated + taken;
        allocated = peak.saturating_sub(given);
        peak <= cap.capacity
    })
}

/// Returns the bytes that an action allocates when it starts and releases when it ends.
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

/// Memory per rank in addition to static memory (`capacity`). Forwards must leave `reserved` of it for
/// the temporary memory of input gradients.
#[derive(Debug, Clone, Copy)]
struct Cap {
    capacity: Bytes,
    reserved: Bytes,
}

fn caps(
    kind: ScheduleKind,
    costs: &PipelineCosts,
    activations: usize,
    limit: Option<Bytes>,
) -> Result<Vec<Cap>, ScheduleError> {
    let mut max_sizes = vec![(Bytes::ZERO, Bytes::ZERO); costs.ranks()];
    for cell in costs.cells() {
        let (activation, transient) = &mut max_sizes[costs.rank_for_stage(cell.stage)];
        *activation = (*activation).max(costs.activation[cell.index]);
        *transient = (*transient).max(costs.transient[cell.index]);
    }
    let cap = |(rank, (activation, transient)): (usize, (Bytes, Bytes))| {
        let fixed = costs.static_memory[rank];
        let needed = Bytes::new((activation + transient).get().saturating_mul(activations as u64));
        let capacity = limit.map_or(needed, |limit| needed.min(limit.saturating_sub(fixed)));
        let needs = activation + transient;
        match limit {
            Some(limit) if needs > capacity => Err(ScheduleError::Memory { kind, rank, needs: fixed + needs, limit }),
            _ => Ok(Cap { capacity, reserved: transient }),
        }
    };
    max_sizes.into_iter().enumerate().map(cap).collect()
}

/// (iteration time, maximum rank span).
type Occupied = (Nanos, Nanos);

/// A built schedule. Contains start and end per rank.
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
