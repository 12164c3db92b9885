//! Idle time of a device by cause: what the device waits for before the next kernel or copy.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::IdleTime;
use crate::trace_comparison::{Activity, DeviceSlice, HostSlice, HostWork};
use planscope_core::timeline::covered::Covered;

/// Longest gap between two kernels that late launches explain. Longer gaps have a host that is blocked.
const LAUNCH_NS: u64 = 200_000;
/// Time from a launch to its start on a device that is free.
const START_NS: u64 = 20_000;

/// Cause of idle time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum IdleCause {
    /// Short gaps: the host launches the next kernel after the device has become idle.
    LateLaunch,
    /// Long gaps within a step: the host is blocked.
    BlockedHost,
    /// Between two steps.
    BetweenSteps,
    /// Long gaps within a step in which the host reads data.
    Reading,
    /// Long gaps within a step in which the host waits for the device.
    Synchronisation,
    /// Long gaps within a step in which the host allocates or frees memory of the device.
    Allocation,
    /// Before a copy.
    WaitForCopy,
    /// The next kernel was launched before: it waits for another stream, or for its start.
    Dependency,
    /// The trace has no launch of the next kernel.
    Unknown,
}

impl IdleCause {
    /// Description for users.
    pub const fn title(self) -> &'static str {
        match self {
            Self::LateLaunch => "late launches of kernels (host-bound)",
            Self::BlockedHost => "blocked host: synchronisation, garbage collection, allocation of memory",
            Self::BetweenSteps => "between steps: reading of data, logging",
            Self::Reading => "within a step, while the host reads data",
            Self::Synchronisation => "within a step, while the host waits for the device",
            Self::Allocation => "within a step, while the host allocates or frees device memory",
            Self::WaitForCopy => "before copies: input from the host, offloading",
            Self::Dependency => "waiting for another stream, with the next kernel launched",
            Self::Unknown => "unknown: the trace has no launches",
        }
    }

    /// How to confirm the cause or what to do.
    pub const fn confirm(self) -> &'static str {
        match self {
            Self::LateLaunch => "Compile the model or use CUDA graphs; check the number of CPU threads per process.",
            Self::BlockedHost => {
                "Look for cudaStreamSynchronize, .item(), cudaMalloc and garbage collection on the host thread."
            }
            Self::BetweenSteps => {
                "Run some steps on synthetic data; raise the number of loader processes; log less often."
            }
            Self::Reading => {
                "Run some steps on synthetic data; raise the number of loader processes and the prefetched batches."
            }
            Self::Synchronisation => {
                "Look for .item(), prints of device values and cudaStreamSynchronize on the host thread."
            }
            Self::Allocation => {
                "Look for cudaMalloc and cudaFree: little free memory, or sizes that change (PYTORCH_ALLOC_CONF=expandable_segments:True)."
            }
            Self::WaitForCopy => "Use pinned memory and prefetch batches; look at the bandwidth of the copies.",
            Self::Dependency => {
                "Look which stream ends before the kernel starts: events between compute and communication."
            }
            Self::Unknown => "Record CPU activity too, so that the trace has launches.",
        }
    }
}

/// Returns the idle time by cause per step, longest first. `length_ns` is the sum of the step durations. Idle time before
/// the first and after the last slice of a step is between steps. `host` is in start order.
pub(super) fn by_cause(
    slices: &[&DeviceSlice],
    host: &[HostSlice],
    length_ns: Option<u64>,
    count: f64,
) -> Vec<IdleTime> {
    let mut ordered: Vec<&DeviceSlice> = slices.to_vec();
    ordered.sort_by_key(|slice| (slice.start_ns, slice.end_ns()));
    let mut found: BTreeMap<IdleCause, (u64, u64, u64)> = BTreeMap::new();
    let mut add = |cause: IdleCause, gap: u64, gaps: u64| {
        let (time, number, longest) = found.entry(cause).or_default();
        *time += gap;
        *number += gaps;
        *longest = (*longest).max(gap);
    };
    let mut busy_until: Option<(u64, Option<u64>)> = None;
    let mut inside = 0;
    let mut busy = 0;
    for slice in ordered {
        let (end, step) = busy_until.unwrap_or((slice.start_ns, slice.step));
        if slice.start_ns > end {
            let gap = slice.start_ns - end;
            // Steps that are not compared lie between numbers that do not follow each other.
            let is_next = match (step, slice.step) {
                (Some(last), Some(next)) => next.saturating_sub(last) <= 1,
                _ => true,
            };
            if is_next {
                add(cause(slice, end, step != slice.step, host), gap, 1);
                inside += gap;
            }
        }
        busy += slice.end_ns().saturating_sub(slice.start_ns.max(end));
        busy_until = Some((end.max(slice.end_ns()), slice.step));
    }
    // What the durations of the steps have beyond their slices.
    let rest = length_ns.map_or(0, |length| length.saturating_sub(busy + inside));
    if rest > 0 {
        add(IdleCause::BetweenSteps, rest, 1);
    }
    let row = |(cause, (time, gaps, longest)): (IdleCause, (u64, u64, u64))| IdleTime {
        cause,
        time_s: time as f64 * 1e-9 / count,
        gaps: gaps as f64 / count,
        longest_s: longest as f64 * 1e-9,
    };
    let mut rows: Vec<IdleTime> = found.into_iter().map(row).collect();
    rows.sort_by(|a, b| b.time_s.total_cmp(&a.time_s));
    rows
}

