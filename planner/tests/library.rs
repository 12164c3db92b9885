//! Every ready set-up of a paper is planned, by every planner it asks, on one batch; those of thousands of devices too.

use std::path::Path;

use planner::engine::plan;
use planner::observer::Unobserved;
use planner::outcome::{Answer, Outcome};
use planner::scenario::validate::NoDatasets;
use planner::scenario::{PlannerKind, ValidScenario, parse};

/// Plans a scenario on its first batch; where it has thousands of devices, without search.
fn planned(path: &Path) -> Outcome {
    let mut scenario = parse(&std::fs::read_to_string(path).unwrap()).unwrap();
    scenario.iterations = 1;
    scenario.search.rollouts = if scenario.cluster.devices() > 1000 { 0 } else { 20 };
    let scenario = ValidScenario::new(scenario, &NoDatasets).unwrap_or_else(|errors| panic!("{path:?}: {errors:?}"));
    plan(&scenario, &mut Unobserved).unwrap_or_else(|error| panic!("{path:?}: {error}")).outcome
}

/// Each passed the checker on the way here. PipeWeaver whole is never slower than the static plans of Megatron-LM, which
/// is the least that the papers say of it.
#[test]
fn every_set_up_of_pipeweaver_is_planned() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/pipeweaver");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 17, "{files:?}");
    for path in files {
        let outcome = planned(&path);
        let time = |wanted: PlannerKind| {
            let result = outcome.results.iter().find(|result| result.planner == wanted)?;
            match &result.answer {
                Answer::Planned(planned) => Some(planned.metrics.iteration_s),
                Answer::Infeasible { binding, .. } => panic!("{path:?}, {wanted:?}: {binding}"),
            }
        };
        for result in &outcome.results {
            assert!(time(result.planner).is_some_and(|time| time > 0.0));
        }
        for baseline in [PlannerKind::OneFOneB, PlannerKind::InterleavedParameters] {
            if let (Some(whole), Some(baseline)) = (time(PlannerKind::PipeWeaver), time(baseline)) {
                assert!(whole <= baseline, "{path:?}: {whole} of {baseline}");
            }
        }
    }
}
