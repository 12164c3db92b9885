//! Effects of overrides on GPT-3 175B layers on eight A100s.

use super::{AtDegrees, CostOverride, OverridePhase, measured_to_predicted, timed_layers};
use crate::cost::{LayerCost, LayerModel, ModuleLoad};
use planscope_core::cluster::Cluster;
use planscope_core::cluster::presets::cluster;
use planscope_core::model::Module;
use planscope_core::model::presets::model;
use planscope_core::training::{AttentionKernel, Recompute, Training};
use planscope_core::units::Seconds;

const TOKENS: f64 = 2048.0;
const TENSOR: u32 = 8;

/// Creates an override without a time definition for `operator`.
fn override_for(operator: &str) -> CostOverride {
    let operator = operator.to_owned();
    CostOverride { operator, ..CostOverride::default() }
}

fn formula(operator: &str, phase: Option<OverridePhase>, formula: &str) -> CostOverride {
    CostOverride { phase, formula_us: Some(formula.to_owned()), ..override_for(operator) }
}

fn scale(operator: &str, phase: Option<OverridePhase>, factor: f64) -> CostOverride {
    CostOverride { phase, scale: Some(factor), ..override_for(operator) }
}

/// Unfused attention, optional recomputation, no overlap.
fn training(recompute: Recompute, overrides: Vec<CostOverride>) -> Training {
    let attention = if recompute == Recompute::Selective { AttentionKernel::Unfused } else { AttentionKernel::Flash };
    Training { recompute, attention, overlapped_backward: false, overrides, ..Training::default() }
}

struct Setting {
    module: Module,
    cluster: Cluster,
}

impl Setting {
    fn gpt() -> Self {
        Self { module: model("gpt-3-175b").unwrap().modules.remove(0), cluster: cluster("a100-80gb").unwrap() }
    }

    fn under<'a>(&'a self, training: &'a Training) -> LayerModel<'a> {
        LayerModel::new(&self.module, &self.cluster, training, TENSOR)
    }
}

/// A single sequence.
const LOAD: ModuleLoad = ModuleLoad::unpadded(TOKENS, TOKENS * TOKENS);

/// Returns the layer cost with the given recomputation and overrides.
fn layer(recompute: Recompute, overrides: Vec<CostOverride>) -> LayerCost {
    Setting::gpt().under(&training(recompute, overrides)).layer(LOAD)
}

/// Predicted times for the layer's operators with this name, in execution order, in microseconds.
fn predicted(name: &str) -> Vec<f64> {
    let all = Setting::gpt().under(&training(Recompute::None, vec![])).predictions(LOAD).layer;
    all.iter().filter(|(operator, _)| operator.name == name).map(|(_, time)| time.secs() * 1e6).collect()
}

#[track_caller]
fn assert_micros(time: Seconds, expected: f64) {
    let micros = time.secs() * 1e6;
    assert!((micros - expected).abs() < 1e-6 * (1.0 + expected.abs()), "{micros} µs for {expected}");
}

const FORWARD: Option<OverridePhase> = Some(OverridePhase::Forward);
const BACKWARD: Option<OverridePhase> = Some(OverridePhase::Backward);

#[test]
fn an_operator_uses_overrides_for_every_phase_or_a_single_phase() {
    let plain = layer(Recompute::None, vec![]);
    // One product for the forward and one per gradient.
    let [forward, input_grad, weight_grad] = predicted("qkv")[..] else { panic!("three products") };
    let all = layer(Recompute::None, vec![formula("qkv", None, "123.5")]);
    assert_micros(all.forward - plain.forward, 123.5 - forward);
    assert_micros(all.input_grad - plain.input_grad, 123.5 - input_grad);
    assert_micros(all.weight_grad - plain.weight_grad, 123.5 - weight_grad);
    let single_phase = layer(Recompute::None, vec![formula("qkv", Some(OverridePhase::WeightGrad), "123.5")]);
    assert_eq!((single_phase.forward, single_phase.input_grad), (plain.forward, plain.input_grad));
    assert_micros(single_phase.weight_grad - plain.weight_grad, 123.5 - weight_grad);
    let both = layer(Recompute::None, vec![scale("qkv", BACKWARD, 3.0)]);
    assert_eq!(both.forward, plain.forward);
    assert_micros(both.input_grad - plain.input_grad, 2.0 * input_grad);
    assert_micros(both.weight_grad - plain.weight_grad, 2.0 * weight_grad);
    assert_eq!((both.activation, both.transient), (plain.activation, plain.transient), "memory is no time");
}