/// Returns why the device is idle from `idle_from` to the start of `next`.
fn cause(next: &DeviceSlice, idle_from: u64, is_other_step: bool, host: &[HostSlice]) -> IdleCause {
    if is_other_step {
        return IdleCause::BetweenSteps;
    }
    let is_long = next.start_ns - idle_from > LAUNCH_NS;
    if let Some(work) = is_long.then(|| host_work(host, idle_from, next.start_ns)).flatten() {
        return match work {
            HostWork::Reading => IdleCause::Reading,
            HostWork::Synchronisation => IdleCause::Synchronisation,
            HostWork::Allocation => IdleCause::Allocation,
        };
    }
    if next.activity == Activity::Copy {
        return IdleCause::WaitForCopy;
    }
    let Some(launched) = next.launched_ns else { return IdleCause::Unknown };
    if launched.saturating_add(START_NS) < idle_from {
        IdleCause::Dependency
    } else if is_long {
        IdleCause::BlockedHost
    } else {
        IdleCause::LateLaunch
    }
}

/// Returns the work of the host during at least half of a gap.
fn host_work(host: &[HostSlice], from_ns: u64, to_ns: u64) -> Option<HostWork> {
    let inside = host.iter().take_while(|slice| slice.start_ns < to_ns).filter(|slice| slice.end_ns() > from_ns);
    let mut intervals: BTreeMap<HostWork, Vec<(u64, u64)>> = BTreeMap::new();
    for slice in inside {
        intervals.entry(slice.work).or_default().push((slice.start_ns.max(from_ns), slice.end_ns().min(to_ns)));
    }
    let lengths = intervals.into_iter().map(|(work, intervals)| (work, Covered::by(intervals).length_ns()));
    let (work, length_ns) = lengths.max_by_key(|&(work, length_ns)| (length_ns, std::cmp::Reverse(work)))?;
    (2 * length_ns >= to_ns - from_ns).then_some(work)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(activity: Activity, start_us: u64, end_us: u64, launched_us: Option<u64>, step: u64) -> DeviceSlice {
        DeviceSlice {
            name: 0,
            activity,
            phase: None,
            start_ns: start_us * 1000,
            duration_ns: (end_us - start_us) * 1000,
            step: Some(step),
            call: None,
            launched_ns: launched_us.map(|us| us * 1000),
        }
    }

    /// Two steps of 2,000 µs. The gaps: 50 µs late launch, 300 µs blocked host, 100 µs before a copy, 40 µs dependency,
    /// 30 µs without a launch, and the rest between the steps.
    #[test]
    fn gaps_have_causes_and_add_up_to_the_idle_time() {
        use Activity::{Compute, Copy};
        let slices = [
            slice(Compute, 0, 100, Some(0), 1),
            slice(Compute, 150, 200, Some(145), 1),
            slice(Compute, 500, 600, Some(495), 1),
            slice(Copy, 700, 710, Some(690), 1),
            slice(Compute, 750, 800, Some(200), 1),
            slice(Compute, 830, 1000, None, 1),
            // Starts before the previous slice ends: no gap.
            slice(Compute, 990, 1500, Some(980), 1),
            slice(Compute, 2000, 3900, Some(1990), 2),
        ];
        let slices: Vec<&DeviceSlice> = slices.iter().collect();
        let rows = by_cause(&slices, &[], Some(4_000_000), 2.0);
        let us = |cause: IdleCause| {
            let row = rows.iter().find(|row| row.cause == cause).unwrap();
            (row.time_s * 2e6).round() as u64
        };
        assert_eq!(us(IdleCause::LateLaunch), 50);
        assert_eq!(us(IdleCause::BlockedHost), 300);
        assert_eq!(us(IdleCause::WaitForCopy), 100);
        assert_eq!(us(IdleCause::Dependency), 40);
        assert_eq!(us(IdleCause::Unknown), 30);
        assert_eq!(us(IdleCause::BetweenSteps), 600);
        let busy = 100 + 50 + 100 + 10 + 50 + 670 + 1900;
        assert_eq!(rows.iter().map(|row| row.time_s * 2e6).sum::<f64>().round() as u64, 4000 - busy);
        assert_eq!(rows[0].cause, IdleCause::BetweenSteps);
    }

    /// A gap of 400 µs before a kernel or a copy. The host reads during 250 µs of it, or 150 µs.
    #[test]
    fn the_work_of_the_host_names_long_gaps() {
        let found = |work, next: Activity, length_us: u64| {
            let slices = [slice(Activity::Compute, 0, 100, Some(0), 1), slice(next, 500, 600, Some(495), 1)];
            let host = [HostSlice { work, start_ns: 100_000, duration_ns: 1000 * length_us }];
            by_cause(&slices.iter().collect::<Vec<_>>(), &host, None, 1.0)[0].cause
        };
        let cases = [
            (HostWork::Reading, IdleCause::Reading),
            (HostWork::Synchronisation, IdleCause::Synchronisation),
            (HostWork::Allocation, IdleCause::Allocation),
        ];
        for (work, cause) in cases {
            assert_eq!(found(work, Activity::Compute, 250), cause);
            assert_eq!(found(work, Activity::Compute, 150), IdleCause::BlockedHost);
        }
        assert_eq!(found(HostWork::Reading, Activity::Copy, 250), IdleCause::Reading);
        assert_eq!(found(HostWork::Reading, Activity::Copy, 150), IdleCause::WaitForCopy);
    }

    #[test]
    fn traces_without_steps_have_the_gaps_between_slices() {
        let slices = [slice(Activity::Compute, 0, 10, Some(0), 0), slice(Activity::Compute, 30, 40, Some(25), 0)]
            .map(|slice| DeviceSlice { step: None, ..slice });
        let rows = by_cause(&slices.iter().collect::<Vec<_>>(), &[], None, 1.0);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].cause, (rows[0].time_s * 1e6).round() as u64), (IdleCause::LateLaunch, 20));
    }
}
