//! Causes and the measured phases of a step: which phase is late, and which causes the timers contradict.

use serde::{Deserialize, Serialize};

use super::{Advice, Cause, CauseOrder, MIN_SHARE, PhaseShift, Plausibility, Relation, Slowness};
use crate::run_comparison::Phase;
use planscope_plan::scenario::Scenario;

/// Smallest share of the gap of a late phase.
const LATE: f64 = 0.25;
/// A cause is contradicted if less of its effect is in late phases.
const MIN_MATCH: f64 = 0.5;
/// Smallest share of the gap of a phase that a cause of it changes.
const MIN_CHANGE: f64 = 0.1;
/// Field of a cause with other layers on the stages.
const LAYERS: &str = "/layers_per_stage";
/// Field of a cause with slower devices.
const CLOCKS: &str = "/cluster/device/peak_tflops";
/// Name of the part of the step that no compared timer measures.
const UNTIMED: &str = "time outside the compared timers";

/// Measured minus predicted time of a phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PhaseGap<'a> {
    /// Name of the phase.
    pub phase: &'a str,
    /// Difference in s.
    pub seconds: f64,
}

/// A phase that is later than predicted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LatePhase {
    /// Name of the phase, or of the part of the step without timers.
    pub phase: String,
    /// Measured minus predicted time in s.
    pub seconds: f64,
    /// True if a listed cause makes this phase longer.
    pub has_cause: bool,
    /// What to look at, for a phase without a cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<String>,
}

impl LatePhase {
    /// Describes the phase and its gap, for example "optimizer +0.412 s (no simulated cause changes it)".
    pub fn text(&self) -> String {
        let unexplained = if self.has_cause { "" } else { " (no simulated cause changes it)" };
        format!("{} {:+.3}\u{202f}s{unexplained}", self.phase, self.seconds)
    }
}

impl Slowness {
    /// Adds the timer of the reading of batches, in s per step, to the causes of a slower run. It replaces the
    /// simulated reading of data, and explains at most the gap.
    pub fn add_reading_timer(&mut self, scenario: &Scenario, read_s: f64) {
        self.causes.retain(|cause| !cause.is_reading());
        let gap_s = self.measured_s - self.predicted_s;
        let explains_s = read_s.min(gap_s);
        if self.relation != Relation::Slower || explains_s < MIN_SHARE * gap_s {
            return;
        }
        let measured = Cause {
            title: "reading of batches, by its timer".to_owned(),
            fields: Vec::new(),
            iteration_s: self.predicted_s + explains_s,
            explains_s,
            phases: vec![PhaseShift { phase: Phase::Data.name().to_owned(), seconds: explains_s }],
            confirm: format!(
                "{} Raise the number of loader processes, and check the storage.",
                Advice::of(scenario).reading()
            ),
            is_tuned: false,
            plausibility: Plausibility::Usual,
            memory_gib: None,
        };
        // A measured cause is before the simulated ones, unless it explains less than half.
        let at = if explains_s < 0.5 * gap_s { self.causes.len() } else { 0 };
        self.causes.insert(at, measured);
    }

    /// Adds what to look at to the late phases without a cause. `part` returns the longest timer inside a phase, with its seconds.
    pub fn advise(&mut self, scenario: &Scenario, part: impl Fn(&str) -> Option<(String, f64)>) {
        let advice = Advice::of(scenario);
        for late in self.late_phases.iter_mut().filter(|late| !late.has_cause) {
            let Some(text) = advice.late_phase(&late.phase) else { continue };
            let part = part(&late.phase).map_or_else(String::new, |(name, seconds)| {
                format!(" Its longest timer is {name} with {seconds:.3}\u{202f}s.")
            });
            late.confirm = Some(format!("{text}{part}"));
        }
    }

    /// Moves the effect of slow reading out of the timed phases, for logs whose forward timer does not contain it.
    pub fn read_outside_timers(&mut self) {
        for cause in self.causes.iter_mut().filter(|cause| cause.is_reading()) {
            cause.phases.clear();
        }
    }

    /// Uses timers of which some ranks are slow to order the causes of a slower run. A slow device is first, unless the slow ranks
    /// are the last pipeline stage: then its layers are. Other stages and devices contradict more layers on the last stage. `None`
    /// if the log does not show which ranks are slow.
    pub fn rank_by_slow_ranks(&mut self, are_last_stage: Option<bool>) {
        let is_of = |cause: &Cause, pointer: &str| cause.fields.iter().any(|field| field.pointer == pointer);
        if are_last_stage == Some(false) {
            let (layers, others): (Vec<Cause>, Vec<Cause>) =
                std::mem::take(&mut self.causes).into_iter().partition(|cause| is_of(cause, LAYERS));
            self.contradicted.extend(layers.into_iter().map(|cause| cause.title));
            self.causes = others;
        }
        let first = if are_last_stage == Some(true) { LAYERS } else { CLOCKS };
        self.causes.sort_by_key(|cause| !is_of(cause, first));
    }

    /// Compares the causes of a slower run with the timed phases, which do not overlap. The rest of the gap is in the
    /// part of the step without timers.
    ///
    /// A cause is contradicted if less than half of its effect is in late phases. The others are sorted by the sum over
    /// the phases of the difference between the measured gap and the change that the cause makes. Without timed phases,
    /// nothing changes.
    pub fn rank_by_phases(&mut self, gaps: &[PhaseGap<'_>]) {
        if gaps.is_empty() || self.relation != Relation::Slower {
            return;
        }
        let gap_s = self.measured_s - self.predicted_s;
        let untimed_s = gap_s - gaps.iter().map(|gap| gap.seconds).sum::<f64>();
        let mut all = gaps.to_vec();
        all.push(PhaseGap { phase: UNTIMED, seconds: untimed_s });
        let effects = |cause: &Cause| -> Vec<f64> {
            let shift = |gap: &PhaseGap<'_>| {
                cause.phases.iter().find(|shift| shift.phase == gap.phase).map_or(0.0, |shift| shift.seconds)
            };
            let mut effects: Vec<f64> = gaps.iter().map(shift).collect();
            effects.push(cause.explains_s - effects.iter().sum::<f64>());
            effects
        };
        let is_contradicted = |cause: &Cause| {
            let (matched, whole) =
                effects(cause).iter().zip(&all).fold((0.0, 0.0), |(matched, whole), (effect, gap)| {
                    (matched + effect.min(gap.seconds).max(0.0), whole + effect.max(0.0))
                });
            matched < MIN_MATCH * whole
        };
        let (contradicted, mut causes): (Vec<Cause>, Vec<Cause>) =
            std::mem::take(&mut self.causes).into_iter().partition(is_contradicted);
        self.contradicted.extend(contradicted.into_iter().map(|cause| cause.title));
        let missed = |cause: &Cause| {
            effects(cause).iter().zip(&all).map(|(effect, gap)| (gap.seconds - effect).abs()).sum::<f64>()
        };
        causes.sort_by(|a, b| missed(a).total_cmp(&missed(b)));
        let late = all.iter().enumerate().filter(|(_, gap)| gap.seconds >= LATE * gap_s);
        self.late_phases = late
            .map(|(index, gap)| LatePhase {
                phase: gap.phase.to_owned(),
                seconds: gap.seconds,
                has_cause: causes.iter().any(|cause| effects(cause)[index] >= MIN_CHANGE * gap.seconds),
                confirm: None,
            })
            .collect();
        self.late_phases.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        self.causes = causes;
        self.order = CauseOrder::Phases;
    }
}
