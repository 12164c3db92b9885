//! Studies of plans, and curves to store with a figure.

use std::time::Instant;

use api::papers::{PaperChart, PaperCurve};
use planner::analysis::search_progress::ExploredBy;
use planner::analysis::{
    Effort, SearchProgress, SlowShapes, SubMicrobatches, Subject, correction, search_progress, sub_microbatches,
};
use planner::host::{Cancellation, SequentialWorkers};
use planner::outcome::Outcome;
use planner::planners::dflop::CorrectionSettings;
use planner::scenario::ValidScenario;
use serde::Deserialize;

use super::four_digits;
use super::plans::{Plans, Unavailable};

/// Search strategy other than tree search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Explored {
    /// Depth-first search.
    Dfs,
    /// Random search.
    Random,
}

/// Computed curves.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case", deny_unknown_fields)]
pub enum Chart {
    /// Iteration times by planner.
    Iterations {
        /// Scenario name.
        scenario: String,
    },
    /// Fastest order, slowest order by sub-microbatch size.
    Sizes {
        /// Scenario name.
        scenario: String,
        /// Rollouts per search.
        rollouts: u32,
    },
    /// Minimum makespan by rollout number.
    Search {
        /// Scenario name.
        scenario: String,
        /// Rollouts per search.
        rollouts: u32,
    },
}

impl Chart {
    /// Computes the curves. Returns a message if a study does not apply.
    pub(super) fn draw(&self, plans: &mut Plans<'_>) -> Result<PaperChart, Unavailable> {
        match self {
            Self::Iterations { scenario } => {
                let outcome = &plans.scenario(scenario)?.outcome;
                let curves = outcome.results.iter().filter_map(|result| {
                    let planner::outcome::PlanOutcome::Planned(planned) = &result.answer else { return None };
                    let y: Vec<f64> = planned.iterations.iter().map(|entry| four_digits(entry.iteration_s)).collect();
                    let x = (1..=y.len()).map(|iteration| iteration as f64).collect();
                    Some(PaperCurve { label: result.planner.short_title().to_owned(), x, y })
                });
                let (x, y) = ("iteration".to_owned(), "iteration time, s".to_owned());
                Ok(PaperChart { x, y, curves: curves.collect() })
            }
            Self::Sizes { scenario, rollouts } => Ok(sizes_chart(plans.scenario(scenario)?.sizes(*rollouts)?)),
            Self::Search { scenario, rollouts } => Ok(search_chart(plans.scenario(scenario)?.search(*rollouts)?)),
        }
    }
}

fn sizes_chart(analysis: &SubMicrobatches) -> PaperChart {
    let with = || analysis.points.iter().filter_map(|point| Some((f64::from(point.size), point.ends?)));
    let curve = |label: &str, metric: fn(&planner::analysis::sub_microbatches::SizeEnds) -> f64| PaperCurve {
        label: label.to_owned(),
        x: with().map(|(size, _)| size).collect(),
        y: with().map(|(_, ends)| four_digits(metric(&ends))).collect(),
    };
    PaperChart {
        x: "images of a sub-microbatch".to_owned(),
        y: "iteration time, s".to_owned(),
        curves: vec![curve("fastest order", |ends| ends.best_s), curve("slowest order", |ends| ends.worst_s)],
    }
}

fn search_chart(analysis: &SearchProgress) -> PaperChart {
    let curve = |strategy: &planner::analysis::search_progress::StrategyProgress| PaperCurve {
        label: strategy.strategy.title().to_owned(),
        x: strategy.steps.rollouts.iter().map(|&rollouts| f64::from(rollouts)).collect(),
        y: strategy.steps.best_s.iter().copied().map(four_digits).collect(),
    };
    PaperChart {
        x: "orders tried".to_owned(),
        y: "best end, s".to_owned(),
        curves: analysis.strategies.iter().map(curve).collect(),
    }
}

/// Runs the ranking searches for the first batch on a single thread.
pub(super) fn search(valid: &ValidScenario, outcome: &Outcome, rollouts: u32) -> Result<SearchProgress, String> {
    let clock = Clock(Instant::now());
    let effort = Effort { rollouts, seconds: f64::INFINITY, workers: &SequentialWorkers, cancellation: &clock };
    let subject = Subject::from_outcome(outcome, 0).map_err(|none| none.to_string())?;
    search_progress(valid, subject, &effort).map_err(|none| none.to_string())
}

/// Runs the sub-microbatch size study for the first batch on a single thread.
pub(super) fn sizes(valid: &ValidScenario, outcome: &Outcome, rollouts: u32) -> Result<SubMicrobatches, String> {
    let clock = Clock(Instant::now());
    let effort = Effort { rollouts, seconds: f64::INFINITY, workers: &SequentialWorkers, cancellation: &clock };
    let subject = Subject::from_outcome(outcome, 0).map_err(|none| none.to_string())?;
    sub_microbatches(valid, subject, &effort).map_err(|none| none.to_string())
}

/// Returns the net speed-up of the adaptive correction in the second half of a run, in percent.
pub(super) fn corrected(
    valid: &ValidScenario,
    outcome: &Outcome,
    iterations: u32,
    rate: f64,
    magnitude: f64,
) -> Result<f64, String> {
    let slow = SlowShapes { iterations, rate, magnitude, settings: CorrectionSettings::default() };
    let run = correction(valid, outcome, slow, &[], &Clock(Instant::now())).map_err(|none| none.to_string())?;
    Ok(100.0 * run.settled)
}

/// Returns the tree search time in seconds until the makespan is within `per_cent` of the minimum
/// makespan of all searches.
pub(super) fn time_within(analysis: &SearchProgress, per_cent: f64) -> Result<f64, String> {
    let best = analysis.strategies.iter().map(|entry| entry.best_s).fold(f64::INFINITY, f64::min);
    let tree = strategy(analysis, ExploredBy::Mcts)?;
    let reached = tree.steps.best_s.iter().position(|&end| end <= best * (1.0 + per_cent / 100.0));
    let reached = reached.ok_or_else(|| format!("the tree search does not come within {per_cent} %"))?;
    Ok(tree.steps.seconds[reached])
}

/// Returns the makespan increase of another search relative to the tree search, in percent.
pub(super) fn behind(analysis: &SearchProgress, explored: Explored) -> Result<f64, String> {
    let explored = match explored {
        Explored::Dfs => ExploredBy::Dfs,
        Explored::Random => ExploredBy::Random,
    };
    let (other, tree) = (strategy(analysis, explored)?, strategy(analysis, ExploredBy::Mcts)?);
    Ok(100.0 * (other.best_s / tree.best_s - 1.0))
}

fn strategy(
    analysis: &SearchProgress,
    explored: ExploredBy,
) -> Result<&planner::analysis::search_progress::StrategyProgress, String> {
    analysis
        .strategies
        .iter()
        .find(|entry| entry.strategy == explored)
        .ok_or_else(|| format!("no search: {}", explored.title()))
}

/// System clock.
struct Clock(Instant);

impl Cancellation for Clock {
    fn is_over(&self) -> bool {
        false
    }

    fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}
