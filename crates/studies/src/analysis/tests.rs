//! Tests for studies on small plans: agreement with the planner, determinism and error cases.

use std::sync::atomic::{AtomicU32, Ordering};

use super::search_progress::{EndedBy, ExploredBy};
use super::*;
use planscope_core::host::{NeverCancelled, SequentialWorkers};
use planscope_plan::outcome::{Layout, PlanOutcome, Planned};
use planscope_plan::scenario::validate::NoDatasets;
use planscope_plan::scenario::{PlannerKind, parse};
use planscope_planners::engine::{Unobserved, plan};

/// A model on 16 H800 with `least` to 32 images per sample, and `batch` sequences for a pipeline
/// with four ranks.
fn valid(model: &str, min_images: u32, batch: u32) -> ValidScenario {
    let mut scenario = parse(include_str!("../../../../examples/vlm-s-image-heavy.json")).unwrap();
    scenario.model = planscope_core::model::presets::model(model).unwrap();
    let images = if scenario.model.images().is_some() {
        serde_json::json!({"kind": "uniform", "min": min_images, "max": 32})
    } else {
        serde_json::json!({"kind": "constant", "value": 0})
    };
    let samples = serde_json::json!({
        "kind": "drawn", "text_tokens": {"kind": "constant", "value": 8192}, "images": images
    });
    scenario.workload.samples = serde_json::from_value(samples).unwrap();
    scenario.workload.global_batch = batch;
    scenario.planners = vec![PlannerKind::PipeWeaverRanking];
    scenario.iterations = 2;
    scenario.layout.microbatch = Some(1);
    ValidScenario::new(scenario, &NoDatasets).unwrap()
}

fn planned(valid: &ValidScenario) -> Planned {
    let planning = plan(valid, &mut Unobserved).unwrap();
    match planning.outcome.results[0].answer.clone() {
        PlanOutcome::Planned(planned) => *planned,
        PlanOutcome::Infeasible { binding, .. } => panic!("{binding}"),
    }
}

fn subject(planned: &Planned, iteration: u32) -> Subject {
    let replica = planned.iterations[iteration as usize].slowest_replica;
    Subject { planner: PlannerKind::PipeWeaverRanking, layout: planned.layout, iteration, replica }
}

const fn effort(rollouts: u32) -> Effort<'static> {
    Effort { rollouts, seconds: f64::INFINITY, workers: &SequentialWorkers, cancellation: &NeverCancelled }
}

#[test]
fn tree_search_matches_the_planner() {
    let valid = valid("vlm-s", 1, 10);
    let planned = planned(&valid);
    for iteration in 0..2 {
        let rollouts = valid.scenario().search.rollouts;
        let progress = search_progress(&valid, subject(&planned, iteration), &effort(rollouts)).unwrap();
        let iteration_metrics = &planned.iterations[iteration as usize];
        let tree = &progress.strategies[0];
        assert_eq!(tree.strategy, ExploredBy::Mcts);
        let swapped = progress.swapped_s.unwrap();
        assert!(swapped <= tree.best_s);
        assert_eq!(swapped.to_bits(), iteration_metrics.iteration_s.to_bits(), "iteration {iteration}");
        assert_eq!(progress.lower_bound_s.to_bits(), iteration_metrics.lower_bound_s.to_bits());
        assert_eq!(
            (progress.microbatches, progress.groups),
            (iteration_metrics.microbatches, 2 * iteration_metrics.microbatches)
        );
        assert!(!progress.is_cut);
        for strategy in &progress.strategies {
            assert_eq!(strategy.steps.best_s[0].to_bits(), tree.steps.best_s[0].to_bits(), "same starting orders");
            assert!(strategy.steps.best_s.is_sorted_by(|a, b| a >= b) && strategy.steps.rollouts.is_sorted());
            assert!(strategy.best_s >= progress.lower_bound_s && strategy.rollouts <= rollouts + 12);
        }
        assert_eq!(progress, search_progress(&valid, subject(&planned, iteration), &effort(rollouts)).unwrap());
    }
}

#[test]
fn sizes_include_the_planned_size_and_smaller_sizes_give_more_parts() {
    let valid = valid("vlm-s", 16, 8);
    let planned = planned(&valid);
    let subject = subject(&planned, 1);
    let analysis = sub_microbatches(&valid, subject, &effort(60)).unwrap();
    assert_eq!((analysis.module.as_str(), analysis.is_fixed, analysis.is_cut), ("ViT 5B", false, false));
    assert!(analysis.points.is_sorted_by(|a, b| a.size < b.size && a.parts >= b.parts), "{analysis:?}");
    let selected_point = analysis.points.iter().find(|point| point.size == analysis.chosen).unwrap();
    assert!(selected_point.efficiency >= 0.95 && analysis.points[0].efficiency < selected_point.efficiency);
    assert_eq!(analysis.points.last().unwrap().parts, 8, "one part of each microbatch");
    for point in &analysis.points {
        let ends = point.ends.unwrap();
        assert!(ends.lower_bound_s <= ends.best_s && ends.best_s <= ends.worst_s, "{point:?}");
    }
    // Under the plan's rollouts, the end for the plan's size equals the plan's end.
    let as_planned = sub_microbatches(&valid, subject, &effort(valid.scenario().search.rollouts)).unwrap();
    let replanned_point = as_planned.points.iter().find(|point| point.size == analysis.chosen).unwrap();
    assert_eq!(replanned_point.ends.unwrap().best_s.to_bits(), planned.iterations[1].iteration_s.to_bits());
}

