//! Coarse-grained bubble scheduling of Optimus (Feng et al., 2024): encoders run outside the
//! backbone's pipeline.
//!
//! All ranks run the encoder forwards for all microbatches, then the backbone's pipeline, then the
//! encoder backwards. Modules are split across all ranks individually. The fine-grained part, which
//! fills tensor-parallel communication gaps with encoder kernels, is not modelled.

use crate::planners::infeasible::Infeasibility;
use crate::planners::layout_search::Sized;
use crate::planners::replica;
use planscope_core::action::{Action, Schedule};
use planscope_core::model::{Model, ModuleRole};
use planscope_core::workload::{MicrobatchContents, PackedBatch};
use planscope_cost::cost::{LayerTable, Partition};
use planscope_pipeline::schedule::{Grouping, interleaved, one_f_one_b};
use planscope_plan::outcome::Layout;
use planscope_plan::plan::{Part, ReplicaKind, ReplicaPlan};
use planscope_plan::scenario::Scenario;

/// Uses one segment per encoder, and the layout's chunks as backbone segments. Microbatches are
/// undivided within a module.
pub(crate) fn cut(scenario: &Scenario, table: &LayerTable<'_>, layout: Layout) -> Result<Sized, Infeasibility> {
    let model = &scenario.model;
    let is_backbone = |role| role == ModuleRole::Backbone;
    let segments: Vec<u32> =
        model.modules.iter().map(|module| if is_backbone(module.role) { layout.chunks } else { 1 }).collect();
    let stages = layout.pipeline * segments.iter().sum::<u32>();
    let partition = Partition::by_module(model, &table.weights(stages), layout.pipeline, &segments)
        .ok_or_else(|| Infeasibility::rule("a module has fewer layers than stages"))?;
    let layout = Layout { chunks: segments.iter().sum(), ..layout };
    Ok(Sized { sizes: vec![u32::MAX; model.modules.len()], ..Sized::undivided(layout, partition) })
}

pub(crate) fn replica_plan(
    scenario: &Scenario,
    sized: &Sized,
    batch: &PackedBatch,
    microbatches: Vec<Vec<u32>>,
) -> ReplicaPlan {
    let model = &scenario.model;
    let contents: Vec<MicrobatchContents> = microbatches.iter().map(|sequences| batch.contents(sequences)).collect();
    let parts = replica::parts(model, scenario.workload.packing, &contents, &sized.sizes);
    let schedule = schedule(model, sized, &parts, microbatches.len());
    ReplicaPlan::new(microbatches, ReplicaKind::Parts(parts), schedule)
}

fn schedule(model: &Model, sized: &Sized, parts: &[Part], microbatches: usize) -> Schedule {
    let ranks = sized.layout.pipeline as usize;
    let stages = sized.partition.stages_by_module(model.modules.len()).expect("every module has its own stages");
    let backbone = model.modules.iter().position(|module| module.role == ModuleRole::Backbone);
    let backbone = backbone.expect("it applies only to models with a backbone");
    // The part per microbatch in a module.
    let module_parts = |module: usize| {
        let mut indices = vec![None; microbatches];
        for (index, part) in parts.iter().enumerate().filter(|(_, part)| part.module as usize == module) {
            indices[part.microbatch as usize] = Some(index);
        }
        indices
    };
    let in_backbone = module_parts(backbone);
    let chunks = stages[backbone].len() / ranks;
    let pipeline = if chunks == 1 {
        one_f_one_b(ranks, microbatches)
    } else {
        interleaved(ranks, chunks, microbatches, Grouping::Balanced)
    };
    // First stage and parts per encoder.
    let encoders: Vec<(usize, Vec<Option<usize>>)> = (0..model.modules.len())
        .filter(|&module| module != backbone)
        .map(|module| (stages[module].start, module_parts(module)))
        .collect();
    let orders = (0..ranks).map(|rank| {
        let encoded: Vec<(usize, usize)> = encoders
            .iter()
            .flat_map(|(first, encoder_parts)| encoder_parts.iter().flatten().map(move |&part| (first + rank, part)))
            .collect();
        let mut order: Vec<Action> = encoded.iter().map(|&(stage, part)| Action::forward(stage, part)).collect();
        order.extend(pipeline.orders[rank].iter().filter_map(|action| {
            let part = in_backbone[action.microbatch as usize]?;
            Some(Action::new(action.kind, stages[backbone].start + action.stage as usize, part))
        }));
        order.extend(encoded.iter().map(|&(stage, part)| Action::backward(stage, part)));
        order
    });
    Schedule { stages: sized.partition.stages.len(), microbatches: parts.len(), orders: orders.collect() }
}
