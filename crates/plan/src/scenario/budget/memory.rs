//! Estimates peak planning memory from spans. See docs/adr/0044 for the measurements.

use super::{Spans, min_iteration_spans};
use crate::scenario::validate::FieldError;
use crate::scenario::{PlannerKind, Scenario};

/// Fixed planning memory in bytes: operator prices in the cost model, and layouts in a search.
const BASE: u64 = 16 << 20;
/// Peak bytes per stored span: timeline, memory chart, plan order and simulation.
const STORED: u64 = 168;
/// Bytes per span in a replica whose timeline is not stored: plan order.
const SIMULATED: u64 = 48;
/// Bytes per span while a search simulates a layout.
const SEARCHED: u64 = 64;
/// Bytes per batch sample, drawn and packed.
const SAMPLE: u64 = 400;
/// Bytes per sample of one batch while it is planned: loads and microbatches.
const PLANNED: u64 = 1200;
/// Maximum spans per searched layout, because microbatches x stages are limited.
const MAX_SEARCHED: u64 = 3 * 4_000_000;

/// Bytes per span in an evaluated iteration: simulation and costs, all replicas.
const EVALUATED: u64 = 64;

/// Evaluated iterations, in total and in parallel.
#[derive(Debug, Clone, Copy)]
pub struct EvaluationSize {
    iterations: u32,
    at_once: u64,
}

impl EvaluationSize {
    /// Evaluates `iterations` iterations on `threads` threads.
    pub fn new(iterations: u32, threads: usize) -> Self {
        // Same as `host::round_of`.
        let round = u64::try_from(threads.max(1).saturating_mul(2)).unwrap_or(u64::MAX);
        Self { iterations: iterations.max(1), at_once: round.min(u64::from(iterations.max(1))) }
    }
}

impl Spans {
    /// Peak planning memory in bytes.
    pub fn bytes(self, judging: EvaluationSize) -> u64 {
        let others = self.simulated.saturating_sub(self.stored).saturating_mul(SIMULATED);
        let iteration = self.simulated.max(self.stored).div_ceil(u64::from(judging.iterations));
        let evaluated = iteration.saturating_mul(EVALUATED).saturating_mul(judging.at_once);
        BASE.saturating_add(self.stored.saturating_mul(STORED)).saturating_add(others).saturating_add(evaluated)
    }
}

/// Returns the planning memory in bytes for `threads` threads. Free degrees contribute their
/// minimum; the engine stops if a plan exceeds the observer's limit.
pub fn plan_bytes(scenario: &Scenario, threads: usize) -> u64 {
    let search = if is_open(scenario) { search_bytes(scenario, threads) - BASE } else { 0 };
    min_bytes(scenario, threads).saturating_add(search)
}

/// Returns the search memory in bytes if the search simulates `at_once` layouts in parallel.
pub fn search_bytes(scenario: &Scenario, at_once: usize) -> u64 {
    let layers = u64::from(scenario.model.layers().max(1));
    let cells = layers.saturating_mul(u64::from(scenario.workload.global_batch));
    let spans = cells.saturating_mul(3).min(MAX_SEARCHED);
    let at_once = u64::try_from(at_once.max(1)).unwrap_or(u64::MAX);
    BASE.saturating_add(spans.saturating_mul(SEARCHED).saturating_mul(at_once))
}

/// Returns an error if planning needs more than `most` bytes on `threads` threads.
pub fn memory_error(scenario: &Scenario, threads: usize, max_bytes: u64) -> Option<FieldError> {
    let required_bytes = min_bytes(scenario, threads);
    if required_bytes <= max_bytes {
        return None;
    }
    let fits = |iterations: &u32| planning_bytes(scenario, *iterations, threads) <= max_bytes;
    let needed =
        format!("planning takes {} MiB; the limit is {} MiB", required_bytes.div_ceil(1 << 20), max_bytes >> 20);
    let detail = match (1..scenario.iterations).rev().find(fits) {
        None => format!("{needed}; not even one iteration fits: choose fewer planners, stages or microbatches"),
        Some(1) => format!("{needed}; 1 iteration fits"),
        Some(fitting) => format!("{needed}; {fitting} iterations fit"),
    };
    Some(FieldError::new("/iterations", detail))
}

