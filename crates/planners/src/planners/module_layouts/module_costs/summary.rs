//! Summary for modules with separate layouts.

use std::collections::BTreeMap;

use super::costs;
use planscope_core::model::Model;
use planscope_core::stage_graph::BoundaryKind;
use planscope_core::workload::PackedBatch;
use planscope_cost::cost::Crossing;
use planscope_plan::outcome::{Boundary, ModulePlacement, PlacedModules};
use planscope_plan::plan::Plan;
use planscope_plan::plan::overlap;
use planscope_plan::plan::{Arrangement, ModuleLayout};
use planscope_plan::scenario::Scenario;

/// Returns layouts, ranks and boundaries of a plan. `None` if all modules have the same layout.
pub(crate) fn placement(scenario: &Scenario, plan: &Plan, batches: &[PackedBatch]) -> Option<ModulePlacement> {
    let arrangement = plan.arrangement()?;
    let model = &scenario.model;
    let ranks = (0..arrangement.ranks.len()).map(|rank| label(model, &plan.modules, &arrangement, rank)).collect();
    let crossings = batches.first().zip(plan.iterations.first()).and_then(|(batch, iteration)| {
        costs::boundaries(scenario, (&plan.modules, &plan.partition), batch, iteration.replicas.first()?).ok()
    });
    Some(ModulePlacement {
        layouts: plan.modules.iter().map(|layout| placed(model, &plan.modules, layout)).collect(),
        ranks,
        devices: arrangement.ranks.iter().map(|devices| (devices.start, devices.end)).collect(),
        boundaries: summed(model, &crossings.unwrap_or_default()),
    })
}

/// Converts a layout for the outcome.
pub(crate) fn placed(model: &Model, all: &[ModuleLayout], layout: &ModuleLayout) -> PlacedModules {
    let devices = layout.devices();
    PlacedModules {
        modules: layout.modules().map(|module| model.modules[module].name.clone()).collect(),
        tensor: layout.tensor,
        context: layout.context,
        pipeline: layout.pipeline,
        data: layout.data,
        expert: layout.expert,
        first_device: layout.first_device,
        devices: devices.end - devices.start,
        colocated: all.iter().filter(|other| overlap(&other.devices(), &devices)).count() > 1,
    }
}

/// Describes the modules on a rank, for example "ViT 5B copies 1-4, Qwen2 32B copy 1 PP 0".
fn label(model: &Model, layouts: &[ModuleLayout], arrangement: &Arrangement, rank: usize) -> String {
    let mut parts = Vec::new();
    for (index, layout) in layouts.iter().enumerate() {
        for copy in 0..layout.pipelines() {
            for pipeline_rank in 0..layout.pipeline {
                if arrangement.rank(index, layout.pipeline, copy, pipeline_rank) as usize != rank {
                    continue;
                }
                let names: Vec<&str> = layout.modules().map(|module| model.modules[module].name.as_str()).collect();
                let first = copy * layout.copies_per_rank;
                let copies = match layout.copies_per_rank {
                    1 => format!("copy {first}"),
                    count => format!("copies {first}-{}", first + count - 1),
                };
                let stage = if layout.pipeline > 1 { format!(" PP {pipeline_rank}") } else { String::new() };
                parts.push(format!("{} {copies}{stage}", names.join(" + ")));
            }
        }
    }
    parts.join(", ")
}

fn summed(model: &Model, crossings: &[(usize, usize, Crossing)]) -> Vec<Boundary> {
    let mut sums: BTreeMap<(usize, usize, BoundaryKind, u32), Vec<&Crossing>> = BTreeMap::new();
    for (from, to, crossing) in crossings {
        sums.entry((*from, *to, crossing.kind, crossing.fan)).or_default().push(crossing);
    }
    let boundary = |((from, to, kind, fan), transfers): ((usize, usize, BoundaryKind, u32), Vec<&Crossing>)| {
        let count = transfers.len() as f64;
        let mean =
            |value: &dyn Fn(&Crossing) -> f64| transfers.iter().map(|crossing| value(crossing)).sum::<f64>() / count;
        let mib = |bytes: f64| bytes / f64::from(1 << 20);
        Boundary {
            from: model.modules[from].name.clone(),
            to: model.modules[to].name.clone(),
            kind,
            fan,
            tensors: transfers.len() as u32,
            forward_mib: mib(mean(&|crossing| crossing.forward_bytes)),
            backward_mib: mib(mean(&|crossing| crossing.backward_bytes)),
            forward_ms: 1e3 * mean(&|crossing| crossing.forward.secs()),
            backward_ms: 1e3 * mean(&|crossing| crossing.backward.secs()),
        }
    };
    sums.into_iter().map(boundary).collect()
}
