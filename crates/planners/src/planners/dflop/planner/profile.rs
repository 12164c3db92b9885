//! Model profiler: throughput and memory tables from a module's operators (DFLOP Sec. 3.2.1).

use crate::planners::dflop::{ActivationTable, Curve, DegreeProfile, ItemWork, ModuleProfile, StateSize, StateTable};
use planscope_core::model::{Model, Module};
use planscope_core::workload::Sequence;
use planscope_core::workload::preprocessed::ItemSize;
use planscope_cost::cost::layer::LayerModel;
use planscope_cost::cost::memory::StateBytes;
use planscope_cost::cost::{LayerCost, ModuleLoad};
use planscope_plan::scenario::Scenario;

/// Profiled encoder sizes: images or clips per microbatch.
const BATCHES: [u32; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 256];
/// Profiled backbone lengths in tokens.
const LENGTHS: [u32; 10] = [128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536];
/// Ratio of forward plus backward FLOPs to forward FLOPs.
const WITH_BACKWARD: f64 = 3.0;

/// Returns the encoder index if the model has exactly an encoder and a backbone, otherwise `None`.
pub(crate) fn encoder_index(model: &Model) -> Option<usize> {
    let [_, backbone] = model.modules.as_slice() else { return None };
    let reads = model.fed_by(1) == [0] && backbone.role == planscope_core::model::ModuleRole::Backbone;
    reads.then_some(0)
}

pub(crate) fn encoder(scenario: &Scenario) -> ModuleProfile {
    let module = &scenario.model.modules[0];
    let length = f64::from(module.tokens_per_item());
    let load = |batch: u32| {
        let items = f64::from(batch);
        ModuleLoad { items, ..ModuleLoad::unpadded(items * length, items * length * length) }
    };
    profile(scenario, 0, |costs, tensor| {
        let rate = |batch: &u32| {
            let flops = encoder_flops(module, f64::from(*batch));
            (f64::from(*batch), flops / (seconds(costs, module, load(*batch)) * tensor))
        };
        let table = |value: &dyn Fn(ModuleLoad) -> f64| {
            points(BATCHES.iter().map(|&batch| (f64::from(batch), value(load(batch)))))
        };
        Tables {
            linear: points(BATCHES.iter().map(rate)),
            attention: Curve::constant(1.0),
            layer: table(&|load| costs.layer(load).activation),
            fixed: table(&|load| fixed_memory(costs, load)),
        }
    })
}

/// Profiles the backbone. Attention time is the sequence time minus the time for equal tokens
/// without attention.
pub(crate) fn backbone(scenario: &Scenario) -> ModuleProfile {
    let module = &scenario.model.modules[1];
    let linear = |length: u32| ModuleLoad::unpadded(length.into(), 0.0);
    let full_load = |length: u32| ModuleLoad::unpadded(length.into(), f64::from(length) * f64::from(length));
    profile(scenario, 1, |costs, tensor| {
        let linear_rate = |&length: &u32| {
            let taken = seconds(costs, module, linear(length));
            (f64::from(length), linear_flops(module, length.into()) / (taken * tensor))
        };
        let attention_rate = |&length: &u32| {
            let taken = seconds(costs, module, full_load(length)) - seconds(costs, module, linear(length));
            let squared = f64::from(length) * f64::from(length);
            (
                f64::from(length),
                attention_flops(module, f64::from(length), squared) / (taken.max(f64::MIN_POSITIVE) * tensor),
            )
        };
        let table = |value: &dyn Fn(ModuleLoad) -> f64| {
            points(LENGTHS.iter().map(|&length| (f64::from(length), value(full_load(length)))))
        };
        Tables {
            linear: points(LENGTHS.iter().map(linear_rate)),
            attention: points(LENGTHS.iter().map(attention_rate)),
            layer: table(&|load| costs.layer(load).activation),
            fixed: table(&|load| fixed_memory(costs, load)),
        }
    })
}

/// Computes the work of a sequence for both modules.
pub(crate) fn work(model: &Model, sequence: &Sequence) -> ItemWork {
    let (encoder, backbone) = (&model.modules[0], &model.modules[1]);
    let (items, lengths) = if encoder.audio.is_some() {
        (sequence.audio_clips, &sequence.clip_lengths)
    } else {
        (sequence.images, &sequence.image_lengths)
    };
    let item_size = ItemSize::from_module(encoder);
    let encoded = lengths.encoded((items, items), item_size);
    let tokens = f64::from(sequence.computed_tokens);
    ItemWork {
        // In units of items with the profiled length.
        batch: encoded.tokens / item_size.encoder.max(1.0),
        length: tokens,
        encoder_flops: linear_flops(encoder, encoded.tokens)
            + attention_flops(encoder, encoded.tokens, encoded.squared),
        linear_flops: linear_flops(backbone, tokens),
        attention_flops: attention_flops(backbone, tokens, sequence.squared as f64),
        weight: 1.0,
    }
}

