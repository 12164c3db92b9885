//! Plans all example configurations from a paper, using all planners that they request.

use std::path::Path;

use planner::engine::plan;
use planner::observer::Unobserved;
use planner::outcome::{Outcome, PlanOutcome};
use planner::scenario::validate::NoDatasets;
use planner::scenario::{PlannerKind, ValidScenario, parse};

/// Larger clusters are planned without search, to limit the test time.
const LARGE: u32 = 1000;

/// Plans the PipeWeaver configurations that have a matching device count, on the first batch.
fn outcomes(wanted: impl Fn(u32) -> bool) -> Vec<(String, Outcome)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/pipeweaver");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut outcomes = Vec::new();
    for path in files {
        let mut scenario = parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let devices = scenario.cluster.devices();
        if !wanted(devices) {
            continue;
        }
        let name = path.display().to_string();
        scenario.iterations = 1;
        scenario.search.rollouts = if devices > LARGE { 0 } else { 20 };
        let scenario = ValidScenario::new(scenario, &NoDatasets).unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
        let planning = plan(&scenario, &mut Unobserved).unwrap_or_else(|error| panic!("{name}: {error}"));
        outcomes.push((name, planning.outcome));
    }
    outcomes
}

/// All requested planners return a plan, which `plan` validates. Full PipeWeaver is never slower
/// than the static Megatron-LM plans, a minimum requirement from the paper.
fn hold(outcomes: &[(String, Outcome)]) {
    for (name, outcome) in outcomes {
        let time = |wanted: PlannerKind| {
            let result = outcome.results.iter().find(|result| result.planner == wanted)?;
            match &result.answer {
                PlanOutcome::Planned(planned) => Some(planned.metrics.iteration_s),
                PlanOutcome::Infeasible { binding, .. } => panic!("{name}, {wanted:?}: {binding}"),
            }
        };
        for result in &outcome.results {
            assert!(time(result.planner).is_some_and(|time| time > 0.0));
        }
        for baseline in [PlannerKind::OneFOneB, PlannerKind::InterleavedParameters] {
            if let (Some(full), Some(baseline)) = (time(PlannerKind::PipeWeaver), time(baseline)) {
                assert!(full <= baseline, "{name}: {full} of {baseline}");
            }
        }
    }
}

#[test]
fn pipeweaver_setups_are_planned() {
    let outcomes = outcomes(|devices| devices <= LARGE);
    assert_eq!(outcomes.len(), 19);
    hold(&outcomes);
}

#[test]
fn large_clusters_are_planned() {
    let outcomes = outcomes(|devices| devices > LARGE);
    assert_eq!(outcomes.len(), 4);
    hold(&outcomes);
}
