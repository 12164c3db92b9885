use super::costs::boundaries;
use super::*;
use std::ops::Range;

use crate::planners::replica;
use planscope_core::action::Schedule;
use planscope_core::stage_graph::BoundaryKind;
use planscope_core::workload::{PackedBatch, packing};
use planscope_cost::cost::{DegreeSettings, Partition, Pricing};
use planscope_plan::outcome::Layout;
use planscope_plan::plan::{Arrangement, ModuleLayout, Part, ReplicaKind, ReplicaPlan};
use planscope_plan::scenario::Sampler;
use planscope_plan::scenario::Scenario;

/// A node of eight H100s, VLM-S, and sixteen samples of two images.
pub(crate) fn scenario() -> Scenario {
    let scenario = serde_json::json!({
        "schema": "scenario/1", "model": { "preset": "vlm-s" }, "cluster": { "preset": "h100", "nodes": 1 },
        "workload": {
            "samples": {
                "kind": "drawn", "text_tokens": { "kind": "uniform", "min": 500, "max": 1500 },
                "images": { "kind": "constant", "value": 2 }
            },
            "global_batch": 16, "context_length": 4096, "packing": "single"
        },
        "planners": ["optimus"]
    });
    planscope_plan::scenario::parse(&scenario.to_string()).unwrap()
}

pub(crate) fn batch(scenario: &Scenario) -> PackedBatch {
    let drawn = Sampler::new(
        &planscope_plan::scenario::ValidScenario::new(
            scenario.clone(),
            &planscope_plan::scenario::validate::NoDatasets,
        )
        .unwrap(),
    )
    .evaluation(0);
    packing::pack(&drawn.samples, &scenario.model, &scenario.workload.packing_rule())
}

pub(crate) fn layout(
    modules: Range<u32>,
    [tensor, context, pipeline, data]: [u32; 4],
    first_device: u32,
) -> ModuleLayout {
    let (first, end) = (modules.start, modules.end);
    ModuleLayout { first, end, tensor, context, pipeline, data, expert: 1, first_device, copies_per_rank: 1 }
}

/// Splits modules into equal stages, `stages[module]` per module.
pub(crate) fn partition(scenario: &Scenario, stages: &[u32]) -> Partition {
    let weights = vec![planscope_cost::cost::partition::ModuleWeight { layer: 1.0, ..Default::default() }; 2];
    Partition::by_module(&scenario.model, &weights, 1, stages).unwrap()
}

/// Builds `count` microbatches of a single sequence and one part per module. Parts run on the copy
/// that has the microbatch's number.
pub(crate) fn plan(scenario: &Scenario, batch: &PackedBatch, count: u32, copies: [u32; 2]) -> ReplicaPlan {
    let microbatches: Vec<Vec<u32>> = (0..count).map(|microbatch| vec![microbatch]).collect();
    let contents: Vec<_> = microbatches.iter().map(|sequences| batch.contents(sequences)).collect();
    let parts = replica::parts(&scenario.model, scenario.workload.packing, &contents, &[u32::MAX; 2]);
    let on = |part: Part| Part { copy: part.microbatch % copies[part.module as usize], ..part };
    let schedule = Schedule { stages: 0, microbatches: 0, orders: Vec::new() };
    let parts = parts.into_iter().map(on).collect();
    ReplicaPlan::new(microbatches, ReplicaKind::Parts(parts), schedule)
}

fn layout_costs(
    scenario: &Scenario,
    layouts: &[ModuleLayout],
    partition: &Partition,
    plan: &ReplicaPlan,
) -> planscope_cost::cost::PipelineCosts {
    let degrees = DegreeSettings::new(&scenario.training, &[1, 2, 4, 8], &[1]);
    let pricing = Pricing::new(&scenario.model, &scenario.cluster, &scenario.training).with_degrees(&degrees);
    costs(scenario, &pricing, (layouts, partition), &batch(scenario), plan).unwrap()
}

