//! Scale factors for forward and backward passes that match the prediction to a measurement.
//!
//! A factor on the layers is not equal to the factor on the step: embedding and head, reduction and
//! optimizer do not change, and bubbles grow with the layers. Therefore the factors are searched
//! with new simulations. Each target value increases almost linearly with its factor, so a
//! bracketed secant method (regula falsi with the Illinois rule) converges after a small number of
//! evaluations.

use planscope_cost::cost::overrides::{CostOverride, LAYER, OverridePhase};

/// Minimum factor; the maximum is its inverse.
const MIN: f64 = 0.02;
/// Relative tolerance for the target.
const CLOSE: f64 = 5e-4;
/// Maximum number of simulations.
const MAX_EVALUATIONS: u32 = 14;

/// Factors on the layers of all modules.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factors {
    /// Factor on forward passes.
    pub forward: f64,
    /// Factor on backward passes.
    pub backward: f64,
}

/// Predicted times with given factors, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// Forward time per step, as a timer measures it; 0 if unknown.
    pub forward_s: f64,
    /// Backward time per step.
    pub backward_s: f64,
    /// Step time.
    pub step_s: f64,
}

/// Target times in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    /// Step time, matched by one common factor.
    Step(f64),
    /// Forward and backward times, matched by two factors.
    Phases {
        /// Forward time per step.
        forward_s: f64,
        /// Backward time per step.
        backward_s: f64,
    },
}

/// Result of the search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Solved {
    /// Best factors.
    pub factors: Factors,
    /// Predicted times with these factors.
    pub reached: Evaluation,
    /// True if the targets are matched within 0.05 %.
    pub is_met: bool,
    /// Number of simulations.
    pub evaluations: u32,
}

/// Error of the search.
#[derive(Debug, thiserror::Error)]
pub enum FactorsError<E> {
    /// A target is not a positive finite time.
    #[error("what was measured is no time above 0")]
    Target,
    /// The simulation failed.
    #[error(transparent)]
    Evaluation(#[from] E),
}

/// An evaluated factor.
#[derive(Debug, Clone, Copy)]
struct Point {
    factor: f64,
    /// Simulated value minus target, in seconds.
    distance: f64,
}

/// Search state for a single factor.
#[derive(Debug, Clone, Copy)]
struct Search {
    target: f64,
    factor: f64,
    /// Closest factor below the target. The Illinois rule can reduce its `distance` below the
    /// measured value.
    below: Option<Point>,
    /// Closest factor above the target.
    above: Option<Point>,
    /// Previous point.
    before: Option<Point>,
}

impl Search {
    const fn new(target: f64) -> Self {
        Self { target, factor: 1.0, below: None, above: None, before: None }
    }

    fn is_close(&self, value: f64) -> bool {
        (value - self.target).abs() <= CLOSE * self.target
    }

    /// Records the value for the current factor and selects the next factor.
    fn next(&mut self, value: f64) {
        if self.is_close(value) {
            return;
        }
        let known = Point { factor: self.factor, distance: value - self.target };
        let is_below = |point: &Point| point.distance < 0.0;
        // Illinois rule: if the same side of the bracket changes twice, halve the distance of the
        // other side. Otherwise a bend in the curve slows convergence.
        let stays = self.before.is_some_and(|before| is_below(&before) == is_below(&known));
        let (near, far) =
            if is_below(&known) { (&mut self.below, &mut self.above) } else { (&mut self.above, &mut self.below) };
        *near = Some(known);
        if let Some(far) = far.as_mut().filter(|_| stays) {
            far.distance /= 2.0;
        }
        let next = match (self.below, self.above) {
            (Some(low), Some(high)) => {
                let share = (low.distance / (low.distance - high.distance)).clamp(0.02, 0.98);
                low.factor + (high.factor - low.factor) * share
            }
            _ => self.beyond(known),
        };
        self.before = Some(known);
        self.factor = next.clamp(self.factor * 0.2, self.factor * 5.0).clamp(MIN, 1.0 / MIN);
    }

