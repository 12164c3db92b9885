//! Scale factors: by how much forwards and backwards are to be stretched so that prediction and measurement meet.
//!
//! A factor on layers is not the factor on the step: what surrounds the layers, reduction and optimizer stay, and bubbles grow with
//! the layers. So factors are searched over plans that are simulated again; each target rises with its factor, nearly in a straight
//! line but for bends, and a secant inside a bracket (the Illinois rule of regula falsi) meets it in a few evaluations.

use crate::cost::overrides::{CostOverride, LAYER, OverridePhase};

/// Factors that are tried lie between this and its inverse.
const LEAST: f64 = 0.02;
/// Distance from the target that is good enough, as a share of it.
const CLOSE: f64 = 5e-4;
/// Plans that are simulated at most.
const MOST_EVALUATIONS: u32 = 14;

/// Factors on the layers of all modules.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factors {
    /// On forwards.
    pub forward: f64,
    /// On backwards.
    pub backward: f64,
}

/// What a plan takes under some factors, in s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// Forwards of a step, as a timer counts them; 0 where that is not known.
    pub forward_s: f64,
    /// Backwards of a step.
    pub backward_s: f64,
    /// The step.
    pub step_s: f64,
}

/// What is to be met, in s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    /// The step, by one factor on forwards and backwards alike.
    Step(f64),
    /// Forwards and backwards, each by a factor of its own.
    Phases {
        /// Forwards of a step.
        forward_s: f64,
        /// Backwards of a step.
        backward_s: f64,
    },
}

/// Factors that were found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Solved {
    /// The factors.
    pub factors: Factors,
    /// What the plan takes with them.
    pub reached: Evaluation,
    /// Whether the targets are met within 0.05 %.
    pub is_met: bool,
    /// Plans that were simulated.
    pub evaluations: u32,
}

/// Why there are no factors.
#[derive(Debug, thiserror::Error)]
pub enum FactorsError<E> {
    /// A target that is no time.
    #[error("what was measured is no time above 0")]
    Target,
    /// The plan could not be simulated.
    #[error(transparent)]
    Evaluation(#[from] E),
}

/// A factor that was tried.
#[derive(Debug, Clone, Copy)]
struct Point {
    factor: f64,
    /// What it gave less the target, s.
    distance: f64,
}

/// One factor on its way to its target.
#[derive(Debug, Clone, Copy)]
struct Search {
    target: f64,
    factor: f64,
    /// The closest factor below the target; its distance is what the secant is drawn to, which may be less than was measured.
    below: Option<Point>,
    /// The closest above.
    above: Option<Point>,
    /// What was tried before.
    before: Option<Point>,
}

impl Search {
    const fn new(target: f64) -> Self {
        Self { target, factor: 1.0, below: None, above: None, before: None }
    }

    fn is_close(&self, value: f64) -> bool {
        (value - self.target).abs() <= CLOSE * self.target
    }

    /// Learns what the factor gave and takes the next one.
    fn next(&mut self, value: f64) {
        if self.is_close(value) {
            return;
        }
        let known = Point { factor: self.factor, distance: value - self.target };
        let is_below = |point: &Point| point.distance < 0.0;
        // An end of the bracket that stays twice is drawn nearer, or a bend between the ends would let the other one creep.
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
        self.factor = next.clamp(self.factor * 0.2, self.factor * 5.0).clamp(LEAST, 1.0 / LEAST);
    }

    /// The target seen from one side: along the line through the last two points, or as if all of the time stretched.
    fn beyond(&self, known: Point) -> f64 {
        let slope = self.before.map(|before| (known.distance - before.distance) / (known.factor - before.factor));
        match slope.filter(|slope| slope.is_finite() && *slope > 0.0) {
            Some(slope) => known.factor - known.distance / slope,
            None => known.factor * self.target / (known.distance + self.target).max(f64::MIN_POSITIVE),
        }
    }
}

/// Searches the factors that meet a target; `evaluate` simulates the plan under some.
///
/// # Errors
/// Where the target is no time, and what `evaluate` refuses.
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
    for evaluations in 1..=MOST_EVALUATIONS {
        let factors = Factors { forward: forward.factor, backward: backward.factor };
        let reached = evaluate(factors)?;
        let [a, b] = match target {
            Target::Step(_) => [reached.step_s; 2],
            Target::Phases { .. } => [reached.forward_s, reached.backward_s],
        };
        let is_met = forward.is_close(a) && backward.is_close(b);
        let distance = (a / first - 1.0).abs().max((b / second - 1.0).abs());
        if best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, Solved { factors, reached, is_met, evaluations }));
        }
        forward.next(a);
        backward.next(b);
        let same = |a: f64, b: f64| a.total_cmp(&b).is_eq();
        let stands = same(factors.forward, forward.factor) && same(factors.backward, backward.factor);
        if is_met || stands {
            break;
        }
    }
    best.map(|(_, solved)| solved).ok_or(FactorsError::Target)
}

/// Overrides that stretch what a scenario with `own` overrides predicts: of every layer by the factors, and where layers have times
/// of the user's already, those times. Stood behind the user's own, they are the ones that count.
pub fn scaled(own: &[CostOverride], factors: Factors) -> Vec<CostOverride> {
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
    for given in own.iter().filter(|given| given.is_layer()) {
        for (phase, factor) in phases.iter().filter(|(phase, _)| given.phase.is_none_or(|own| own == *phase)) {
            // A time of both passes is shared between them as the model shares it, which no override of one can say.
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

/// Six places: what a scenario shows, and far below any error.
fn round(factor: f64) -> f64 {
    (factor * 1e6).round() / 1e6
}
