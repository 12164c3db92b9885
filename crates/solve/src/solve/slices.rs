//! Runs a solver that is limited by a number of steps within a time budget.

use planscope_core::host::Cancellation;

/// Ratio of the steps of a run to those of the previous run.
const GROWTH: u64 = 4;

/// Calls `run` with an increasing number of steps, from `first` up to `limit`, and returns the last
/// result. The next run is skipped if it is not expected to end within the time budget, or if
/// `is_final` holds. Without a time budget, the result is that of `limit` steps or a final one.
pub(super) fn run_in_slices<T>(
    (first, limit): (u64, u64),
    cancellation: &dyn Cancellation,
    is_final: impl Fn(&T) -> bool,
    mut run: impl FnMut(u64) -> T,
) -> T {
    let mut steps = if cancellation.remaining().is_infinite() { limit } else { first.min(limit) };
    let mut begin = cancellation.seconds();
    let mut result = run(steps);
    while steps < limit && !is_final(&result) && !cancellation.is_over() {
        let now = cancellation.seconds();
        if (now - begin) * GROWTH as f64 > cancellation.remaining() {
            break;
        }
        begin = now;
        steps = steps.saturating_mul(GROWTH).clamp(1, limit);
        result = run(steps);
    }
    result
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use planscope_core::host::NeverCancelled;

    /// A clock that advances by one second per step.
    struct Counted {
        spent: AtomicU64,
        budget: u64,
    }

    impl Cancellation for Counted {
        fn is_over(&self) -> bool {
            self.spent.load(Ordering::Relaxed) >= self.budget
        }

        fn seconds(&self) -> f64 {
            self.spent.load(Ordering::Relaxed) as f64
        }

        fn remaining(&self) -> f64 {
            self.budget.saturating_sub(self.spent.load(Ordering::Relaxed)) as f64
        }
    }

    fn last_steps(budget: u64, limit: u64, enough: u64) -> (u64, u64) {
        let clock = Counted { spent: AtomicU64::new(0), budget };
        let last = run_in_slices(
            (1, limit),
            &clock,
            |&steps| steps >= enough,
            |steps| {
                clock.spent.fetch_add(steps, Ordering::Relaxed);
                steps
            },
        );
        (last, clock.spent.load(Ordering::Relaxed))
    }

    /// 1 + 4 + 16 steps within 30 s; a run of 64 does not fit. A budget of 0 still gives one run.
    #[test]
    fn runs_grow_until_the_next_one_does_not_fit() {
        assert_eq!(last_steps(30, 1000, u64::MAX), (16, 21));
        assert_eq!(last_steps(0, 1000, u64::MAX), (1, 1));
        assert_eq!(last_steps(10_000, 20, u64::MAX), (20, 41));
        assert_eq!(last_steps(10_000, 1000, 4), (4, 5));
    }

    #[test]
    fn without_a_budget_there_is_one_run() {
        let runs = Cell::new(0);
        let steps = run_in_slices(
            (1, 50),
            &NeverCancelled,
            |_| false,
            |steps| {
                runs.set(runs.get() + 1);
                steps
            },
        );
        assert_eq!((steps, runs.get()), (50, 1));
    }
}