#[test]
fn a_table_and_a_formula_see_the_load() {
    let plain = layer(Recompute::None, vec![]);
    let forward = predicted("qkv")[0];
    // 2048 is the midpoint between 1024 and 3072.
    let table_us = Some(vec![[1024.0, 100.0], [3072.0, 300.0]]);
    let table = layer(Recompute::None, vec![CostOverride { phase: FORWARD, table_us, ..override_for("qkv") }]);
    assert_micros(table.forward - plain.forward, 200.0 - forward);
    let seen = layer(Recompute::None, vec![formula("qkv", FORWARD, "predicted_us + tokens / tp")]);
    assert_micros(seen.forward - plain.forward, 256.0);
    // 2 n h (3 h / t) operations.
    let flops = layer(Recompute::None, vec![formula("qkv", FORWARD, "flops / (tokens * hidden^2) * tp")]);
    assert_micros(flops.forward - plain.forward, 6.0 - forward);
}

#[test]
fn collective_overrides_count_as_communication() {
    let plain = layer(Recompute::None, vec![]);
    // Before attention and before the MLP; the backward gathers four times.
    let gathers = predicted("gather sequence");
    let given = layer(Recompute::None, vec![formula("gather sequence", FORWARD, "1000")]);
    let more = 2.0 * 1000.0 - gathers[0] - gathers[1];
    assert_micros(given.forward - plain.forward, more);
    assert_micros(given.exposed_forward - plain.exposed_forward, more);
    assert_micros(given.communication - plain.communication, more);
    assert_eq!(given.exposed_backward, plain.exposed_backward);
    let half = Training { tensor_overlap: 0.5, ..training(Recompute::None, vec![]) };
    let hidden = |overrides| Setting::gpt().under(&Training { overrides, ..half.clone() }).layer(LOAD);
    let (before, after) = (hidden(vec![]), hidden(vec![formula("gather sequence", FORWARD, "1000")]));
    // Half of seven of eight chunks overlap products, which they slow by 12.56 %.
    assert_micros(after.exposed_forward - before.exposed_forward, more * (1.0 - 0.5 * 0.875 * (1.0 - 0.1256)));
}

#[test]
fn recomputation_repeats_overridden_times() {
    let plain = layer(Recompute::Full, vec![]);
    let given = layer(Recompute::Full, vec![formula("qkv", FORWARD, "5000")]);
    let more = 5000.0 - predicted("qkv")[0];
    assert_micros(given.forward - plain.forward, more);
    assert_micros(given.recomputed - plain.recomputed, more);
    assert_micros(given.input_grad - plain.input_grad, more);
    // Selective recomputation repeats the softmax, which belongs to the attention core, but not the
    // projection.
    let plain = layer(Recompute::Selective, vec![]);
    let given = layer(Recompute::Selective, vec![scale("softmax", FORWARD, 2.0), scale("projection", FORWARD, 2.0)]);
    let softmax = layer(Recompute::Selective, vec![scale("softmax", FORWARD, 2.0)]).forward - plain.forward;
    assert!(softmax > Seconds::ZERO);
    assert_micros(given.recomputed - plain.recomputed, softmax.secs() * 1e6);
}