    /// Extrapolates while all points are on the same side of the target: linearly through the last
    /// two points, or in proportion to the factor.
    fn beyond(&self, known: Point) -> f64 {
        let slope = self.before.map(|before| (known.distance - before.distance) / (known.factor - before.factor));
        match slope.filter(|slope| slope.is_finite() && *slope > 0.0) {
            Some(slope) => known.factor - known.distance / slope,
            None => known.factor * self.target / (known.distance + self.target).max(f64::MIN_POSITIVE),
        }
    }
}

/// Searches the factors that match a target. `evaluate` simulates the plan with given factors.
///
/// # Errors
/// If the target is not a positive finite time, or `evaluate` fails.
pub fn solve<E>(
    target: Target,
    mut evaluate: impl FnMut(Factors) -> Result<Evaluation, E>,
) -> Result<Solved, FactorsError<E>> {
    let (first, second) = match target {
        Target::Step(step_s) => (step_s, step_s),
        Target::Phases { forward_s, backward_s } => (forward_s, backward_s),
    };
    if !(first.is_finite() && second.is_finite() && first > 0.0 && second > 0.0) {
        return Err(FactorsError::Target);
    }
    let (mut forward, mut backward) = (Search::new(first), Search::new(second));
    let mut best: Option<(f64, Solved)> = None;
    for evaluations in 1..=MAX_EVALUATIONS {
        let factors = Factors { forward: forward.factor, backward: backward.factor };
        let reached = evaluate(factors)?;
        let [a, b] = match target {
            Target::Step(_) => [reached.step_s; 2],
            Target::Phases { .. } => [reached.forward_s, reached.backward_s],
        };
        let is_met = forward.is_close(a) && backward.is_close(b);
        let distance = (a / first - 1.0).abs().max((b / second - 1.0).abs());
        if best.is_none_or(|(min_distance, _)| distance < min_distance) {
            best = Some((distance, Solved { factors, reached, is_met, evaluations }));
        }
        forward.next(a);
        backward.next(b);
        let same = |a: f64, b: f64| a.total_cmp(&b).is_eq();
        let is_stalled = same(factors.forward, forward.factor) && same(factors.backward, backward.factor);
        if is_met || is_stalled {
            break;
        }
    }
    best.map(|(_, solved)| solved).ok_or(FactorsError::Target)
}

/// Returns overrides that scale the predictions of a scenario with the overrides `own`. All layers
/// are scaled by the factors; existing layer times in `own` are also scaled. Append the result to
/// `own`, because later overrides take precedence.
pub fn scaled(existing: &[CostOverride], factors: Factors) -> Vec<CostOverride> {
    let phases = [(OverridePhase::Forward, factors.forward), (OverridePhase::Backward, factors.backward)];
    let mut overrides: Vec<CostOverride> = phases
        .iter()
        .map(|&(phase, factor)| CostOverride {
            operator: LAYER.to_owned(),
            phase: Some(phase),
            scale: Some(round(factor)),
            ..CostOverride::default()
        })
        .collect();
    for given in existing.iter().filter(|given| given.is_layer()) {
        for (phase, factor) in
            phases.iter().filter(|(phase, _)| given.phase.is_none_or(|given_phase| given_phase == *phase))
        {
            // A time for both passes is split by the model. An override for a single pass cannot
            // express this, so use the mean factor.
            let is_both = given.phase.is_none() && given.scale.is_none();
            if is_both && *phase == OverridePhase::Backward {
                continue;
            }
            let factor = if is_both { f64::midpoint(factors.forward, factors.backward) } else { *factor };
            overrides.push(CostOverride {
                phase: if is_both { None } else { Some(*phase) },
                scale: given.scale.map(|scale| round(scale * factor)),
                formula_us: given.formula_us.as_ref().map(|formula| format!("({formula})*{}", round(factor))),
                table_us: given
                    .table_us
                    .as_ref()
                    .map(|points| points.iter().map(|[tokens, micros]| [*tokens, micros * factor]).collect()),
                timings_us: given.timings_us.as_ref().map(|timings| {
                    timings.iter().map(|&[tokens, sequences, micros]| [tokens, sequences, micros * factor]).collect()
                }),
                ..given.clone()
            });
        }
    }
    overrides
}

/// Six decimal places, as shown in a scenario; the rounding error is far below the model error.
fn round(factor: f64) -> f64 {
    (factor * 1e6).round() / 1e6
}
