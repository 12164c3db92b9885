//! Full memory needs of points that memory rejected.

use super::fill::{self, fill};
use super::space::{Point, anchor};
use crate::cost::Pricing;
use crate::outcome::{RankMemory, RankNeed};
use crate::plan::breakdown::rank_memory;
use crate::plan::{modules, replica};
use crate::scenario::Scenario;
use crate::simulate::{execute, peak_memory_over};
use crate::units::Bytes;
use crate::workload::PackedBatch;

/// Times that the memory is raised until an order fits.
const MOST_RAISES: u32 = 12;

/// What a point needs on the sizing batch.
pub(super) struct Need {
    /// Rank that needs most.
    pub rank: usize,
    /// Memory of that rank.
    pub bytes: Bytes,
    /// Every rank.
    pub ranks: Vec<RankNeed>,
}

/// The need of a point under the first of its orders that fits when memory grows; `None` where it does not run at all.
pub(super) fn need(scenario: &Scenario, pricing: &Pricing<'_>, point: &Point, sizing: &PackedBatch) -> Option<Need> {
    let sequences = fill::microbatches(point, anchor(&scenario.model), sizing);
    let loads = replica::loads(scenario, sizing, &sequences);
    let partition = fill::partition(scenario, pricing, point, &loads).ok()?;
    let mut roomy = scenario.clone();
    for _ in 0..MOST_RAISES {
        let misfit = match fill(&roomy, pricing, (point, &partition), sizing) {
            Ok(filled) => {
                let layouts = (point.modules.as_slice(), &partition);
                let costs = modules::costs(scenario, pricing, layouts, sizing, &filled.plan).ok()?;
                let schedule = &filled.plan.schedule;
                let execution = execute(schedule, &costs).ok()?;
                let (rank, bytes) = peak_memory_over(schedule, &execution, &costs);
                let reserve_gib = scenario.training.memory_reserve_gib;
                let of = |rank: usize| RankNeed {
                    rank: rank as u32,
                    layers: String::new(),
                    memory: RankMemory { reserve_gib, ..rank_memory(rank, schedule, &execution, &costs) },
                };
                return Some(Need { rank, bytes, ranks: (0..schedule.ranks()).map(of).collect() });
            }
            Err(misfit) => misfit,
        };
        let (_, needed) = misfit.hurdle.memory()?;
        let limit = roomy.memory_limit().gib();
        roomy.cluster.device.memory_gib += needed.gib().max(limit * 1.05) - limit;
    }
    None
}
