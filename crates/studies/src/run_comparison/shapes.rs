//! Finds input shapes that make steps slower than planned, by DFLOP's adaptive correction on a run
//! log (DFLOP Sec. 3.4.3).

use std::collections::BTreeMap;

use super::median;
use planscope_planners::planners::dflop::{Correction, CorrectionSettings};

/// A step with a known batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepRatio {
    /// Iteration index of the plan, from 0.
    pub iteration: u32,
    /// Measured step time in seconds.
    pub measured_s: f64,
    /// Predicted step time in seconds.
    pub predicted_s: f64,
}

/// Result for a shape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShapePenalty {
    /// Shape index.
    pub shape: u32,
    /// Number of items of this shape over the evaluated steps.
    pub items: u32,
    /// Ratio of actual to predicted time, relative to the run's median; 1 within the noise.
    pub penalty: f64,
}

/// Returns the penalty per shape, largest first. `batches` contains the item shapes per iteration.
/// All items of a step are assigned its throughput. Ratios are divided by their median, because a
/// common slowdown does not depend on shapes.
///
/// A step contains work for several items, so a slow shape affects only a part of the step time.
/// Therefore these penalties are lower than penalties from timed microbatches.
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
            // Throughput ratio of planned to measured, relative to the median step.
            correction.observe(shape, ratio / usual, 1.0);
            *items.entry(shape).or_insert(0) += 1;
        }
    }
    let shape_penalty =
        |(&shape, &items): (&u32, &u32)| ShapePenalty { shape, items, penalty: correction.penalty(shape) };
    let mut penalties: Vec<ShapePenalty> = items.iter().map(shape_penalty).collect();
    penalties.sort_by(|a, b| b.penalty.total_cmp(&a.penalty).then(a.shape.cmp(&b.shape)));
    penalties
}
