//! nnScaler*, a baseline of PipeWeaver: a plan from a single representative batch (Lin et al.,
//! 2024).
//!
//! Stages are balanced by mean time across module boundaries and run 1F1B. If a stage then exceeds
//! the memory limit, the balance is restricted to feasible stages. Recomputation per stage is
//! minimal, assuming that all microbatches in flight have the largest size in the batch. The star
//! marks the difference to the original system: plan space and selection rule are equal, but the
//! search differs.

use crate::planners::infeasible::{BindingConstraint, Infeasibility};
use crate::planners::layout_search;
use crate::planners::layout_search::{Microbatches, Sized};
use crate::planners::replica;
use planscope_core::stage_graph::Flows;
use planscope_core::units::Bytes;
use planscope_cost::cost::partition::ModuleWeight;
use planscope_cost::cost::{LayerTable, Partition, PipelineCosts, StrategyMix};
use planscope_plan::outcome::Layout;
use planscope_plan::scenario::FreeSetting;

/// Assigns layers to stages and chooses recomputation. `table` has the costs of all strategies.
pub(crate) fn cut(batch: &Microbatches<'_>, table: &LayerTable<'_>, layout: Layout) -> Result<Sized, Infeasibility> {
    let balanced = layout_search::balanced(batch, table, layout)?;
    // The stages recompute less than the scenario asks for, so their balance without recomputation can be better.
    let without = balanced_without_recompute(batch, table, layout).filter(|other| *other != balanced.partition);
    let without = without.map(|partition| Sized { partition, ..balanced.clone() });
    let (mut fastest, mut infeasibility): (Option<(u64, Sized)>, Option<Infeasibility>) = (None, None);
    for cut in std::iter::once(balanced).chain(without) {
        match recomputing(batch, table, &cut) {
            Ok(mixes) => {
                let time = slowest_stage(table, &costs(table, (&cut.partition, layout), &mixes));
                if fastest.as_ref().is_none_or(|(best, _)| time < *best) {
                    fastest = Some((time, Sized { mixes, ..cut }));
                }
            }
            Err(error) => drop(infeasibility.get_or_insert(error)),
        }
    }
    let infeasibility = match (fastest, infeasibility) {
        (Some((_, sized)), _) => return Ok(sized),
        (None, infeasibility) => infeasibility.unwrap_or_else(|| Infeasibility::rule("more stages than layers")),
    };
    if !batch.scenario.layers_per_stage.is_empty() {
        return Err(infeasibility);
    }
    // If a stage is infeasible under full recomputation, the memory limit also restricts the
    // partition.
    let Some(partition) = within_memory(batch, table, layout) else { return Err(infeasibility) };
    let leaner = Sized::undivided(layout, partition);
    Ok(Sized { mixes: recomputing(batch, table, &leaner)?, ..leaner })
}

/// Balances the stages by the times without recomputation. `None` if the layers per stage are not free.
fn balanced_without_recompute(batch: &Microbatches<'_>, table: &LayerTable<'_>, layout: Layout) -> Option<Partition> {
    let model = &batch.scenario.model;
    let is_stated = !batch.scenario.layers_per_stage.is_empty();
    let is_free = !is_stated && (model.modules.len() > 1 || batch.scenario.is_free(FreeSetting::LayersPerStage));
    let stages = layout.pipeline * layout.chunks;
    is_free.then(|| Partition::balanced(model, &table.weights_without_recompute(), stages)).flatten()
}

/// Returns the time of the slowest stage over all microbatches, in ns.
fn slowest_stage(table: &LayerTable<'_>, costs: &PipelineCosts) -> u64 {
    let time = |cell: usize| (costs.forward[cell] + costs.input_grad[cell] + costs.weight_grad[cell]).get();
    let counts = || table.representatives().iter().map(|&(_, count)| u64::from(count)).enumerate();
    let stage = |stage: usize| counts().map(|(microbatch, count)| count * time(costs.cell(stage, microbatch))).sum();
    (0..costs.stages()).map(stage).max().unwrap_or(0)
}

/// Chooses the minimum number of recomputed layers per stage.
fn recomputing(
    batch: &Microbatches<'_>,
    table: &LayerTable<'_>,
    sized: &Sized,
) -> Result<Vec<StrategyMix>, Infeasibility> {
    let layout = sized.layout;
    let ranks = layout.pipeline as usize;
    let layers: Vec<u16> =
        sized.partition.stages.iter().map(|stage| stage.iter().map(|range| range.len() as u16).sum()).collect();
    let mut mixes: Vec<StrategyMix> = layers.iter().map(|&layers| StrategyMix([layers, 0, 0, 0])).collect();
    let limit = batch.scenario.memory_limit();
    let microbatches = batch.loads.len().div_ceil(layout.data as usize).max(1);
    // Stages above the limit recompute more layers, until all fit.
    loop {
        let costs = costs(table, (&sized.partition, layout), &mixes);
        let mut all_fit = true;
        for (stage, mix) in mixes.iter_mut().enumerate() {
            let needs = needs(&costs, stage, (ranks - stage).min(microbatches));
            if needs <= limit {
                continue;
            }
            all_fit = false;
            // Change several layers at a time in proportion to the excess, at least one.
            let excess = (needs.saturating_sub(limit).get() as f64 / needs.get() as f64 * f64::from(mix.0[0])) as u16;
            let moved = excess.clamp(1, mix.0[0].max(1)).min(mix.0[0]);
            if moved == 0 {
                let reason = "activations exceed the memory".to_owned();
                return Err(Infeasibility { reason, constraint: BindingConstraint::Activations(needs, stage) });
            }
            mix.0[0] -= moved;
            mix.0[2] += moved;
        }
        if all_fit {
            return Ok(mixes);
        }
    }
}