/// A single layout for all modules, and separate layouts on the same devices, have the costs of a
/// replica with separated modules, to the nanosecond and byte.
#[test]
fn equal_layouts_match_a_replica_with_separated_modules() {
    let scenario = scenario();
    let batch = batch(&scenario);
    let partition = partition(&scenario, &[4, 4]);
    let plan = plan(&scenario, &batch, 6, [1, 1]);
    let homogeneous = Layout { tensor: 2, pipeline: 4, data: 1, chunks: 2, microbatch: 1, group: None };
    let pricing = Pricing::new(&scenario.model, &scenario.cluster, &scenario.training);
    let expected = replica::costs(&scenario, &pricing, (&partition, homogeneous), 0, &batch, &plan);
    let together = [layout(0..2, [2, 1, 4, 1], 0)];
    assert!(layout_costs(&scenario, &together, &partition, &plan) == expected);
    let each = [layout(0..1, [2, 1, 4, 1], 0), layout(1..2, [2, 1, 4, 1], 0)];
    let mut separate = layout_costs(&scenario, &each, &partition, &plan);
    // Two optimizer steps start instead of one.
    for (rank, time) in separate.optimizer.iter().enumerate() {
        assert!(*time > expected.optimizer[rank] && time.secs() < expected.optimizer[rank].secs() + 1e-5);
    }
    separate.optimizer.clone_from(&expected.optimizer);
    assert!(separate == expected);
}

/// Two copies of a layout correspond to two replicas, and their cells have equal costs.
#[test]
fn copies_match_replicas() {
    let scenario = scenario();
    let batch = batch(&scenario);
    let partition = partition(&scenario, &[2, 2]);
    let all = plan(&scenario, &batch, 6, [2, 2]);
    let costs = layout_costs(&scenario, &[layout(0..2, [2, 1, 2, 2], 0)], &partition, &all);
    assert_eq!((costs.ranks(), costs.stages()), (4, 8));
    let homogeneous = Layout { tensor: 2, pipeline: 2, data: 2, chunks: 2, microbatch: 1, group: None };
    let pricing = Pricing::new(&scenario.model, &scenario.cluster, &scenario.training);
    for copy in 0..2 {
        let mut copy_plan = all.clone();
        copy_plan.microbatches = all.microbatches.iter().skip(copy).step_by(2).cloned().collect();
        copy_plan.parts_mut().retain(|part| part.copy as usize == copy);
        let mine: Vec<usize> = (0..all.parts().len()).filter(|&part| all.parts()[part].copy as usize == copy).collect();
        for part in copy_plan.parts_mut() {
            part.microbatch /= 2;
        }
        let expected = replica::costs(&scenario, &pricing, (&partition, homogeneous), copy, &batch, &copy_plan);
        for (item, &part) in mine.iter().enumerate() {
            for (a, b) in costs.flows.microbatch_cells(part).zip(expected.flows.microbatch_cells(item)) {
                let cell_costs = |costs: &planscope_cost::cost::PipelineCosts, cell: usize| {
                    (costs.forward[cell], costs.backward(cell), costs.send_forward[cell], costs.activation[cell])
                };
                assert_eq!(cell_costs(&costs, a), cell_costs(&expected, b));
            }
        }
        for rank in 0..2 {
            assert_eq!(costs.static_memory[2 * copy + rank], expected.static_memory[rank]);
            assert_eq!(costs.sync[2 * copy + rank], expected.sync[rank]);
        }
    }
}

/// Four encoder copies on two devices each share a rank with a TP 8 backbone. With two images, two
/// encoders are idle, so a part takes the time of a single image. The rank stores the states of
/// both modules.
#[test]
fn copies_side_by_side_share_out_the_instances() {
    let scenario = scenario();
    let batch = batch(&scenario);
    let partition = partition(&scenario, &[1, 1]);
    let plan = plan(&scenario, &batch, 2, [1, 1]);
    let backbone = layout(1..2, [8, 1, 1, 1], 0);
    let encoder = layout(0..1, [2, 1, 1, 4], 0);
    let shared = layout_costs(
        &scenario,
        &[ModuleLayout { copies_per_rank: 4, ..encoder.clone() }, backbone.clone()],
        &partition,
        &plan,
    );
    assert_eq!((shared.ranks(), shared.stages()), (1, 2));
    // Reference: one-image parts on separate encoders.
    let mut halves = plan.clone();
    *halves.parts_mut() = plan
        .parts()
        .iter()
        .flat_map(|part| match part.module {
            0 => vec![Part { end: 1, ..*part }, Part { first: 1, copy: 1, ..*part }],
            _ => vec![*part],
        })
        .collect();
    let separate = layout(0..1, [2, 1, 1, 2], 0);
    let reference = layout_costs(&scenario, &[separate, layout(1..2, [2, 1, 1, 1], 4)], &partition, &halves);
    let (reference_cell, two) = (reference.flows.microbatch_cells(0).start, shared.flows.microbatch_cells(0).start);
    assert_eq!(
        (shared.forward[two], shared.activation[two]),
        (reference.forward[reference_cell], reference.activation[reference_cell])
    );
    // Static memory is the sum for both modules at their degrees.
    let only = |layouts: [ModuleLayout; 2]| layout_costs(&scenario, &layouts, &partition, &plan).static_memory;
    let disjoint = only([layout(0..1, [2, 1, 1, 1], 0), layout(1..2, [4, 1, 1, 1], 4)]);
    assert_eq!(disjoint.len(), 2);
    assert!(shared.static_memory[0] < disjoint[0] + disjoint[1], "more copies shard the optimizer further");
}

