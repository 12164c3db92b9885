//! Tests of extended schedules against complete ones, and rule tests.

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

/// Covers a pipeline of one stage, microbatches that are fewer than the ranks or no multiple of them, layers that the
/// stages do not divide, and schedules of many periods.
#[test]
fn an_extended_schedule_takes_the_time_and_memory_of_the_complete_one() {
    let shapes = [(1, 1), (4, 1), (5, 1), (7, 1), (8, 1), (16, 1), (8, 2), (8, 3), (8, 4), (4, 6), (7, 3), (16, 6)];
    for (pipeline, chunks) in shapes {
        for batch in [1, 4, 15, 16, 32, 56, 112, 123, 336, 1680, 1683] {
            let configuration = Configuration { global_batch: batch, ..configuration(pipeline, chunks, 1) };
            let estimate = estimate(&configuration).unwrap();
            let (time, memory) = simulated(&configuration);
            let (time_ratio, memory_ratio) = (estimate.iteration.secs() / time, estimate.peak_memory.total() / memory);
            assert!((time_ratio - 1.0).abs() < 2e-4, "PP {pipeline} VPP {chunks} batch {batch}: {time_ratio}");
            assert!((memory_ratio - 1.0).abs() < 1e-9, "PP {pipeline} VPP {chunks} batch {batch}: {memory_ratio}");
        }
    }
}

/// A pipeline that is flushed after each microbatch takes as long as many pipelines of one microbatch.
#[test]
fn flushed_pipelines_are_extended_too() {
    let flushed = |batch| {
        let mut configuration = Configuration { global_batch: batch, ..configuration(4, 1, 1) };
        configuration.training.microbatches_per_flush = Some(6);
        estimate(&configuration).unwrap().iteration.secs()
    };
    let (three, four) = (flushed(18), flushed(24));
    let many = flushed(606);
    assert!((many / (four + 97.0 * (four - three)) - 1.0).abs() < 1e-9, "{many}");
    let continuous = Configuration { global_batch: 606, ..configuration(4, 1, 1) };
    assert!(many > 1.2 * estimate(&continuous).unwrap().iteration.secs());
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
