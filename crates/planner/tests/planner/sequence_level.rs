//! Plans all DHP example configurations, using all planners that they request.

use std::path::Path;

use planner::engine::plan;
use planner::observer::Unobserved;
use planner::outcome::{Outcome, PlanOutcome};
use planner::scenario::validate::NoDatasets;
use planner::scenario::{PlannerKind, ValidScenario, parse};

fn outcomes() -> Vec<(String, Outcome)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/dhp");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let outcome = |path: &std::path::PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let scenario = parse(&std::fs::read_to_string(path).unwrap()).unwrap();
        let scenario = ValidScenario::new(scenario, &NoDatasets).unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
        let planning = plan(&scenario, &mut Unobserved).unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, planning.outcome)
    };
    files.iter().map(outcome).collect()
}

/// Iteration time in seconds, or the infeasibility reason.
fn time(outcome: &Outcome, wanted: PlannerKind) -> Result<f64, &str> {
    let result = outcome.results.iter().find(|result| result.planner == wanted).unwrap();
    match &result.answer {
        PlanOutcome::Planned(planned) => Ok(planned.metrics.iteration_s),
        PlanOutcome::Infeasible { binding, .. } => Err(binding),
    }
}

/// `plan` validates all plans. Only Ulysses can be infeasible: its degree must divide the heads of
/// all modules, and the common divisor is 4 in InternVL, so long clips may not fit. The plans of the
/// baselines are candidates of DHP; its TP degree comes from another batch.
#[test]
fn dhp_setups_are_planned_and_long_tails_gain_more() {
    let outcomes = outcomes();
    assert_eq!(outcomes.len(), 6 * 3 + 3 + 2 + 7);
    let mean_gain = |data: &str| {
        let selected = outcomes.iter().filter(|(name, _)| name.ends_with(data) && !name.starts_with("frozen"));
        let gains: Vec<f64> = selected
            .map(|(_, outcome)| {
                time(outcome, PlannerKind::StaticContext).unwrap() / time(outcome, PlannerKind::Dhp).unwrap()
            })
            .collect();
        assert_eq!(gains.len(), 6);
        gains.iter().sum::<f64>() / gains.len() as f64
    };
    for (name, outcome) in &outcomes {
        let is_requested = |kind: &PlannerKind| outcome.results.iter().any(|result| result.planner == *kind);
        let baselines = [PlannerKind::StaticContext, PlannerKind::BalancedContext, PlannerKind::PowerOfTwoContext];
        for kind in baselines.into_iter().filter(is_requested) {
            let baseline = time(outcome, kind).unwrap_or_else(|binding| panic!("{name}, {kind:?}: {binding}"));
            let dhp = time(outcome, PlannerKind::Dhp).unwrap();
            assert!(dhp <= 1.005 * baseline, "{name}, {kind:?}: {dhp} of {baseline}");
        }
        match time(outcome, PlannerKind::Ulysses) {
            Ok(seconds) => assert!(seconds > 0.0),
            Err(binding) => assert!(name.contains("internvl"), "{name}: {binding}"),
        }
    }
    let (even, tailed) = (mean_gain("msr-vtt"), mean_gain("open-vid"));
    assert!(even < 1.15 && tailed > 1.15 && tailed > even + 0.1, "{even} and {tailed}");
}
