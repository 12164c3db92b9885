//! Engines for tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use planner::engine::PlanError;
use planner::outcome::{
    ENGINE, HistogramColumns, Outcome, PlanOutcome, PlannedTimeline, PlannerResult, Planning, Search, WorkloadSummary,
};
use planner::scenario::{PlannerKind, ValidScenario};
use planner::timeline::Timeline;
use server::jobs::Engine;

/// Returns an infeasible result with a timeline at once, and counts the calls.
pub fn instant(calls: &Arc<AtomicU32>) -> Engine {
    let calls = Arc::clone(calls);
    Arc::new(move |scenario, observer| {
        calls.fetch_add(1, Ordering::Relaxed);
        observer.started(PlannerKind::OneFOneB);
        observer.finished(PlannerKind::OneFOneB);
        Ok(infeasible_planning(scenario))
    })
}

/// Runs until the gate opens or the job is cancelled.
pub fn gated(gate: &Arc<AtomicBool>) -> Engine {
    let gate = Arc::clone(gate);
    Arc::new(move |scenario, observer| {
        observer.started(PlannerKind::OneFOneB);
        observer.progress(PlannerKind::OneFOneB, "searching layouts", 1, 2);
        while !gate.load(Ordering::Relaxed) {
            if observer.cancelled() {
                return Err(PlanError::Cancelled(planner::engine::Cancelled));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        observer.finished(PlannerKind::OneFOneB);
        Ok(infeasible_planning(scenario))
    })
}

/// Panics.
pub fn panicking() -> Engine {
    Arc::new(|_, _| panic!("a bug of the test's making"))
}

fn infeasible_planning(scenario: &ValidScenario) -> Planning {
    let sample_tokens =
        HistogramColumns { edges: vec![1.0, 2.0], counts: vec![1], mean: 1.0, median: 1.0, p99: 1.0, max: 1.0 };
    let result = PlannerResult {
        planner: PlannerKind::OneFOneB,
        title: PlannerKind::OneFOneB.title().to_owned(),
        answer: PlanOutcome::Infeasible { binding: "nothing fits".to_owned(), search: Search::default() },
    };
    Planning {
        outcome: Outcome {
            engine: ENGINE.to_owned(),
            scenario: scenario.id().to_string(),
            batches: Vec::new(),
            workload: WorkloadSummary {
                sample_tokens,
                sample_images: None,
                sample_audio_clips: None,
                sample_video_s: None,
                notes: Vec::new(),
            },
            results: vec![result],
        },
        timelines: vec![PlannedTimeline {
            planner: PlannerKind::OneFOneB,
            iteration: 0,
            timeline: Timeline { ranks: 1, lane_offsets: vec![0, 0, 0], ..Timeline::default() },
        }],
    }
}
