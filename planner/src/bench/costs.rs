//! From the question's units to the costs of a pipeline.

use super::question::{Per, PerStage, ScheduleQuestion};
use crate::cost::pipeline::NO_GAIN_PPM;
use crate::cost::{PipelineCosts, UniformTimes};
use crate::flow::Flows;
use crate::schedule::Schedule;
use crate::units::{Bytes, Nanos};

/// Nanoseconds that one unit of time is shown as: it reads as a millisecond.
pub(super) const UNIT_NS: u64 = 1_000_000;
/// Bytes that one activation is counted as, so that a tenth is exact.
pub(super) const ACTIVATION_BYTES: u64 = 1_000_000;
/// The longest pair of a forward and a backward has at most so many steps where pairs overlap: their gain is counted in
/// millionths, which then rounds to the step that is meant.
const OVERLAPPED_STEPS: f64 = 1e6;

/// The whole steps in which times are counted inside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Clock {
    /// Steps of one unit.
    per_unit: f64,
    /// Nanoseconds of one step.
    pub step_ns: u64,
}

impl Clock {
    /// A millionth of the unit, or coarser where pairs overlap.
    pub(super) fn of(question: &ScheduleQuestion) -> Self {
        let times = &question.times;
        let pair = times.forward.largest() + times.input_grad.largest() + times.weight_grad.largest();
        let mut clock = Self { per_unit: UNIT_NS as f64, step_ns: 1 };
        while times.overlapped.is_some() && pair * clock.per_unit > OVERLAPPED_STEPS {
            clock.per_unit /= 10.0;
            clock.step_ns *= 10;
        }
        clock
    }

    pub(super) fn steps(self, units: f64) -> Nanos {
        Nanos::new((units * self.per_unit).round() as u64)
    }

    pub(super) fn units(self, steps: Nanos) -> f64 {
        steps.get() as f64 / self.per_unit
    }
}

/// Activations as bytes.
pub(super) fn activation_bytes(activations: f64) -> Bytes {
    Bytes::new((activations * ACTIVATION_BYTES as f64).round() as u64)
}

/// Bytes as activations.
pub(super) fn activations(bytes: Bytes) -> f64 {
    bytes.get() as f64 / ACTIVATION_BYTES as f64
}

/// Costs of a pipeline, and what the input gradient of each cell gives back of its activation; no such list where it
/// gives back nothing.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BenchCosts {
    pub costs: PipelineCosts,
    pub released: Vec<Bytes>,
}

impl BenchCosts {
    /// Where nothing overlaps, nothing is gained by it, and the lower bound need not reckon with it.
    pub(super) fn forget_unused_gain(&mut self, schedule: &Schedule) {
        if !schedule.orders.iter().flatten().any(|action| action.with_next) {
            self.costs.overlapped_ppm = NO_GAIN_PPM;
        }
    }
}

/// The costs of a question on any flows.
///
/// # Errors
/// Says which field has another number of values than these flows have stages or microbatches.
pub(super) fn costs(question: &ScheduleQuestion, clock: Clock, flows: Flows) -> Result<BenchCosts, String> {
    let times = &question.times;
    let shares = shares(times.per, &flows);
    let stage = Stages { per: times.per, flows: &flows, shares: &shares };
    let time = |pointer, values| stage.cells(pointer, values, |value| clock.steps(value));
    let forward = time("/times/forward", &times.forward)?;
    let input_grad = time("/times/input_grad", &times.input_grad)?;
    let weight_grad = time("/times/weight_grad", &times.weight_grad)?;
    let kept = &question.activations;
    let activation = stage.cells("/activations/forward", &kept.forward, activation_bytes)?;
    let released = match &kept.weight_grad {
        None => Vec::new(),
        Some(part) => {
            let part = stage.cells("/activations/weight_grad", part, activation_bytes)?;
            activation.iter().zip(part).map(|(&whole, part)| whole.saturating_sub(part)).collect()
        }
    };
    let none = Nanos::ZERO;
    let communication = clock.steps(times.communication);
    let uniform = UniformTimes { forward: none, input_grad: none, weight_grad: none, communication };
    let blank = PipelineCosts::uniform_over(flows, uniform);
    let overlapped_ppm = overlapped_ppm(question);
    let costs = PipelineCosts { forward, input_grad, weight_grad, activation, overlapped_ppm, ..blank };
    Ok(BenchCosts { costs, released })
}

