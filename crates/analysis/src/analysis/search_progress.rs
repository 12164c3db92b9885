//! Ranking search progress: lowest known end by rollout (PipeWeaver Fig. 12).

use serde::{Deserialize, Serialize};

use super::{AnalysisError, Batches, Effort, Subject, Turn};
use planscope_cost::cost::Pricing;
use planscope_plan::scenario::{PlannerKind, ValidScenario};
use planscope_planners::planners::CutReplica;
use planscope_planners::planners::pipeweaver::ranking;
use planscope_planners::planners::pipeweaver::ranking::{Ending, Goal, Step, Strategy};

/// Limit on steps per strategy.
const MAX_STEPS: usize = 500;

/// Compares three searches over the same rankings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SearchProgress {
    /// Studied planner.
    pub planner: PlannerKind,
    /// Global batch, from 0.
    pub iteration: u32,
    /// Data-parallel replica, from 0.
    pub replica: u32,
    /// Microbatches in the replica.
    pub microbatches: u32,
    /// Sub-microbatches in the replica.
    pub parts: u32,
    /// Ranked groups, one per microbatch and module.
    pub groups: u32,
    /// Rollout limit per search, in addition to the start orders.
    pub rollouts: u32,
    /// Lower bound for all orders, in s.
    pub lower_bound_s: f64,
    /// The searches.
    pub strategies: Vec<StrategyProgress>,
    /// End after critical-path swaps on the Monte-Carlo tree search result, in s, as in the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swapped_s: Option<f64>,
    /// True if the time limit was reached before the rollout limit.
    pub is_cut: bool,
}

/// Progress of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StrategyProgress {
    /// Search strategy.
    pub strategy: ExploredBy,
    /// Interleaved rankings, including start orders.
    pub rollouts: u32,
    /// Search duration in seconds.
    pub seconds: f64,
    /// Lowest end in s.
    pub best_s: f64,
    /// End condition.
    pub ended: EndedBy,
    /// Steps at which the lowest end improved, plus start orders and the last step.
    pub steps: ProgressColumns,
}

/// Improvements in a search as equal-length columns of at most 500 entries.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProgressColumns {
    /// Interleaved rankings so far.
    pub rollouts: Vec<u32>,
    /// Seconds since the search start.
    pub seconds: Vec<f64>,
    /// Lowest known end in s.
    pub best_s: Vec<f64>,
}

/// Search strategies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ExploredBy {
    /// Monte-Carlo tree search.
    Mcts,
    /// Depth-first search in lexicographic order.
    Dfs,
    /// Random search.
    Random,
}

/// End conditions for a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// The lower bound was reached.
    Optimal,
    /// The lowest end is within 0.1 % of the lower bound.
    NearBound,
    /// All rankings were tried.
    Exhausted,
    /// The rollout limit was reached.
    Rollouts,
    /// The time limit was reached.
    Time,
}

impl ExploredBy {
    /// Display name.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Mcts => "Monte-Carlo tree search",
            Self::Dfs => "Depth first",
            Self::Random => "Random",
        }
    }
}

impl From<Strategy> for ExploredBy {
    fn from(strategy: Strategy) -> Self {
        match strategy {
            Strategy::MonteCarlo => Self::Mcts,
            Strategy::DepthFirst => Self::Dfs,
            Strategy::Random => Self::Random,
        }
    }
}

impl From<Ending> for EndedBy {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Optimal => Self::Optimal,
            Ending::NearBound => Self::NearBound,
            Ending::Exhausted => Self::Exhausted,
            Ending::Rollouts => Self::Rollouts,
            Ending::Time => Self::Time,
        }
    }
}

/// Runs all search strategies on a replica's ranking, sequentially and with equal rollouts.
///
/// # Errors
/// The scenario lacks the batch or replica, or the layout does not belong to its plans.
pub fn search_progress(
    valid: &ValidScenario,
    subject: Subject,
    effort: &Effort<'_>,
) -> Result<SearchProgress, AnalysisError> {
    let scenario = valid.scenario();
    let pricing = Pricing::new(&scenario.model, &scenario.cluster, &scenario.training);
    let cut = Batches::new(valid, subject)?.cut(scenario, &pricing, subject)?;
    let interleaving = cut.interleaving(scenario).map_err(AnalysisError::Layout)?;
    let budget = cut.budget(scenario, effort.rollouts);
    let mut progress = SearchProgress {
        planner: subject.planner,
        iteration: subject.iteration,
        replica: subject.replica,
        microbatches: cut.microbatches,
        parts: cut.parts.len() as u32,
        groups: interleaving.groups() as u32,
        rollouts: effort.rollouts,
        lower_bound_s: 0.0,
        strategies: Vec::with_capacity(Strategy::ALL.len()),
        swapped_s: None,
        is_cut: false,
    };
    for (index, strategy) in Strategy::ALL.into_iter().enumerate() {
        let turn = Turn::next(effort, Strategy::ALL.len() - index);
        let found = ranking::search(&interleaving, strategy, Goal::Fastest, budget, effort.workers, &turn);
        progress.lower_bound_s = found.lower_bound.secs();
        progress.is_cut |= found.ending == Ending::Time;
        if strategy == Strategy::MonteCarlo {
            progress.swapped_s =
                Some(CutReplica::swapped_end(scenario, &interleaving, &found, scenario.search.rollouts).secs());
        }
        progress.strategies.push(StrategyProgress {
            strategy: strategy.into(),
            rollouts: found.rollouts,
            seconds: found.progress.last().map_or(0.0, |step| step.seconds),
            best_s: found.end.secs(),
            ended: found.ending.into(),
            steps: columns(&found.progress),
        });
    }
    Ok(progress)
}

/// Thins the steps to at most [`MAX_STEPS`], evenly spaced, including both ends.
fn columns(steps: &[Step]) -> ProgressColumns {
    let count = steps.len().min(MAX_STEPS);
    let mut columns = ProgressColumns::default();
    for index in 0..count {
        let step = steps[if count > 1 { index * (steps.len() - 1) / (count - 1) } else { 0 }];
        columns.rollouts.push(step.rollouts);
        columns.seconds.push(step.seconds);
        columns.best_s.push(step.end.secs());
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use planscope_core::units::Nanos;

    #[test]
    fn long_searches_keep_their_first_and_last_step() {
        let step = |number: u32| Step { rollouts: number, seconds: 0.0, end: Nanos::new(u64::from(5000 - number)) };
        for steps in [1_u32, 2, 500, 501, 4000] {
            let thinned = columns(&(0..steps).map(step).collect::<Vec<_>>());
            assert_eq!(thinned.rollouts.len(), (steps as usize).min(MAX_STEPS));
            assert_eq!((thinned.rollouts[0], *thinned.rollouts.last().unwrap()), (0, steps - 1));
            assert!(thinned.rollouts.is_sorted_by(|a, b| a < b));
        }
        assert_eq!(columns(&[]), ProgressColumns::default());
    }
}
