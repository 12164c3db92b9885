//! Bytes that planning holds at its peak, by the spans of the plans. docs/adr/0044 has the measurements.

use super::{Spans, least_of_iteration};
use crate::scenario::validate::FieldError;
use crate::scenario::{PlannerKind, Scenario};

/// What planning holds whatever the scenario is: the prices of the cost model and the layouts of a search.
const BASE: u64 = 16 << 20;
/// Bytes of a span that is kept, at the peak: the timeline, its memory chart, the order of the plan and the simulation.
const KEPT: u64 = 168;
/// Bytes of a span of a replica whose timeline is not kept: the order of the plan.
const SIMULATED: u64 = 48;
/// Bytes of a span while a layout of a search is simulated.
const SEARCHED: u64 = 64;
/// Bytes of a sample of a batch, drawn and packed.
const SAMPLE: u64 = 400;
/// Most spans of a layout of a search: its microbatches x stages are limited.
const MOST_SEARCHED: u64 = 3 * 4_000_000;

/// Bytes of a span of an iteration that is judged: its simulation and costs, of all replicas.
const JUDGED: u64 = 64;

/// How many iterations are judged, and how many of them at the same time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judging {
    iterations: u32,
    at_once: u64,
}

impl Judging {
    /// Iterations that are judged on so many threads.
    pub(crate) fn new(iterations: u32, threads: usize) -> Self {
        // As `host::round_of`.
        let round = u64::try_from(threads.max(1).saturating_mul(2)).unwrap_or(u64::MAX);
        Self { iterations: iterations.max(1), at_once: round.min(u64::from(iterations.max(1))) }
    }
}

impl Spans {
    /// Bytes at the peak of planning them.
    pub(crate) fn bytes(self, judging: Judging) -> u64 {
        let others = self.simulated.saturating_sub(self.kept).saturating_mul(SIMULATED);
        let iteration = self.simulated.max(self.kept).div_ceil(u64::from(judging.iterations));
        let judged = iteration.saturating_mul(JUDGED).saturating_mul(judging.at_once);
        BASE.saturating_add(self.kept.saturating_mul(KEPT)).saturating_add(others).saturating_add(judged)
    }
}

/// Bytes that planning a scenario takes on so many threads. What the scenario leaves open counts with its least; the engine stops where
/// a plan takes more than its observer allows.
pub fn plan_bytes(scenario: &Scenario, threads: usize) -> u64 {
    let search = if is_open(scenario) { search_bytes(scenario, threads) - BASE } else { 0 };
    least_bytes(scenario, threads).saturating_add(search)
}

/// Bytes that a search takes which simulates `at_once` layouts of one iteration at the same time.
pub fn search_bytes(scenario: &Scenario, at_once: usize) -> u64 {
    let layers = u64::from(scenario.model.layers().max(1));
    let cells = layers.saturating_mul(u64::from(scenario.workload.global_batch));
    let spans = cells.saturating_mul(3).min(MOST_SEARCHED);
    let at_once = u64::try_from(at_once.max(1)).unwrap_or(u64::MAX);
    BASE.saturating_add(spans.saturating_mul(SEARCHED).saturating_mul(at_once))
}

/// Why a scenario cannot be planned within so many bytes on so many threads, if it cannot.
pub fn memory_error(scenario: &Scenario, threads: usize, most: u64) -> Option<FieldError> {
    let least = least_bytes(scenario, threads);
    if least <= most {
        return None;
    }
    let fits = |iterations: &u32| bytes_of(scenario, *iterations, threads) <= most;
    let needed = format!("planning takes {} MiB; the limit is {} MiB", least.div_ceil(1 << 20), most >> 20);
    let detail = match (1..scenario.iterations).rev().find(fits) {
        None => format!("{needed}; not even one iteration fits: choose fewer planners, stages or microbatches"),
        Some(1) => format!("{needed}; 1 iteration fits"),
        Some(fitting) => format!("{needed}; {fitting} iterations fit"),
    };
    Some(FieldError::new("/iterations", detail))
}

/// The least that planning takes.
pub(crate) fn least_bytes(scenario: &Scenario, threads: usize) -> u64 {
    bytes_of(scenario, scenario.iterations, threads)
}

fn bytes_of(scenario: &Scenario, iterations: u32, threads: usize) -> u64 {
    let samples = u64::from(iterations).saturating_mul(u64::from(scenario.workload.global_batch));
    let spans = least_of_iteration(scenario).times(u64::from(iterations));
    spans.bytes(Judging::new(iterations, threads)).saturating_add(samples.saturating_mul(SAMPLE))
}

/// Whether planners search for a layout.
fn is_open(scenario: &Scenario) -> bool {
    let layout = scenario.layout;
    let has_own_search = |kind: &PlannerKind| kind.schedule().is_none();
    layout.tensor.is_none()
        || layout.pipeline.is_none()
        || layout.microbatch.is_none()
        || scenario.planners.iter().any(has_own_search)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{deep, question};
    use super::*;
    use crate::scenario::parse;

    const GIB: u64 = 1 << 30;

    /// 536,576 spans of 168 bytes and 262 samples of 400 bytes an iteration, 64 bytes for each span of those that are judged at the same
    /// time, beside 16 MiB.
    #[test]
    fn bytes_follow_the_spans() {
        let of = |iterations: u32| parse(&question(iterations, &["1f1b"], &deep()).to_string()).unwrap();
        let each = 536_576 * 168 + 262 * 400;
        assert_eq!(plan_bytes(&of(1), 2), BASE + each + 536_576 * 64);
        assert_eq!(plan_bytes(&of(10), 2), BASE + 10 * each + 4 * 536_576 * 64);
        assert_eq!(plan_bytes(&of(10), 1), BASE + 10 * each + 2 * 536_576 * 64);
        assert_eq!(memory_error(&of(10), 2, GIB), None);
        let expected = "planning takes 1094 MiB; the limit is 1024 MiB; 10 iterations fit";
        assert_eq!(memory_error(&of(11), 2, GIB), Some(FieldError::new("/iterations", expected.to_owned())));
        let small = "planning takes 135 MiB; the limit is 64 MiB; not even one iteration fits: choose fewer planners, stages or microbatches";
        assert_eq!(memory_error(&of(1), 2, 64 << 20).unwrap().detail, small);
        // Of two replicas one is kept, and both are judged.
        let spans = Spans { kept: 10, simulated: 20 };
        assert_eq!(spans.bytes(Judging::new(1, 1)), BASE + 10 * 168 + 10 * 48 + 20 * 64);
    }

    /// 1,024 layers x 262 samples x 3 spans of 64 bytes for each layout that is simulated at the same time.
    #[test]
    fn a_search_takes_its_largest_layouts() {
        let open = parse(&question(1, &["1f1b"], &serde_json::json!({})).to_string()).unwrap();
        let one = 1024 * 262 * 3 * 64;
        assert_eq!(search_bytes(&open, 1), BASE + one);
        assert_eq!(plan_bytes(&open, 4), least_bytes(&open, 4) + 4 * one);
    }
}