struct Tables {
    linear: Curve,
    attention: Curve,
    layer: Curve,
    fixed: Curve,
}

/// Profiles a module at all TP degrees inside a node that divide its heads.
fn profile(scenario: &Scenario, index: usize, tables: impl Fn(&LayerModel<'_>, f64) -> Tables) -> ModuleProfile {
    let module = &scenario.model.modules[index];
    let node = scenario.cluster.devices_per_node;
    let divides = |tensor: &u32| node.is_multiple_of(*tensor) && module.supports_tensor(*tensor);
    let degree_profile = |tensor: u32| {
        let costs = LayerModel::new(module, &scenario.cluster, &scenario.training, tensor)
            .with_gradients(scenario.model.module_gradients(index));
        let Tables { linear, attention, layer, fixed } = tables(&costs, f64::from(tensor));
        DegreeProfile {
            tensor,
            linear,
            attention,
            state: states(scenario, module, f64::from(tensor)),
            activation: ActivationTable { layer, fixed },
        }
    };
    ModuleProfile { layers: module.layers, degrees: (1..=node).filter(divides).map(degree_profile).collect() }
}

/// Model states of a module. Frozen parameters need weight memory only; a projection after a frozen
/// module is trained.
fn states(scenario: &Scenario, module: &Module, tensor: f64) -> StateTable {
    let full = StateBytes::new(&scenario.training, 1.0);
    // With infinitely many replicas, only the unsharded part remains.
    let replicated = StateBytes::new(&scenario.training, f64::INFINITY);
    let state_size = |parameters: u64, frozen: bool| {
        let (all, unsharded) =
            if frozen { (full.weights, replicated.weights) } else { (full.total(), replicated.total()) };
        let shard_degree = scenario.training.shard_degree;
        StateSize { bytes: parameters as f64 * all / tensor, sharded: 1.0 - unsharded / all, shard_degree }
    };
    StateTable {
        layer: state_size(module.layer_parameters(), module.frozen),
        first: state_size(module.input_parameters(), module.frozen),
        last: state_size(module.output_parameters(), module.frozen && !module.has_projection()),
    }
}

fn points(points: impl Iterator<Item = (f64, f64)>) -> Curve {
    // A free operator on an ideal device has infinite throughput. Use a large finite value instead.
    let finite = |(size, value): (f64, f64)| (size, if value.is_finite() { value } else { f64::MAX.sqrt() });
    Curve::new(points.map(finite).collect()).expect("sizes ascend and values are finite")
}

/// Forward plus backward time for all layers, in seconds.
fn seconds(costs: &LayerModel<'_>, module: &Module, load: ModuleLoad) -> f64 {
    let layers = costs.layer(load).total().secs() * f64::from(module.layers);
    layers + costs.input(load).total().secs() + costs.output(load).total().secs()
}

/// Memory independent of stored layer activations, in bytes: input and output operators of the
/// module, and temporary buffers in the backward pass.
fn fixed_memory(costs: &LayerModel<'_>, load: ModuleLoad) -> f64 {
    let [layer, input, output]: [LayerCost; 3] = [costs.layer(load), costs.input(load), costs.output(load)];
    input.activation + output.activation + layer.transient.max(output.transient)
}

fn encoder_flops(module: &Module, items: f64) -> f64 {
    let length = f64::from(module.tokens_per_item());
    linear_flops(module, items * length) + attention_flops(module, items * length, items * length * length)
}

fn linear_flops(module: &Module, tokens: f64) -> f64 {
    WITH_BACKWARD * (module.linear_flops(tokens) + module.head_flops(tokens)).get()
}

fn attention_flops(module: &Module, tokens: f64, squared: f64) -> f64 {
    WITH_BACKWARD * module.attention_flops(tokens, squared).get()
}

#[cfg(test)]
mod tests {
    use super::*;
    use planscope_core::stage_graph::Placement;
    use planscope_core::workload::Packing;
    use planscope_cost::cost::partition::LayerRange;
    use planscope_cost::cost::{MicrobatchLoad, Partition, Pricing, ReplicaLayout};

    fn scenario(model: &str) -> Scenario {
        let scenario_json = serde_json::json!({
            "schema": "scenario/1", "model": { "preset": model }, "cluster": { "preset": "a100-80gb", "nodes": 1 },
            "workload": {
                "samples": {
                    "kind": "drawn", "text_tokens": { "kind": "constant", "value": 512 },
                    "images": { "kind": "constant", "value": 2 }
                },
                "global_batch": 8, "context_length": 8192, "packing": "packed", "max_samples": 1
            },
            "planners": ["1f1b"]
        });
        planscope_plan::scenario::parse(&scenario_json.to_string()).unwrap()
    }

    /// At profiled sizes, the tables reproduce operator times up to floating-point rounding.
    #[test]
    fn tables_reproduce_profiled_times() {
        let scenario = scenario("llava-ov-7b");
        let model = &scenario.model;
        let (encoder_profile, backbone_profile) = (encoder(&scenario), backbone(&scenario));
        assert_eq!(backbone_profile.degrees.iter().map(|degree| degree.tensor).collect::<Vec<_>>(), [1, 2, 4]);
        let sequence = Sequence {
            samples: 1,
            tokens: 4096,
            computed_tokens: 4096,
            squared: 4096 * 4096,
            useful_squared: 4096 * 4096,
            images: 4,
            ..Sequence::default()
        };
        let load = [MicrobatchLoad::new(&[sequence], model, Packing::Packed)];
        let pricing = Pricing::new(model, &scenario.cluster, &scenario.training);
        let work = work(model, &sequence);
        for (index, tensor) in [1, 2, 4].into_iter().enumerate() {
            let table = pricing.table(tensor, &load);
            let expected = |module: usize| {
                let weight = table.mean_weight(module, &[0], 1);
                weight.layer * f64::from(model.modules[module].layers) + weight.input + weight.output
            };
            let tensor = f64::from(tensor);
            let profile = &encoder_profile.degrees[index];
            let taken = work.encoder_flops / (profile.linear.at(4.0) * tensor);
            assert!((taken / expected(0) - 1.0).abs() < 1e-9, "{taken} {}", expected(0));
            let profile = &backbone_profile.degrees[index];
            let taken =
                work.linear_flops / profile.linear.at(4096.0) + work.attention_flops / profile.attention.at(4096.0);
            assert!((taken / tensor / expected(1) - 1.0).abs() < 1e-9, "{taken} {}", expected(1));
        }
    }

    /// A frozen encoder has no backward pass and stores only weights. Time and memory match the
    /// cost model for one and four replicas at all ZeRO stages.
    #[test]
    fn frozen_modules_are_profiled_as_frozen() {
        for (frozen, zero) in [(0, 1), (0, 3), (1, 0), (1, 2)] {
            let mut scenario = scenario("llava-ov-7b");
            scenario.model.modules[frozen].frozen = true;
            scenario.training.zero = Some(zero);
            let (model, profiles) = (&scenario.model, [encoder(&scenario), backbone(&scenario)]);
            let pricing = Pricing::new(model, &scenario.cluster, &scenario.training);
            let sequence = Sequence {
                samples: 1,
                tokens: 4096,
                computed_tokens: 4096,
                squared: 4096 * 4096,
                useful_squared: 4096 * 4096,
                images: 4,
                ..Sequence::default()
            };
            let load = [MicrobatchLoad::new(&[sequence], model, Packing::Packed)];
            let table = pricing.table(2, &load);
            let weight = table.mean_weight(0, &[0], 1);
            let expected = weight.layer * f64::from(model.modules[0].layers) + weight.input + weight.output;
            let [encoder_profile, _] = profiles.each_ref().map(|profile| &profile.degrees[1]);
            let taken = work(model, &sequence).encoder_flops / encoder_profile.linear.at(4.0) / 2.0;
            assert!((taken / expected - 1.0).abs() < 1e-9, "{taken} {expected}");
            let stages = (0..2).map(|module| vec![LayerRange::new(module, 0, model.modules[module].layers)]);
            let partition = Partition { stages: stages.collect(), placement: Placement::Cyclic };
            for data in [1, 4] {
                let memory = table.static_memory(&partition, ReplicaLayout { pipeline: 2, data, replica: 0 });
                for (profile, rank_memory) in profiles.iter().zip(memory) {
                    let (state, bytes) =
                        (profile.degrees[1].state.bytes(profile.layers, true, data), rank_memory.get() as f64);
                    assert!((state / bytes - 1.0).abs() < 1e-6, "ZeRO {zero}, DP {data}: {state} {bytes}");
                }
            }
        }
    }

    #[test]
    fn other_models_are_not_for_dflop() {
        for (id, expected) in [
            ("llava-ov-7b", Some(0)),
            ("qwen2-audio-7b", Some(0)),
            ("omni-7b", None),
            ("llama-3-8b", None),
            ("t2v-s", None),
        ] {
            assert_eq!(encoder_index(&planscope_core::model::presets::model(id).unwrap()), expected, "{id}");
        }
    }
}
