//! Tests for studies on small plans: agreement with the planner, determinism and error cases.

use std::sync::atomic::{AtomicU32, Ordering};

use super::search_progress::{EndedBy, ExploredBy};
use super::*;
use crate::engine::{Unobserved, plan};
use crate::host::{NeverCancelled, SequentialWorkers};
use crate::outcome::{Answer, Planned};
use crate::scenario::validate::NoDatasets;
use crate::scenario::{PlannerKind, parse};

/// A model on 16 H800 with `least` to 32 images per sample, and `batch` sequences for a pipeline
/// with four ranks.
fn valid(model: &str, least: u32, batch: u32) -> ValidScenario {
    let mut scenario = parse(include_str!("../../../examples/vlm-s-image-heavy.json")).unwrap();
    scenario.model = crate::model::presets::model(model).unwrap();
    let images = if scenario.model.images().is_some() {
        serde_json::json!({"kind": "uniform", "min": least, "max": 32})
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
        Answer::Planned(planned) => *planned,
        Answer::Infeasible { binding, .. } => panic!("{binding}"),
    }
}

fn subject(planned: &Planned, iteration: u32) -> Subject {
    let replica = planned.iterations[iteration as usize].slowest_replica;
    Subject { planner: PlannerKind::PipeWeaverRanking, layout: planned.layout, iteration, replica }
}

const fn effort(rollouts: u32) -> Effort<'static> {
    Effort { rollouts, seconds: f64::INFINITY, workers: &SequentialWorkers, watch: &NeverCancelled }
}

#[test]
fn the_tree_search_of_a_study_finds_what_the_planner_found() {
    let valid = valid("vlm-s", 1, 10);
    let planned = planned(&valid);
    for iteration in 0..2 {
        let rollouts = valid.scenario().search.rollouts;
        let study = search_progress(&valid, subject(&planned, iteration), &effort(rollouts)).unwrap();
        let of = &planned.iterations[iteration as usize];
        let tree = &study.strategies[0];
        assert_eq!(tree.strategy, ExploredBy::Mcts);
        let swapped = study.swapped_s.unwrap();
        assert!(swapped <= tree.best_s);
        assert_eq!(swapped.to_bits(), of.iteration_s.to_bits(), "iteration {iteration}");
        assert_eq!(study.lower_bound_s.to_bits(), of.lower_bound_s.to_bits());
        assert_eq!((study.microbatches, study.groups), (of.microbatches, 2 * of.microbatches));
        assert!(!study.is_cut);
        for strategy in &study.strategies {
            assert_eq!(strategy.steps.best_s[0].to_bits(), tree.steps.best_s[0].to_bits(), "same starting orders");
            assert!(strategy.steps.best_s.is_sorted_by(|a, b| a >= b) && strategy.steps.rollouts.is_sorted());
            assert!(strategy.best_s >= study.lower_bound_s && strategy.rollouts <= rollouts + 12);
        }
        assert_eq!(study, search_progress(&valid, subject(&planned, iteration), &effort(rollouts)).unwrap());
    }
}

#[test]
fn sizes_hold_the_plans_own_and_more_parts_come_from_smaller_ones() {
    let valid = valid("vlm-s", 16, 8);
    let planned = planned(&valid);
    let subject = subject(&planned, 1);
    let study = sub_microbatches(&valid, subject, &effort(60)).unwrap();
    assert_eq!((study.module.as_str(), study.is_fixed, study.is_cut), ("ViT 5B", false, false));
    assert!(study.points.is_sorted_by(|a, b| a.size < b.size && a.parts >= b.parts), "{study:?}");
    let own = study.points.iter().find(|point| point.size == study.chosen).unwrap();
    assert!(own.efficiency >= 0.95 && study.points[0].efficiency < own.efficiency);
    assert_eq!(study.points.last().unwrap().parts, 8, "one part of each microbatch");
    for point in &study.points {
        let ends = point.ends.unwrap();
        assert!(ends.lower_bound_s <= ends.best_s && ends.best_s <= ends.worst_s, "{point:?}");
    }
    // Under the plan's rollouts, the end for the plan's size equals the plan's end.
    let as_planned = sub_microbatches(&valid, subject, &effort(valid.scenario().search.rollouts)).unwrap();
    let own = as_planned.points.iter().find(|point| point.size == study.chosen).unwrap();
    assert_eq!(own.ends.unwrap().best_s.to_bits(), planned.iterations[1].iteration_s.to_bits());
}

