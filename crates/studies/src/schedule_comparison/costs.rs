//! Converts a request to pipeline costs.

use super::{Clock, Per, PerStage, ScheduleRequest};
use planscope_core::action::Schedule;
use planscope_core::stage_graph::Flows;
use planscope_core::units::{Bytes, Nanos};
use planscope_cost::cost::pipeline::NO_GAIN_PPM;
use planscope_cost::cost::{PipelineCosts, UniformTimes};

/// Bytes per activation. A power of ten represents tenths exactly.
pub(crate) const ACTIVATION_BYTES: u64 = 1_000_000;

pub(crate) fn activation_bytes(activations: f64) -> Bytes {
    Bytes::new((activations * ACTIVATION_BYTES as f64).round() as u64)
}

pub(crate) fn activations(bytes: Bytes) -> f64 {
    bytes.get() as f64 / ACTIVATION_BYTES as f64
}

/// Pipeline costs, and the bytes that the input gradient releases per cell. `released` is empty if
/// the input gradient releases nothing.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BenchCosts {
    pub costs: PipelineCosts,
    pub released: Vec<Bytes>,
}

impl BenchCosts {
    /// Clears the overlap gain if the schedule contains no overlapped pairs, so that the lower
    /// bound can ignore it.
    pub(crate) fn clear_unused_gain(&mut self, schedule: &Schedule) {
        if !schedule.orders.iter().flatten().any(|action| action.with_next) {
            self.costs.overlapped_ppm = NO_GAIN_PPM;
        }
    }
}

/// Returns the costs for a request on any stage graph.
///
/// # Errors
/// Names the field if its length does not match the stages or microbatches.
pub(crate) fn costs(request: &ScheduleRequest, clock: Clock, flows: Flows) -> Result<BenchCosts, String> {
    let times = &request.times;
    let shares = shares(times.per, &flows);
    let stage = Stages { per: times.per, flows: &flows, shares: &shares };
    let time = |pointer, values| stage.cells(pointer, values, |value| clock.steps(value));
    let forward = time("/times/forward", &times.forward)?;
    let input_grad = time("/times/input_grad", &times.input_grad)?;
    let weight_grad = time("/times/weight_grad", &times.weight_grad)?;
    let stored = &request.activations;
    let activation = stage.cells("/activations/forward", &stored.forward, activation_bytes)?;
    let released = match &stored.weight_grad {
        None => Vec::new(),
        Some(part) => {
            let part = stage.cells("/activations/weight_grad", part, activation_bytes)?;
            activation.iter().zip(part).map(|(&full, part)| full.saturating_sub(part)).collect()
        }
    };
    let none = Nanos::ZERO;
    let communication = clock.steps(times.communication);
    let uniform = UniformTimes { forward: none, input_grad: none, weight_grad: none, communication };
    let blank = PipelineCosts::uniform_over(flows, uniform);
    let overlapped_ppm = overlapped_ppm(request);
    let costs = PipelineCosts { forward, input_grad, weight_grad, activation, overlapped_ppm, ..blank };
    Ok(BenchCosts { costs, released })
}

/// Duration of an overlapped pair relative to the sum, in ppm. The ratio rounds up because pair
/// durations round down; the result is the requested time.
fn overlapped_ppm(request: &ScheduleRequest) -> u64 {
    let times = &request.times;
    let both = times.forward.mean() + times.input_grad.mean() + times.weight_grad.mean();
    match times.overlapped {
        Some(overlapped) if both > 0.0 => {
            let share = overlapped / both * NO_GAIN_PPM as f64;
            // Treat a value near an integer as that integer; the difference is a floating-point
            // error.
            let nearest = share.round();
            (if (share - nearest).abs() < 1e-6 { nearest } else { share.ceil() } as u64).min(NO_GAIN_PPM)
        }
        _ => NO_GAIN_PPM,
    }
}

/// Chunks that divide a rank's cost, indexed by rank. All values are 1 for costs per stage.
fn shares(per: Per, flows: &Flows) -> Vec<f64> {
    let mut shares = vec![1.0; flows.ranks()];
    if per == Per::Rank && flows.microbatches() > 0 {
        let mut count = vec![0.0; flows.ranks()];
        flows.microbatch_stages(0).for_each(|stage| count[flows.rank_for_stage(stage)] += 1.0);
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
    /// Expands values to a cost per cell.
    fn cells<T>(&self, pointer: &str, values: &PerStage, cost: impl Fn(f64) -> T) -> Result<Vec<T>, String> {
        let flows = self.flows;
        // For two model copies, stages in copy 2 use the values from copy 1.
        let has_copies = flows.microbatches() > 0 && flows.microbatch_stages(0).len() < flows.stages();
        let lengths: &[usize] = match self.per {
            Per::Rank => &[1, flows.ranks()],
            Per::Stage if has_copies => &[1, flows.stages(), flows.stages() / 2],
            Per::Stage => &[1, flows.stages()],
        };
        let fits = |length: usize| -> Result<(), String> {
            let kind = if self.per == Per::Rank { "ranks" } else { "stages" };
            let count = lengths[1];
            lengths
                .contains(&length)
                .then_some(())
                .ok_or_else(|| format!("{pointer} has {length} values for {count} {kind}"))
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
            for stage in flows.microbatch_stages(microbatch) {
                let rank = flows.rank_for_stage(stage);
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
