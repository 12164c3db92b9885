//! Shapes of items that make steps slower than planned: the correction of DFLOP, fed from the log of a run.

use std::collections::BTreeMap;

use super::median;
use crate::data_aware::{Correction, CorrectionSettings};

/// A step of a run whose batch is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepRatio {
    /// The iteration of the plan, from 0.
    pub iteration: u32,
    /// Its measured time, in s.
    pub measured_s: f64,
    /// What the plan says, in s.
    pub predicted_s: f64,
}

/// What a run says of a shape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShapePenalty {
    /// Its number.
    pub shape: u32,
    /// Items of the shape in the steps that were looked at.
    pub items: u32,
    /// How many times longer than planned they seem to take, measured against the run's own median; 1 within the noise.
    pub penalty: f64,
}

/// Feeds measured against planned steps to the correction: every item of a step is held to have had the throughput of the step.
/// That all steps are slower by the same factor is no matter of shapes, so ratios count against their median. `batches` are the
/// shapes of the items of every iteration.
///
/// A step is the work of many items, so a slow shape shows by its share of the steps it is in: penalties from steps are smaller than
/// those from timed microbatches would be. Largest first.
pub fn penalties(steps: &[StepRatio], batches: &[Vec<u32>], settings: CorrectionSettings) -> Vec<ShapePenalty> {
    let is_time = |seconds: f64| seconds.is_finite() && seconds > 0.0;
    let usable: Vec<(&Vec<u32>, f64)> = steps
        .iter()
        .filter(|step| is_time(step.measured_s) && is_time(step.predicted_s))
        .filter_map(|step| Some((batches.get(step.iteration as usize)?, step.measured_s / step.predicted_s)))
        .collect();
    let ratios: Vec<f64> = usable.iter().map(|(_, ratio)| *ratio).collect();
    let Some(usual) = median(&ratios) else { return Vec::new() };
    let mut correction = Correction::new(settings);
    let mut items: BTreeMap<u32, u32> = BTreeMap::new();
    for (batch, ratio) in usable {
        for &shape in batch {
            // Throughputs: what was planned over what was, in units of the usual step.
            correction.observe(shape, ratio / usual, 1.0);
            *items.entry(shape).or_insert(0) += 1;
        }
    }
    let of = |(&shape, &items): (&u32, &u32)| ShapePenalty { shape, items, penalty: correction.penalty(shape) };
    let mut penalties: Vec<ShapePenalty> = items.iter().map(of).collect();
    penalties.sort_by(|a, b| b.penalty.total_cmp(&a.penalty).then(a.shape.cmp(&b.shape)));
    penalties
}
