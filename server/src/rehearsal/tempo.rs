//! How fast a plan can be rehearsed on this machine.

use planner::execution_plan::ExecutionPlan;

use super::clock::Precision;
use super::score::Score;

/// Shortest time of an iteration where nobody says how fast, in ns.
const COMFORT_NS: f64 = 1.5e9;
/// Longest time of an iteration where nobody says how fast, in ns: patience ends before precision does.
const LONG_NS: f64 = 6e9;
/// Share of an iteration that imprecise sleeping may add where nobody says how fast.
const AIM: f64 = 0.01;
/// Share of an iteration beyond which a warning is due: rehearsed and simulated times should agree within it.
pub(super) const AGREEMENT: f64 = 0.03;
/// Share beyond which a rehearsal says nothing about times.
const SENSELESS: f64 = 0.5;

/// How many times faster than planned, and what that does to precision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tempo {
    /// How many times faster than planned.
    pub speed: f64,
    /// Sleeping of this machine.
    pub precision: Precision,
    /// Shortest computation at that speed, in ns.
    pub shortest_ns: f64,
    /// Share of an iteration that imprecise sleeping is expected to add at most.
    pub expected: f64,
}

/// Why a speed is not taken.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum TempoError {
    /// Not a speed.
    #[error("the speed must be a number between 0.000001 and 1000000")]
    Odd,
    /// Nothing could be learnt from it.
    #[error(
        "at speed {speed} an iteration takes {iteration_ms:.2} ms, of which waking up late takes {late_ms:.2} ms or more on \
         this machine: nothing could be learnt; try --speed {better:.3}"
    )]
    Senseless {
        /// What was asked for.
        speed: f64,
        /// Time of an iteration at that speed, in ms.
        iteration_ms: f64,
        /// Expected delay, in ms.
        late_ms: f64,
        /// What would be taken where nothing is said.
        better: f64,
    },
}

impl Tempo {
    /// The speed asked for, or one at which rehearsed and simulated times agree.
    pub(super) fn of(score: &Score, speed: Option<f64>, precision: Precision) -> Result<Self, TempoError> {
        // Every wake-up of the rank with most of them is taken to be late and to hold up the iteration.
        let wakes = |plan: &ExecutionPlan| plan.ranks.iter().map(|list| list.len() as f64 / 2.0).fold(1.0, f64::max);
        let plans = || score.movements().iter().map(|movement| &movement.plan);
        let late_ns = plans().map(wakes).fold(1.0, f64::max) * precision.median_ns as f64;
        let iteration_ns = plans().map(|plan| plan.iteration_ns() as f64).fold(f64::INFINITY, f64::min).max(1.0);
        let better = iteration_ns / COMFORT_NS.max(late_ns / AIM).min(LONG_NS);
        let speed = speed.unwrap_or(better);
        if !(1e-6..=1e6).contains(&speed) {
            return Err(TempoError::Odd);
        }
        let expected = late_ns * speed / iteration_ns;
        if expected > SENSELESS {
            let (iteration_ms, late_ms) = (iteration_ns / speed / 1e6, late_ns / 1e6);
            return Err(TempoError::Senseless { speed, iteration_ms, late_ms, better });
        }
        let computations = plans().flat_map(|plan| plan.ranks.iter().flatten()).filter(|one| one.action.computes());
        let durations = computations.filter_map(|one| one.duration_ns).filter(|&duration| duration > 0);
        let shortest_ns = durations.min().unwrap_or(0) as f64 / speed;
        Ok(Self { speed, precision, shortest_ns, expected })
    }

    /// What speaks against the times of such a rehearsal, in words.
    pub fn warning(&self) -> Option<String> {
        let late_us = self.precision.late_ns as f64 / 1e3;
        let shortest_us = self.shortest_ns / 1e3;
        let at = self.speed;
        if self.expected > AGREEMENT {
            let share = self.expected * 100.0;
            return Some(format!(
                "sleeping is too imprecise for speed {at:.3}: late wake-ups may add {share:.1} % to an iteration"
            ));
        }
        (self.shortest_ns < 2.0 * self.precision.late_ns as f64).then(|| {
            format!(
                "the shortest computation takes {shortest_us:.0} us at speed {at:.3}, and sleepers wake up to {late_us:.0} \
                 us late"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One rank, two computations of 30 and 70 ms.
    fn score() -> Score {
        let text = r#"{"buffers": {"receive": 2, "send": 2}, "planned_ns": 100000000, "ranks": [[
            {"start_ns": 0, "duration_ns": 30000000, "action": "forward_stage", "stage": 0, "microbatch": 0},
            {"start_ns": 30000000, "duration_ns": 70000000, "action": "backward_stage", "stage": 0, "microbatch": 0}]]}"#;
        Score::read(text).unwrap()
    }

    const PRECISION: Precision = Precision { median_ns: 10_000, late_ns: 50_000 };

    #[test]
    fn where_nothing_is_said_an_iteration_takes_a_moment() {
        let tempo = Tempo::of(&score(), None, PRECISION).unwrap();
        // 100 ms in 1.5 s.
        assert!((tempo.speed - 1.0 / 15.0).abs() < 1e-12);
        assert!((tempo.shortest_ns - 450e6).abs() < 1.0 && tempo.warning().is_none());
        // One wake-up, taken to be 300 ms late: a hundred times that is more than the 6 s that anybody waits.
        let slow = Tempo::of(&score(), None, Precision { median_ns: 300_000_000, late_ns: 300_000_000 }).unwrap();
        assert!((slow.speed - 0.1 / 6.0).abs() < 1e-12);
    }

    #[test]
    fn what_is_too_fast_is_told_or_refused() {
        // 100 ms / 500 = 0.2 ms, of which 0.01 ms is 5 %.
        let fast = Tempo::of(&score(), Some(500.0), PRECISION).unwrap();
        assert!((fast.expected - 0.05).abs() < 1e-12 && fast.warning().unwrap().contains("5.0 %"));
        assert!(matches!(Tempo::of(&score(), Some(1e5), PRECISION), Err(TempoError::Senseless { .. })));
        for odd in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Tempo::of(&score(), Some(odd), PRECISION), Err(TempoError::Odd));
        }
    }
}