#[test]
fn layer_overrides_set_the_total_and_keep_proportions() {
    let plain = layer(Recompute::None, vec![]);
    let forward = layer(Recompute::None, vec![formula("layer", FORWARD, "9000")]);
    assert_micros(forward.forward, 9000.0);
    let factor = forward.forward.secs() / plain.forward.secs();
    assert_micros(forward.exposed_forward, plain.exposed_forward.secs() * 1e6 * factor);
    assert_eq!((forward.input_grad, forward.weight_grad), (plain.input_grad, plain.weight_grad));

    let backward = layer(Recompute::None, vec![formula("layer", BACKWARD, "tokens * 10")]);
    assert_micros(backward.input_grad + backward.weight_grad, 20_480.0);
    let share = |cost: &LayerCost| cost.input_grad.secs() / (cost.input_grad + cost.weight_grad).secs();
    assert!((share(&backward) - share(&plain)).abs() < 1e-12);
    assert_eq!(backward.forward, plain.forward);

    let total = |cost: &LayerCost| cost.forward + cost.input_grad + cost.weight_grad;
    let full_layer = layer(Recompute::None, vec![formula("layer", None, "30000")]);
    assert_micros(total(&full_layer), 30_000.0);
    assert!(
        (full_layer.forward.secs() / total(&full_layer).secs() - plain.forward.secs() / total(&plain).secs()).abs()
            < 1e-12
    );
    let doubled = layer(Recompute::None, vec![scale("layer", None, 2.0)]);
    for (twice, once) in [
        (doubled.forward, plain.forward),
        (doubled.input_grad, plain.input_grad),
        (doubled.weight_grad, plain.weight_grad),
        (doubled.exposed_forward, plain.exposed_forward),
        (doubled.exposed_backward, plain.exposed_backward),
        (doubled.communication, plain.communication),
        (doubled.host_forward, plain.host_forward),
        (doubled.host_backward, plain.host_backward),
    ] {
        assert_eq!(twice, once * 2.0);
    }
}

#[test]
fn recomputed_layer_repeats_its_forward_with_an_overridden_backward() {
    let overrides = vec![formula("layer", FORWARD, "9000"), formula("layer", BACKWARD, "17000")];
    let (stored, again) = (layer(Recompute::None, overrides.clone()), layer(Recompute::Full, overrides));
    assert_micros(stored.input_grad + stored.weight_grad, 17_000.0);
    assert_micros(again.input_grad + again.weight_grad, 26_000.0);
    assert_micros(again.recomputed, 9000.0 - again.exposed_forward.secs() * 1e6);
}

#[test]
fn cpu_time_does_not_delay_an_overridden_layer() {
    let plain = layer(Recompute::None, vec![]);
    assert!(plain.host_forward > Seconds::ZERO, "the preset knows the host's time");
    let short = layer(Recompute::None, vec![formula("layer", None, "10")]);
    assert_micros(short.total(), 10.0);
    let long = layer(Recompute::None, vec![formula("layer", None, "1e6")]);
    assert_eq!(long.host_forward, plain.host_forward);
}

#[test]
fn the_last_matching_override_applies_and_layers_follow_operators() {
    let (first, second) = (formula("qkv", None, "1"), formula("qkv", FORWARD, "2"));
    let last = layer(Recompute::None, vec![first.clone(), second.clone()]);
    let only = layer(Recompute::None, vec![second.clone(), formula("qkv", BACKWARD, "1")]);
    assert_eq!(last, only);
    assert_eq!(layer(Recompute::None, vec![second, first.clone()]), layer(Recompute::None, vec![first.clone()]));
    let stretched = layer(Recompute::None, vec![scale("layer", None, 2.0), first.clone()]);
    assert_eq!(stretched.forward, layer(Recompute::None, vec![first]).forward * 2.0);
    let layers = vec![formula("layer", None, "30000"), formula("layer", FORWARD, "1000")];
    let separate = layer(Recompute::None, layers);
    assert_micros(separate.forward, 1000.0);
    let full_layer = layer(Recompute::None, vec![formula("layer", None, "30000")]);
    assert_eq!(separate.weight_grad, full_layer.weight_grad);
}

