//! The modality-aware partitioner (PipeWeaver Sec. 5): instances per sub-microbatch and segments
//! per module.

use crate::planners::infeasible::Infeasibility;
use crate::planners::replica;
use crate::planners::replica::Cut;
use planscope_core::model::{Model, Module};
use planscope_core::timeline::MicrobatchShape;
use planscope_core::workload::MicrobatchContents;
use planscope_cost::cost::load::Instances;
use planscope_cost::cost::partition::ModuleWeight;
use planscope_cost::cost::{MicrobatchLoad, ModuleLoad, Partition, Pricing};
use planscope_plan::scenario::Scenario;

/// Rule for the instances per sub-microbatch, B_i.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum SizeRule {
    /// The fewest instances with this efficiency, relative to the optimal size.
    MinEfficiency(f64),
    /// Undivided microbatches.
    Whole,
}

impl SizeRule {
    /// Rule of the paper (PipeWeaver Sec. 5).
    pub(crate) const PUBLISHED: Self = Self::MinEfficiency(0.95);
    /// Rules that are tried if the size is free.
    pub(crate) const OTHERS: [Self; 4] =
        [Self::MinEfficiency(0.8), Self::MinEfficiency(0.9), Self::MinEfficiency(1.0), Self::Whole];
}

/// Maximum segments per module. More segments increase communication but do not improve the
/// balance.
const MAX_SEGMENTS: u32 = 8;
/// Candidate sizes. Intermediate sizes differ by a twelfth or less, which has no effect.
const SIZES: [u32; 20] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 64, 128];

/// Result of the partitioner.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Partitioning {
    /// Maximum instances per sub-microbatch, B_i.
    pub sizes: Vec<u32>,
    /// Segments per module, K_i.
    pub segments: Vec<u32>,
    /// Stages.
    pub partition: Partition,
}

/// Computes the partitioning for a TP degree and a pipeline rank count from representative
/// microbatches.
pub(crate) fn partition(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    (tensor, ranks): (u32, u32),
    contents: &[MicrobatchContents],
    rule: SizeRule,
) -> Result<Partitioning, Infeasibility> {
    let model = &scenario.model;
    if let Some(module) = model.modules.iter().find(|module| module.layers < ranks) {
        return Err(Infeasibility::rule(&format!("PP exceeds the {} layers of {}", module.layers, module.name)));
    }
    let sizes: Vec<u32> = (0..model.modules.len())
        .map(|module| {
            let fixed = scenario.search.sub_microbatch.filter(|_| Some(module) == model.item_module_index());
            fixed.unwrap_or_else(|| size(scenario, pricing, tensor, module, (contents, rule)))
        })
        .collect();
    let parts = replica::parts(model, scenario.workload.packing, contents, &sizes);
    let cut = Cut::new(model, scenario.workload.packing, contents, &parts);
    let table = pricing.table(tensor, &cut.loads);
    let weights: Vec<ModuleWeight> = (0..model.modules.len())
        .map(|module| {
            let module_parts: Vec<usize> =
                (0..parts.len()).filter(|&part| parts[part].module as usize == module).collect();
            table.mean_weight(module, &module_parts, ranks)
        })
        .collect();
    let segments = segments(model, &weights, ranks);
    let work: Vec<ModuleWeight> = (0..)
        .zip(&weights)
        .map(|(module, &weight)| weight.times(parts.iter().filter(|part| part.module == module).count() as f64))
        .collect();
    let partition = Partition::by_module(model, &work, ranks, &segments)
        .ok_or_else(|| Infeasibility::rule("a module has fewer layers than stages"))?;
    Ok(Partitioning { sizes, segments, partition })
}

