#![allow(clippy::float_cmp, reason = "small sums of numbers that are exact, or the same sum twice")]

use proptest::prelude::*;

use super::*;
use crate::planners::dflop::curve::Curve;
use crate::planners::dflop::profile::{ActivationTable, DegreeProfile, StateSize, StateTable};

fn constant(tensor: u32, rate: f64, state: f64, activation: f64) -> DegreeProfile {
    DegreeProfile {
        tensor,
        linear: Curve::constant(rate),
        attention: Curve::constant(rate),
        state: StateTable { layer: StateSize::replicated(state), ..StateTable::default() },
        activation: ActivationTable {
            layer: Curve::new(vec![(0.0, 0.0), (1.0, activation)]).unwrap(),
            fixed: Curve::constant(0.0),
        },
    }
}

fn states(bytes: [f64; 3], sharded: f64) -> StateTable {
    let [layer, first, last] = bytes.map(|bytes| StateSize { bytes, sharded, shard_degree: None });
    StateTable { layer, first, last }
}

fn item(batch: f64, length: f64, encoder: f64, linear: f64, attention: f64) -> ItemWork {
    let [encoder_flops, linear_flops, attention_flops] = [encoder, linear, attention];
    ItemWork { batch, length, encoder_flops, linear_flops, attention_flops, weight: 1.0 }
}

fn input(devices: u32, memory: f64, global_batch: u32, items: Vec<ItemWork>) -> OptimizerInput {
    let module = |layers| ModuleProfile { layers, degrees: vec![constant(1, 1.0, 0.0, 1.0)] };
    OptimizerInput {
        devices,
        devices_per_node: 8,
        memory,
        global_batch,
        encoder: module(4),
        backbone: module(4),
        items,
        fixed: Fixed::default(),
    }
}

