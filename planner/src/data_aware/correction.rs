//! Adaptive correction of DFLOP (section 3.4.3): shapes that are slower, or faster, than the tables say.
//!
//! While it is on, measured throughput is held against predicted throughput by input shape, and the scheduler is told how much
//! longer items of a shape take: their penalty. Watching costs throughput. What it wins is known: the batch dealt by
//! predictions, priced with penalties, against the batch dealt with penalties. Where the mean of that over some iterations is not
//! above the cost, it switches itself off for good.

mod simulation;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::partition::Item;

pub use simulation::{Anomalies, Pipelines, Simulated, simulate};

/// Deviations below this are noise, not a shape of its own.
const NOISE: f64 = 0.05;

/// When correction pays.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CorrectionSettings {
    /// Iterations over which benefits are averaged, I.
    pub iterations: u32,
    /// Share of throughput that watching costs, C.
    pub cost: f64,
}

impl Default for CorrectionSettings {
    /// The paper measures a cost of about 4 %; it does not say over how many iterations it averages.
    fn default() -> Self {
        Self { iterations: 20, cost: 0.04 }
    }
}

/// An item with the regime of input shapes that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShapedItem {
    /// What the tables say of it.
    pub item: Item,
    /// Its shape's number.
    pub shape: u32,
}

/// What is known of shapes, and whether it is still being learnt.
#[derive(Debug, Clone, PartialEq)]
pub struct Correction {
    settings: CorrectionSettings,
    /// By shape how often it was measured, and the sum of predicted over measured throughput.
    known: BTreeMap<u32, (u32, f64)>,
    /// Benefits of the iterations since the last decision.
    benefits: Vec<f64>,
    on: bool,
}

impl Correction {
    /// Switched on, knowing nothing.
    pub fn new(settings: CorrectionSettings) -> Self {
        Self { settings, known: BTreeMap::new(), benefits: Vec::new(), on: true }
    }

    /// Whether it watches and corrects.
    pub const fn is_on(&self) -> bool {
        self.on
    }

    /// A measurement of a shape: throughputs in any one unit. Those that are not positive and finite say nothing.
    pub fn observe(&mut self, shape: u32, predicted: f64, measured: f64) {
        let is_rate = |rate: f64| rate.is_finite() && rate > 0.0;
        if self.on && is_rate(predicted) && is_rate(measured) {
            let (count, sum) = self.known.entry(shape).or_insert((0, 0.0));
            (*count, *sum) = (*count + 1, *sum + predicted / measured);
        }
    }

    /// How many times longer than predicted items of a shape take; 1 where nothing is known, or it is off.
    pub fn penalty(&self, shape: u32) -> f64 {
        let known = self.known.get(&shape).filter(|_| self.on);
        let factor = known.map_or(1.0, |&(count, sum)| sum / f64::from(count));
        if (factor - 1.0).abs() < NOISE { 1.0 } else { factor }
    }

    /// Items as the scheduler is to see them.
    pub fn corrected(&self, items: &[ShapedItem]) -> Vec<Item> {
        let of = |&ShapedItem { item, shape }: &ShapedItem| {
            let penalty = self.penalty(shape);
            Item { encoder: item.encoder * penalty, backbone: item.backbone * penalty }
        };
        items.iter().map(of).collect()
    }

    /// An iteration is over, in which correction won the share `benefit` of throughput, B. Every I iterations their mean decides: it
    /// is returned, and correction switches off where it is not above the cost.
    pub fn end_iteration(&mut self, benefit: f64) -> Option<f64> {
        if !self.on {
            return None;
        }
        self.benefits.push(benefit);
        if self.benefits.len() < self.settings.iterations as usize {
            return None;
        }
        let mean = self.benefits.iter().sum::<f64>() / self.benefits.len() as f64;
        self.on = mean > self.settings.cost;
        self.benefits.clear();
        Some(mean)
    }
}
