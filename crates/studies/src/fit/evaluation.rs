//! Plan and memory need of one scenario on one global batch.

use serde_json::Value;

use super::FitResult;
use planscope_analysis::analysis::AnalysisError;
use planscope_core::host::{Cancellation, Workers};
use planscope_plan::observer::Observer;
use planscope_plan::outcome::{PlanOutcome, Planned, RankMemory, RankNeed, is_even, layer_counts, rank_description};
use planscope_plan::scenario::{PlannerKind, Scenario, ValidScenario};
use planscope_planners::engine::{self, PlanError};

pub(crate) fn document(valid: &ValidScenario) -> Value {
    serde_json::to_value(valid.scenario()).expect("a scenario has only text keys")
}

/// Plans the scenario itself.
pub(crate) fn base(
    document: &Value,
    valid: &ValidScenario,
    planner: PlannerKind,
    watch: &Watch<'_>,
) -> Result<Evaluated, AnalysisError> {
    let too_large = || AnalysisError::Unplanned("its plans exceed the limits of an answer".to_owned());
    evaluate(document, valid, planner, watch)?.ok_or_else(too_large)
}

pub(crate) struct Evaluated {
    pub(crate) result: FitResult,
    pub(crate) ranks: Vec<RankNeed>,
    pub(crate) plan: Option<Box<Planned>>,
}

/// Plans one global batch. `None` if the document is not a valid scenario.
pub(crate) fn evaluate(
    document: &Value,
    datasets: &ValidScenario,
    planner: PlannerKind,
    watch: &Watch<'_>,
) -> Result<Option<Evaluated>, AnalysisError> {
    let Ok(mut scenario) = serde_json::from_value::<Scenario>(document.clone()) else {
        return Ok(None);
    };
    (scenario.planners, scenario.iterations) = (vec![planner], 1);
    let Ok(valid) = ValidScenario::new(scenario, datasets) else { return Ok(None) };
    let mut observer = Watch { ..*watch };
    let planning = match engine::plan(&valid, &mut observer) {
        Ok(planning) => planning,
        Err(PlanError::Cancelled(_)) => return Err(AnalysisError::TimeIsUp),
        // A change can exceed the limits of an answer.
        Err(PlanError::TooLarge(_) | PlanError::Outgrown { .. }) => return Ok(None),
        Err(error) => return Err(AnalysisError::Unplanned(error.to_string())),
    };
    let Some(result) = planning.outcome.results.into_iter().next() else { return Ok(None) };
    Ok(Some(match result.answer {
        PlanOutcome::Planned(planned) => {
            let model = &valid.scenario().model;
            let ranks = planned.ranks.iter();
            Evaluated {
                ranks: ranks
                    .map(|rank| RankNeed {
                        rank: rank.rank,
                        layers: rank_description(model, &planned.stages, rank.rank),
                        memory: RankMemory { ..rank.memory },
                    })
                    .collect(),
                result: FitResult {
                    layout: Some(planned.layout),
                    iteration_s: Some(planned.metrics.iteration_s),
                    tokens_per_s_per_device: planned.metrics.tokens_per_s_per_device,
                    peak_gib: Some(planned.metrics.peak_memory_gib),
                    stage_layers: uneven_layers(valid.scenario(), &planned),
                    binding: None,
                },
                plan: Some(planned),
            }
        }
        PlanOutcome::Infeasible { binding, search } => {
            let nearest = search.nearest;
            Evaluated {
                result: FitResult {
                    layout: nearest.as_ref().map(|nearest| nearest.layout),
                    iteration_s: None,
                    tokens_per_s_per_device: None,
                    peak_gib: nearest.as_ref().map(|nearest| nearest.needs_gib),
                    stage_layers: Vec::new(),
                    binding: Some(binding),
                },
                ranks: nearest.map(|nearest| nearest.ranks).unwrap_or_default(),
                plan: None,
            }
        }
    }))
}

/// Returns the layers of each stage of a plan with one module; none if they are equal.
fn uneven_layers(scenario: &Scenario, planned: &Planned) -> Vec<u32> {
    let counts = match scenario.model.modules.as_slice() {
        [module] => layer_counts(planned, module.layers),
        _ => None,
    };
    counts.filter(|counts| !is_even(counts)).unwrap_or_default()
}

/// Forwards workers and cancellation of the caller.
#[derive(Clone, Copy)]
pub(crate) struct Watch<'a> {
    pub(crate) workers: &'a dyn Workers,
    pub(crate) cancellation: &'a dyn Cancellation,
    /// True if the caller uses the shares of the critical path.
    pub(crate) draws_timelines: bool,
}

impl<'a> Watch<'a> {
    /// Without timelines.
    pub(crate) const fn new(workers: &'a dyn Workers, cancellation: &'a dyn Cancellation) -> Self {
        Self { workers, cancellation, draws_timelines: false }
    }
}

impl Observer for Watch<'_> {
    fn started(&mut self, _: PlannerKind) {}
    fn progress(&mut self, _: PlannerKind, _: &'static str, _: u32, _: u32) {}
    fn finished(&mut self, _: PlannerKind) {}

    fn cancelled(&self) -> bool {
        self.cancellation.is_over()
    }

    fn workers(&self) -> &dyn Workers {
        self.workers
    }

    fn draws_timelines(&self) -> bool {
        self.draws_timelines
    }
}
