use api::planner::scenario::PlannerKind::{Gpipe, OneFOneB};
use serde_json::json;

use super::*;
use crate::gantt::sample;

/// Outcome with a number of iterations and without results.
fn outcome(iterations: usize) -> Arc<StoredOutcome> {
    let batch = json!({"samples": 1, "sequences": 1, "tokens": 1, "images": 0, "truncated": 0});
    let histogram = json!({"edges": [0.0, 1.0], "counts": [1], "mean": 0.0, "median": 0.0, "p99": 0.0, "max": 0.0});
    let outcome = json!({
        "outcome": {
            "engine": "1", "scenario": "abc", "batches": vec![batch; iterations],
            "workload": {"sample_tokens": histogram, "sample_images": null}, "results": [],
        },
        "planning_ms": [], "created_at": "", "current_engine": "1",
    });
    Arc::new(serde_json::from_value(outcome).unwrap())
}

fn timeline() -> Arc<Timeline> {
    Arc::new(sample::lane(&[(0, 0, 10)]))
}

/// Iteration with a timeline of 1F1B and overviews of the given planners.
fn loaded(iteration: u32, large: &[PlannerKind]) -> DisplayedIteration {
    let overview = Arc::new(Overview::new(&sample::lane(&[(0, 0, 40)])));
    DisplayedIteration {
        iteration,
        planners: large.iter().copied().chain([OneFOneB]).collect(),
        timelines: vec![(OneFOneB, timeline())],
        overviews: large.iter().map(|planner| (*planner, Arc::clone(&overview))).collect(),
    }
}

/// Effects as text.
fn described(effects: &[Effect]) -> Vec<String> {
    let describe = |effect: &Effect| match effect {
        Effect::Fetch { iteration, .. } => format!("fetch {iteration}"),
        Effect::FetchTimeline { scenario, planner, iteration } => {
            format!("fetch {} of {scenario} {iteration}", planner.id())
        }
        Effect::ShowOutcome { timelines, error, .. } => {
            format!("outcome with {} of {}, error: {}", timelines.timelines.len(), timelines.iteration, error.is_some())
        }
        Effect::ShowIteration(timelines) => format!("iteration {}", timelines.iteration),
        Effect::AddTimeline(planner, _) => format!("add {}", planner.id()),
        Effect::ShowError(error) => error.title(),
    };
    effects.iter().map(describe).collect()
}

#[test]
fn an_outcome_is_shown_with_its_timelines_and_large_ones_follow() {
    let mut loader = TimelineLoader::default();
    let arrived = Event::OutcomeArrived { outcome: outcome(3), iteration: Some(1) };
    assert_eq!(described(&loader.handle(arrived)), ["fetch 1"]);
    let number = loader.number();
    let large = [Gpipe, PlannerKind::Interleaved];
    let shown = loader.respond(number, Event::Loaded(Ok(loaded(1, &large))));
    assert_eq!(described(&shown), ["outcome with 1 of 1, error: false", "fetch gpipe of abc 1"]);
    let added = loader.respond(number, Event::TimelineLoaded(Gpipe, Ok(timeline())));
    assert_eq!(described(&added), ["add gpipe", "fetch interleaved of abc 1"]);
    // A failure leaves the overview and does not stop the other timelines.
    let failed = loader.respond(number, Event::TimelineLoaded(PlannerKind::Interleaved, Err(RequestError::Offline)));
    assert_eq!(described(&failed), ["The server cannot be reached"]);
    assert!(loader.respond(number, Event::TimelineLoaded(Gpipe, Ok(timeline()))).is_empty());
}

#[test]
fn the_iteration_of_a_link_is_clamped() {
    let mut loader = TimelineLoader::default();
    for (iteration, expected) in [(None, "fetch 0"), (Some(99), "fetch 2")] {
        let arrived = Event::OutcomeArrived { outcome: outcome(3), iteration };
        assert_eq!(described(&loader.handle(arrived)), [expected]);
    }
    assert_eq!(clamped_iteration(&outcome(0), Some(4)), 0);
}