/// A watch that ends at the given clock reading. Each reading advances the clock by one second.
struct Looks(AtomicU32, u32);

impl Watch for Looks {
    fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= self.1
    }

    fn seconds(&self) -> f64 {
        f64::from(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

#[test]
fn a_study_whose_time_is_up_holds_what_it_has() {
    let valid = valid("vlm-s", 0, 8);
    let subject = subject(&planned(&valid), 0);
    let watch = Looks(AtomicU32::new(0), u32::MAX);
    let short = Effort { seconds: 90.0, watch: &watch, ..effort(1_000_000) };
    let study = search_progress(&valid, subject, &short).unwrap();
    assert!(study.is_cut && study.strategies.iter().all(|strategy| strategy.ended == EndedBy::Time), "{study:?}");
    assert!(study.strategies.iter().all(|strategy| strategy.seconds > 0.0 && strategy.seconds <= 40.0), "{study:?}");
    let watch = Looks(AtomicU32::new(0), 20);
    let ended = Effort { watch: &watch, ..effort(1_000_000) };
    let study = sub_microbatches(&valid, subject, &ended).unwrap();
    assert!(study.is_cut);
    assert_eq!(study.points.iter().map(|point| point.size).collect::<Vec<_>>(), [study.chosen], "its own size first");
}

#[test]
fn what_does_not_apply_is_said() {
    let valid = valid("vlm-s", 0, 8);
    let mut subject = subject(&planned(&valid), 0);
    subject.iteration = 2;
    let refused = |subject| search_progress(&valid, subject, &effort(1)).unwrap_err();
    assert_eq!(refused(subject), NoStudy::Iteration(2, 2));
    assert_eq!(refused(Subject { iteration: 0, replica: 1, ..subject }), NoStudy::Replica(1, 1));
    let layout = Layout { pipeline: 64, ..subject.layout };
    let deep = refused(Subject { iteration: 0, layout, ..subject });
    assert_eq!(
        deep.to_string(),
        "the layout does not hold with the layers as the settings have them: PP exceeds the 63 layers of ViT 5B"
    );

    let text = self::valid("llama-2-7b", 0, 8);
    let subject = self::subject(&planned(&text), 0);
    assert_eq!(sub_microbatches(&text, subject, &effort(1)).unwrap_err(), NoStudy::OneModule);
    assert_eq!(search_progress(&text, subject, &effort(1)).unwrap().groups, 8);
}

/// Stage throughput x time x devices, summed across stages, equals the model FLOPs in the metrics.
#[test]
fn rates_of_stages_add_up_to_the_operations_of_the_model() {
    let mut scenario = parse(include_str!("../../../examples/llama-2-7b-long-documents.json")).unwrap();
    let samples = serde_json::json!({
        "kind": "drawn", "text_tokens": {"kind": "constant", "value": 4096}, "images": {"kind": "constant", "value": 0}
    });
    scenario.workload.samples = serde_json::from_value(samples).unwrap();
    scenario.planners = vec![PlannerKind::OneFOneB];
    scenario.iterations = 1;
    let valid = ValidScenario::new(scenario, &NoDatasets).unwrap();
    let planning = plan(&valid, &mut Unobserved).unwrap();
    let Answer::Planned(planned) = &planning.outcome.results[0].answer else { panic!() };
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
    let mut scenario = parse(include_str!("../../../examples/gpt-3-175b-uniform.json")).unwrap();
    scenario.planners = vec![PlannerKind::OneFOneB];
    scenario.iterations = 1;
    let valid = ValidScenario::new(scenario, &NoDatasets).unwrap();
    let planning = plan(&valid, &mut Unobserved).unwrap();
    let timelines = [(PlannerKind::OneFOneB, planning.timelines[0].timeline.clone())];
    let study = stages::stages(&valid.scenario().model, &planning.outcome, 0, &timelines);
    let of = &study.plans[0];
    assert_eq!((of.depth, of.rates.len()), (of.rates.len() as u32, of.depth as usize));
    let ideal = of.ideal_bubble.unwrap();
    assert!(of.bubble >= ideal * 0.99 && of.bubble < ideal + 0.05, "{} {ideal}", of.bubble);
    assert!(of.modules[0].count > 0 && of.modules[0].variation < 0.2, "{:?}", of.modules[0].variation);
}
