use super::*;
use crate::cost::collective::Group;
use crate::cost::kernel::Operation;
use crate::cost::layer::ShardedTraffic;
use planscope_core::cluster::presets::cluster;
use planscope_core::model::presets::model;
use planscope_core::stage_graph::Placement;
use planscope_core::training::{Fp8Recipe, Framework, Precision, Recompute};
use planscope_core::workload::{Packing, Sequence};

/// Calls `measure` for Llama-3 8B, modified by `change`, with two equal stages on two devices: A100, or B200 with fp8.
fn in_two_stages<T>(
    change: impl FnOnce(&mut Model, &mut Training),
    measure: impl FnOnce(&LayerTable<'_>, &Partition) -> T,
) -> T {
    let (mut model, mut training) = (model("llama-3-8b").unwrap(), Training::default());
    change(&mut model, &mut training);
    let sequence = Sequence {
        samples: 1,
        tokens: 4096,
        computed_tokens: 4096,
        squared: 4096 * 4096,
        useful_squared: 4096 * 4096,
        ..Sequence::default()
    };
    let loads = [MicrobatchLoad::new(&[sequence], &model, Packing::Packed)];
    let device = if training.precision == Precision::Fp8 { "b200" } else { "a100-80gb" };
    let cluster = cluster(device).unwrap();
    let table = LayerTable::new(&model, &cluster, &training, 1, &loads);
    let (middle, end) = (model.modules[0].layers / 2, model.modules[0].layers);
    let stage = |first, end| vec![LayerRange::new(0, first, end)];
    measure(&table, &Partition { stages: vec![stage(0, middle), stage(middle, end)], placement: Placement::Cyclic })
}

const TWO: ReplicaLayout = ReplicaLayout { pipeline: 2, data: 1, replica: 0 };

/// Embedding and head share a 128,256 x 4,096 matrix, with a copy on the last rank. A frozen copy
/// has two bytes per parameter, like all frozen weights, and needs neither gradient reduction nor
/// an optimizer step.
#[test]
fn frozen_modules_have_frozen_tied_embeddings() {
    let memory_and_times = |frozen: bool| {
        let change = |model: &mut Model, training: &mut Training| {
            (model.modules[0].tied_embeddings, model.modules[0].frozen) = (true, frozen);
            training.zero = Some(0);
        };
        in_two_stages(change, |table, partition| {
            (table.state_memory(partition, TWO), table.step_end(partition, TWO, None))
        })
    };
    let (states, (sync, optimizer)) = memory_and_times(true);
    let (trained, (exchanged, stepped)) = memory_and_times(false);
    for rank in 0..2 {
        assert_eq!((states[rank].gradients, states[rank].optimizer), (Bytes::ZERO, Bytes::ZERO), "rank {rank}");
        assert_eq!((sync[rank], optimizer[rank]), (Nanos::ZERO, Nanos::ZERO), "rank {rank}");
        assert!(states[rank].weights.get().abs_diff(trained[rank].weights.get()) <= 1, "rank {rank}");
        assert!(exchanged[rank] > Nanos::ZERO && stepped[rank] > Nanos::ZERO);
    }
}

/// A Llama-3 8B layer has 218,112,000 parameters. Two layers are gathered with two bytes per
/// parameter. A trained layer adds four gradient bytes per parameter. The output block is excluded,
/// even for a module with two layers.
#[test]
fn gathered_layers_include_only_existing_parameters() {
    let bytes_per_parameter = |frozen: bool, layers: u32| {
        let change = |model: &mut Model, training: &mut Training| {
            (model.modules[0].frozen, model.modules[0].layers) = (frozen, layers);
            training.zero = Some(3);
        };
        in_two_stages(change, |table, partition| table.gathered_bytes(&partition.stages[0], TWO) / 218_112_000.0)
    };
    for layers in [2, 32] {
        let (trained, frozen) = (bytes_per_parameter(false, layers), bytes_per_parameter(true, layers));
        assert!((trained - 8.0).abs() < 1e-9 && (frozen - 4.0).abs() < 1e-9, "{layers}: {trained} {frozen}");
    }
}

/// Frozen weights remain unsharded if the optimizer state is sharded over all devices.
#[test]
fn frozen_weights_stay_unsharded_with_a_sharded_optimizer() {
    let disaggregated_state = |frozen: bool| {
        let change = |model: &mut Model, _: &mut Training| model.modules[0].frozen = frozen;
        in_two_stages(change, |table, partition| table.disaggregated(partition, TWO, 8))
    };
    let (trained, frozen) = (disaggregated_state(false), disaggregated_state(true));
    for (frozen, trained) in frozen.state.iter().zip(&trained.state) {
        assert!(frozen.weights.get().abs_diff(trained.weights.get()) <= 1);
        assert_eq!((frozen.gradients, frozen.optimizer), (Bytes::ZERO, Bytes::ZERO));
    }
}

/// Each of two stages has 16 layers and recomputes `again`. The microbatch time equals the sum of
/// the stage times. Balancing compares only full layers. The minimum time is a lower bound. With
/// full recomputation, the layer weight includes it.
#[test]
fn layer_weights_equal_their_stage_time() {
    for again in [None, Some(1), Some(8), Some(16), Some(40)] {
        let change = |_: &mut Model, training: &mut Training| {
            (training.recompute, training.recompute_layers) = (Recompute::Full, again);
        };
        in_two_stages(change, |table, partition| {
            let pieces = table.pieces[0].of(0);
            let stages: f64 = partition.stages.iter().map(|stage| table.stage_work(stage)).sum();
            let (taken, bound) = (table.microbatch_times(2)[0], table.min_time(0..1));
            assert!((taken / stages - 1.0).abs() < 1e-3, "{again:?}: {taken} and {stages}");
            assert!(bound <= stages, "{again:?}: {bound} and {stages}");
            let all = again.is_none_or(|again| again >= 16);
            let layer = if all { pieces.mean.layer } else { pieces.mean.without_recompute };
            assert_eq!(table.weights(2)[0].layer.to_bits(), layer.total().secs().to_bits(), "{again:?}");
        });
    }
}

/// On eight devices, TP 2 with EP 4 has half of two experts on a device, and expert TP 1 with EP 8 has one expert.
#[test]
fn whole_experts_have_replicas_in_the_tensor_group() {
    let cluster = cluster("h100").unwrap();
    let model = model("mixtral-8x7b").unwrap();
    let range = LayerRange::new(0, 0, model.modules[0].layers);
    let partition = Partition { stages: vec![vec![range]], placement: Placement::Cyclic };
    let replica_layout = ReplicaLayout { pipeline: 1, data: 4, replica: 0 };
    let state = |expert_parallel: u32, expert_tensor_parallel: Option<u32>| {
        let training = Training { expert_parallel, expert_tensor_parallel, ..Training::default() };
        LayerTable::new(&model, &cluster, &training, 2, &[]).state_memory(&partition, replica_layout)[0]
    };
    let (sharded, whole, replicated) = (state(4, None), state(8, Some(1)), state(4, Some(1)));
    assert_eq!(sharded, whole);
    // With EP 4, two replicas of all experts share the optimizer state.
    assert!(replicated.weights > sharded.weights);
    assert!(replicated.optimizer.get().abs_diff(sharded.optimizer.get()) < 1000);
}

/// Eight devices hold the Mixtral 8x7B experts, one per device and layer. The experts have no
/// replicas, so ZeRO-3 does not shard them further, trained or frozen. Dense parameters are sharded
/// over eight devices.
#[test]
fn frozen_experts_use_expert_replica_counts() {
    let cluster = cluster("h100").unwrap();
    let training = Training { zero: Some(3), expert_parallel: 8, ..Training::default() };
    let weights = |frozen: bool| {
        let mut model = model("mixtral-8x7b").unwrap();
        model.modules[0].frozen = frozen;
        let table = LayerTable::new(&model, &cluster, &training, 1, &[]);
        let range = LayerRange::new(0, 0, model.modules[0].layers);
        let partition = Partition { stages: vec![vec![range]], placement: Placement::Cyclic };
        let replica_layout = ReplicaLayout { pipeline: 1, data: 8, replica: 0 };
        (table.state_memory(&partition, replica_layout)[0].weights, model)
    };
    let ((frozen, model), (trained, _)) = (weights(true), weights(false));
    let module = &model.modules[0];
    let experts = module.range_parameters(0, module.layers).expert;
    let dense = model.parameters() - experts;
    assert!(frozen.get().abs_diff((experts + dense) / 8 * 2) < 1000, "{frozen:?}");
    assert!(frozen.get().abs_diff(trained.get()) < 1000, "{frozen:?} {trained:?}");
}

/// On 128 A100s, 128 of the 227 weight tensors' owners broadcast their weights one after the other. A broadcast passes
/// 127 steps of 11 us. Nothing hides this, whatever the overlap; other frameworks gather all weights at once.
#[test]
fn owners_broadcast_their_weights_one_after_the_other() {
    let (model, data) = (model("llama-3-8b").unwrap(), 128);
    let sequence = Sequence { samples: 1, tokens: 2048, computed_tokens: 2048, ..Sequence::default() };
    let loads = [MicrobatchLoad::new(&[sequence], &model, Packing::Packed)];
    let cluster = Cluster { nodes: 16, ..cluster("a100-80gb").unwrap() };
    let sync = |framework, data| {
        let training = Training { zero: Some(1), data_overlap: 1.0, framework, ..Training::default() };
        let table = LayerTable::new(&model, &cluster, &training, 1, &loads);
        let whole = vec![LayerRange::new(0, 0, model.modules[0].layers)];
        let partition = Partition { stages: vec![whole], placement: Placement::Cyclic };
        let layout = ReplicaLayout { pipeline: 1, data, replica: 0 };
        assert_eq!(table.rank_tensors(&partition, layout, 0).to_bits(), 227.0_f64.to_bits());
        table.step_end(&partition, layout, None).0[0].secs()
    };
    let (owners, gathered) = (sync(Framework::Internevo, data), sync(Framework::Megatron, data));
    let steps = 128.0 * 127.0 * 11e-6;
    assert!(owners - gathered > steps, "{owners} {gathered}");
    // With two nodes: 16 broadcasts of 15 steps each, and the same bytes.
    let few = sync(Framework::Internevo, 16);
    assert!((owners - few - steps).abs() < 0.1 * steps, "{owners} {few}");
}

/// 16 layers and the embedding are gathered one after the other, each with 15 steps of the ring.
#[test]
fn each_unit_of_a_stage_is_gathered_on_its_own() {
    let traffic = |change: fn(&mut Training)| {
        let change = move |_: &mut Model, training: &mut Training| {
            (training.zero, training.framework) = (Some(3), Framework::Fsdp);
            change(training);
        };
        in_two_stages(change, |table, partition| {
            let layout = ReplicaLayout { pipeline: 2, data: 8, replica: 0 };
            table.clone().of_replica(2).sharded_traffic(&partition.stages[0], layout)
        })
    };
    let all = traffic(|_| ());
    assert_eq!(all.units.to_bits(), 17.0_f64.to_bits());
    assert!(all.reduce > all.gather && all.gather > Seconds::ZERO);
    assert_eq!(traffic(|training| training.zero = Some(1)), ShardedTraffic::default());
    // ZeRO 2 reduces after every backward, unless the gradients stay unsharded.
    let reduced = ShardedTraffic { reduce: all.reduce, units: all.units, ..ShardedTraffic::default() };
    assert_eq!(traffic(|training| training.zero = Some(2)), reduced);
    let unsharded = traffic(|training| (training.zero, training.unsharded_gradients) = (Some(2), true));
    assert_eq!(unsharded, ShardedTraffic::default());
    // DeepSpeed gathers tensor by tensor: seven per layer and the embedding, 600 µs each.
    let host = traffic(|training| training.framework = Framework::Deepspeed).host.secs();
    assert!((host - 113.0 * 600e-6).abs() < 1e-9 && all.host == Seconds::ZERO, "{host}");
}

/// 16 nodes of 8 devices. Sharding within a node stores as much as on one node, gathers as fast as on one node, and
/// reduces a shard of an eighth between the nodes. A shard degree of all devices changes nothing.
#[test]
fn hybrid_sharding_has_a_copy_per_group() {
    let model = model("llama-3-8b").unwrap();
    let sequence = Sequence { samples: 1, tokens: 2048, computed_tokens: 2048, ..Sequence::default() };
    let loads = [MicrobatchLoad::new(&[sequence], &model, Packing::Packed)];
    let costs = |nodes, zero, shard_degree| {
        let cluster = Cluster { nodes, ..cluster("a100-80gb").unwrap() };
        let training = Training { zero: Some(zero), shard_degree, ..Training::default() };
        let table = LayerTable::new(&model, &cluster, &training, 1, &loads);
        let whole = vec![LayerRange::new(0, 0, model.modules[0].layers)];
        let partition = Partition { stages: vec![whole.clone()], placement: Placement::Cyclic };
        let layout = ReplicaLayout { pipeline: 1, data: nodes * 8, replica: 0 };
        let memory = table.static_memory(&partition, layout)[0].get();
        let (sync, optimizer) = table.step_end(&partition, layout, None);
        (memory, table.sharded_traffic(&whole, layout), sync[0], optimizer[0])
    };
    for zero in [1, 2, 3] {
        let (all, same, hybrid, node) =
            (costs(16, zero, None), costs(16, zero, Some(128)), costs(16, zero, Some(8)), costs(1, zero, None));
        assert_eq!(all, same);
        assert_eq!((hybrid.0, hybrid.3), (node.0, node.3), "memory and optimizer step are those of a node");
        assert!(hybrid.0 > all.0, "{hybrid:?} {all:?}");
        assert_eq!(hybrid.1.gather, node.1.gather, "weights stay inside the node");
        let reduced = if zero == 3 {
            hybrid.1.reduce - node.1.reduce
        } else {
            Seconds::from_secs((hybrid.2.get() - node.2.get()) as f64 * 1e-9)
        };
        let gradients = Training::default().gradients.bytes() * model.parameters() as f64;
        let units = if zero == 3 { hybrid.1.units } else { 1.0 };
        let cluster = Cluster { nodes: 16, ..cluster("a100-80gb").unwrap() };
        let between = Group::placed(&cluster, 16, 8).in_parts(Operation::AllReduce, gradients / 8.0, units);
        assert!((reduced.secs() / between.secs() - 1.0).abs() < 1e-6, "{reduced:?} {between:?}");
    }
    // 128 devices in groups of at most 12: eight.
    assert_eq!(costs(16, 3, Some(12)), costs(16, 3, Some(8)));
}

/// Without accumulation, gradients are reduced and sharded after the only microbatch.
#[test]
fn gradients_are_unsharded_only_between_microbatches() {
    let gradients = |unsharded_gradients, microbatches| {
        let change = |_: &mut Model, training: &mut Training| {
            (training.zero, training.unsharded_gradients) = (Some(3), unsharded_gradients);
        };
        in_two_stages(change, |table, partition| {
            let layout = ReplicaLayout { data: 4, ..TWO };
            table.clone().repeated(microbatches).state_memory(partition, layout)[0].gradients
        })
    };
    assert_eq!(gradients(true, 4), gradients(false, 4));
    assert_eq!(gradients(false, 8), gradients(false, 4));
    assert!(gradients(true, 8) > gradients(false, 8));
}

/// A table of one replica has fewer microbatches than there are replicas.
#[test]
fn the_microbatches_of_one_replica_accumulate() {
    let gradients = |microbatches| {
        let change = |_: &mut Model, training: &mut Training| {
            (training.zero, training.unsharded_gradients) = (Some(3), true);
        };
        in_two_stages(change, |table, partition| {
            let layout = ReplicaLayout { data: 4, ..TWO };
            table.clone().of_replica(microbatches).state_memory(partition, layout)[0].gradients
        })
    };
    assert!(gradients(2) > gradients(1));
    assert_eq!(gradients(8), gradients(2));
}

/// The shard of each gather crosses the link to the host, and so does each reduced gradient. The optimizer step moves
/// nothing and runs on the host.
#[test]
fn offloaded_parameters_cross_the_link_to_the_host() {
    let layout = ReplicaLayout { pipeline: 2, data: 8, replica: 0 };
    let costs = |is_offloaded: bool| {
        let change = move |_: &mut Model, training: &mut Training| {
            (training.zero, training.parameter_offload) = (Some(3), is_offloaded);
        };
        in_two_stages(change, |table, partition| {
            let stage = &partition.stages[0];
            let state = table.state_memory(partition, layout)[0];
            (table.sharded_traffic(stage, layout), state, table.ranges_parameters(stage).weights().iter().sum::<f64>())
        })
    };
    let ((offloaded, state, parameters), (sharded, on_device, _)) = (costs(true), costs(false));
    let rate = cluster("a100-80gb").unwrap().host_rate().get();
    for (more, bytes) in [(offloaded.gather - sharded.gather, 2.0), (offloaded.reduce - sharded.reduce, 4.0)] {
        let expected = bytes * parameters / 8.0 / rate;
        assert!((more.secs() / expected - 1.0).abs() < 1e-9, "{more:?} {expected}");
    }
    assert_eq!(state.total(), Bytes::ZERO);
    assert!(state.host.get().abs_diff(on_device.total().get()) <= 4, "{state:?} {on_device:?}");
}

/// Layers have 1 byte per weight in a gather, and in memory if one copy is enough. The embedding has 2.
#[test]
fn fp8_weights_have_one_byte() {
    let costs = |fp8_weights: bool, recipe: Fp8Recipe, zero: u32| {
        let change = move |_: &mut Model, training: &mut Training| {
            (training.precision, training.zero) = (Precision::Fp8, Some(zero));
            (training.fp8_weights, training.fp8_recipe) = (fp8_weights, Some(recipe));
        };
        let layout = ReplicaLayout { pipeline: 2, data: 8, replica: 0 };
        in_two_stages(change, |table, partition| {
            let gathered = table.ranges_parameters(&partition.stages[0]).weights()[0];
            (table.state_memory(partition, layout)[0].weights.get(), gathered)
        })
    };
    let (embedding, layers) = (128_256.0 * 4096.0, 16.0 * 218_112_000.0);
    let (wide, wide_gathered) = costs(false, Fp8Recipe::Delayed, 1);
    assert_eq!((wide, wide_gathered), ((2.0 * (embedding + layers)) as u64, embedding + layers));
    let (short, gathered) = costs(true, Fp8Recipe::Delayed, 1);
    assert_eq!((short, gathered), ((2.0 * embedding + layers) as u64, embedding + 0.5 * layers));
    // Scales of blocks differ by direction, so two copies are stored.
    assert_eq!(costs(true, Fp8Recipe::Blockwise, 1), (wide, gathered));
    assert_eq!(costs(true, Fp8Recipe::Delayed, 3).0, short / 8);
}

/// A frozen module without a backward gathers its weights before the forward only, and its host time counts once.
#[test]
fn frozen_layers_are_gathered_once() {
    let traffic = |frozen: bool| {
        let change = move |model: &mut Model, training: &mut Training| {
            model.modules[0].frozen = frozen;
            (training.zero, training.framework) = (Some(3), Framework::Deepspeed);
        };
        in_two_stages(change, |table, partition| {
            table.sharded_traffic(&partition.stages[0], ReplicaLayout { pipeline: 2, data: 8, replica: 0 })
        })
    };
    let (trained, frozen) = (traffic(false), traffic(true));
    assert_eq!((frozen.gather_backward, frozen.reduce, frozen.host_backward), Default::default());
    assert_eq!((frozen.gather, frozen.host), (trained.gather, trained.host));
    assert_eq!((trained.gather_backward, trained.host_backward), (trained.gather, trained.host));
}
