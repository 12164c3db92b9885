//! Holds what planners plan against the spans that one answer may have.

use std::sync::Mutex;

use crate::host::{BatchClock, Workers};
use crate::observer::{Cancelled, Observer, go_on};
use crate::scenario::PlannerKind;
use crate::scenario::budget::Spans;

/// Spans of the plans of all planners so far.
#[derive(Debug, Default)]
pub(super) struct Spent {
    /// The sum, and why it is too much.
    state: Mutex<(Spans, Option<String>)>,
}

impl Spent {
    /// Why an answer is too large, if it is.
    pub(super) fn excess(&self) -> Option<String> {
        self.state().1.clone()
    }

    fn is_over(&self) -> bool {
        self.state().1.is_some()
    }

    /// A plan by itself is too large. Only its own spans count: what other planners have spent by then depends on who is faster.
    fn draft(&self, simulated: u64) {
        if let Some(excess) = (Spans { kept: 0, simulated }).excess() {
            self.state().1.get_or_insert(excess);
        }
    }

    fn add(&self, spans: Spans) {
        let mut state = self.state();
        state.0 = state.0.and(spans);
        if let Some(excess) = state.0.excess() {
            state.1.get_or_insert(excess);
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, (Spans, Option<String>)> {
        // Changed in single steps, so whole even after a panic elsewhere.
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Sees one planner at work, and stops it where the answer gets too large.
pub(super) struct Budgeted<'a> {
    spent: &'a Spent,
    observer: &'a mut dyn Observer,
}

impl<'a> Budgeted<'a> {
    pub(super) fn new(spent: &'a Spent, observer: &'a mut dyn Observer) -> Self {
        Self { spent, observer }
    }

    /// A plan is about to be judged, and its timelines kept.
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

    fn workers(&self) -> &dyn Workers {
        self.observer.workers()
    }

    fn batch_clock(&self) -> &dyn BatchClock {
        self.observer.batch_clock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{PlanError, plan};
    use crate::observer::Unobserved;
    use crate::scenario::validate::NoDatasets;
    use crate::scenario::{ValidScenario, parse};

    #[test]
    fn planners_spend_together_and_a_plan_by_itself() {
        let spent = Spent::default();
        let mut unobserved = Unobserved;
        let budgeted = Budgeted::new(&spent, &mut unobserved);
        let half = Spans { kept: 15_000_000, simulated: 15_000_000 };
        assert_eq!(budgeted.spend(half), Ok(()));
        // What others have spent does not count for a plan that is being made.
        budgeted.drafted(60_000_000);
        assert!(!budgeted.cancelled());
        assert_eq!(budgeted.spend(half), Err(Cancelled));
        assert_eq!(spent.excess().unwrap(), "30 million spans (3 GB); the limit is 20 million");

        let spent = Spent::default();
        Budgeted::new(&spent, &mut unobserved).drafted(60_100_000);
        assert_eq!(spent.excess().unwrap(), "60.1 million spans over all replicas; the limit is 60 million");
    }

    /// Counts the spans of plans that are being made.
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

    /// TP 2 x PP 4 on eight devices: 16 sequences of one sample each, four stages, two directions, two iterations.
    #[test]
    fn spans_are_told_while_a_plan_is_made() {
        let question = serde_json::json!({
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
        let valid = ValidScenario::new(parse(&question.to_string()).unwrap(), &NoDatasets).unwrap();
        let mut counted = Counted::default();
        plan(&valid, &mut counted).unwrap();
        assert_eq!(*counted.0.lock().unwrap(), [128, 256, 256]);
    }

    #[test]
    fn a_plan_that_is_too_large_says_what_to_do() {
        let error = PlanError::TooLarge("30 million spans (3 GB); the limit is 20 million".to_owned());
        let expected = "the plans have 30 million spans (3 GB); the limit is 20 million; ask for fewer iterations, planners or microbatches";
        assert_eq!(error.to_string(), expected);
    }
}