/// Boundary transfers use the communication lane for the duration from the communicator model.
#[test]
fn boundary_transfers_are_sent_after_the_last_stage() {
    let scenario = scenario();
    let batch = batch(&scenario);
    let partition = partition(&scenario, &[1, 1]);
    let plan = plan(&scenario, &batch, 2, [1, 1]);
    let layouts = [layout(0..1, [2, 1, 1, 1], 0), layout(1..2, [4, 1, 1, 1], 4)];
    let costs = layout_costs(&scenario, &layouts, &partition, &plan);
    let transfers = boundaries(&scenario, (&layouts, &partition), &batch, &plan).unwrap();
    assert_eq!(transfers.len(), 2);
    for (microbatch, (from, to, way)) in transfers.iter().enumerate() {
        assert_eq!((*from, *to, way.kind), (0, 1, BoundaryKind::Apart));
        let (encoder, backbone) = (2 * microbatch, 2 * microbatch + 1);
        assert_eq!(costs.send_forward[costs.flows.microbatch_cells(encoder).end - 1], way.forward.to_nanos());
        assert_eq!(costs.send_backward[costs.flows.microbatch_cells(backbone).start], way.backward.to_nanos());
        // Two images, the hidden size of Llama-3 8B, two bytes per element.
        let tokens = 2.0 * f64::from(scenario.model.modules[0].backbone_tokens_per_item());
        assert!((way.forward_bytes - tokens * 4096.0 * 2.0).abs() < 1.0, "{}", way.forward_bytes);
    }
}

#[test]
fn ranks_are_numbered_by_island_and_copy() {
    let scenario = scenario();
    let partition = partition(&scenario, &[1, 2]);
    let layouts = [layout(0..1, [1, 1, 1, 2], 0), layout(1..2, [1, 1, 2, 3], 2)];
    let arrangement = Arrangement::new(&layouts, &partition, 2).unwrap();
    // Two encoders first; then per copy, stage 0 on devices 2 to 4 and stage 1 on devices 5 to 7.
    let firsts: Vec<u32> = arrangement.ranks.iter().map(|devices| devices.start).collect();
    assert_eq!(firsts, [0, 1, 2, 5, 3, 6, 4, 7]);
    assert_eq!(arrangement.stage_rank, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(arrangement.cut, [0, 0, 1, 2, 1, 2, 1, 2]);
    assert_eq!(arrangement.synchronised(&layouts), [0, 0, 2, 3, 2, 3, 2, 3]);
    let crossed = [layout(0..1, [2, 1, 1, 1], 1), layout(1..2, [1, 1, 2, 1], 0)];
    assert!(Arrangement::new(&crossed, &partition, 2).is_err());
}

/// A layout with all layers in a chain has the costs of a replica with undivided microbatches.
#[test]
fn a_chain_matches_a_replica_with_undivided_microbatches() {
    let scenario = scenario();
    let batch = batch(&scenario);
    let weights = vec![planscope_cost::cost::partition::ModuleWeight { layer: 1.0, ..Default::default() }; 2];
    let partition = Partition::balanced(&scenario.model, &weights, 4).unwrap();
    let mut undivided = plan(&scenario, &batch, 6, [1, 1]);
    undivided.kind = ReplicaKind::Pipeline;
    let homogeneous = Layout { tensor: 2, pipeline: 4, data: 1, chunks: 1, microbatch: 1, group: None };
    let pricing = Pricing::new(&scenario.model, &scenario.cluster, &scenario.training);
    let expected = replica::costs(&scenario, &pricing, (&partition, homogeneous), 0, &batch, &undivided);
    let part = |microbatch| Part { microbatch, module: 1, first: 0, end: 1, copy: 0 };
    let parts = (0..6).map(part).collect();
    let chained = ReplicaPlan { kind: ReplicaKind::Parts(parts), ..undivided };
    assert!(layout_costs(&scenario, &[layout(0..2, [2, 1, 4, 1], 0)], &partition, &chained) == expected);
}
