//! Simulated training run with injected anomalies (DFLOP Sec. 5.3.7).

use std::collections::BTreeSet;

use super::{Correction, CorrectionSettings, ShapedItem};
use crate::planners::dflop::partition::{Item, PartitionError, PartitionSettings, Partitioned, partition};
use planscope_core::random::Random;

/// Shapes that run slower than the tables predict.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Anomalies {
    /// Fraction of all shapes.
    pub rate: f64,
    /// Extra time per item with such a shape, as a fraction of the slowest stage time in the first
    /// batch.
    pub magnitude: f64,
    /// Random seed for the choice of slow shapes.
    pub seed: u32,
}

/// Result of a simulated run.
#[derive(Debug, Clone, PartialEq)]
pub struct Simulated {
    /// Seconds per iteration without correction.
    pub without: Vec<f64>,
    /// Seconds per iteration with correction. Includes the monitoring cost while correction is on.
    pub with: Vec<f64>,
    /// Net speed-up per iteration: time without correction / time with correction and its cost,
    /// minus one.
    pub net: Vec<f64>,
    /// Estimated benefit per iteration while correction was on.
    pub benefits: Vec<f64>,
    /// Iterations that end in an on/off decision, and the mean benefit used for it.
    pub decisions: Vec<(u32, f64)>,
    /// Iteration after which correction switched off.
    pub switched_off: Option<u32>,
    /// Number of slow shapes.
    pub slow: u32,
    /// Extra time per item with a slow shape, in seconds.
    pub delay: f64,
}

impl Simulated {
    /// Returns the mean net speed-up in the last half of the run, after the penalties converge.
    pub fn settled(&self) -> f64 {
        let last = &self.net[self.net.len() / 2..];
        last.iter().sum::<f64>() / last.len().max(1) as f64
    }
}

/// Pipelines that process a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pipelines {
    /// Backbone replicas, L_dp. Bucket i goes to replica i mod L_dp.
    pub copies: usize,
    /// Microbatches per replica, N_mb.
    pub microbatches: usize,
    /// Stages of encoder plus backbone, E_pp + L_pp.
    pub depth: u32,
}

/// Simulates batches with and without correction. The time of a pipeline is the sum of its
/// microbatches on the slower module, plus the slowest microbatch once for all other stages. The
/// time of an iteration is the maximum of its pipelines.
///
/// # Errors
/// The same as [`partition`].
pub fn simulate(
    batches: &[Vec<ShapedItem>],
    pipelines: Pipelines,
    anomalies: Anomalies,
    settings: CorrectionSettings,
    scheduler: PartitionSettings,
) -> Result<Simulated, PartitionError> {
    let buckets = pipelines.copies * pipelines.microbatches;
    let time = |items: &[Item], dealt: &Partitioned| pipelines.time(items, dealt);
    let slow = slow_shapes(batches, anomalies);
    let mut correction = Correction::new(settings);
    let mut simulated = Simulated {
        without: Vec::new(),
        with: Vec::new(),
        net: Vec::new(),
        benefits: Vec::new(),
        decisions: Vec::new(),
        switched_off: None,
        slow: slow.len() as u32,
        delay: 0.0,
    };
    let mut delay = None;
    for (iteration, batch) in (0..).zip(batches) {
        let predicted: Vec<Item> = batch.iter().map(|shaped| shaped.item).collect();
        let blind = partition(&predicted, buckets, scheduler)?;
        let delay = *delay.get_or_insert(anomalies.magnitude * blind.makespan);
        simulated.delay = delay;
        let truth: Vec<Item> = batch.iter().map(|shaped| taken(*shaped, &slow, delay)).collect();
        let without = time(&truth, &blind);
        simulated.without.push(without);
        if !correction.is_on() {
            simulated.with.push(without);
            simulated.net.push(0.0);
            continue;
        }
        let corrected = correction.corrected(batch);
        let dealt = partition(&corrected, buckets, scheduler)?;
        let with = time(&truth, &dealt) * (1.0 + settings.cost);
        simulated.with.push(with);
        simulated.net.push(without / with - 1.0);
        let benefit = time(&corrected, &blind) / time(&corrected, &dealt) - 1.0;
        simulated.benefits.push(benefit);
        for (shaped, truth) in batch.iter().zip(&truth) {
            // Throughput is work / time on the item's slower module.
            let slower = |item: &Item| item.encoder.max(item.backbone);
            correction.observe(shaped.shape, slower(truth), slower(&shaped.item));
        }
        simulated.decisions.extend(correction.end_iteration(benefit).map(|mean| (iteration, mean)));
        if !correction.is_on() {
            simulated.switched_off = Some(iteration);
        }
    }
    Ok(simulated)
}

/// Returns the actual time: a slow shape adds `delay` on the slower module.
fn taken(ShapedItem { item, shape }: ShapedItem, slow: &BTreeSet<u32>, delay: f64) -> Item {
    match (slow.contains(&shape), item.encoder > item.backbone) {
        (false, _) => item,
        (true, true) => Item { encoder: item.encoder + delay, ..item },
        (true, false) => Item { backbone: item.backbone + delay, ..item },
    }
}

fn slow_shapes(batches: &[Vec<ShapedItem>], anomalies: Anomalies) -> BTreeSet<u32> {
    let all: BTreeSet<u32> = batches.iter().flatten().map(|shaped| shaped.shape).collect();
    let mut shapes: Vec<u32> = all.into_iter().collect();
    Random::new(anomalies.seed, 0).shuffle(&mut shapes);
    let count = (anomalies.rate.clamp(0.0, 1.0) * shapes.len() as f64).round() as usize;
    shapes.into_iter().take(count).collect()
}

impl Pipelines {
    /// Returns the time in seconds for the buckets in `dealt` and the given item times.
    fn time(&self, items: &[Item], dealt: &Partitioned) -> f64 {
        let stage = |bucket: &Vec<u32>| {
            let sum = |part: fn(&Item) -> f64| bucket.iter().map(|&item| part(&items[item as usize])).sum::<f64>();
            [sum(|item| item.encoder), sum(|item| item.backbone)]
        };
        let copy_time = |copy: usize| {
            let stage_times: Vec<[f64; 2]> = dealt.buckets.iter().skip(copy).step_by(self.copies).map(stage).collect();
            let sum = |module: usize| stage_times.iter().map(|stage| stage[module]).sum::<f64>();
            let max_time = stage_times.iter().flatten().copied().fold(0.0, f64::max);
            sum(0).max(sum(1)) + f64::from(self.depth.max(1) - 1) * max_time
        };
        (0..self.copies).map(copy_time).fold(f64::MIN_POSITIVE, f64::max)
    }
}
