//! nnScaler* as PipeWeaver compares with it: a plan made once, from one representative batch (Lin et al., 2024).
//!
//! Stages are cut for equal mean time, whatever modules they hold, and run as 1F1B; where that puts more layers on a stage
//! than its memory holds, for as equal times as memory allows. Each stage recomputes as few of its layers as its memory
//! allows when all microbatches in flight are as large as the largest of that batch. The star says that this is the plan space and the way of choosing, not the system's own search.

use crate::cost::partition::ModuleWeight;
use crate::cost::{LayerTable, Partition, PipelineCosts, StrategyMix};
use crate::flow::Flows;
use crate::outcome::Layout;
use crate::plan::misfit::{Hurdle, Misfit};
use crate::plan::replica;
use crate::plan::sizing::{self, Microbatches, Sized};
use crate::units::Bytes;

/// Cuts the stages and chooses what each recomputes.
pub(super) fn cut(batch: &Microbatches<'_>, table: &LayerTable<'_>, layout: Layout) -> Result<Sized, Misfit> {
    let tunable = batch.pricing.tunable_table(layout.tensor, &batch.loads);
    let balanced = sizing::balanced(batch, table, layout)?;
    let misfit = match recomputing(batch, &tunable, &balanced) {
        Ok(mixes) => return Ok(Sized { mixes, ..balanced }),
        Err(misfit) => misfit,
    };
    // Where even all layers recomputed are too many on a stage, memory decides on the cut too.
    let Some(partition) = within_memory(batch, table, &tunable, layout) else { return Err(misfit) };
    let leaner = Sized::whole(layout, partition);
    Ok(Sized { mixes: recomputing(batch, &tunable, &leaner)?, ..leaner })
}

/// What the stages recompute: as few of their layers as memory allows.
fn recomputing(batch: &Microbatches<'_>, tunable: &LayerTable<'_>, sized: &Sized) -> Result<Vec<StrategyMix>, Misfit> {
    let layout = sized.layout;
    let ranks = layout.pipeline as usize;
    let layers: Vec<u16> =
        sized.partition.stages.iter().map(|stage| stage.iter().map(|range| range.len() as u16).sum()).collect();
    let mut mixes: Vec<StrategyMix> = layers.iter().map(|&layers| StrategyMix([layers, 0, 0, 0])).collect();
    let limit = batch.scenario.memory_limit();
    let microbatches = (batch.loads.len() / layout.data as usize).max(1);
    // Stages that need too much recompute a layer more, until all fit.
    loop {
        let costs = costs(batch, tunable, (&sized.partition, layout), &mixes);
        let mut all_fit = true;
        for (stage, mix) in mixes.iter_mut().enumerate() {
            let needs = needs(&costs, stage, (ranks - stage).min(microbatches));
            if needs <= limit {
                continue;
            }
            all_fit = false;
            // As many layers at once as the excess asks for, at least one.
            let excess = (needs.saturating_sub(limit).get() as f64 / needs.get() as f64 * f64::from(mix.0[0])) as u16;
            let moved = excess.clamp(1, mix.0[0].max(1)).min(mix.0[0]);
            if moved == 0 {
                let reason = "activations exceed the memory".to_owned();
                return Err(Misfit { reason, hurdle: Hurdle::Activations(needs, stage) });
            }
            mix.0[0] -= moved;
            mix.0[2] += moved;
        }
        if all_fit {
            return Ok(mixes);
        }
    }
}

/// Costs of all microbatches of the batch through stages whose layers do as `mixes` says.
fn costs(
    batch: &Microbatches<'_>,
    tunable: &LayerTable<'_>,
    (partition, layout): (&Partition, Layout),
    mixes: &[StrategyMix],
) -> PipelineCosts {
    let all: Vec<usize> = (0..batch.loads.len()).collect();
    let flows = Flows::placed(layout.pipeline as usize, partition.stages.len(), all.len(), partition.placement);
    let mixes: Vec<StrategyMix> = all.iter().flat_map(|_| mixes.iter().copied()).collect();
    tunable.pipeline_over(partition, replica::place(layout, 0), flows, &all, &mixes)
}

