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
    /// Of every iteration, time without correction over time with it and its cost, minus one.
    pub net: Vec<f64>,
    /// Of every iteration while it was on, the benefit that was reckoned.
    pub benefits: Vec<f64>,
    /// The iteration at whose end it switched itself off.
    pub switched_off: Option<u32>,
}

impl Simulated {
    /// Mean net speed-up of the last half of the run, when all is learnt.
    pub fn settled(&self) -> f64 {
        let last = &self.net[self.net.len() / 2..];
        last.iter().sum::<f64>() / last.len().max(1) as f64
    }
}

/// Runs batches of items over `buckets` buckets with and without correction. An iteration takes as long as its longest stage.
///
/// # Errors
/// As [`partition`].
pub fn simulate(
    batches: &[Vec<ShapedItem>],
    buckets: usize,
    anomalies: Anomalies,
    settings: CorrectionSettings,
    scheduler: PartitionSettings,
) -> Result<Simulated, PartitionError> {
    let slow = slow_shapes(batches, anomalies);
    let mut correction = Correction::new(settings);
    let mut simulated = Simulated { net: Vec::new(), benefits: Vec::new(), switched_off: None };
    let mut delay = None;
    for (iteration, batch) in (0..).zip(batches) {
        let predicted: Vec<Item> = batch.iter().map(|shaped| shaped.item).collect();
        let blind = partition(&predicted, buckets, scheduler)?;
        let delay = *delay.get_or_insert(anomalies.magnitude * blind.longest);
        let truth: Vec<Item> = batch.iter().map(|shaped| taken(*shaped, &slow, delay)).collect();
        let without = longest(&truth, &blind);
        if !correction.is_on() {
            simulated.net.push(0.0);
            continue;
        }
        let corrected = correction.corrected(batch);
        let dealt = partition(&corrected, buckets, scheduler)?;
        simulated.net.push(without / (longest(&truth, &dealt) * (1.0 + settings.cost)) - 1.0);
        let benefit = longest(&corrected, &blind) / longest(&corrected, &dealt) - 1.0;
        simulated.benefits.push(benefit);
        for (shaped, truth) in batch.iter().zip(&truth) {
            // Throughput is work over time: that of the slower module of the item.
            let slower = |item: &Item| item.encoder.max(item.backbone);
            correction.observe(shaped.shape, slower(truth), slower(&shaped.item));
        }
        correction.end_iteration(benefit);
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

/// The longest stage of buckets whose items take that.
fn longest(items: &[Item], dealt: &Partitioned) -> f64 {
    let of = |bucket: &Vec<u32>| {
        let sum = |part: fn(&Item) -> f64| bucket.iter().map(|&item| part(&items[item as usize])).sum::<f64>();
        sum(|item| item.encoder).max(sum(|item| item.backbone))
    };
    dealt.buckets.iter().map(of).fold(f64::MIN_POSITIVE, f64::max)
}
