//! Settings of a job whose files state no layout: the expert-parallel degree, and layers per stage if equal stages do not fit or
//! are slow.

use serde_json::json;

use planscope_core::host::{Cancellation, Workers};
use planscope_plan::scenario::{FreeSetting, Scenario, ValidScenario};

use super::{Watch, evaluate, reference_planner};
use planscope_analysis::analysis::AnalysisError;

/// Highest expert-parallel degree that is tried.
const MAX_EXPERT: u32 = 64;
/// Share of the time of equal stages that uneven ones may take to be proposed.
const MAX_SHARE: f64 = 0.97;

/// A job with the settings that its files leave open.
#[derive(Debug, Clone)]
pub struct Completed {
    /// The scenario with the settings.
    pub valid: ValidScenario,
    /// Settings, as sentences for users.
    pub assumed: Vec<String>,
}

/// Returns the fastest settings of a job without a layout that fit; `None` if the job has a layout, if nothing fits, or if
/// nothing changes. Uneven stages replace equal ones if they are clearly faster.
///
/// # Errors
/// The scenario cannot be planned within the limits, or the time is up.
pub fn complete(
    valid: &ValidScenario,
    workers: &dyn Workers,
    cancellation: &dyn Cancellation,
) -> Result<Option<Completed>, AnalysisError> {
    let scenario = valid.scenario();
    if !has_no_layout(scenario) {
        return Ok(None);
    }
    let watch = Watch::new(workers, cancellation);
    let planner = reference_planner(valid);
    let degrees = expert_degrees(scenario);
    let search = |is_uneven: bool| -> Result<Option<Found>, AnalysisError> {
        let mut fastest: Option<Found> = None;
        for &degree in &degrees {
            let mut candidate = scenario.clone();
            candidate.training.expert_parallel = degree;
            if is_uneven {
                candidate.free = vec![FreeSetting::LayersPerStage];
            }
            let Some(evaluated) = evaluate(&json!(candidate), valid, planner, &watch)? else { continue };
            let Some(seconds) = evaluated.result.iteration_s else { continue };
            if fastest.as_ref().is_none_or(|fastest| seconds < fastest.seconds) {
                fastest = Some(Found { seconds, scenario: candidate, layers: evaluated.result.stage_layers });
            }
        }
        Ok(fastest)
    };
    let equal = search(false)?;
    let uneven = search(true)?.filter(|uneven| {
        equal.as_ref().is_none_or(|equal| !uneven.layers.is_empty() && uneven.seconds < equal.seconds * MAX_SHARE)
    });
    let reason =
        if equal.is_none() { "No layout with equal stages fits." } else { "Uneven stages are faster than equal ones." };
    let stages = uneven.as_ref().map(|uneven| uneven.layers.iter().map(u32::to_string).collect::<Vec<_>>());
    let Some(found) = uneven.or(equal) else { return Ok(None) };
    let mut assumed = Vec::new();
    if degrees.len() > 1 {
        let degree = found.scenario.training.expert_parallel;
        assumed.push(format!("Expert parallelism is not stated. Degree {degree} is the fastest that fits."));
    }
    if let Some(stages) = stages {
        assumed.push(format!("{reason} The layers of the stages are searched: {}.", stages.join(", ")));
    }
    let valid = ValidScenario::new(found.scenario, valid).ok();
    Ok(valid.filter(|_| !assumed.is_empty()).map(|valid| Completed { valid, assumed }))
}

/// A plan that a search found.
struct Found {
    /// Step time.
    seconds: f64,
    /// The scenario with the searched settings.
    scenario: Scenario,
    /// Layers of the stages; empty if they are equal.
    layers: Vec<u32>,
}

/// True if degrees and stages are open.
fn has_no_layout(scenario: &Scenario) -> bool {
    let layout = scenario.layout;
    let is_open = layout.tensor.is_none() && layout.pipeline.is_none() && layout.chunks.is_none();
    is_open && scenario.layers_per_stage.is_empty() && scenario.free.is_empty()
}

