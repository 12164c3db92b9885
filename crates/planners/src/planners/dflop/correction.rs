//! Adaptive correction for input shapes that run slower or faster than the tables predict
//! (DFLOP Sec. 3.4.3).
//!
//! While correction is on, it compares measured and predicted throughput by input shape. The ratio
//! is the shape's penalty, and the scheduler multiplies item times by it. Monitoring costs
//! throughput. To estimate the benefit, the batch is partitioned once by predicted times and once
//! by penalized times, and both partitions are priced with penalized times. If the mean benefit of
//! several iterations does not exceed the cost, correction switches off permanently.

mod simulation;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::partition::Item;

pub use simulation::{Anomalies, Pipelines, Simulated, simulate};

/// Smaller relative deviations are treated as noise.
const NOISE: f64 = 0.05;

/// Settings that decide whether correction stays on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CorrectionSettings {
    /// Iterations per averaging window, I.
    pub iterations: u32,
    /// Fraction of throughput lost to monitoring, C.
    pub cost: f64,
}

impl Default for CorrectionSettings {
    /// The paper measures a cost of about 4 %. It does not specify the averaging window.
    fn default() -> Self {
        Self { iterations: 20, cost: 0.04 }
    }
}

/// An item and the input shape class that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShapedItem {
    /// Times predicted from the tables.
    pub item: Item,
    /// Shape index.
    pub shape: u32,
}

/// Measured shape statistics and the on/off state.
#[derive(Debug, Clone, PartialEq)]
pub struct Correction {
    settings: CorrectionSettings,
    /// Per shape: number of measurements, and sum of predicted / measured throughput.
    known: BTreeMap<u32, (u32, f64)>,
    /// Benefits since the last decision.
    benefits: Vec<f64>,
    on: bool,
}

impl Correction {
    /// Creates a correction that is on and has no measurements.
    pub fn new(settings: CorrectionSettings) -> Self {
        Self { settings, known: BTreeMap::new(), benefits: Vec::new(), on: true }
    }

    /// Returns whether correction is on.
    pub const fn is_on(&self) -> bool {
        self.on
    }

    /// Records the predicted and measured throughput for a shape, in the same unit. DFLOP Eq. 7
    /// subtracts the two values; this function records their ratio. Values that are not positive
    /// and finite are ignored.
    pub fn observe(&mut self, shape: u32, predicted: f64, measured: f64) {
        let is_rate = |rate: f64| rate.is_finite() && rate > 0.0;
        if self.on && is_rate(predicted) && is_rate(measured) {
            let (count, sum) = self.known.entry(shape).or_insert((0, 0.0));
            (*count, *sum) = (*count + 1, *sum + predicted / measured);
        }
    }

    /// Returns the ratio of actual to predicted time for a shape. Returns 1 if the shape has no
    /// measurements or correction is off.
    pub fn penalty(&self, shape: u32) -> f64 {
        let known = self.known.get(&shape).filter(|_| self.on);
        let factor = known.map_or(1.0, |&(count, sum)| sum / f64::from(count));
        if (factor - 1.0).abs() < NOISE { 1.0 } else { factor }
    }

    /// Multiplies the item times by the penalties.
    pub fn corrected(&self, items: &[ShapedItem]) -> Vec<Item> {
        let corrected_item = |&ShapedItem { item, shape }: &ShapedItem| {
            let penalty = self.penalty(shape);
            Item { encoder: item.encoder * penalty, backbone: item.backbone * penalty }
        };
        items.iter().map(corrected_item).collect()
    }

    /// Ends an iteration. `benefit` is the fraction of throughput gained by correction, B. After
    /// every I iterations, returns the mean benefit and switches correction off if the mean does
    /// not exceed the cost (DFLOP Sec. 3.4.3).
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