#[test]
fn invalid_times_and_other_modules_change_nothing() {
    let plain = layer(Recompute::None, vec![]);
    for nothing in [
        formula("qkv", None, "-1"),
        formula("qkv", None, "1 / 0"),
        formula("layer", None, "0 - tokens"),
        formula("qkv", None, "no formula"),
        CostOverride { module: Some("ViT 5B".to_owned()), ..scale("qkv", None, 2.0) },
        scale("router", None, 2.0),
    ] {
        assert_eq!(layer(Recompute::None, vec![nothing.clone()]), plain, "{nothing:?}");
    }
    let mine = CostOverride { module: Some("GPT-3 175B".to_owned()), ..scale("layer", None, 2.0) };
    assert_eq!(layer(Recompute::None, vec![mine]).forward, plain.forward * 2.0);
}

#[test]
fn layer_overrides_exclude_input_and_output_blocks() {
    let setting = Setting::gpt();
    let ends = |overrides| {
        let training = training(Recompute::None, overrides);
        let model = setting.under(&training);
        (model.input(LOAD), model.output(LOAD))
    };
    assert_eq!(ends(vec![scale("layer", None, 2.0)]), ends(vec![]));
    let (_, plain) = ends(vec![]);
    let (_, longer) = ends(vec![formula("loss", FORWARD, "predicted_us + 50")]);
    assert_micros(longer.forward - plain.forward, 50.0);
}

/// T(l) = 1e-4 l² + 3 l + 200 µs: one sequence with 2048 tokens takes 419.4304 + 6144 + 200, two
/// with 1024 take 209.7152 + 6144 + 200. The result is equal for all context-parallel degrees,
/// because lengths refer to unsplit sequences.
#[test]
fn timings_apply_only_at_their_degrees() {
    let plain = layer(Recompute::None, vec![]);
    let timing = |(l, k): (f64, f64)| [l, k, k * (1e-4 * l * l + 3.0 * l) + 200.0];
    let timings_us = [(1024.0, 1.0), (2048.0, 1.0), (4096.0, 1.0), (1024.0, 4.0)].map(timing).to_vec();
    let timed = |tensor, context| {
        let at = Some(AtDegrees { tensor, context, exchange: None });
        CostOverride { at, timings_us: Some(timings_us.clone()), ..override_for("layer") }
    };
    assert_eq!(layer(Recompute::None, vec![timed(TENSOR, 2)]), plain);
    assert_eq!(layer(Recompute::None, vec![timed(4, 1)]), plain);
    let total = |cost: &LayerCost| cost.forward + cost.input_grad + cost.weight_grad;
    assert_micros(total(&layer(Recompute::None, vec![timed(TENSOR, 1)])), 6763.4304);
    let setting = Setting::gpt();
    let cut = Training { context_parallel: 2, ..training(Recompute::None, vec![timed(TENSOR, 2)]) };
    assert_micros(total(&setting.under(&cut).layer(LOAD)), 6763.4304);
    let packed = ModuleLoad::unpadded(TOKENS, 2.0 * 1024.0 * 1024.0);
    assert_micros(total(&setting.under(&cut).layer(packed)), 6553.7152);
    let [known] = timed_layers(&cut, &setting.module)[..] else { panic!("one list of timings") };
    assert!((known.timings, known.at.unwrap().context) == (4, 2) && known.fit.max_error < 1e-9, "{known:?}");
}

/// Timings equal to three times the prediction at TP 8 give a ratio of three, regardless of
/// existing layer overrides.
#[test]
fn measured_times_are_compared_with_raw_predictions() {
    let setting = Setting::gpt();
    let at = AtDegrees { tensor: TENSOR, context: 1, exchange: None };
    let plain = training(Recompute::None, vec![]);
    let micros = |tokens: f64| {
        let cost = setting.under(&plain).layer(ModuleLoad::unpadded(tokens, tokens * tokens));
        (cost.forward + cost.input_grad + cost.weight_grad).secs() * 1e6
    };
    let timings = [1024.0, 2048.0, 8192.0].map(|tokens| [tokens, 1.0, 3.0 * micros(tokens)]);
    let scaled = training(Recompute::Full, vec![scale("layer", None, 7.0)]);
    for training in [&plain, &scaled] {
        let ratio = measured_to_predicted(&setting.module, &setting.cluster, training, at, &timings);
        assert!((ratio / 3.0 - 1.0).abs() < 1e-9, "{ratio}");
    }
}
