//! A run with injected anomalies (DFLOP, section 5.3.7).

use std::collections::BTreeSet;

use super::{Correction, CorrectionSettings, ShapedItem};
use crate::data_aware::partition::{Item, PartitionError, PartitionSettings, Partitioned, partition};
use crate::random::Random;

/// Shapes that take longer than the tables say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Anomalies {
    /// Share of all shapes.
    pub rate: f64,
    /// What an item of such a shape takes longer, as a share of the longest stage of the first batch.
    pub magnitude: f64,
    /// Which shapes.
    pub seed: u32,
}

/// What correction did to a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Simulated {
    /// Of every iteration, seconds without correction.
    pub without: Vec<f64>,
    /// Of every iteration, seconds with correction and what watching costs, while it is on.
    pub with: Vec<f64>,
    /// Of every iteration, time without correction over time with it and its cost, minus one.
    pub net: Vec<f64>,
    /// Of every iteration while it was on, the benefit that was reckoned.
    pub benefits: Vec<f64>,
    /// Iterations at whose end it decided whether to stay on, and the mean benefit that decided.
    pub decisions: Vec<(u32, f64)>,
    /// The iteration at whose end it switched itself off.
    pub switched_off: Option<u32>,
    /// Shapes that are slow.
    pub slow: u32,
    /// What an item of them takes longer, in seconds.
    pub delay: f64,
}

impl Simulated {
    /// Mean net speed-up of the last half of the run, when all is learnt.
    pub fn settled(&self) -> f64 {
        let last = &self.net[self.net.len() / 2..];
        last.iter().sum::<f64>() / last.len().max(1) as f64
    }
}

/// The pipelines that a batch is dealt to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pipelines {
    /// Copies of the backbone, L_dp: bucket i goes to copy i mod L_dp.
    pub copies: usize,
    /// Microbatches of each, N_mb.
    pub microbatches: usize,
    /// Stages of both modules, E_pp + L_pp.
    pub depth: u32,
}

/// Runs batches with and without correction. A pipeline takes the sum of its microbatches on the slower module and the longest of
/// them for every other stage; an iteration, as long as the slowest pipeline.
///
/// # Errors
/// As [`partition`].
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
        let delay = *delay.get_or_insert(anomalies.magnitude * blind.longest);
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
            // Throughput is work over time: that of the slower module of the item.
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

/// What an item really takes: of a slow shape, longer on its slower module.
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
    /// How long buckets take whose items take that.
    fn time(&self, items: &[Item], dealt: &Partitioned) -> f64 {
        let stage = |bucket: &Vec<u32>| {
            let sum = |part: fn(&Item) -> f64| bucket.iter().map(|&item| part(&items[item as usize])).sum::<f64>();
            [sum(|item| item.encoder), sum(|item| item.backbone)]
        };
        let of_copy = |copy: usize| {
            let own: Vec<[f64; 2]> = dealt.buckets.iter().skip(copy).step_by(self.copies).map(stage).collect();
            let sum = |module: usize| own.iter().map(|stage| stage[module]).sum::<f64>();
            let longest = own.iter().flatten().copied().fold(0.0, f64::max);
            sum(0).max(sum(1)) + f64::from(self.depth.max(1) - 1) * longest
        };
        (0..self.copies).map(of_copy).fold(f64::MIN_POSITIVE, f64::max)
    }
}
