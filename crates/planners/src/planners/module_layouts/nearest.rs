//! Peak memory for points that were rejected for memory.

use super::fill::{self, fill};
use super::space::{Point, anchor};
use crate::planners::breakdown::rank_memory;
use crate::planners::module_layouts::module_costs;
use crate::planners::replica;
use planscope_core::units::Bytes;
use planscope_core::workload::PackedBatch;
use planscope_cost::cost::Pricing;
use planscope_pipeline::simulate::{execute, peak_memory_over};
use planscope_plan::outcome::{RankMemory, RankNeed};
use planscope_plan::scenario::Scenario;

/// Maximum attempts to increase the memory limit until an order fits.
const MAX_RAISES: u32 = 12;

/// Memory requirement for a point on the sizing batch.
pub(crate) struct Need {
    /// Rank with the highest peak memory.
    pub rank: usize,
    /// Peak memory of that rank.
    pub bytes: Bytes,
    /// All ranks.
    pub ranks: Vec<RankNeed>,
}

/// Computes the memory requirement of a point for the first order that fits as the limit increases.
/// `None` if the point cannot run.
pub(crate) fn need(scenario: &Scenario, pricing: &Pricing<'_>, point: &Point, sizing: &PackedBatch) -> Option<Need> {
    let sequences = fill::microbatches(point, anchor(&scenario.model), sizing);
    let loads = replica::loads(scenario, sizing, &sequences);
    let partition = fill::partition(scenario, pricing, point, &loads).ok()?;
    let mut roomy = scenario.clone();
    for _ in 0..MAX_RAISES {
        let infeasibility = match fill(&roomy, pricing, (point, &partition), sizing) {
            Ok(filled) => {
                let layouts = (point.modules.as_slice(), &partition);
                let costs = module_costs::costs(scenario, pricing, layouts, sizing, &filled.plan).ok()?;
                let schedule = &filled.plan.schedule;
                let execution = execute(schedule, &costs).ok()?;
                let (rank, bytes) = peak_memory_over(schedule, &execution, &costs);
                let reserve_gib = scenario.training.memory_reserve_gib;
                let rank_need = |rank: usize| RankNeed {
                    rank: rank as u32,
                    layers: String::new(),
                    memory: RankMemory { reserve_gib, ..rank_memory(rank, schedule, &execution, &costs) },
                };
                return Some(Need { rank, bytes, ranks: (0..schedule.ranks()).map(rank_need).collect() });
            }
            Err(error) => error,
        };
        let (_, needed) = infeasibility.constraint.memory()?;
        let limit = roomy.memory_limit().gib();
        roomy.set_memory_limit(needed.gib().max(limit * 1.05));
    }
    None
}
