//! DFLOP benchmarks: the optimizer and the online scheduler.

use planner::planners::dflop::{
    ActivationTable, Curve, DegreeProfile, Fixed, Item, ItemWork, ModuleProfile, OptimizerInput, PartitionSettings,
    StateSize, StateTable, optimize, partition, shortlist,
};
use planner::random::Random;

fn main() {
    divan::main();
}

/// Throughput curve that saturates with the input size and falls with the TP degree, like matrix
/// multiplication.
fn curve(peak: f64, half: f64, sizes: &[f64]) -> Curve {
    Curve::new(sizes.iter().map(|&size| (size, peak * size / (size + half))).collect()).unwrap()
}

/// Module profile: layers, parameters, activation bytes per item and layer.
fn module(
    layers: u32,
    (peak, half): (f64, f64),
    sizes: &[f64],
    parameters: [f64; 2],
    activation_bytes: f64,
) -> ModuleProfile {
    let degree = |tensor: u32| {
        let t = f64::from(tensor);
        let size = |bytes: f64| StateSize { bytes, sharded: 2.0 / 3.0, shard_degree: None };
        let [layer, end] = parameters.map(|parameters| size(parameters * 18.0 / t));
        DegreeProfile {
            tensor,
            linear: curve(peak / (1.0 + 0.08 * (t - 1.0)), half * t, sizes),
            attention: curve(0.7 * peak, 500.0 * t, &[256.0, 1024.0, 4096.0, 16_384.0]),
            state: StateTable { layer, first: end, last: end },
            activation: ActivationTable {
                layer: Curve::new(vec![(0.0, 0.0), (1.0, activation_bytes / t)]).unwrap(),
                fixed: Curve::constant(1e9),
            },
        }
    };
    ModuleProfile { layers, degrees: [1, 2, 4, 8].map(degree).to_vec() }
}

/// Optimizer input for a 7B backbone with a vision encoder. The items are single images with tiles,
/// multiple images, and video frames.
fn input(devices: u32, global_batch: u32) -> OptimizerInput {
    let mut random = Random::new(1, 0);
    let items = (0..64).map(|_| {
        let tiles = match random.below(3) {
            0 => 1 + random.below(10),
            1 => 2 + random.below(12),
            _ => 8 + random.below(24),
        } as f64;
        let length = tiles * 300.0 + libm::exp(5.0 + random.normal());
        ItemWork {
            batch: tiles,
            length,
            encoder_flops: tiles * 729.0 * 2.4e9,
            linear_flops: length * 4.6e10,
            attention_flops: 1.2e6 * length * length,
            weight: 1.0,
        }
    });
    let tiles: Vec<f64> = (0..7).map(|power| f64::from(1 << power)).collect();
    let lengths: Vec<f64> = (9..16).map(|power| f64::from(1 << power)).collect();
    OptimizerInput {
        devices,
        devices_per_node: 8,
        memory: 78e9,
        global_batch,
        items: items.collect(),
        fixed: Fixed::default(),
        encoder: module(27, (140e12, 3.0), &tiles, [15e6, 2e6], 60e6),
        backbone: module(28, (180e12, 700.0), &lengths, [233e6, 545e6], 34.0 * 3584.0),
    }
}

/// Optimizes for the mean item, for the mean over 64 items, and as the published program does.
#[divan::bench(args = [(64, 512), (256, 2048), (1024, 2048)])]
fn optimizing(bencher: divan::Bencher<'_, '_>, (devices, global_batch): (u32, u32)) {
    let input = input(devices, global_batch);
    bencher.bench_local(|| optimize(&input));
}

/// Runs DFLOP Alg. 1 alone. A single-item dataset is identical to the mean item, so both searches
/// are the same.
#[divan::bench(args = [(64, 512), (1024, 2048)])]
fn algorithm_1_twice(bencher: divan::Bencher<'_, '_>, (devices, global_batch): (u32, u32)) {
    let mut input = input(devices, global_batch);
    input.items.truncate(1);
    bencher.bench_local(|| optimize(&input));
}

#[divan::bench(args = [(64, 512), (1024, 2048)], sample_count = 10)]
fn shortlisting(bencher: divan::Bencher<'_, '_>, (devices, global_batch): (u32, u32)) {
    let input = input(devices, global_batch);
    bencher.bench_local(|| shortlist(&input, 16));
}

/// Items from mixed data. Encoder and backbone durations are nearly balanced.
fn items(count: usize) -> Vec<Item> {
    let mut random = Random::new(1, count as u64);
    let item = |random: &mut Random| {
        let tiles = match random.below(3) {
            0 => 1 + random.below(10),
            1 => 2 + random.below(12),
            _ => 8 + random.below(24),
        } as f64;
        let text = libm::exp(5.0 + random.normal());
        Item { encoder: tiles * 0.01, backbone: (tiles * 196.0 + text) * 4.8e-5 }
    };
    (0..count).map(|_| item(&mut random)).collect()
}

/// Balances to 0.1 % gap.
#[divan::bench(args = [(512, 16), (2048, 64), (2048, 128), (2048, 256)])]
fn balancing(bencher: divan::Bencher<'_, '_>, (count, buckets): (usize, usize)) {
    let items = items(count);
    let settings = PartitionSettings { gap: 1e-3, ..PartitionSettings::default() };
    bencher.bench_local(|| partition(&items, buckets, settings));
}

/// Balances until the default step limit.
#[divan::bench(args = [(2048, 64), (2048, 256)])]
fn balancing_to_the_end(bencher: divan::Bencher<'_, '_>, (count, buckets): (usize, usize)) {
    let items = items(count);
    bencher.bench_local(|| partition(&items, buckets, PartitionSettings::default()));
}