/// DFLOP Alg. 1 by full enumeration, for any objective.
fn by_trying_all(
    input: &OptimizerInput,
    time: impl Fn(&Durations<'_>, &Configuration) -> f64,
) -> Option<(f64, Configuration)> {
    let durations = Durations::new(input);
    let mut best: Option<(f64, Configuration)> = None;
    for encoders in 1..input.devices {
        for encoder in all(&input.encoder, encoders, input.devices_per_node) {
            for backbone in all(&input.backbone, input.devices - encoders, input.devices_per_node) {
                let Fixed { tensor, pipeline, items } = input.fixed;
                let is = |fixed: Option<u32>, degree: u32| fixed.is_none() || fixed == Some(degree);
                if !is(tensor, backbone.tensor) || !is(pipeline, backbone.pipeline) {
                    continue;
                }
                let max_count = input.global_batch / backbone.data;
                for microbatches in 1..=max_count {
                    // Minimum number of microbatches with up to `items` items per microbatch and
                    // replica.
                    let fewer = microbatches - 1;
                    if items.is_some_and(|items| {
                        items * microbatches < max_count || (fewer > 0 && items * fewer >= max_count)
                    }) {
                        continue;
                    }
                    let configuration = Configuration { encoder, backbone, microbatches };
                    let estimate = durations.estimate(input, configuration);
                    if estimate.encoder_bytes > input.memory || estimate.backbone_bytes > input.memory {
                        continue;
                    }
                    let time = time(&durations, &configuration);
                    if best.is_none_or(|(known, _)| time < known) {
                        best = Some((time, configuration));
                    }
                }
            }
        }
    }
    best
}

fn all(profile: &ModuleProfile, devices: u32, node: u32) -> Vec<Degrees> {
    let mut found = Vec::new();
    for tensor in (1..=node).filter(|tensor| profile.degrees.iter().any(|degree| degree.tensor == *tensor)) {
        for pipeline in 1..=profile.layers {
            for data in 1..=devices {
                let degrees = Degrees { tensor, pipeline, data };
                if degrees.devices() == devices {
                    found.push(degrees);
                }
            }
        }
    }
    found
}

/// 4 devices, all throughputs 1, global batch 4. Per item, the encoder has work 1 and the backbone
/// 3 (2 linear, 1 attention).
#[test]
fn devices_follow_the_work() {
    let optimized = optimize(&input(4, 1e9, 4, vec![item(1.0, 1.0, 1.0, 2.0, 1.0)])).unwrap();
    // On a single encoder device, 4 items take 4 s. Backbone PP 1, DP 3 has a microbatch with 4/3
    // items: (1 + 2 - 1) max(4, 4) = 8. PP 3, DP 1: i = 4, (4 + 4 - 1) max(1, 1) = 7.
    let degrees = |tensor, pipeline, data| Degrees { tensor, pipeline, data };
    let expected = Configuration { encoder: degrees(1, 1, 1), backbone: degrees(1, 3, 1), microbatches: 4 };
    assert_eq!(optimized.by_mean_item.configuration, expected);
    assert_eq!((optimized.by_mean_item.mean_item_time, optimized.by_mean_item.encoder_seconds), (7.0, 1.0));
    assert_eq!(optimized.by_mean_time.configuration, expected, "one item is its own mean");
    // Splits: 1 + 3 devices: 1 x 2 (PP 1 or 3); 2 + 2: 2 x 2; 3 + 1: 2 x 1.
    assert_eq!(optimized.pairs, 8);
    // i up to 4 / DP: 1 x (1 + 4) + 2 x (2 + 4) + 2 x 4.
    assert_eq!(optimized.strategies, 25);
}

/// The same input with fixed degrees. PP 1: one encoder device and backbone DP 3, a microbatch with
/// 4/3 items, (1 + 2 - 1) max(4, 4) = 8. A split into 2 + 2 devices takes (2 + 2 - 1) max(1, 3) =
/// 9. PP 3 and two items per microbatch: i = 2, (2 + 4 - 1) max(2, 2) = 10. Only the items are
/// fixed, to two per microbatch: i = 1 with DP 3, again 8.
#[test]
fn fixed_degrees_are_not_searched() {
    let with = |fixed| {
        let input = OptimizerInput { fixed, ..input(4, 1e9, 4, vec![item(1.0, 1.0, 1.0, 2.0, 1.0)]) };
        optimize(&input).unwrap()
    };
    let none = Fixed::default();
    for (fixed, pipeline, data, microbatches, time) in [
        (Fixed { pipeline: Some(1), ..none }, 1, 3, 1, 8.0),
        (Fixed { pipeline: Some(3), items: Some(2), ..none }, 3, 1, 2, 10.0),
        (Fixed { items: Some(2), ..none }, 1, 3, 1, 8.0),
    ] {
        let optimized = with(fixed);
        let Configuration { backbone, microbatches: count, .. } = optimized.by_mean_item.configuration;
        assert_eq!((backbone.pipeline, backbone.data, count), (pipeline, data, microbatches), "{fixed:?}");
        assert_eq!(optimized.by_mean_item.mean_item_time, time, "{fixed:?}");
        if fixed.items.is_some() {
            assert_eq!(optimized.strategies, optimized.pairs, "one number of microbatches for every pair");
        }
    }
}

/// Half the items use only the encoder, half only the backbone. The mean is 2 and 2, but each item
/// is limited by a module with time 4.
#[test]
fn mean_time_differs_from_mean_item_time() {
    let items = vec![item(1.0, 1.0, 4.0, 0.0, 0.0), item(1.0, 1.0, 0.0, 4.0, 0.0)];
    let optimized = optimize(&input(2, 1e9, 8, items)).unwrap();
    // One device per module, 8 microbatches with a single item: 9 slots of 2 s, or of 4 s.
    assert_eq!((optimized.by_mean_item.mean_item_time, optimized.by_mean_item.mean_time), (18.0, 36.0));
}

/// Seven items with time 1 and one with time 3, mean 1.25. For 8 microbatches, 9 slots take 3 s.
/// For i = 3, a microbatch takes 8 / 3 x 1.25 = 3.3 s, in 4 slots. For i = 2, it takes 5 s, in 3
/// slots. (i = 3.3 would result in 3 s.)
#[test]
fn no_microbatch_is_shorter_than_the_slowest_item() {
    let mut items = vec![item(1.0, 1.0, 1.0, 1.0, 0.0); 7];
    items.push(item(1.0, 1.0, 3.0, 3.0, 0.0));
    let input = input(2, 1e9, 8, items);
    let optimized = optimize(&input).unwrap();
    assert_eq!((optimized.by_mean_item.configuration.microbatches, optimized.by_mean_item.balanced), (8, 27.0));
    let best = shortlist(&input, 9).unwrap();
    assert_eq!((best.len(), best[0].configuration.microbatches), (1, 3));
    assert!((best[0].balanced - 40.0 / 3.0).abs() < 1e-9);
}

/// 4 layers on 3 stages: the largest stage has two layers, which is 1/2 of the module instead of
/// 1/3. 4 slots take 2 s instead of 1.33 s.
#[test]
fn stages_contain_integer_layer_counts() {
    let input = input(4, 1e9, 1, vec![item(1.0, 1.0, 0.0, 4.0, 0.0)]);
    let durations = Durations::new(&input);
    let degrees = |pipeline| Degrees { tensor: 1, pipeline, data: 1 };
    let sides = durations.sides(degrees(1), degrees(3));
    assert!((durations.mean_item_time(&sides, 1) - 4.0 * 4.0 / 3.0).abs() < 1e-12);
    assert!((durations.time_when_balanced(&sides, 1) - 8.0).abs() < 1e-12);
}

/// The encoder stores E_pp + L_pp = 2 microbatches, the backbone 1 (DFLOP Eq. 4, DFLOP Eq. 5).
/// Sizes are in bytes; 4 layers.
#[test]
fn memory_sets_the_microbatch_count() {
    let with = |memory| optimize(&input(2, memory, 8, vec![item(1.0, 1.0, 1.0, 1.0, 0.0)]));
    for (memory, bytes) in [(8.0, 8.0), (15.9, 8.0)] {
        let estimate = with(memory).unwrap().by_mean_item;
        // With a single item per microbatch: 4 layers x 2 microbatches x 1 byte.
        assert_eq!(
            (estimate.configuration.microbatches, estimate.encoder_bytes, estimate.backbone_bytes),
            (8, bytes, 4.0)
        );
    }
    assert_eq!(with(7.9), Err(OptimizerError::NothingFits { required: 8.0, memory: 7.9 }));
}

/// Throughput at one item is half the throughput at two items, so a microbatch takes 2 s for i = 8
/// and for i = 4. 5 slots of 2 s are faster than 9.
#[test]
fn small_microbatches_are_not_free() {
    let mut input = input(2, 1e9, 8, vec![item(1.0, 1.0, 1.0, 1.0, 0.0)]);
    let rate = Curve::new(vec![(1.0, 0.5), (2.0, 1.0)]).unwrap();
    for module in [&mut input.encoder, &mut input.backbone] {
        module.degrees[0].linear = rate.clone();
    }
    let estimate = optimize(&input).unwrap().by_mean_item;
    assert_eq!((estimate.configuration.microbatches, estimate.mean_item_time), (4, 10.0));
}

/// Mean batch and length 2, maximum 3. A microbatch limit of 3 requires 2 x 8 / i <= 3, so i = 6.
/// The result of DFLOP Alg. 1 is 8.
#[test]
fn the_published_program_stops_at_the_maximum_item() {
    let items = vec![item(1.0, 1.0, 1.0, 1.0, 0.0), item(3.0, 3.0, 3.0, 3.0, 0.0)];
    let optimized = optimize(&input(2, 1e9, 8, items.clone())).unwrap();
    assert_eq!(optimized.published.unwrap().configuration.microbatches, 6);
    assert_eq!(optimized.by_mean_item.configuration.microbatches, 8);
    // Two maximum items on four layers need 24 bytes, times 1.25 is 30. Two mean items need 16.
    let optimized = optimize(&input(2, 29.9, 8, items)).unwrap();
    assert_eq!(optimized.published, None);
}

/// The encoder has 2 replicas, the backbone 1 with PP 2. An item with work 6 and 4 takes 6 / 2 and
/// 4 / 2 seconds at throughput 1.
#[test]
fn items_are_priced_for_the_scheduler() {
    let input = input(4, 1e9, 4, vec![item(1.0, 1.0, 1.0, 1.0, 0.0)]);
    let configuration = Configuration {
        encoder: Degrees { tensor: 1, pipeline: 1, data: 2 },
        backbone: Degrees { tensor: 1, pipeline: 2, data: 1 },
        microbatches: 4,
    };
    let found = item_seconds(&input, &configuration, &[item(3.0, 9.0, 6.0, 3.0, 1.0)]).unwrap();
    assert_eq!(found, [Item { encoder: 3.0, backbone: 2.0 }]);
    // For equal items, the sum in a microbatch is equal to E_dur and L_dur.
    let alike = OptimizerInput { items: vec![item(3.0, 9.0, 6.0, 3.0, 1.0)], ..input };
    let durations = Durations::new(&alike);
    let sides = durations.sides(configuration.encoder, configuration.backbone);
    assert_eq!(durations.mean_item_stage_times(&sides, 4), (3.0, 2.0));
}

#[test]
fn invalid_inputs_are_rejected() {
    let work = item(1.0, 1.0, 1.0, 1.0, 0.0);
    let good = input(4, 1e9, 4, vec![work]);
    let error_with = |change: &dyn Fn(&mut OptimizerInput)| {
        let mut input = good.clone();
        change(&mut input);
        optimize(&input).unwrap_err()
    };
    assert_eq!(error_with(&|input| input.devices = 1), OptimizerError::Devices { devices: 1 });
    assert_eq!(error_with(&|input| input.items.clear()), OptimizerError::NoItems);
    assert_eq!(error_with(&|input| input.global_batch = 0), OptimizerError::NoItems);
    assert_eq!(error_with(&|input| input.items[0].length = f64::NAN), OptimizerError::Item { item: 0 });
    assert_eq!(error_with(&|input| input.items[0].weight = 0.0), OptimizerError::Item { item: 0 });
    let zero = |input: &mut OptimizerInput| input.backbone.degrees[0].linear = Curve::constant(0.0);
    assert_eq!(error_with(&zero), OptimizerError::Rate { module: "backbone" });
    let none = |input: &mut OptimizerInput| input.encoder.degrees[0].tensor = 16;
    assert_eq!(error_with(&none), OptimizerError::NoDegrees { devices: 4, fixed: Fixed::default() });
    let fixed = Fixed { tensor: Some(8), pipeline: Some(2), items: None };
    let error = error_with(&|input| input.fixed = fixed);
    assert_eq!(error.to_string(), "no degrees that were profiled make up 4 devices with TP 8 and PP 2 of the backbone");
}

/// Profiles for two degrees; throughput and activation curves are piecewise linear.
fn module() -> impl Strategy<Value = ModuleProfile> {
    let degree = (prop::collection::vec(1_u32..20, 3), prop::collection::vec(1_u32..20, 3), 0_u32..8);
    (1_u32..5, prop::collection::vec(degree, 2)).prop_map(|(layers, degrees)| {
        let curve = |values: &[u32]| {
            Curve::new(values.iter().zip([1.0, 4.0, 9.0]).map(|(&value, size)| (size, f64::from(value))).collect())
                .unwrap()
        };
        let profile = |(index, (rates, bytes, sharded)): (usize, (Vec<u32>, Vec<u32>, u32))| DegreeProfile {
            tensor: [1, 2][index],
            linear: curve(&rates),
            attention: curve(&[rates[1], rates[2], rates[0]]),
            state: states([3.0, 2.0, 5.0], f64::from(sharded) / 8.0),
            activation: ActivationTable { layer: curve(&bytes), fixed: Curve::constant(1.0) },
        };
        ModuleProfile { layers, degrees: degrees.into_iter().enumerate().map(profile).collect() }
    })
}

proptest! {
    /// The search returns the same result as full enumeration for all objectives, bit for bit. Ties
    /// are resolved to the first.
    #[test]
    fn nothing_better_is_passed_over(
        encoder in module(),
        backbone in module(),
        devices in 2_u32..9,
        memory in 20_u32..400,
        global_batch in 1_u32..20,
        items in prop::collection::vec((1_u32..9, 1_u32..9, 0_u32..9, 1_u32..9, 0_u32..9), 1..5),
        fixed in (prop::option::of(1_u32..3), prop::option::of(1_u32..4), prop::option::of(1_u32..5)),
    ) {
        let fixed = Fixed { tensor: fixed.0, pipeline: fixed.1, items: fixed.2 };
        let to_item = |(batch, length, encoder, linear, attention): (u32, u32, u32, u32, u32)| {
            let [batch, length, encoder, linear, attention] = [batch, length, encoder, linear, attention].map(f64::from);
            item(batch, length, encoder, linear, attention)
        };
        let input = OptimizerInput {
            devices, devices_per_node: 2, memory: f64::from(memory), global_batch, encoder, backbone,
            items: items.into_iter().map(to_item).collect(), fixed,
        };
        let by_mean_item = by_trying_all(&input, |durations, configuration| {
            durations.mean_item_time(&durations.sides(configuration.encoder, configuration.backbone), configuration.microbatches)
        });
        let by_mean_time = by_trying_all(&input, |durations, configuration| {
            durations.mean_time(&durations.sides(configuration.encoder, configuration.backbone), configuration.microbatches)
        });
        let balanced = by_trying_all(&input, |durations, configuration| {
            let sides = durations.sides(configuration.encoder, configuration.backbone);
            durations.time_when_balanced(&sides, configuration.microbatches)
        });
        match optimize(&input) {
            Ok(optimized) => {
                let found = |estimate: &ConfigurationEstimate, time: f64| Some((time, estimate.configuration));
                prop_assert_eq!(found(&optimized.by_mean_item, optimized.by_mean_item.mean_item_time), by_mean_item);
                prop_assert_eq!(found(&optimized.by_mean_time, optimized.by_mean_time.mean_time), by_mean_time);
                let shortlist = shortlist(&input, 16).unwrap();
                prop_assert_eq!(found(&shortlist[0], shortlist[0].balanced), balanced);
                prop_assert!(shortlist.is_sorted_by(|a, b| a.balanced <= b.balanced));
                let kind = |estimate: &ConfigurationEstimate| {
                    let Configuration { encoder, backbone, .. } = estimate.configuration;
                    (encoder.tensor, encoder.pipeline, backbone.tensor, backbone.pipeline)
                };
                for estimate in &shortlist {
                    // This strategy is optimal among all strategies with the same TP and PP.
                    let expected = by_trying_all(&input, |durations, configuration| {
                        let sides = durations.sides(configuration.encoder, configuration.backbone);
                        let time = durations.time_when_balanced(&sides, configuration.microbatches);
                        let same = kind(&durations.estimate(&input, *configuration)) == kind(estimate);
                        if same { time } else { f64::INFINITY }
                    });
                    prop_assert_eq!(found(estimate, estimate.balanced), expected);
                }
            }
            Err(error) => {
                let nothing = matches!(error, OptimizerError::NothingFits { .. } | OptimizerError::NoDegrees { .. });
                prop_assert!(nothing, "{}", error);
                prop_assert_eq!(by_mean_item, None);
            }
        }
    }
}
