//! PipeWeaver ablation, and comparison to the baselines.

use planner::engine::plan;
use planner::observer::Unobserved;
use planner::outcome::{PlanOutcome, Planned};
use planner::scenario::validate::NoDatasets;
use planner::scenario::{PlannerKind, ValidScenario, parse};

fn planned(file: &str, change: impl FnOnce(&mut planner::scenario::Scenario)) -> Vec<(PlannerKind, Planned)> {
    let mut scenario = parse(file).unwrap();
    change(&mut scenario);
    let scenario = ValidScenario::new(scenario, &NoDatasets).unwrap();
    let planning = plan(&scenario, &mut Unobserved).unwrap();
    let plans = planning.outcome.results.into_iter().map(|result| match result.answer {
        PlanOutcome::Planned(planned) => (result.planner, *planned),
        PlanOutcome::Infeasible { binding, .. } => panic!("{:?}: {binding}", result.planner),
    });
    plans.collect()
}

fn time(plans: &[(PlannerKind, Planned)], planner: PlannerKind) -> f64 {
    plans.iter().find(|(kind, _)| *kind == planner).unwrap().1.metrics.iteration_s
}

/// Order of PipeWeaver Table 5: each added technique reduces the time. The magnitude depends on
/// unpublished data, so the test prints it but does not check it.
#[test]
fn every_technique_added_is_faster() {
    use PlannerKind::{
        InterleavedParameters, PipeWeaver, PipeWeaverInterleaving, PipeWeaverPartition, PipeWeaverRanking,
    };
    let plans =
        planned(include_str!("../../../../examples/vlm-s-pipeweaver-steps.json"), |scenario| scenario.iterations = 2);
    let steps = [InterleavedParameters, PipeWeaverPartition, PipeWeaverInterleaving, PipeWeaverRanking, PipeWeaver];
    let times = steps.map(|step| time(&plans, step));
    for (step, published) in (1..5).zip([17.3, 38.9, 48.3, 62.8]) {
        println!("{}: {:+.1} %, published {published:+.1} %", steps[step].id(), 100.0 * (times[0] / times[step] - 1.0));
        assert!(times[step] < times[step - 1], "{:?} {} of {}", steps[step], times[step], times[step - 1]);
    }
}

/// Two encoders, text and diffusion, and a plain language model. Models with several modules are
/// partitioned by module. `plan` validates each plan.
#[test]
fn pipeweaver_plans_all_models() {
    for (preset, tensor, pipeline) in [("omni-7b", 4, 2), ("t2v-s", 4, 4), ("llama-2-7b", 4, 2), ("vlm-m", 8, 4)] {
        let file =
            include_str!("../../../../examples/vlm-s-image-heavy.json").replace("\"vlm-s\"", &format!("{preset:?}"));
        let plans = planned(&file, |scenario| {
            scenario.planners = vec![PlannerKind::PipeWeaverInterleaving, PlannerKind::PipeWeaver];
            scenario.layout.tensor = Some(tensor);
            scenario.layout.pipeline = Some(pipeline);
            scenario.cluster.nodes = tensor * pipeline / 8;
            scenario.workload.global_batch = 16;
            scenario.iterations = 1;
            scenario.search.rollouts = 20;
            if scenario.model.images().is_none() {
                scenario.workload.samples = text_only();
            }
            if scenario.model.video().is_some() {
                scenario.workload.samples = planner::workload::presets::samples()
                    .into_iter()
                    .find(|preset| preset.id.contains("video"))
                    .unwrap()
                    .source;
            }
        });
        let (full, step) = (time(&plans, PlannerKind::PipeWeaver), time(&plans, PlannerKind::PipeWeaverInterleaving));
        assert!(full <= step, "{preset}: {full} of {step}");
    }
}

/// Documents that have varied lengths.
fn text_only() -> planner::workload::SampleSource {
    let long = planner::workload::presets::samples().into_iter().find(|preset| preset.id == "long-documents");
    long.unwrap().source
}

/// A baseline that does not apply to a model reports it.
#[test]
fn optimus_says_where_it_does_not_apply() {
    let mut scenario = parse(include_str!("../../../../examples/llama-2-7b-long-documents.json")).unwrap();
    scenario.planners = vec![PlannerKind::Optimus];
    scenario.iterations = 1;
    let planning = plan(&ValidScenario::new(scenario, &NoDatasets).unwrap(), &mut Unobserved).unwrap();
    let PlanOutcome::Infeasible { binding, .. } = &planning.outcome.results[0].answer else { panic!("it has a plan") };
    assert!(binding.starts_with("does not apply"), "{binding}");
}
