//! Ranking search progress: lowest known end by rollout (PipeWeaver Fig. 12).

pub use planscope_analysis::analysis::search_progress::*;

use super::{AnalysisError, Batches, Effort, Subject, Turn};
use planscope_cost::cost::Pricing;
use planscope_plan::scenario::ValidScenario;
use planscope_planners::planners::CutReplica;
use planscope_planners::planners::pipeweaver::ranking;
use planscope_planners::planners::pipeweaver::ranking::{Ending, Goal, Step, Strategy};

/// Limit on steps per strategy.
const MAX_STEPS: usize = 500;

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
            strategy: explored_by(strategy),
            rollouts: found.rollouts,
            seconds: found.progress.last().map_or(0.0, |step| step.seconds),
            best_s: found.end.secs(),
            ended: ended_by(found.ending),
            steps: columns(&found.progress),
        });
    }
    Ok(progress)
}

const fn explored_by(strategy: Strategy) -> ExploredBy {
    match strategy {
        Strategy::MonteCarlo => ExploredBy::Mcts,
        Strategy::DepthFirst => ExploredBy::Dfs,
        Strategy::Random => ExploredBy::Random,
    }
}

const fn ended_by(ending: Ending) -> EndedBy {
    match ending {
        Ending::Optimal => EndedBy::Optimal,
        Ending::NearBound => EndedBy::NearBound,
        Ending::Exhausted => EndedBy::Exhausted,
        Ending::Rollouts => EndedBy::Rollouts,
        Ending::Time => EndedBy::Time,
    }
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