/// The cut of most equal times whose stages fit with all layers recomputed; `None` where there is none.
///
/// What a layer needs is taken from a pipeline with one layer on each rank: its state, the largest activation that it
/// keeps, and the largest that it has for a moment. A stage needs the sum of the first, as many sums of the second as it
/// has microbatches in flight, and the largest of the third.
fn within_memory(
    batch: &Microbatches<'_>,
    table: &LayerTable<'_>,
    tunable: &LayerTable<'_>,
    layout: Layout,
) -> Option<Partition> {
    let model = &batch.scenario.model;
    let ranks = layout.pipeline as usize;
    let single = Layout { pipeline: model.layers(), chunks: 1, ..layout };
    let apart = Partition::balanced(
        model,
        &vec![ModuleWeight { layer: 1.0, ..Default::default() }; model.modules.len()],
        model.layers(),
    )?;
    let lean = vec![StrategyMix([0, 0, 1, 0]); apart.stages.len()];
    let costs = costs(batch, tunable, (&apart, single), &lean);
    let largest = |layer: usize, column: &[Bytes]| {
        (0..costs.microbatches()).map(|microbatch| column[costs.cell(layer, microbatch)]).max().unwrap_or(Bytes::ZERO)
    };
    let layers = || 0..apart.stages.len();
    let sums = |of: &dyn Fn(usize) -> Bytes| -> Vec<u64> {
        let mut sum = 0;
        std::iter::once(0)
            .chain(layers().map(|layer| {
                sum += of(layer).get();
                sum
            }))
            .collect()
    };
    let state = sums(&|layer| costs.static_memory[layer]);
    let kept = sums(&|layer| largest(layer, &costs.activation));
    let transient: Vec<u64> = layers().map(|layer| largest(layer, &costs.transient).get()).collect();
    let limit = batch.scenario.memory_limit().get();
    let microbatches = (batch.loads.len() / layout.data as usize).max(1);
    let fits = |stage: usize, own: std::ops::Range<usize>| {
        let depth = ranks.saturating_sub(stage).clamp(1, microbatches) as u64;
        let of = |sums: &[u64]| sums[own.end] - sums[own.start];
        let moment = transient[own.clone()].iter().copied().max().unwrap_or(0);
        of(&state) + depth * of(&kept) + moment <= limit
    };
    Partition::balanced_within(model, &table.weights(layout.pipeline), layout.pipeline, &fits)
}

/// The same with one more layer recomputed on the rank that lacked memory in a batch of the run: a plan from one batch
/// gives way where the run holds larger ones, as whoever starts such a run does after it broke. None where every layer
/// is recomputed already, and for planners that keep all layers alike.
pub(super) fn leaner(sized: &Sized, misfit: &Misfit) -> Option<Sized> {
    let (rank, _) = misfit.hurdle.memory()?;
    let mut leaner = sized.clone();
    let mix = leaner.mixes.get_mut(rank)?;
    mix.0[0] = mix.0[0].checked_sub(1)?;
    mix.0[2] += 1;
    Some(leaner)
}

/// What the rank of a stage needs when its largest microbatch is in flight `depth` times.
fn needs(costs: &PipelineCosts, stage: usize, depth: usize) -> Bytes {
    let cells = || (0..costs.microbatches()).map(|microbatch| costs.cell(stage, microbatch));
    let activation = cells().map(|cell| costs.activation[cell]).max().unwrap_or(Bytes::ZERO);
    let transient = cells().map(|cell| costs.transient[cell]).max().unwrap_or(Bytes::ZERO);
    let held = Bytes::new(activation.get().saturating_mul(depth as u64));
    costs.static_memory[costs.rank_of(stage)] + held + transient
}

/// What it decided, in words.
pub(super) fn decision(sized: &Sized) -> Option<String> {
    let recomputed: u32 = sized.mixes.iter().map(|mix| u32::from(mix.0[2])).sum();
    let layers: u32 = sized.mixes.iter().map(|mix| mix.layers()).sum();
    (layers > 0).then(|| format!("{recomputed} of {layers} layers are recomputed; the others store all activations."))
}
