//! Tests for the closed form against the event engine, and rule tests.

use super::*;
use planscope_core::cluster::presets::cluster;
use planscope_core::model::presets::model;
use planscope_pipeline::schedule::{Grouping, interleaved, one_f_one_b};
use planscope_pipeline::simulate::{StepEnd, execute, peak_memory_over};

fn configuration(pipeline: u32, chunks: u32, data: u32) -> Configuration {
    let nodes = pipeline * data;
    Configuration {
        model: model("gpt-3-175b").unwrap(),
        cluster: planscope_core::cluster::Cluster { nodes, ..cluster("a100-80gb").unwrap() },
        training: Training::default(),
        layout: Layout { tensor: 8, pipeline, data, chunks, microbatch: 1, group: None },
        layers_per_stage: Vec::new(),
        global_batch: 32 * data,
        sequence_length: 2048,
        items: 0,
    }
}

/// Simulates the same configuration. Returns time and peak memory.
fn simulated(configuration: &Configuration) -> (f64, f64) {
    let Configuration { model, cluster, training, layout, .. } = configuration;
    let count = (configuration.global_batch / layout.data / layout.microbatch) as usize;
    let loads = vec![microbatch(configuration); count];
    let table = LayerTable::new(model, cluster, training, layout.tensor, &loads);
    let partition = Partition::stated(model, &layers_per_stage(configuration).unwrap()).unwrap();
    let replica_layout = ReplicaLayout { pipeline: layout.pipeline, data: layout.data, replica: 0 };
    let costs = table.pipeline(&partition, replica_layout, &(0..count).collect::<Vec<_>>());
    let (p, v) = (layout.pipeline as usize, layout.chunks as usize);
    let schedule = if v > 1 { interleaved(p, v, count, Grouping::Balanced) } else { one_f_one_b(p, count) };
    let execution = execute(&schedule, &costs).unwrap();
    let end = StepEnd::from_executions(p, std::iter::once(&execution)).iteration_end(&costs);
    (end.secs(), peak_memory_over(&schedule, &execution, &costs).1.get() as f64)
}

#[test]
fn the_closed_form_agrees_with_the_event_engine() {
    for (pipeline, chunks, data) in [(1, 1, 1), (4, 1, 1), (8, 1, 2), (16, 1, 1), (8, 2, 1), (8, 3, 1), (4, 6, 2)] {
        let configuration = configuration(pipeline, chunks, data);
        let estimate = estimate(&configuration).unwrap();
        let (time, memory) = simulated(&configuration);
        let (time_ratio, memory_ratio) = (estimate.iteration.secs() / time, estimate.peak_memory.total() / memory);
        assert!((time_ratio - 1.0).abs() < 0.02, "PP {pipeline} VPP {chunks}: {time_ratio}");
        assert!((memory_ratio - 1.0).abs() < 0.03, "PP {pipeline} VPP {chunks}: {memory_ratio}");
    }
}

/// Covers fewer microbatches than ranks, microbatches that are not a multiple of the ranks, and
/// layers that are not divisible by the stages.
#[test]
fn uneven_pipelines_agree_too() {
    for (pipeline, chunks, batch) in [(8, 4, 1), (8, 4, 4), (8, 2, 4), (8, 4, 15), (5, 1, 16), (7, 3, 14), (7, 1, 16)] {
        let configuration = Configuration { global_batch: batch, ..configuration(pipeline, chunks, 1) };
        let estimate = estimate(&configuration).unwrap();
        let (time, memory) = simulated(&configuration);
        let (time_ratio, memory_ratio) = (estimate.iteration.secs() / time, estimate.peak_memory.total() / memory);
        assert!((time_ratio - 1.0).abs() < 0.02, "PP {pipeline} VPP {chunks} batch {batch}: {time_ratio}");
        assert!((memory_ratio - 1.0).abs() < 0.03, "PP {pipeline} VPP {chunks} batch {batch}: {memory_ratio}");
    }
}

/// The first stages have the remaining layers. A balanced split has fewer layers next to a large output head.
#[test]
fn uneven_stages_are_not_faster_than_balanced_ones() {
    let natural = Configuration {
        model: model("llama-3-8b").unwrap(),
        cluster: planscope_core::cluster::Cluster { nodes: 5, ..cluster("a100-80gb").unwrap() },
        ..configuration(5, 1, 1)
    };
    assert_eq!(layers_per_stage(&natural), Some(vec![7, 7, 6, 6, 6]));
    let loads = [microbatch(&natural)];
    let table = LayerTable::new(&natural.model, &natural.cluster, &natural.training, 8, &loads);
    let best = Partition::balanced(&natural.model, &table.weights(5), 5).unwrap();
    let best = best.stages.iter().map(|stage| layers(stage)).collect();
    let balanced = Configuration { layers_per_stage: best, ..natural.clone() };
    let time = |configuration: &Configuration| estimate(configuration).unwrap().iteration.secs();
    let ratio = time(&natural) / time(&balanced);
    assert!(ratio > 1.02, "{ratio}: {:?}", balanced.layers_per_stage);
}

#[test]
fn invalid_configurations_are_rejected_by_name() {
    let rejection = |change: fn(&mut Configuration)| {
        let mut configuration = configuration(4, 1, 1);
        change(&mut configuration);
        estimate(&configuration).unwrap_err().to_string()
    };
    assert!(rejection(|c| c.layout.data = 2).contains("is not 32 devices"));
    let shared = rejection(|c| c.model.modules[0].kv_heads = 4);
    assert!(shared.contains("TP 8 does not divide the 4 key-value heads"), "{shared}");
    assert!(rejection(|c| c.layout.chunks = 30).contains("exceeds the 96 layers"));
    assert!(rejection(|c| c.training.precision = Precision::Fp8).contains("no fp8"));
    assert!(rejection(|c| c.global_batch = 0).contains("at least 1"));
    assert!(rejection(|c| c.items = 3).contains("items need a module"));
    // 96 heads at TP 8 are 12 per device, which CP 5 cannot split equally.
    let traded = rejection(|c| {
        (c.cluster.nodes, c.training.context_parallel) = (5 * c.cluster.nodes, 5);
        c.training.context_exchange = planscope_core::training::ContextExchange::AllToAll;
    });
    assert!(traded.contains("CP 5 cannot trade the 96 heads"), "{traded}");
    assert!(rejection(|c| c.training.expert_parallel = 2).contains("mixture of experts"));
}

#[test]
fn infeasibility_names_the_rank_and_its_need() {
    let mut configuration = configuration(4, 1, 1);
    configuration.cluster.device.memory_gib = 40.0;
    let infeasibility = estimate(&configuration).unwrap().infeasibility.unwrap();
    assert!(infeasibility.starts_with("rank 0 needs"), "{infeasibility}");
}
