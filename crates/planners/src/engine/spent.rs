//! Enforces the span limit of a response during planning.

use std::sync::Mutex;

use super::PlanError;
use planscope_core::host::{BatchClock, Workers};
use planscope_plan::observer::{BestSoFar, Cancelled, Observer, go_on};
use planscope_plan::scenario::PlannerKind;
use planscope_plan::scenario::budget::{EvaluationSize, Spans};

/// Span count of all planners so far.
#[derive(Debug)]
pub(super) struct Spent {
    max_bytes: u64,
    judging: EvaluationSize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    spans: Spans,
    /// Exceeded limit.
    excess: Option<Excess>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Excess {
    /// Description of the exceeded span limit.
    Limit(String),
    /// Required bytes, over the observer's limit.
    Bytes(u64),
}

impl From<Excess> for PlanError {
    fn from(excess: Excess) -> Self {
        match excess {
            Excess::Limit(message) => Self::TooLarge(message),
            Excess::Bytes(bytes) => Self::Outgrown { bytes },
        }
    }
}

impl Spent {
    pub(super) fn new(max_bytes: u64, judging: EvaluationSize) -> Self {
        Self { max_bytes, judging, state: Mutex::default() }
    }

    /// Returns the exceeded limit, if any.
    pub(super) fn excess(&self) -> Option<Excess> {
        self.state().excess.clone()
    }

    fn is_over(&self) -> bool {
        self.state().excess.is_some()
    }

    fn find_excess(&self, spans: Spans) -> Option<Excess> {
        let bytes = spans.bytes(self.judging);
        spans.excess().map(Excess::Limit).or_else(|| (bytes > self.max_bytes).then_some(Excess::Bytes(bytes)))
    }

    /// Checks the limit for a single draft. Spans of concurrent planners are excluded, because
    /// their number depends on timing.
    fn draft(&self, simulated: u64) {
        if let Some(excess) = self.find_excess(Spans { stored: 0, simulated }) {
            self.state().excess.get_or_insert(excess);
        }
    }