/// A watch that ends at the given clock reading. Each reading advances the clock by one second.
struct Looks(AtomicU32, u32);

impl Cancellation for Looks {
    fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= self.1
    }

    fn seconds(&self) -> f64 {
        f64::from(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

#[test]
fn cancelled_analysis_returns_partial_results() {
    let valid = valid("vlm-s", 0, 8);
    let subject = subject(&planned(&valid), 0);
    let unlimited = Looks(AtomicU32::new(0), u32::MAX);
    let short = Effort { seconds: 90.0, cancellation: &unlimited, ..effort(1_000_000) };
    let progress = search_progress(&valid, subject, &short).unwrap();
    assert!(
        progress.is_cut && progress.strategies.iter().all(|strategy| strategy.ended == EndedBy::Time),
        "{progress:?}"
    );
    assert!(
        progress.strategies.iter().all(|strategy| strategy.seconds > 0.0 && strategy.seconds <= 40.0),
        "{progress:?}"
    );
    let limited = Looks(AtomicU32::new(0), 20);
    let ended = Effort { cancellation: &limited, ..effort(1_000_000) };
    let analysis = sub_microbatches(&valid, subject, &ended).unwrap();
    assert!(analysis.is_cut);
    assert_eq!(
        analysis.points.iter().map(|point| point.size).collect::<Vec<_>>(),
        [analysis.chosen],
        "its own size first"
    );
}

#[test]
fn inapplicable_subjects_are_rejected() {
    let valid = valid("vlm-s", 0, 8);
    let mut subject = subject(&planned(&valid), 0);
    subject.iteration = 2;
    let rejection = |subject| search_progress(&valid, subject, &effort(1)).unwrap_err();
    assert_eq!(rejection(subject), AnalysisError::Iteration(2, 2));
    assert_eq!(rejection(Subject { iteration: 0, replica: 1, ..subject }), AnalysisError::Replica(1, 1));
    let layout = Layout { pipeline: 64, ..subject.layout };
    let deep = rejection(Subject { iteration: 0, layout, ..subject });
    assert_eq!(
        deep.to_string(),
        "the layout does not hold with the layers as the settings have them: PP exceeds the 63 layers of ViT 5B"
    );

    let text = self::valid("llama-2-7b", 0, 8);
    let subject = self::subject(&planned(&text), 0);
    assert_eq!(sub_microbatches(&text, subject, &effort(1)).unwrap_err(), AnalysisError::SingleModule);
    assert_eq!(search_progress(&text, subject, &effort(1)).unwrap().groups, 8);
}

/// Stage throughput x time x devices, summed across stages, equals the model FLOPs in the metrics.
#[test]
fn stage_rates_add_up_to_model_operations() {
    let mut scenario = parse(include_str!("../../../../examples/llama-2-7b-long-documents.json")).unwrap();
    let samples = serde_json::json!({
        "kind": "drawn", "text_tokens": {"kind": "constant", "value": 4096}, "images": {"kind": "constant", "value": 0}
    });
    scenario.workload.samples = serde_json::from_value(samples).unwrap();
    scenario.planners = vec![PlannerKind::OneFOneB];
    scenario.iterations = 1;
    let valid = ValidScenario::new(scenario, &NoDatasets).unwrap();
    let planning = plan(&valid, &mut Unobserved).unwrap();
    let PlanOutcome::Planned(planned) = &planning.outcome.results[0].answer else { panic!() };
    let devices = f64::from(planned.layout.tensor);
    let visits = f64::from(planned.iterations[0].microbatches * planned.layout.data);
    let by_stages: f64 = planned
        .stages
        .iter()
        .map(|stage| {
            let seconds = (stage.forward_ms + stage.backward_ms) * 1e-3 * visits;
            stage.tflops_per_device.unwrap() * seconds * devices
        })
        .sum();
    let metrics = &planned.metrics;
    let cluster = f64::from(valid.scenario().cluster.devices());
    let all = metrics.tflops_per_device * cluster * metrics.iteration_s;
    assert!((by_stages / all - 1.0).abs() < 1e-9, "{by_stages} {all}");
}

/// Equal microbatches take equal time on a stage. The bubble exceeds the textbook formula only
/// slightly.
#[test]
fn equal_microbatches_have_durations_without_spread() {
    let mut scenario = parse(include_str!("../../../../examples/gpt-3-175b-uniform.json")).unwrap();
    scenario.planners = vec![PlannerKind::OneFOneB];
    scenario.iterations = 1;
    let valid = ValidScenario::new(scenario, &NoDatasets).unwrap();
    let planning = plan(&valid, &mut Unobserved).unwrap();
    let timelines = [(PlannerKind::OneFOneB, planning.timelines[0].timeline.clone())];
    let analysis = stages::stages(&valid.scenario().model, &planning.outcome, 0, &timelines);
    let plan_stages = &analysis.plans[0];
    assert_eq!(
        (plan_stages.depth, plan_stages.rates.len()),
        (plan_stages.rates.len() as u32, plan_stages.depth as usize)
    );
    let ideal = plan_stages.ideal_bubble.unwrap();
    assert!(plan_stages.bubble >= ideal * 0.99 && plan_stages.bubble < ideal + 0.05, "{} {ideal}", plan_stages.bubble);
    assert!(
        plan_stages.modules[0].count > 0 && plan_stages.modules[0].variation < 0.2,
        "{:?}",
        plan_stages.modules[0].variation
    );
}
