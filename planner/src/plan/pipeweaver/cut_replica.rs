//! One replica of one batch, cut by module and ready to be ordered: what studies of the ranking look at.

use super::partitioner;
use super::steps::{NOTHING_TO_DO, STREAM};
use super::swaps::swapped;
use crate::cost::load::Instances;
use crate::cost::{PipelineCosts, Pricing};
use crate::outcome::Layout;
use crate::plan::dynamic::deal;
use crate::plan::misfit::Misfit;
use crate::plan::replica::{self, groups};
use crate::plan::{Part, ReplicaPlan};
use crate::ranking::{Budget, Ranked, Starts};
use crate::scenario::Scenario;
use crate::schedule::Schedule;
use crate::schedule::dual_queue::{Interleaving, interleave};
use crate::units::Nanos;
use crate::workload::{MicrobatchContents, PackedBatch};

/// One replica of one batch, cut as the planner cuts it.
pub(crate) struct CutReplica {
    /// Most instances of a sub-microbatch of each module.
    pub sizes: Vec<u32>,
    /// Segments of each module.
    pub segments: Vec<u32>,
    /// Sub-microbatches.
    pub parts: Vec<Part>,
    /// Microbatches.
    pub microbatches: u32,
    /// Most instances of each module in one microbatch.
    pub most: Vec<u32>,
    /// The planner's own random stream for this replica.
    stream: u64,
    costs: PipelineCosts,
    groups: Vec<u32>,
}

impl CutReplica {
    /// Cuts one replica of batch number `index` under a layout that the planner chose.
    ///
    /// # Errors
    /// Why the layout cannot be, in words.
    pub(crate) fn of(
        scenario: &Scenario,
        pricing: &Pricing<'_>,
        layout: Layout,
        sizing: &PackedBatch,
        (index, batch, number): (u32, &PackedBatch, u32),
    ) -> Result<Self, String> {
        let found = partitioner::partition(
            scenario,
            pricing,
            (layout.tensor, layout.pipeline),
            &whole(layout, sizing).iter().map(|own| sizing.contents(own)).collect::<Vec<_>>(),
        )
        .map_err(|misfit| misfit.reason)?;
        let all = whole(layout, batch);
        let loads = replica::loads(scenario, batch, &all);
        let stages = layout.pipeline * layout.chunks;
        let dealt = deal(layout, &pricing.table(layout.tensor, &loads).microbatch_times(stages));
        let assigned = dealt.get(number as usize).filter(|assigned| !assigned.is_empty());
        let assigned = assigned.ok_or_else(|| Misfit::rule("a batch has fewer microbatches than replicas").reason)?;
        let microbatches: Vec<Vec<u32>> = assigned.iter().map(|&microbatch| all[microbatch].clone()).collect();
        let contents: Vec<MicrobatchContents> = microbatches.iter().map(|own| batch.contents(own)).collect();
        let packing = scenario.workload.packing;
        let parts = replica::parts(&scenario.model, packing, &contents, &found.sizes);
        if parts.is_empty() {
            return Err(NOTHING_TO_DO.to_owned());
        }
        let count = |module| contents.iter().map(|own| Instances::of(own, module, packing).count()).max().unwrap_or(0);
        let most = scenario.model.modules.iter().map(count).collect();
        let schedule = Schedule { stages: 0, microbatches: 0, orders: Vec::new() };
        let plan = ReplicaPlan { microbatches, parts, groups: Vec::new(), strategy: None, schedule, mixes: Vec::new() };
        let costs = replica::costs(scenario, pricing, (&found.partition, layout), number as usize, batch, &plan);
        Ok(Self {
            sizes: found.sizes,
            segments: found.segments,
            microbatches: plan.microbatches.len() as u32,
            most,
            stream: STREAM + u64::from(index) * u64::from(layout.data) + u64::from(number),
            costs,
            groups: groups(&plan.parts),
            parts: plan.parts,
        })
    }

    /// Ready to be ordered within the memory that the scenario leaves.
    ///
    /// # Errors
    /// Names the rank and the microbatch that do not fit even alone.
    pub(crate) fn interleaving(&self, scenario: &Scenario) -> Result<Interleaving<'_>, String> {
        Interleaving::new(&self.costs, &self.groups, scenario.memory_limit()).map_err(|too_large| too_large.to_string())
    }

    /// What the planner's own search of this replica would have, with that many rollouts.
    pub(crate) const fn budget(&self, scenario: &Scenario, rollouts: u32) -> Budget {
        Budget { starts: Starts::of(rollouts), rollouts, seed: scenario.seed, stream: self.stream }
    }

    /// End of the best ranking after the swaps that the planner tries with that many rollouts.
    pub(crate) fn swapped_end(
        scenario: &Scenario,
        interleaving: &Interleaving<'_>,
        found: &Ranked,
        rollouts: u32,
    ) -> Nanos {
        let schedule = interleave(interleaving, &found.priorities).schedule;
        let swapped = swapped(&schedule, interleaving.costs(), scenario.memory_limit(), rollouts);
        swapped.map_or(found.end, |swapped| swapped.end)
    }

    /// Efficiency of a module at some sizes of its sub-microbatches, relative to its best; `None` where no
    /// microbatch of the sizing batch asks anything of it.
    pub(crate) fn relative_efficiency(
        scenario: &Scenario,
        pricing: &Pricing<'_>,
        layout: Layout,
        sizing: &PackedBatch,
        (module, sizes): (usize, &[u32]),
    ) -> Option<Vec<f64>> {
        let contents: Vec<MicrobatchContents> = whole(layout, sizing).iter().map(|own| sizing.contents(own)).collect();
        partitioner::relative_efficiency(scenario, pricing, layout.tensor, module, (&contents, sizes))
    }
}

/// The sequences of a batch in microbatches of one size, in data-loader order.
fn whole(layout: Layout, batch: &PackedBatch) -> Vec<Vec<u32>> {
    let all: Vec<u32> = (0..batch.sequences.len() as u32).collect();
    all.chunks(layout.microbatch.max(1) as usize).map(<[u32]>::to_vec).collect()
}
