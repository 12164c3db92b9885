//! Settings that save memory, searched together for a job that neither a change nor a pair of changes makes fit.

use planscope_analysis::analysis::AnalysisError;
use planscope_core::training::Framework;
use planscope_plan::scenario::{FreeSetting, Scenario};
use serde_json::{Value, json};

use super::changes::{Proposal, has_pipeline, offloads_states};
use super::{ChangeKind, Evaluated, FieldChange, Trials, evaluate, stated_layout};

impl Trials<'_> {
    /// Searches recomputation, sharding, offload and the microbatch, at the degrees of the job and then with free ones.
    /// Plans that fit become changes with the settings that were found. Returns true if the time is up.
    pub(super) fn search_settings(&mut self) -> Result<bool, AnalysisError> {
        (self.report)("searching all settings that save memory", 0, 1);
        let scenario = self.valid.scenario();
        let mut searches = vec![("recomputation, ZeRO, offload and microbatch", memory_settings(scenario))];
        searches.extend(
            all_on_host(scenario).map(|search| ("offload of all states, recomputation and microbatch", search)),
        );
        if has_pipeline(scenario) {
            searches.push(("degrees, recomputation, ZeRO, offload and microbatch", all_settings(scenario)));
        }
        for (names, search) in searches {
            let found = match evaluate(&json!(search), self.valid, self.planner, self.watch) {
                Ok(Some(found)) => found,
                Ok(None) => continue,
                Err(AnalysisError::TimeIsUp) => return Ok(true),
                Err(error) => return Err(error),
            };
            let Some(fields) = stated(scenario, search, &found) else { continue };
            let title = format!("{names}, searched together");
            let proposal = Proposal { title, kind: ChangeKind::Layout, fields };
            match self.evaluate_on(self.document, &proposal) {
                Ok(evaluated) => self.add(proposal, evaluated),
                Err(AnalysisError::TimeIsUp) => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}

/// Returns the scenario with free recomputation, sharding, offload and microbatch.
fn memory_settings(scenario: &Scenario) -> Scenario {
    let mut search = scenario.clone();
    search.layout.microbatch = None;
    let training = &mut search.training;
    let mut free = vec![FreeSetting::Recompute, FreeSetting::ActivationOffload];
    if !training.offloads_parameters() {
        free.push(FreeSetting::OptimizerOffload);
        // The pipeline engine of DeepSpeed shards neither gradients nor weights.
        if training.framework != Framework::MegatronDeepspeed || scenario.layout.pipeline == Some(1) {
            free.push(FreeSetting::Zero);
        }
    }
    set_free(&mut search, &free);
    search
}

/// Returns the scenario with all states in host memory, if the framework can and the job does not have it.
fn all_on_host(scenario: &Scenario) -> Option<Scenario> {
    if scenario.training.offloads_parameters() || !offloads_states(scenario) {
        return None;
    }
    let mut search = scenario.clone();
    search.layout.microbatch = None;
    (search.training.parameter_offload, search.training.zero) = (true, Some(3));
    set_free(&mut search, &[FreeSetting::Recompute, FreeSetting::ActivationOffload]);
    Some(search)
}

/// Returns the scenario with free degrees and layers per stage in addition.
fn all_settings(scenario: &Scenario) -> Scenario {
    let mut search = memory_settings(scenario);
    (search.layout.tensor, search.layout.pipeline, search.layout.chunks) = (None, None, None);
    search.layers_per_stage.clear();
    let mut free = vec![FreeSetting::ContextParallel, FreeSetting::SequenceParallel, FreeSetting::LayersPerStage];
    if scenario.model.modules.iter().any(|module| module.moe.is_some()) {
        free.push(FreeSetting::ExpertParallel);
    }
    set_free(&mut search, &free);
    search
}

fn set_free(scenario: &mut Scenario, settings: &[FreeSetting]) {
    for setting in settings {
        if !scenario.is_free(*setting) {
            scenario.free.push(*setting);
        }
    }
}

/// Returns the fields in which the plan that a search found differs from the scenario; `None` if there is no plan.
fn stated(scenario: &Scenario, search: Scenario, found: &Evaluated) -> Option<Vec<FieldChange>> {
    let plan = found.plan.as_deref()?;
    let mut result = Scenario { free: scenario.free.clone(), ..search };
    plan.settings?.apply(&mut result.training);
    result.layers_per_stage.clone_from(&found.result.stage_layers);
    let (mut before, mut after) = (json!(scenario), json!(result));
    after["layout"] = stated_layout(found.result.layout.as_ref()?);
    let mut fields = Vec::new();
    for group in ["training", "layout"] {
        let keys = |value: &Value| value[group].as_object().map(|object| object.keys().cloned().collect::<Vec<_>>());
        let mut names = [keys(&before), keys(&after)].into_iter().flatten().flatten().collect::<Vec<_>>();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let (from, to) = (before[group][&name].take(), after[group][&name].take());
            if from != to {
                fields.push(FieldChange { pointer: format!("/{group}/{name}"), value: to });
            }
        }
    }
    if before["layers_per_stage"] != after["layers_per_stage"] {
        fields.push(FieldChange { pointer: "/layers_per_stage".to_owned(), value: after["layers_per_stage"].take() });
    }
    Some(fields)
}