/// Minimum planning memory in bytes.
pub fn min_bytes(scenario: &Scenario, threads: usize) -> u64 {
    planning_bytes(scenario, scenario.iterations, threads)
}

fn planning_bytes(scenario: &Scenario, iterations: u32, threads: usize) -> u64 {
    let samples = u64::from(iterations).saturating_mul(u64::from(scenario.workload.global_batch));
    let spans = min_iteration_spans(scenario).times(u64::from(iterations));
    let batch = u64::from(scenario.workload.global_batch).saturating_mul(PLANNED);
    let samples = samples.saturating_mul(SAMPLE).saturating_add(batch);
    spans.bytes(EvaluationSize::new(iterations, threads)).saturating_add(samples)
}

/// Returns whether a planner searches for a layout.
fn is_open(scenario: &Scenario) -> bool {
    let layout = scenario.layout;
    let has_search = |kind: &PlannerKind| kind.schedule().is_none();
    layout.tensor.is_none()
        || layout.pipeline.is_none()
        || layout.microbatch.is_none()
        || scenario.planners.iter().any(has_search)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{deep, scenario_json};
    use super::*;
    use crate::scenario::parse;

    const GIB: u64 = 1 << 30;

    /// Per iteration: 536,576 spans x 168 bytes, and 262 samples x 400 bytes. In addition 64 bytes
    /// per span in iterations evaluated in parallel, 1,200 bytes per sample of a batch, and 16 MiB.
    #[test]
    fn bytes_follow_the_spans() {
        let build_scenario =
            |iterations: u32| parse(&scenario_json(iterations, &["1f1b"], &deep()).to_string()).unwrap();
        let each = 536_576 * 168 + 262 * 400;
        let base = BASE + 262 * 1200;
        assert_eq!(plan_bytes(&build_scenario(1), 2), base + each + 536_576 * 64);
        assert_eq!(plan_bytes(&build_scenario(10), 2), base + 10 * each + 4 * 536_576 * 64);
        assert_eq!(plan_bytes(&build_scenario(10), 1), base + 10 * each + 2 * 536_576 * 64);
        assert_eq!(memory_error(&build_scenario(10), 2, GIB), None);
        let expected = "planning takes 1095 MiB; the limit is 1024 MiB; 10 iterations fit";
        assert_eq!(
            memory_error(&build_scenario(11), 2, GIB),
            Some(FieldError::new("/iterations", expected.to_owned()))
        );
        let small = "planning takes 136 MiB; the limit is 64 MiB; not even one iteration fits: choose fewer planners, stages or microbatches";
        assert_eq!(memory_error(&build_scenario(1), 2, 64 << 20).unwrap().detail, small);
        // The result stores a single replica; evaluation simulates both.
        let spans = Spans { stored: 10, simulated: 20 };
        assert_eq!(spans.bytes(EvaluationSize::new(1, 1)), BASE + 10 * 168 + 10 * 48 + 20 * 64);
    }

    /// 1,024 layers x 262 samples x 3 spans x 64 bytes per layout simulated in parallel.
    #[test]
    fn searches_assume_their_maximum_layout() {
        let open = parse(&scenario_json(1, &["1f1b"], &serde_json::json!({})).to_string()).unwrap();
        let layout_bytes = 1024 * 262 * 3 * 64;
        assert_eq!(search_bytes(&open, 1), BASE + layout_bytes);
        assert_eq!(plan_bytes(&open, 4), min_bytes(&open, 4) + 4 * layout_bytes);
    }
}
