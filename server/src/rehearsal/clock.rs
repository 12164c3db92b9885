//! The clock that all processes of a rehearsal share, and sleeping until a moment on it.

use std::time::Duration;

/// The kernel wakes a sleeper later than asked, on idle machines by 50 to 150 us: it is asked for that much earlier, and
/// the rest is spent giving the core to whoever wants it.
const EARLY_NS: u64 = 150_000;
/// Sleeps that the precision is measured on, and their length.
const TRIALS: usize = 40;
const TRIAL_NS: u64 = 2_000_000;

/// Nanoseconds of the machine's monotonic clock; of one machine's processes all see the same.
#[cfg(unix)]
pub(super) fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

/// Nanoseconds of the time of day, the one clock that processes share where there is no better one.
#[cfg(not(unix))]
pub(super) fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Processor time that this process has used, in ns; none where the system does not say.
pub(super) fn processor_ns() -> u64 {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
    }
    #[cfg(not(unix))]
    0
}

/// Asks the kernel not to bundle the wake-ups of this thread and of those that it starts. Where it cannot be asked, sleeps
/// are less precise, which is measured anyway.
pub(super) fn sharpen() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

/// Sleeps until a moment; returns when it came, a few microseconds behind it at best, at once where it has passed.
pub(super) fn sleep_until(moment_ns: u64) -> u64 {
    loop {
        let now = now();
        if now >= moment_ns {
            return now;
        }
        let left = moment_ns - now;
        if left > EARLY_NS {
            std::thread::sleep(Duration::from_nanos(left - EARLY_NS));
        } else {
            std::thread::yield_now();
        }
    }
}

/// How much later than asked sleepers of this machine wake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Precision {
    /// Median, in ns.
    pub median_ns: u64,
    /// Mean, in ns: what many of them add up to. On a busy machine it is far above the median.
    pub mean_ns: u64,
    /// 95th percentile, in ns.
    pub late_ns: u64,
}

/// Measures the precision of sleeping, for about a tenth of a second.
pub(super) fn measure() -> Precision {
    let mut late: Vec<u64> = (0..TRIALS)
        .map(|_| {
            let moment = now() + TRIAL_NS;
            sleep_until(moment) - moment
        })
        .collect();
    late.sort_unstable();
    let mean_ns = late.iter().sum::<u64>() / TRIALS as u64;
    Precision { median_ns: late[TRIALS / 2], mean_ns, late_ns: late[TRIALS * 95 / 100] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_wakes_too_early() {
        for length in [0, 1_000, 400_000] {
            let moment = now() + length;
            assert!(sleep_until(moment) >= moment);
        }
        let past = now() - 1;
        assert!(sleep_until(past) >= past);
    }
}
