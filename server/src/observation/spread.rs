//! Difference between the fastest and the slowest rank, from timers with minimum and maximum.

use api::run::RunPoint;
use planner::run_comparison::{Phase, Timed, TimerRanks, median, phase_times, predicted_phases};

use super::RunContext;

/// Ratio of the slowest to the fastest rank, relative to the ratio in the plan, from which some ranks are slow.
const SPREAD: f64 = 1.1;

/// Times of a phase on the fastest and on the slowest rank, in s.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Range {
    phase: Phase,
    fastest_s: f64,
    slowest_s: f64,
}

/// Phases of work that take much longer on some ranks than on others.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Spread(Vec<Range>);

impl Spread {
    /// Finds the phases of the `selected` steps. `None` if the ranks differ little, or as in the plan.
    pub(super) fn find(selected: &[&RunPoint], context: &RunContext) -> Option<Self> {
        let [slowest, fastest] = [TimerRanks::Slowest, TimerRanks::Fastest]
            .map(|whose| predicted_phases(&context.planned, whose, context.timeline.as_ref()));
        let planned = |phase| Some(slowest.for_phase(phase)? / fastest.for_phase(phase).filter(|s| *s > 0.0)?);
        Self::of(selected, planned)
    }

    fn of(selected: &[&RunPoint], planned: impl Fn(Phase) -> Option<f64>) -> Option<Self> {
        let time = |point: &RunPoint, phase: Phase, fastest: bool| -> Option<f64> {
            let timer = |time: &api::run::PhaseTime| Some((time.name.clone(), time.min_s?, time.time_s));
            let timers: Vec<(String, f64, f64)> = point.phases.iter().filter_map(timer).collect();
            let timed =
                |(name, min_s, max_s): &(String, f64, f64)| (name.clone(), if fastest { *min_s } else { *max_s });
            let named: Vec<(String, f64)> = timers.iter().map(timed).collect();
            let timed: Vec<Timed<'_>> = named.iter().map(|(name, seconds)| Timed { name, seconds: *seconds }).collect();
            Some(phase_times(&timed).iter().find(|times| times.phase == phase)?.seconds)
        };
        let range = |phase: Phase| {
            let values = |fastest: bool| {
                median(&selected.iter().filter_map(|point| time(point, phase, fastest)).collect::<Vec<_>>())
            };
            let (fastest_s, slowest_s) = (values(true).filter(|s| *s > 0.0)?, values(false)?);
            let expected = planned(phase).unwrap_or(1.0).max(1.0);
            (slowest_s > SPREAD * expected * fastest_s).then_some(Range { phase, fastest_s, slowest_s })
        };
        let ranges: Vec<Range> = [Phase::Forward, Phase::Backward].into_iter().filter_map(range).collect();
        (!ranges.is_empty()).then_some(Self(ranges))
    }

    /// Describes the difference, and how to find the slow ranks.
    pub(super) fn note(&self) -> String {
        let range = |range: &Range| {
            let Range { phase, fastest_s, slowest_s } = range;
            format!(
                "{} takes {fastest_s:.3}\u{202f}s on the fastest and {slowest_s:.3}\u{202f}s on the slowest rank",
                phase.name()
            )
        };
        let ranges: Vec<String> = self.0.iter().map(range).collect();
        format!(
            "Some ranks are slow, and the others wait for them in the gradient reduction: {}. Log the timers of all ranks to find the \
             slow ones (in Megatron-LM: --timing-log-option all). Then compare their clocks, power and other processes with the others.",
            ranges.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use api::run::PhaseTime;

    use super::*;

    fn point(min_s: Option<f64>, time_s: f64) -> RunPoint {
        let phase =
            |name: &str, min_s, time_s| PhaseTime { name: name.to_owned(), min_s, time_s, ..PhaseTime::default() };
        RunPoint {
            phases: vec![phase("forward-compute", min_s, time_s), phase("all-grads-sync", Some(0.1), 9.0)],
            ..RunPoint::default()
        }
    }

    #[test]
    fn a_spread_of_work_is_more_than_that_of_the_plan() {
        let of = |point: &RunPoint, planned| Spread::of(&[point], |_| planned);
        let slow = of(&point(Some(2.0), 3.0), None).unwrap();
        assert_eq!(slow.0, [Range { phase: Phase::Forward, fastest_s: 2.0, slowest_s: 3.0 }]);
        let note = slow.note().replace('\u{202f}', " ");
        assert!(
            note.contains("forward compute takes 2.000 s on the fastest and 3.000 s on the slowest rank"),
            "{note}"
        );
        // Stages with other layers differ in the plan, too.
        assert_eq!(of(&point(Some(2.0), 3.0), Some(1.5)), None);
        assert_eq!(of(&point(Some(2.0), 2.1), None), None);
        assert_eq!(of(&point(None, 3.0), None), None);
    }
}
