//! How the best known iteration falls while the ranking is searched (figure 12 of the paper).

use serde::{Deserialize, Serialize};

use super::{Batches, Effort, NoStudy, Subject, Turn};
use crate::cost::Pricing;
use crate::plan::CutReplica;
use crate::ranking::{self, Ending, Goal, Step, Strategy};
use crate::scenario::{PlannerKind, ValidScenario};

/// Most steps of one strategy.
const MOST_STEPS: usize = 500;

/// Three searches of the same rankings, side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SearchProgress {
    /// The planner whose plan is studied.
    pub planner: PlannerKind,
    /// The batch.
    pub iteration: u32,
    /// The data-parallel replica.
    pub replica: u32,
    /// Microbatches of the replica.
    pub microbatches: u32,
    /// Parts that they are cut into.
    pub parts: u32,
    /// Groups that are ranked: one for every microbatch and module.
    pub groups: u32,
    /// Rankings that each search may interleave, beside the starting orders.
    pub rollouts: u32,
    /// No order of these parts ends earlier.
    pub lower_bound_s: f64,
    /// The searches.
    pub strategies: Vec<StrategyProgress>,
    /// What swaps on its critical path make of the best order of the Monte-Carlo tree search, as in the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swapped_s: Option<f64>,
    /// Whether the time was up before the rollouts were.
    pub is_cut: bool,
}

/// One search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StrategyProgress {
    /// How the rankings were explored.
    pub strategy: ExploredBy,
    /// Rankings that were interleaved, starting orders included.
    pub rollouts: u32,
    /// How long it took.
    pub seconds: f64,
    /// The best end.
    pub best_s: f64,
    /// Why it ended.
    pub ended: EndedBy,
    /// How the best end fell: the starting orders, every improvement, and where the search ended.
    pub steps: ProgressColumns,
}

/// Improvements of one search, in columns of equal length, at most 500.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProgressColumns {
    /// Rankings interleaved by then.
    pub rollouts: Vec<u32>,
    /// Seconds since the search began.
    pub seconds: Vec<f64>,
    /// The best end known from then on.
    pub best_s: Vec<f64>,
}

/// How rankings were explored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ExploredBy {
    /// Monte-Carlo tree search.
    Mcts,
    /// In lexicographic order, depth first.
    Dfs,
    /// At random.
    Random,
}

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// The lower bound is reached.
    Optimal,
    /// The best end is within one per mille of the bound.
    NearBound,
    /// Every ranking has been seen.
    Exhausted,
    /// The rollouts are used up.
    Rollouts,
    /// The time is up.
    Time,
}

impl ExploredBy {
    /// In words.
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

/// Searches the ranking of one replica by all strategies, one after the other, each with the same rollouts.
///
/// # Errors
/// Where the scenario has no such batch or replica, or the layout is none of its plans.
pub fn search_progress(
    valid: &ValidScenario,
    subject: Subject,
    effort: &Effort<'_>,
) -> Result<SearchProgress, NoStudy> {
    let scenario = valid.scenario();
    let pricing = Pricing::new(&scenario.model, &scenario.cluster, &scenario.training);
    let cut = Batches::of(valid, subject)?.cut(scenario, &pricing, subject)?;
    let interleaving = cut.interleaving(scenario).map_err(NoStudy::Layout)?;
    let budget = cut.budget(scenario, effort.rollouts);
    let mut study = SearchProgress {
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
    for (place, strategy) in Strategy::ALL.into_iter().enumerate() {
        let turn = Turn::next(effort, Strategy::ALL.len() - place);
        let found = ranking::search(&interleaving, strategy, Goal::Fastest, budget, effort.workers, &turn);
        study.lower_bound_s = found.lower_bound.secs();
        study.is_cut |= found.ending == Ending::Time;
        if strategy == Strategy::MonteCarlo {
            study.swapped_s =
                Some(CutReplica::swapped_end(scenario, &interleaving, &found, scenario.search.rollouts).secs());
        }
        study.strategies.push(StrategyProgress {
            strategy: strategy.into(),
            rollouts: found.rollouts,
            seconds: found.progress.last().map_or(0.0, |step| step.seconds),
            best_s: found.end.secs(),
            ended: found.ending.into(),
            steps: columns(&found.progress),
        });
    }
    Ok(study)
}

/// At most [`MOST_STEPS`] steps: the first and the last, and evenly many between.
fn columns(steps: &[Step]) -> ProgressColumns {
    let kept = steps.len().min(MOST_STEPS);
    let mut columns = ProgressColumns::default();
    for place in 0..kept {
        let step = steps[if kept > 1 { place * (steps.len() - 1) / (kept - 1) } else { 0 }];
        columns.rollouts.push(step.rollouts);
        columns.seconds.push(step.seconds);
        columns.best_s.push(step.end.secs());
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Nanos;

    #[test]
    fn long_searches_keep_their_first_and_last_step() {
        let step = |number: u32| Step { rollouts: number, seconds: 0.0, end: Nanos::new(u64::from(5000 - number)) };
        for steps in [1_u32, 2, 500, 501, 4000] {
            let kept = columns(&(0..steps).map(step).collect::<Vec<_>>());
            assert_eq!(kept.rollouts.len(), (steps as usize).min(MOST_STEPS));
            assert_eq!((kept.rollouts[0], *kept.rollouts.last().unwrap()), (0, steps - 1));
            assert!(kept.rollouts.is_sorted_by(|a, b| a < b));
        }
        assert_eq!(columns(&[]), ProgressColumns::default());
    }
}
