//! A replica of a batch, split into sub-microbatches, for ranking studies.

use super::partitioner;
use super::partitioner::SizeRule;
use super::steps::{NOTHING_TO_DO, STREAM};
use super::swaps::swapped;
use crate::planners::dynamic::deal;
use crate::planners::infeasible::Infeasibility;
use crate::planners::pipeweaver::ranking::{Budget, Ranked, Starts};
use crate::planners::replica;
use crate::planners::replica::groups;
use planscope_core::action::Schedule;
use planscope_core::units::Nanos;
use planscope_core::workload::{MicrobatchContents, PackedBatch};
use planscope_cost::cost::load::Instances;
use planscope_cost::cost::{PipelineCosts, Pricing};
use planscope_pipeline::schedule::dual_queue::{Interleaving, interleave};
use planscope_plan::outcome::Layout;
use planscope_plan::plan::{Part, ReplicaKind, ReplicaPlan};
use planscope_plan::scenario::Scenario;

/// A replica of a batch, split as the planner does.
pub struct CutReplica {
    /// Maximum instances per sub-microbatch, by module.
    pub sizes: Vec<u32>,
    /// Segments per module.
    pub segments: Vec<u32>,
    /// Sub-microbatches.
    pub parts: Vec<Part>,
    /// Number of microbatches.
    pub microbatches: u32,
    /// Maximum instances per microbatch, by module.
    pub max_instances: Vec<u32>,
    /// Random stream that the planner uses for this replica.
    stream: u64,
    costs: PipelineCosts,
    groups: Vec<u32>,
}

impl CutReplica {
    /// Splits a replica of batch `index` under a layout from the planner.
    ///
    /// # Errors
    /// Describes the infeasible layout.
    pub fn new(
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
            &undivided_microbatches(layout, sizing)
                .iter()
                .map(|sequences| sizing.contents(sequences))
                .collect::<Vec<_>>(),
            SizeRule::PUBLISHED,
        )
        .map_err(|infeasibility| infeasibility.reason)?;
        let all = undivided_microbatches(layout, batch);
        let loads = replica::loads(scenario, batch, &all);
        let stages = layout.pipeline * layout.chunks;
        let dealt = deal(layout, &pricing.table(layout.tensor, &loads).microbatch_times(stages));
        let assigned = dealt.get(number as usize).filter(|assigned| !assigned.is_empty());
        let assigned =
            assigned.ok_or_else(|| Infeasibility::rule("a batch has fewer microbatches than replicas").reason)?;
        let microbatches: Vec<Vec<u32>> = assigned.iter().map(|&microbatch| all[microbatch].clone()).collect();
        let contents: Vec<MicrobatchContents> =
            microbatches.iter().map(|sequences| batch.contents(sequences)).collect();
        let packing = scenario.workload.packing;
        let parts = replica::parts(&scenario.model, packing, &contents, &found.sizes);
        if parts.is_empty() {
            return Err(NOTHING_TO_DO.to_owned());
        }
        let count =
            |module| contents.iter().map(|content| Instances::new(content, module, packing).count()).max().unwrap_or(0);
        let max_instances = scenario.model.modules.iter().map(count).collect();
        let schedule = Schedule { stages: 0, microbatches: 0, orders: Vec::new() };
        let plan = ReplicaPlan::new(microbatches, ReplicaKind::Parts(parts), schedule);
        let costs = replica::costs(scenario, pricing, (&found.partition, layout), number as usize, batch, &plan);
        Ok(Self {
            sizes: found.sizes,
            segments: found.segments,
            microbatches: plan.microbatches.len() as u32,
            max_instances,
            stream: STREAM + u64::from(index) * u64::from(layout.data) + u64::from(number),
            costs,
            groups: groups(plan.parts()),
            parts: plan.parts().to_vec(),
        })
    }

    /// Returns the interleaving problem under the scenario's memory limit.
    ///
    /// # Errors
    /// Names the rank and the microbatch that exceed the limit individually.
    pub fn interleaving(&self, scenario: &Scenario) -> Result<Interleaving<'_>, String> {
        Interleaving::new(&self.costs, &self.groups, scenario.memory_limit()).map_err(|too_large| too_large.to_string())
    }

    /// Returns the planner's search budget for this replica and `rollouts`.
    pub const fn budget(&self, scenario: &Scenario, rollouts: u32) -> Budget {
        Budget { starts: Starts::from_rollouts(rollouts), rollouts, seed: scenario.seed, stream: self.stream }
    }

    /// End of the fastest ranking after the planner's swaps for `rollouts`.
    pub fn swapped_end(scenario: &Scenario, interleaving: &Interleaving<'_>, found: &Ranked, rollouts: u32) -> Nanos {
        let schedule = interleave(interleaving, &found.priorities).schedule;
        let swapped = swapped(&schedule, interleaving.costs(), scenario.memory_limit(), rollouts);
        swapped.map_or(found.end, |swapped| swapped.end)
    }

    /// Returns a module's efficiency at the given sub-microbatch sizes, relative to the highest.
    /// `None` if no microbatch in the sizing batch uses the module.
    pub fn relative_efficiency(
        scenario: &Scenario,
        pricing: &Pricing<'_>,
        layout: Layout,
        sizing: &PackedBatch,
        (module, sizes): (usize, &[u32]),
    ) -> Option<Vec<f64>> {
        let contents: Vec<MicrobatchContents> =
            undivided_microbatches(layout, sizing).iter().map(|sequences| sizing.contents(sequences)).collect();
        partitioner::relative_efficiency(scenario, pricing, layout.tensor, module, (&contents, sizes))
    }
}

/// Splits a batch into microbatches of equal sequence count, in data-loader order.
fn undivided_microbatches(layout: Layout, batch: &PackedBatch) -> Vec<Vec<u32>> {
    let all: Vec<u32> = (0..batch.sequences.len() as u32).collect();
    all.chunks(layout.microbatch.max(1) as usize).map(<[u32]>::to_vec).collect()
}
