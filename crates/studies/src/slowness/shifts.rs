//! Changes of the phases of a step by a cause.

use super::PhaseShift;
use super::degrees::Base;
use planscope_analysis::run_comparison::{Phase, TimerRanks, predicted_phases};
use planscope_plan::outcome::Planned;

/// Moves the changes of the backward passes to the forward passes: data are read there.
pub(super) fn in_forward(shifts: Vec<PhaseShift>) -> Vec<PhaseShift> {
    let is_pass = |shift: &PhaseShift| [Phase::Forward.name(), Phase::Backward.name()].contains(&shift.phase.as_str());
    let (passes, others): (Vec<PhaseShift>, Vec<PhaseShift>) = shifts.into_iter().partition(is_pass);
    let seconds = passes.iter().map(|shift| shift.seconds).sum();
    let forward = (!passes.is_empty()).then(|| PhaseShift { phase: Phase::Forward.name().to_owned(), seconds });
    forward.into_iter().chain(others).collect()
}

/// Returns the changes of the phases of `steps` steps of a plan. Waiting between pipeline ranks is the rest of the
/// step. Changes below a thousandth of the step are left out.
pub(super) fn shifts(plan: &Planned, steps: f64, base: &Base<'_>) -> Vec<PhaseShift> {
    let changed = predicted_phases(plan, TimerRanks::Slowest, None);
    let shift = |phase: Phase| Some((phase, steps * changed.for_phase(phase)? - base.phases.for_phase(phase)?));
    let phases = [Phase::Forward, Phase::Backward, Phase::Reduction, Phase::Optimizer];
    let mut shifts: Vec<(Phase, f64)> = phases.into_iter().filter_map(shift).collect();
    let rest =
        steps * plan.metrics.iteration_s - base.predicted_s - shifts.iter().map(|(_, seconds)| seconds).sum::<f64>();
    if plan.layout.pipeline > 1 {
        shifts.push((Phase::Pipeline, rest));
    }
    let smallest = 1e-3 * base.predicted_s;
    let named = |(phase, seconds): (Phase, f64)| PhaseShift { phase: phase.name().to_owned(), seconds };
    shifts.into_iter().filter(|(_, seconds)| seconds.abs() > smallest).map(named).collect()
}
