//! Static planners: one layout for the whole run, microbatches in data-loader order (Megatron-LM).

use super::misfit::Misfit;
use super::sizing::{Filling, LayoutSearch, Sized};
use super::{IterationPlan, NoPlan, Plan, ReplicaPlan};
use crate::cost::{LayerTable, MicrobatchLoad, PipelineCosts, Pricing};
use crate::observer::{Cancelled, Observer};
use crate::outcome::{Layout, SolverStatus};
use crate::scenario::{PlannerKind, Scenario};
use crate::schedule::{Grouping, Schedule, gpipe, interleaved, one_f_one_b};
use crate::units::Bytes;
use crate::workload::PackedBatch;

/// A fixed schedule over microbatches dealt in turn.
pub(super) struct Fixed {
    pub kind: PlannerKind,
}

impl Fixed {
    fn orders(&self, layout: Layout, microbatches: usize) -> Schedule {
        let ranks = layout.pipeline as usize;
        match self.kind {
            PlannerKind::Gpipe => gpipe(ranks, microbatches),
            PlannerKind::Interleaved => {
                let grouping = layout.group.map_or(Grouping::Balanced, |group| Grouping::Fixed(group as usize));
                interleaved(ranks, layout.chunks as usize, microbatches, grouping)
            }
            PlannerKind::OneFOneB | PlannerKind::WaitFreeCyclic => one_f_one_b(ranks, microbatches),
        }
    }
}

impl Filling for Fixed {
    /// Microbatch `i` goes to replica `i mod DP`, as the sampler of Megatron-LM deals them.
    fn assign(&self, layout: Layout, loads: &[MicrobatchLoad], _: &LayerTable<'_>) -> Vec<Vec<usize>> {
        let data = layout.data as usize;
        (0..data).map(|replica| (replica..loads.len()).step_by(data).collect()).collect()
    }

    fn schedule(&self, layout: Layout, costs: &PipelineCosts, _: Bytes) -> Result<Schedule, (usize, Bytes)> {
        Ok(self.orders(layout, costs.microbatches))
    }

    fn sequence_order(&self, batch: &PackedBatch) -> Vec<usize> {
        (0..batch.sequences.len()).collect()
    }
}

/// Chooses the best layout on the sizing batch; [`super::judge`] then holds it against every batch of the run, and a
/// layout that runs out of memory there gives way to the next best.
pub(crate) fn plan(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    kind: PlannerKind,
    sizing: &PackedBatch,
    batches: &[PackedBatch],
    observer: &mut dyn Observer,
) -> Result<Result<Plan, NoPlan>, Cancelled> {
    let filling = Fixed { kind };
    let mut search = LayoutSearch::run(scenario, pricing, kind, &filling, sizing, observer)?;
    loop {
        let Some(sized) = search.winner() else { return Ok(Err(search.no_plan())) };
        let plan = fill(scenario, kind, &filling, &sized, batches);
        match plan.and_then(|plan| super::judge::fits(scenario, pricing, &plan, batches).map(|()| plan)) {
            Ok(plan) => {
                let decisions = decisions(&sized, &plan, sizing, search.failed_later());
                return Ok(Ok(Plan { search: search.report(), decisions, ..plan }));
            }
            Err(misfit) => search.reject_winner(&misfit, observer)?,
        }
    }
}

fn fill(
    scenario: &Scenario,
    kind: PlannerKind,
    filling: &Fixed,
    sized: &Sized,
    batches: &[PackedBatch],
) -> Result<Plan, Misfit> {
    let layout = sized.layout;
    let mut iterations = Vec::with_capacity(batches.len());
    for batch in batches {
        let all: Vec<u32> = (0..batch.sequences.len() as u32).collect();
        let microbatches: Vec<Vec<u32>> = all.chunks(layout.microbatch as usize).map(<[u32]>::to_vec).collect();
        let data = layout.data as usize;
        let mut replicas = Vec::with_capacity(data);
        for replica in 0..data {
            let own: Vec<Vec<u32>> = microbatches.iter().skip(replica).step_by(data).cloned().collect();
            if own.is_empty() {
                return Err(Misfit::rule("a batch has fewer microbatches than replicas"));
            }
            let schedule = filling.orders(layout, own.len());
            replicas.push(ReplicaPlan { microbatches: own, schedule });
        }
        iterations.push(IterationPlan { replicas, decision: None });
    }
    let open = open_degrees(scenario, kind);
    Ok(Plan {
        layout,
        partition: sized.partition.clone(),
        iterations,
        algorithm: format!("exhaustive search over {open}; {}", kind.title()),
        status: SolverStatus::Optimal,
        search: crate::outcome::Search::default(),
        decisions: Vec::new(),
    })
}

fn open_degrees(scenario: &Scenario, kind: PlannerKind) -> String {
    let request = scenario.layout;
    let chunks = if kind == PlannerKind::Interleaved { request.chunks } else { Some(1) };
    let open = [("TP", request.tensor), ("PP", request.pipeline), ("VPP", chunks), ("microbatch", request.microbatch)];
    let names: Vec<&str> = open.iter().filter(|(_, fixed)| fixed.is_none()).map(|(name, _)| *name).collect();
    if names.is_empty() { "nothing (all degrees are fixed)".to_owned() } else { names.join(", ") }
}

fn decisions(sized: &Sized, plan: &Plan, sizing: &PackedBatch, failed_later: u32) -> Vec<String> {
    let mut decisions = vec![super::fastest(sized.layout, sizing.sequences.len(), failed_later)];
    if plan.partition.stages.iter().any(|stage| stage.len() > 1) || plan.partition.stages.len() > 1 {
        let layers: Vec<u32> = plan
            .partition
            .stages
            .iter()
            .map(|stage| stage.iter().map(crate::cost::partition::LayerRange::len).sum())
            .collect();
        let (least, most) = (layers.iter().min().copied().unwrap_or(0), layers.iter().max().copied().unwrap_or(0));
        decisions.push(if least == most {
            format!("{} stages of {least} layers each.", layers.len())
        } else {
            format!("{} stages of {least} to {most} layers, cut for equal mean time.", layers.len())
        });
    }
    decisions.push("Microbatches in data-loader order, dealt to the replicas in turn.".to_owned());
    decisions
}