    fn add(&self, spans: Spans) {
        let mut state = self.state();
        state.spans = state.spans.and(spans);
        if let Some(excess) = self.find_excess(state.spans) {
            state.excess.get_or_insert(excess);
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // Updates are single assignments, so the state is valid even after a panic.
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Observer for a planner. Cancels planning if the response becomes too large.
pub(super) struct Budgeted<'a> {
    spent: &'a Spent,
    observer: &'a mut dyn Observer,
}

impl<'a> Budgeted<'a> {
    pub(super) fn new(spent: &'a Spent, observer: &'a mut dyn Observer) -> Self {
        Self { spent, observer }
    }

    /// Adds a plan's spans. The timelines are simulated and stored later.
    pub(super) fn spend(&self, spans: Spans) -> Result<(), Cancelled> {
        self.spent.add(spans);
        go_on(self)
    }
}

impl Observer for Budgeted<'_> {
    fn started(&mut self, planner: PlannerKind) {
        self.observer.started(planner);
    }

    fn progress(&mut self, planner: PlannerKind, phase: &'static str, done: u32, total: u32) {
        self.observer.progress(planner, phase, done, total);
    }

    fn improved(&mut self, best: BestSoFar) {
        self.observer.improved(best);
    }

    fn finished(&mut self, planner: PlannerKind) {
        self.observer.finished(planner);
    }

    fn cancelled(&self) -> bool {
        self.spent.is_over() || self.observer.cancelled()
    }

    fn drafted(&self, spans: u64) {
        self.spent.draft(spans);
        self.observer.drafted(spans);
    }

    fn max_bytes(&self) -> u64 {
        self.observer.max_bytes()
    }

    fn workers(&self) -> &dyn Workers {
        self.observer.workers()
    }

    fn draws_timelines(&self) -> bool {
        self.observer.draws_timelines()
    }

    fn batch_clock(&self) -> &dyn BatchClock {
        self.observer.batch_clock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::plan;
    use planscope_plan::observer::Unobserved;
    use planscope_plan::scenario::validate::NoDatasets;
    use planscope_plan::scenario::{ValidScenario, parse};

    #[test]
    fn planners_spend_together_and_a_plan_by_itself() {
        let spent = Spent::new(u64::MAX, EvaluationSize::new(1, 1));
        let mut unobserved = Unobserved;
        let budgeted = Budgeted::new(&spent, &mut unobserved);
        let half = Spans { stored: 15_000_000, simulated: 15_000_000 };
        assert_eq!(budgeted.spend(half), Ok(()));
        // Spans of concurrent planners do not affect a draft.
        budgeted.drafted(60_000_000);
        assert!(!budgeted.cancelled());
        assert_eq!(budgeted.spend(half), Err(Cancelled));
        let limit = |message: &str| Some(Excess::Limit(message.to_owned()));
        assert_eq!(spent.excess(), limit("30 million spans (3 GB); the limit is 20 million"));

        let spent = Spent::new(u64::MAX, EvaluationSize::new(1, 1));
        Budgeted::new(&spent, &mut unobserved).drafted(60_100_000);
        assert_eq!(spent.excess(), limit("60.1 million spans over all replicas; the limit is 60 million"));

        // 16 MiB, plus 168 + 64 bytes per span.
        let million = Spans { stored: 1_000_000, simulated: 1_000_000 };
        let spent = Spent::new(300_000_000, EvaluationSize::new(1, 1));
        let budgeted = Budgeted::new(&spent, &mut unobserved);
        assert_eq!((budgeted.spend(million), budgeted.spend(million)), (Ok(()), Err(Cancelled)));
        assert_eq!(spent.excess(), Some(Excess::Bytes((16 << 20) + 2 * 232_000_000)));
    }

    /// Records the spans of drafts.
    #[derive(Default)]
    struct Counted(Mutex<Vec<u64>>);

    impl Observer for Counted {
        fn started(&mut self, _: PlannerKind) {}
        fn progress(&mut self, _: PlannerKind, _: &'static str, _: u32, _: u32) {}
        fn finished(&mut self, _: PlannerKind) {}
        fn cancelled(&self) -> bool {
            false
        }
        fn drafted(&self, spans: u64) {
            self.0.lock().unwrap().push(spans);
        }
    }

    /// TP 2 x PP 4 on eight devices: 16 single-sample sequences, four stages, two directions, two
    /// iterations.
    #[test]
    fn draft_spans_are_reported_during_planning() {
        let document = serde_json::json!({
            "schema": "scenario/1", "model": {"preset": "llama-2-7b"}, "cluster": {"preset": "a100-80gb", "nodes": 1},
            "workload": {
                "samples": {
                    "kind": "drawn", "text_tokens": {"kind": "constant", "value": 1024},
                    "images": {"kind": "constant", "value": 0}
                },
                "global_batch": 16, "context_length": 4096, "packing": "single"
            },
            "layout": {"tensor": 2, "pipeline": 4, "chunks": 1, "microbatch": 1},
            "planners": ["1f1b", "wait_free_cyclic"], "iterations": 2
        });
        let valid = ValidScenario::new(parse(&document.to_string()).unwrap(), &NoDatasets).unwrap();
        let mut counted = Counted::default();
        plan(&valid, &mut counted).unwrap();
        assert_eq!(*counted.0.lock().unwrap(), [128, 256, 256]);
    }

    #[test]
    fn too_large_plans_name_the_remedy() {
        let error = PlanError::TooLarge("30 million spans (3 GB); the limit is 20 million".to_owned());
        let expected = "the plans have 30 million spans (3 GB); the limit is 20 million; ask for fewer iterations, planners or microbatches";
        assert_eq!(error.to_string(), expected);
    }
}