/// Returns B_i, by default the smallest number of instances with nearly optimal efficiency, in model
/// FLOPs per second (PipeWeaver Sec. 5).
fn size(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    tensor: u32,
    module: usize,
    (contents, rule): (&[MicrobatchContents], SizeRule),
) -> u32 {
    let module_spec = &scenario.model.modules[module];
    let instances = contents.iter().map(|contents| Instances::new(contents, module_spec, scenario.workload.packing));
    let Some(richest) = instances.max_by_key(Instances::count).filter(|richest| richest.count() > 0) else { return 1 };
    let SizeRule::MinEfficiency(min_efficiency) = rule else { return richest.count() };
    let sizes: Vec<u32> = SIZES.into_iter().filter(|&size| size < richest.count()).chain([richest.count()]).collect();
    let efficiency = efficiency(scenario, pricing, tensor, module, (&richest, &sizes));
    let best = efficiency.iter().copied().fold(0.0, f64::max);
    let first = efficiency.iter().position(|&efficiency| efficiency >= min_efficiency * best);
    sizes[first.unwrap_or(sizes.len() - 1)]
}

/// Model FLOPs per second of a module's layer, per sub-microbatch size.
fn efficiency(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    tensor: u32,
    module: usize,
    (richest, sizes): (&Instances<'_>, &[u32]),
) -> Vec<f64> {
    let module_spec = &scenario.model.modules[module];
    let loads: Vec<MicrobatchLoad> = sizes
        .iter()
        .map(|&size| {
            let mut modules = vec![ModuleLoad::default(); scenario.model.modules.len()];
            modules[module] = richest.load(0..size);
            MicrobatchLoad { modules, shape: MicrobatchShape::default() }
        })
        .collect();
    let table = pricing.table(tensor, &loads);
    (0..sizes.len())
        .map(|index| {
            let load = loads[index].modules[module];
            operations(module_spec, load) / table.mean_weight(module, &[index], 1).layer.max(f64::MIN_POSITIVE)
        })
        .collect()
}

/// Efficiency of a module at the given sizes, relative to the highest among these sizes and
/// [`SIZES`], on the microbatch with the largest number of instances. `None` if no microbatch has
/// instances. Larger sizes are clamped to this number.
pub(crate) fn relative_efficiency(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    tensor: u32,
    module: usize,
    (contents, sizes): (&[MicrobatchContents], &[u32]),
) -> Option<Vec<f64>> {
    let module_spec = &scenario.model.modules[module];
    let instances = contents.iter().map(|contents| Instances::new(contents, module_spec, scenario.workload.packing));
    let richest = instances.max_by_key(Instances::count).filter(|richest| richest.count() > 0)?;
    let all: Vec<u32> = sizes.iter().chain(&SIZES).map(|&size| size.clamp(1, richest.count())).collect();
    let efficiency = efficiency(scenario, pricing, tensor, module, (&richest, &all));
    let best = efficiency.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    Some(efficiency[..sizes.len()].iter().map(|efficiency| efficiency / best).collect())
}

fn operations(module: &Module, load: ModuleLoad) -> f64 {
    (module.layer_linear_flops(load.tokens) + module.layer_attention_flops(load.tokens, load.squared)).get()
}

/// Segments proportional to sub-microbatch latency: K_i = floor(T_i / T_1) (PipeWeaver Sec. 5). The
/// fastest module has a single segment, and so do modules without work.
fn segments(model: &Model, weights: &[ModuleWeight], ranks: u32) -> Vec<u32> {
    let latency: Vec<f64> = model
        .modules
        .iter()
        .zip(weights)
        .map(|(module, weight)| weight.layer * f64::from(module.layers) + weight.input + weight.output)
        .collect();
    let fastest = latency.iter().copied().filter(|&latency| latency > 0.0).fold(f64::INFINITY, f64::min);
    let segment_count = |(module, &latency): (&Module, &f64)| {
        let wanted = if latency > 0.0 { (latency / fastest) as u32 } else { 1 };
        wanted.clamp(1, MAX_SEGMENTS.min(module.layers / ranks).max(1))
    };
    model.modules.iter().zip(&latency).map(segment_count).collect()
}