/// Computes the costs for one microbatch of each distinct load, using the layer strategies `mixes` per stage.
fn costs(table: &LayerTable<'_>, (partition, layout): (&Partition, Layout), mixes: &[StrategyMix]) -> PipelineCosts {
    let all: Vec<usize> = table.representatives().iter().map(|&(microbatch, _)| microbatch).collect();
    let flows = Flows::placed(layout.pipeline as usize, partition.stages.len(), all.len(), partition.placement);
    let mixes: Vec<StrategyMix> = all.iter().flat_map(|_| mixes.iter().copied()).collect();
    table.pipeline_over(partition, replica::replica_position(layout, 0), flows, &all, &mixes)
}

/// Returns the most balanced partition with feasible stages under full recomputation. `None` if
/// there is none.
///
/// Memory per layer comes from a pipeline with a single layer per rank: model states, maximum
/// activation and maximum temporary memory. A stage needs its summed states, its summed activations
/// times the microbatches in flight, and the maximum temporary memory.
fn within_memory(batch: &Microbatches<'_>, table: &LayerTable<'_>, layout: Layout) -> Option<Partition> {
    let model = &batch.scenario.model;
    let ranks = layout.pipeline as usize;
    let single = Layout { pipeline: model.layers(), chunks: 1, ..layout };
    let single_layers = Partition::balanced(
        model,
        &vec![ModuleWeight { layer: 1.0, ..Default::default() }; model.modules.len()],
        model.layers(),
    )?;
    let lean = vec![StrategyMix([0, 0, 1, 0]); single_layers.stages.len()];
    let costs = costs(table, (&single_layers, single), &lean);
    let maximum = |layer: usize, column: &[Bytes]| {
        (0..costs.microbatches()).map(|microbatch| column[costs.cell(layer, microbatch)]).max().unwrap_or(Bytes::ZERO)
    };
    let layers = || 0..single_layers.stages.len();
    let sums = |value: &dyn Fn(usize) -> Bytes| -> Vec<u64> {
        let mut sum = 0;
        std::iter::once(0)
            .chain(layers().map(|layer| {
                sum += value(layer).get();
                sum
            }))
            .collect()
    };
    let state = sums(&|layer| costs.static_memory[layer]);
    let activations = sums(&|layer| maximum(layer, &costs.activation));
    let transient: Vec<u64> = layers().map(|layer| maximum(layer, &costs.transient).get()).collect();
    let limit = batch.scenario.memory_limit().get();
    let microbatches = batch.loads.len().div_ceil(layout.data as usize).max(1);
    let fits = |stage: usize, layer_range: std::ops::Range<usize>| {
        let depth = ranks.saturating_sub(stage).clamp(1, microbatches) as u64;
        let range_sum = |sums: &[u64]| sums[layer_range.end] - sums[layer_range.start];
        let moment = transient[layer_range.clone()].iter().copied().max().unwrap_or(0);
        range_sum(&state) + depth * range_sum(&activations) + moment <= limit
    };
    Partition::balanced_within(model, &table.weights(layout.pipeline), layout.pipeline, &fits)
}

/// Returns the same layout with an additional recomputed layer on the rank that exceeded the memory
/// limit in a later batch. In practice, a user makes this change after an out-of-memory error.
/// `None` if all layers are already recomputed, or if the planner uses the same strategy for all
/// layers.
pub(crate) fn leaner(sized: &Sized, infeasibility: &Infeasibility) -> Option<Sized> {
    let (rank, _) = infeasibility.constraint.memory()?;
    let mut leaner = sized.clone();
    let mix = leaner.mixes.get_mut(rank)?;
    mix.0[0] = mix.0[0].checked_sub(1)?;
    mix.0[2] += 1;
    Some(leaner)
}

/// Peak memory of a stage's rank with `depth` largest microbatches in flight.
fn needs(costs: &PipelineCosts, stage: usize, depth: usize) -> Bytes {
    let cells = || (0..costs.microbatches()).map(|microbatch| costs.cell(stage, microbatch));
    let activation = cells().map(|cell| costs.activation[cell]).max().unwrap_or(Bytes::ZERO);
    let transient = cells().map(|cell| costs.transient[cell]).max().unwrap_or(Bytes::ZERO);
    let stored = Bytes::new(activation.get().saturating_mul(depth as u64));
    costs.static_memory[costs.rank_for_stage(stage)] + stored + transient
}

/// Formats the recomputation decision.
pub(crate) fn decision(sized: &Sized) -> Option<String> {
    let recomputed: u32 = sized.mixes.iter().map(|mix| u32::from(mix.0[2])).sum();
    let layers: u32 = sized.mixes.iter().map(|mix| mix.layers()).sum();
    (layers > 0).then(|| format!("{recomputed} of {layers} layers are recomputed; the others store all activations."))
}
