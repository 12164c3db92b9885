//! Limits the spans in a scenario, for all iterations and planners together, so that a result fits
//! into memory.
//!
//! A span is a forward, backward, input gradient or weight gradient for a stage and a microbatch.

mod memory;

pub use memory::{EvaluationSize, min_bytes};
pub use memory::{memory_error, plan_bytes, search_bytes};

use super::{PlannerKind, Scenario};
use planscope_core::workload::Packing;

/// Maximum spans in stored timelines. A result stores the timeline for a single replica per planner
/// and iteration.
pub(crate) const MAX_SPANS: u64 = 20_000_000;
/// Maximum simulated spans for all replicas. The orders remain in memory during plan evaluation.
pub(crate) const MAX_SIMULATED: u64 = 60_000_000;
/// Timeline bytes per span: 37 for the span, 37 for its send, and the memory chart, which has up to
/// three points (16 bytes each) per forward and backward.
const BYTES_PER_SPAN: u64 = 2 * 37 + 24;
/// Maximum sequences per microbatch if the scenario does not fix it.
pub const MAX_MICROBATCH: u32 = 64;

/// Stored and simulated spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spans {
    /// Spans in stored timelines.
    pub stored: u64,
    /// Spans in all replicas.
    pub simulated: u64,
}

impl Spans {
    /// Adds stored and simulated spans.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            stored: self.stored.saturating_add(other.stored),
            simulated: self.simulated.saturating_add(other.simulated),
        }
    }

    /// Multiplies stored and simulated spans by a factor.
    #[must_use]
    pub const fn times(self, count: u64) -> Self {
        Self { stored: self.stored.saturating_mul(count), simulated: self.simulated.saturating_mul(count) }
    }

    /// Returns an error message if a limit is exceeded.
    pub fn excess(self) -> Option<String> {
        if self.stored > MAX_SPANS {
            let (spans, gigabytes) = (millions(self.stored), gigabytes(self.stored));
            return Some(format!("{spans} spans ({gigabytes} GB); the limit is {}", millions(MAX_SPANS)));
        }
        (self.simulated > MAX_SIMULATED).then(|| {
            format!("{} spans over all replicas; the limit is {}", millions(self.simulated), millions(MAX_SIMULATED))
        })
    }

    /// Returns the maximum factor by which these spans still fit into the limits.
    fn fitting(self) -> u64 {
        let storage_factor = MAX_SPANS.checked_div(self.stored).unwrap_or(u64::MAX);
        storage_factor.min(MAX_SIMULATED.checked_div(self.simulated).unwrap_or(u64::MAX))
    }
}

/// Spans per iteration for a layout.
pub fn layout_spans(kind: PlannerKind, stages: u32, microbatches: u32, data: u32) -> Spans {
    let directions =
        if kind.schedule().is_some_and(planscope_pipeline::schedule::ScheduleKind::splits_backward) { 3 } else { 2 };
    let each = u64::from(stages).saturating_mul(directions);
    Spans {
        stored: each.saturating_mul(u64::from(microbatches.div_ceil(data.max(1)))),
        simulated: each.saturating_mul(u64::from(microbatches)),
    }
}

/// Returns an error message if the scenario exceeds the limits. Free degrees contribute their
/// minimum, so that no feasible scenario is rejected; the search and the evaluation check the same
/// limits for the selected layouts.
pub(crate) fn excess(scenario: &Scenario) -> Option<String> {
    let iteration = min_iteration_spans(scenario);
    let excess = iteration.times(u64::from(scenario.iterations)).excess()?;
    Some(match iteration.fitting() {
        0 => format!("{excess}; not even one iteration fits: choose fewer planners, stages or microbatches"),
        1 => format!("{excess}; 1 iteration fits"),
        fitting => format!("{excess}; {fitting} iterations fit"),
    })
}

/// Minimum spans per iteration for all planners.
fn min_iteration_spans(scenario: &Scenario) -> Spans {
    scenario.planners.iter().map(|&kind| planner_spans(scenario, kind)).fold(Spans::default(), Spans::and)
}

/// Minimum spans per iteration for a planner. Zero for planners that do not use the scenario's
/// layout.
fn planner_spans(scenario: &Scenario, kind: PlannerKind) -> Spans {
    let (request, model) = (scenario.layout, &scenario.model);
    let by_module = kind.cuts_by_module();
    if (kind.schedule().is_none() && kind != PlannerKind::WaitFreeCyclic && !by_module)
        || (by_module && model.modules.len() < 2)
    {
        return Spans::default();
    }
    let (tensor, pipeline) = (request.tensor.unwrap_or(1).max(1), request.pipeline.unwrap_or(1).max(1));
    let devices = scenario.cluster.nodes.saturating_mul(scenario.cluster.devices_per_node);
    // Maximum replicas if degrees are free.
    let degrees = tensor.saturating_mul(pipeline).saturating_mul(scenario.training.context_parallel.max(1));
    let data = (devices / degrees).max(1);
    let chunks = match kind.schedule() {
        Some(schedule) => schedule.chunks(request.chunks.map(|chunks| chunks as usize)),
        None if by_module && kind != PlannerKind::Optimus => 1,
        None => request.chunks.unwrap_or(1) as usize,
    };
    let chunks = u32::try_from(chunks).unwrap_or(u32::MAX);
    let stages = pipeline.saturating_mul(chunks).min(model.layers().max(1));
    let sequences = fewest_sequences(scenario);
    let microbatch = request.microbatch.unwrap_or_else(|| (sequences / data).clamp(1, MAX_MICROBATCH)).max(1);
    layout_spans(kind, stages, sequences.div_ceil(microbatch), data)
}

/// Minimum sequences per global batch.
fn fewest_sequences(scenario: &Scenario) -> u32 {
    let workload = &scenario.workload;
    match workload.packing {
        Packing::Packed => {
            let samples_per_sequence = workload.max_samples.unwrap_or(workload.global_batch).max(1);
            workload.global_batch.div_ceil(samples_per_sequence)
        }
        Packing::Single | Packing::Padded => workload.global_batch,
    }
}

/// Formats spans in millions, adding a decimal for small values.
fn millions(spans: u64) -> String {
    let tenths = spans / 100_000 + u64::from(spans % 100_000 >= 50_000);
    match (tenths / 10, tenths % 10) {
        (integer, tenth) if integer >= 100 => format!("{} million", integer + u64::from(tenth >= 5)),
        (exact, 0) => format!("{exact} million"),
        (units, tenth) => format!("{units}.{tenth} million"),
    }
}

fn gigabytes(spans: u64) -> u64 {
    let bytes = spans.saturating_mul(BYTES_PER_SPAN);
    bytes / 1_000_000_000 + u64::from(!bytes.is_multiple_of(1_000_000_000))
}

#[cfg(test)]
mod tests;