/// Rounded up: rounded down for each pair, the time is then that of the question.
fn overlapped_ppm(question: &ScheduleQuestion) -> u64 {
    let times = &question.times;
    let both = times.forward.mean() + times.input_grad.mean() + times.weight_grad.mean();
    match times.overlapped {
        Some(overlapped) if both > 0.0 => {
            let share = overlapped / both * NO_GAIN_PPM as f64;
            // What is a whole number but for the last bits is meant to be one.
            let nearest = share.round();
            (if (share - nearest).abs() < 1e-6 { nearest } else { share.ceil() } as u64).min(NO_GAIN_PPM)
        }
        _ => NO_GAIN_PPM,
    }
}

/// Into how many chunks each microbatch's way shares a rank: by microbatch of the first and last way, by rank.
fn shares(per: Per, flows: &Flows) -> Vec<f64> {
    let mut shares = vec![1.0; flows.ranks()];
    if per == Per::Rank && flows.microbatches() > 0 {
        let mut count = vec![0.0; flows.ranks()];
        flows.stages_of(0).for_each(|stage| count[flows.rank_of(stage)] += 1.0);
        for (share, count) in shares.iter_mut().zip(count) {
            *share = f64::max(count, 1.0);
        }
    }
    shares
}

struct Stages<'a> {
    per: Per,
    flows: &'a Flows,
    shares: &'a [f64],
}

impl Stages<'_> {
    /// A column of costs.
    fn cells<T>(&self, pointer: &str, values: &PerStage, cost: impl Fn(f64) -> T) -> Result<Vec<T>, String> {
        let flows = self.flows;
        // Two copies of the model: the second one's stages are those of the first.
        let has_copies = flows.microbatches() > 0 && flows.stages_of(0).len() < flows.stages();
        let lengths: &[usize] = match self.per {
            Per::Rank => &[1, flows.ranks()],
            Per::Stage if has_copies => &[1, flows.stages(), flows.stages() / 2],
            Per::Stage => &[1, flows.stages()],
        };
        let fits = |length: usize| -> Result<(), String> {
            let what = if self.per == Per::Rank { "ranks" } else { "stages" };
            let count = lengths[1];
            lengths
                .contains(&length)
                .then_some(())
                .ok_or_else(|| format!("{pointer} has {length} values for {count} {what}"))
        };
        match values {
            PerStage::Equal(_) => {}
            PerStage::Stages(list) => fits(list.len())?,
            PerStage::Microbatches(lists) => {
                if lists.len() != flows.microbatches() {
                    return Err(format!(
                        "{pointer} has {} lists for {} microbatches",
                        lists.len(),
                        flows.microbatches()
                    ));
                }
                lists.iter().try_for_each(|list| fits(list.len()))?;
            }
        }
        let mut column = Vec::with_capacity(flows.cells());
        for microbatch in 0..flows.microbatches() {
            for stage in flows.stages_of(microbatch) {
                let rank = flows.rank_of(stage);
                let at = |list: &[f64]| match self.per {
                    Per::Rank if has_copies => list[stage % flows.ranks() % list.len()],
                    Per::Rank => list[rank % list.len()],
                    Per::Stage => list[stage % list.len()],
                };
                let value = match values {
                    PerStage::Equal(value) => *value,
                    PerStage::Stages(list) => at(list),
                    PerStage::Microbatches(lists) => at(&lists[microbatch]),
                };
                column.push(cost(value / self.shares[rank]));
            }
        }
        Ok(column)
    }
}