#[test]
fn an_outcome_without_timelines_is_shown_with_an_error() {
    let mut loader = TimelineLoader::default();
    loader.handle(Event::OutcomeArrived { outcome: outcome(3), iteration: Some(2) });
    let shown = loader.respond(loader.number(), Event::Loaded(Err(RequestError::Offline)));
    assert_eq!(described(&shown), ["outcome with 0 of 2, error: true"]);
}

#[test]
fn another_iteration_replaces_the_one_that_is_loading() {
    let mut loader = TimelineLoader::default();
    loader.handle(Event::IterationSelected { outcome: outcome(3), iteration: 1 });
    let old = loader.number();
    loader.handle(Event::IterationSelected { outcome: outcome(3), iteration: 2 });
    assert!(loader.respond(old, Event::Loaded(Ok(loaded(1, &[])))).is_empty());
    let shown = loader.respond(loader.number(), Event::Loaded(Ok(loaded(2, &[]))));
    assert_eq!(described(&shown), ["iteration 2"]);
}

#[test]
fn an_iteration_that_cannot_be_loaded_leaves_the_shown_one() {
    let mut loader = TimelineLoader::default();
    loader.handle(Event::IterationSelected { outcome: outcome(3), iteration: 1 });
    let effects = loader.respond(loader.number(), Event::Loaded(Err(RequestError::Offline)));
    assert_eq!(described(&effects), ["The server cannot be reached"]);
}

#[test]
fn a_new_outcome_is_shown_with_the_iteration_that_is_selected_while_it_loads() {
    let mut loader = TimelineLoader::default();
    loader.handle(Event::OutcomeArrived { outcome: outcome(3), iteration: None });
    let old = loader.number();
    let selected = loader.handle(Event::IterationSelected { outcome: outcome(9), iteration: 8 });
    assert_eq!(described(&selected), ["fetch 2"], "the new outcome has three iterations");
    assert!(loader.respond(old, Event::Loaded(Ok(loaded(0, &[])))).is_empty());
    let shown = loader.respond(loader.number(), Event::Loaded(Ok(loaded(2, &[]))));
    assert_eq!(described(&shown), ["outcome with 1 of 2, error: false"]);
}

#[test]
fn an_edit_abandons_all_loads() {
    let mut loader = TimelineLoader::default();
    loader.handle(Event::OutcomeArrived { outcome: outcome(1), iteration: None });
    let old = loader.number();
    loader.respond(old, Event::Loaded(Ok(loaded(0, &[Gpipe]))));
    assert!(loader.handle(Event::Abandoned).is_empty());
    assert!(loader.respond(old, Event::TimelineLoaded(Gpipe, Ok(timeline()))).is_empty());
    assert!(loader.respond(old, Event::Loaded(Ok(loaded(0, &[])))).is_empty());
}

#[test]
fn timelines_are_added_once_and_in_result_order() {
    let mut shown = loaded(0, &[Gpipe]);
    let first = timeline();
    shown.insert(Gpipe, Arc::clone(&first));
    shown.insert(Gpipe, timeline());
    let planners: Vec<PlannerKind> = shown.timelines.iter().map(|(planner, _)| *planner).collect();
    assert_eq!(planners, [Gpipe, OneFOneB]);
    assert!(Arc::ptr_eq(&shown.timeline(Gpipe).unwrap(), &first));
    assert_eq!(shown.extent_ns(), 40, "the overview is longer");
}

#[test]
fn missing_timelines_are_detected() {
    let content = loaded(0, &[Gpipe]);
    assert!(content.has_all([OneFOneB].into_iter()) && !content.has_all([OneFOneB, Gpipe].into_iter()));
    assert!(!DisplayedIteration::default().has_all([Gpipe].into_iter()));
    assert!(DisplayedIteration::default().has_all(std::iter::empty()), "no planner has a plan");
    assert!(content.is_same(&content.clone()) && !content.is_same(&loaded(0, &[])));
}