/// Powers of two that divide the experts of all modules. A degree above 1 is stated.
fn expert_degrees(scenario: &Scenario) -> Vec<u32> {
    let stated = scenario.training.expert_parallel;
    let experts: Vec<u32> =
        scenario.model.modules.iter().filter_map(|module| module.moe).map(|moe| moe.experts).collect();
    if stated > 1 || experts.is_empty() {
        return vec![stated];
    }
    let devices = scenario.cluster.devices();
    let is_possible = |degree: &u32| *degree <= devices && experts.iter().all(|count| count.is_multiple_of(*degree));
    (0..=MAX_EXPERT.ilog2()).map(|power| 1 << power).filter(is_possible).collect()
}

#[cfg(test)]
mod tests {
    use planscope_core::host::{NeverCancelled, SequentialWorkers};
    use planscope_plan::scenario::parse;
    use planscope_plan::scenario::validate::NoDatasets;
    use serde_json::Value;

    use super::*;

    fn completed(model: &str, devices: (u32, u32), changed: impl FnOnce(&mut Value)) -> Option<Completed> {
        let mut document = json!({
            "schema": "scenario/1", "model": { "preset": model },
            "cluster": { "preset": "h100", "nodes": devices.0, "devices_per_node": devices.1 },
            "workload": {
                "samples": {
                    "kind": "drawn", "text_tokens": { "kind": "constant", "value": 4096 },
                    "images": { "kind": "constant", "value": 0 }
                },
                "global_batch": 48, "context_length": 4096, "packing": "single"
            },
            "training": { "recompute": "selective" }, "planners": ["1f1b"]
        });
        changed(&mut document);
        let valid = ValidScenario::new(parse(&document.to_string()).unwrap(), &NoDatasets).unwrap();
        complete(&valid, &SequentialWorkers, &NeverCancelled).unwrap()
    }

    /// 80 layers divide over no pipeline of 3, 6, 12 or 24 ranks, and one stage does not fit.
    #[test]
    fn uneven_stages_are_proposed_if_equal_ones_do_not_exist() {
        let found = completed("llama-2-70b", (3, 8), |_| {}).expect("uneven stages fit");
        assert!(found.valid.scenario().is_free(FreeSetting::LayersPerStage));
        assert!(found.assumed[0].starts_with("No layout with equal stages fits."), "{:?}", found.assumed);
        let layers = found.assumed[0].rsplit(": ").next().unwrap().trim_end_matches('.');
        let layers: Vec<u32> = layers.split(", ").map(|count| count.parse().unwrap()).collect();
        assert!(layers.len() > 1 && layers.iter().sum::<u32>() == 80, "{layers:?}");
        // Equal stages exist for 32 devices.
        assert!(completed("llama-2-70b", (4, 8), |_| {}).is_none());
    }

    /// 61 layers divide over 61 stages or none.
    #[test]
    fn uneven_stages_are_proposed_if_equal_ones_are_slow() {
        let found = completed("deepseek-v3", (256, 8), |document| {
            document["training"] = json!({});
            document["cluster"]["preset"] = json!("h800");
            document["workload"]["global_batch"] = json!(4096);
        });
        let found = found.expect("a layout is found");
        assert!(found.valid.scenario().is_free(FreeSetting::LayersPerStage), "{:?}", found.assumed);
        let text = "Uneven stages are faster than equal ones. The layers of the stages are searched: ";
        assert!(found.assumed.iter().any(|sentence| sentence.starts_with(text)), "{:?}", found.assumed);
    }

    #[test]
    fn the_expert_parallel_degree_is_searched() {
        let found = completed("mixtral-8x7b", (4, 8), |_| {}).expect("a degree is found");
        let degree = found.valid.scenario().training.expert_parallel;
        assert!(degree > 1 && 8 % degree == 0, "{degree}");
        assert_eq!(
            found.assumed,
            [format!("Expert parallelism is not stated. Degree {degree} is the fastest that fits.")]
        );
    }

    #[test]
    fn stated_settings_do_not_change() {
        let of_layout = completed("mixtral-8x7b", (4, 8), |document| document["layout"] = json!({ "tensor": 8 }));
        assert!(of_layout.is_none());
        let of_degree = completed("mixtral-8x7b", (4, 8), |document| {
            document["training"]["expert_parallel"] = json!(4);
        });
        assert!(of_degree.is_none());
        assert!(completed("llama-3-8b", (3, 8), |_| {}).is_none(), "equal stages fit");
        assert!(completed("llama-2-70b", (1, 1), |_| {}).is_none(), "nothing fits");
    }
}
