//! Search effort by schedule size.

use super::search::{Effort, SearchResult, TooLarge, search};
use crate::schedule::{Grouping, interleaved, one_f_one_b};
use crate::simulate::{StepEnd, execute, peak_memory};
use planscope_core::action::Schedule;
use planscope_core::random::Random;
use planscope_core::units::{Bytes, Nanos};
use planscope_cost::cost::PipelineCosts;

/// Maximum number of tried moves, beyond which results hardly improve.
const SWAPS: usize = 200;
/// Approximate number of schedules that the full portfolio simulates.
const PORTFOLIO: usize = 50;
/// Approximate limit on simulated actions. If the full portfolio exceeds it, the quick portfolio is
/// used.
const SIMULATED_ACTIONS: usize = 4_000_000;

/// Returns a fast schedule for a limit of `limit` bytes per rank, in nearly constant time. The
/// makespan never exceeds that of 1F1B (or the interleaved schedule), if this fits.
///
/// # Errors
/// See [`search`].
pub fn within_seconds(costs: &PipelineCosts, limit: Bytes) -> Result<Schedule, TooLarge> {
    let affordable = SIMULATED_ACTIONS / (2 * costs.flows.cells()).max(1);
    let mut random = Random::new(0, 0);
    if let Some(swaps) = affordable.checked_sub(PORTFOLIO) {
        let effort = Effort::Thorough { swaps: SWAPS.min(swaps) as u32 };
        return search(costs, limit, effort, Nanos::ZERO, &mut random).map(|result| result.schedule);
    }
    search(costs, limit, Effort::Quick, Nanos::ZERO, &mut random).map(|quick| no_longer_than_fixed(quick, costs, limit))
}

/// Returns the fixed order with data loader entry order if it is faster. The quick portfolio does
/// not contain it.
fn no_longer_than_fixed(result: SearchResult, costs: &PipelineCosts, limit: Bytes) -> Schedule {
    let (ranks, microbatches) = (costs.ranks(), costs.microbatches());
    let fixed = match costs.stages() / ranks {
        1 => one_f_one_b(ranks, microbatches),
        chunks => interleaved(ranks, chunks, microbatches, Grouping::Balanced),
    };
    let Ok(execution) = execute(&fixed, costs) else { return result.schedule };
    let end = StepEnd::from_executions(ranks, std::iter::once(&execution)).iteration_end(costs);
    let fits = || (0..ranks).all(|rank| peak_memory(rank, &fixed, &execution, costs) <= limit);
    if end < result.end && fits() { fixed } else { result.schedule }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planscope_core::units::Nanos;
    use planscope_cost::cost::UniformTimes;

    /// 120,000 actions: the full portfolio with 50 schedules would simulate six million.
    #[test]
    fn a_large_pipeline_is_not_behind_1f1b_either() {
        let unit = Nanos::new(10);
        let times = UniformTimes { forward: unit, input_grad: unit, weight_grad: unit, communication: Nanos::new(1) };
        let costs = PipelineCosts::uniform(6, 1, 10_000, times);
        let end = |schedule: &Schedule| execute(schedule, &costs).unwrap().makespan();
        let found = within_seconds(&costs, Bytes::new(6)).unwrap();
        assert!(end(&found) <= end(&one_f_one_b(6, 10_000)));
    }
}
