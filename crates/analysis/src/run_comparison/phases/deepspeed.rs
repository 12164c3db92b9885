//! Timers of `wall_clock_breakdown` of DeepSpeed.
//!
//! `bwd` contains `bwd_inner` and `bwd_allreduce`, and `step` contains the timers of the optimizer. Timers with the
//! ending `_microstep` are of microbatches, and the timers without it are of the step. Older versions have long names.

use super::{Phase, PhaseTimes, Timed};

const FORWARD: [&str; 2] = ["fwd", "forward"];
const BACKWARD: [&str; 2] = ["bwd", "backward"];
const INNER: [&str; 2] = ["bwd_inner", "backward_inner"];
const REDUCTION: [&str; 2] = ["bwd_allreduce", "backward_allreduce"];
const STEP: [&str; 1] = ["step"];
/// Parts of `step`.
const OPTIMIZER: [&str; 3] = ["optimizer_gradients", "optimizer_step", "optimizer_allgather"];
/// Ending of the timers of microbatches.
const MICROBATCH: &str = "_microstep";

/// True for the timers of this module.
pub(super) fn is_timer(name: &str) -> bool {
    let name = name.strip_suffix(MICROBATCH).unwrap_or(name);
    [&FORWARD[..], &BACKWARD, &INNER, &REDUCTION, &STEP, &OPTIMIZER].iter().any(|names| names.contains(&name))
}

/// True for the forward timer.
pub(super) fn is_forward(name: &str) -> bool {
    FORWARD.contains(&name.strip_suffix(MICROBATCH).unwrap_or(name))
}

/// Returns the phases, or `None` if the timers are not of DeepSpeed. Timers of microbatches count only if there is no
/// timer of the step.
pub(super) fn phase_times(timers: &[Timed<'_>]) -> Option<Vec<PhaseTimes>> {
    let is_own = |name: &str| {
        name.ends_with(MICROBATCH)
            || [FORWARD[0], BACKWARD[0]].contains(&name)
            || INNER.contains(&name)
            || REDUCTION.contains(&name)
    };
    if !timers.iter().any(|timer| is_own(timer.name)) {
        return None;
    }
    let find = |names: &[&str]| {
        let of_step = timers.iter().find(|timer| names.contains(&timer.name));
        let of_microbatches = || {
            timers.iter().find(|timer| timer.name.strip_suffix(MICROBATCH).is_some_and(|name| names.contains(&name)))
        };
        of_step.or_else(of_microbatches)
    };
    let reduction = find(&REDUCTION);
    let mut phases = Vec::new();
    let mut add = |phase: Phase, timer: Option<&Timed<'_>>, contained_s: f64| {
        phases.extend(timer.map(|timer| PhaseTimes {
            phase,
            timers: vec![timer.name.to_owned()],
            seconds: (timer.seconds - contained_s).max(0.0),
        }));
    };
    add(Phase::Forward, find(&FORWARD), 0.0);
    match find(&BACKWARD) {
        Some(backward) => add(Phase::Backward, Some(backward), reduction.map_or(0.0, |timer| timer.seconds)),
        None => add(Phase::Backward, find(&INNER), 0.0),
    }
    add(Phase::Reduction, reduction, 0.0);
    let step = find(&STEP);
    add(Phase::Optimizer, step, 0.0);
    let parts: Vec<&Timed<'_>> = timers.iter().filter(|timer| OPTIMIZER.contains(&timer.name)).collect();
    if step.is_none() && !parts.is_empty() {
        phases.push(PhaseTimes {
            phase: Phase::Optimizer,
            timers: parts.iter().map(|timer| timer.name.to_owned()).collect(),
            seconds: parts.iter().map(|timer| timer.seconds).sum(),
        });
    }
    Some(phases)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(timers: &[(&str, f64)]) -> Vec<(Phase, f64)> {
        let timers: Vec<Timed<'_>> = timers.iter().map(|&(name, seconds)| Timed { name, seconds }).collect();
        super::super::phase_times(&timers).into_iter().map(|times| (times.phase, times.seconds)).collect()
    }

    /// Reduction and inner backward are parts of the backward timer. Two microbatches are one step.
    #[test]
    fn contained_timers_count_once() {
        let expected =
            [(Phase::Forward, 4.0), (Phase::Backward, 6.0), (Phase::Reduction, 3.0), (Phase::Optimizer, 1.0)];
        let short = [("fwd", 4.0), ("bwd", 9.0), ("bwd_inner", 6.0), ("bwd_allreduce", 3.0), ("step", 1.0)];
        assert_eq!(seconds(&short), expected);
        let long = [
            ("forward", 4.0),
            ("backward", 9.0),
            ("backward_inner", 6.0),
            ("backward_allreduce", 3.0),
            ("step", 1.0),
            ("forward_microstep", 2.0),
            ("backward_allreduce_microstep", 3.0),
            ("optimizer_step", 0.5),
        ];
        assert_eq!(seconds(&long), expected);
        let microbatches =
            [("fwd_microstep", 4.0), ("bwd_microstep", 9.0), ("bwd_allreduce_microstep", 3.0), ("step_microstep", 1.0)];
        assert_eq!(seconds(&microbatches), expected);
        let unreduced = [("fwd", 4.0), ("bwd", 9.0), ("optimizer_step", 0.5), ("optimizer_allgather", 0.25)];
        assert_eq!(seconds(&unreduced), [(Phase::Forward, 4.0), (Phase::Backward, 9.0), (Phase::Optimizer, 0.75)]);
    }
}
