//! Times of a single trace by phase, kernel and step.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use super::difference::Chosen;
use super::recorded::{Activity, Recorded};

/// Time of a phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = TracePhaseTime))]
pub struct PhaseTime {
    /// Phase, as in [`super::PhaseDifference`].
    pub phase: String,
    /// Union of the intervals, in ns.
    pub time_ns: u64,
}

/// Time of a kernel, or of all copies of a type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KernelTime {
    /// Name without addresses.
    pub name: String,
    /// Type.
    pub activity: Activity,
    /// Sum of durations, in ns.
    pub time_ns: u64,
    /// Number of slices.
    pub count: u64,
}

/// Time of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StepTime {
    /// Step number.
    pub step: u64,
    /// Duration, in ns.
    pub time_ns: u64,
}

/// Times of a rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TraceTimes {
    /// File or trace.
    pub name: String,
    /// Rank.
    pub rank: u32,
    /// Phases in order. Phases may overlap.
    pub phases: Vec<PhaseTime>,
    /// Kernels and copies, longest time first.
    pub kernels: Vec<KernelTime>,
    /// Steps in time order.
    pub steps: Vec<StepTime>,
}

/// Returns the times of a rank over the complete trace.
pub fn times(recorded: &Recorded) -> TraceTimes {
    let phases = Chosen::all(recorded).times();
    let kernels = recorded.by_name(|_| true).into_iter();
    let kernel = |((activity, name), (time_ns, count)): ((Activity, &str), (u64, u64))| KernelTime {
        name: name.to_owned(),
        activity,
        time_ns,
        count,
    };
    let mut kernels: Vec<KernelTime> = kernels.map(kernel).collect();
    kernels.sort_by_key(|kernel| Reverse(kernel.time_ns));
    TraceTimes {
        name: recorded.name.clone(),
        rank: recorded.rank,
        phases: phases.map(|(phase, time_ns)| PhaseTime { phase: phase.to_owned(), time_ns }).into(),
        kernels,
        steps: recorded.steps.iter().map(|step| StepTime { step: step.number, time_ns: step.duration_ns }).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace_comparison::{DeviceSlice, Phase, RecordedStep};

    #[test]
    fn times_cover_the_complete_trace() {
        let slice = |name, activity, phase, start_ns, duration_ns| DeviceSlice {
            name,
            activity,
            phase,
            start_ns,
            duration_ns,
            step: None,
            call: None,
            launched_ns: None,
        };
        let recorded = Recorded {
            names: vec!["copy".to_owned(), "gemm".to_owned()],
            slices: vec![
                slice(0, Activity::Copy, None, 0, 5),
                slice(1, Activity::Compute, Some(Phase::Forward), 5, 20),
                slice(1, Activity::Compute, Some(Phase::Forward), 15, 20),
            ],
            steps: vec![RecordedStep { number: 4, duration_ns: 50 }],
            ..Recorded::default()
        };
        let times = times(&recorded);
        let phase = |name: &str| times.phases.iter().find(|phase| phase.phase == name).map(|phase| phase.time_ns);
        assert_eq!(
            (phase("forward"), phase("copies"), phase("idle"), phase("total")),
            (Some(30), Some(5), Some(0), Some(35))
        );
        let kernels: Vec<_> = times.kernels.iter().map(|row| (row.name.as_str(), row.time_ns, row.count)).collect();
        assert_eq!(kernels, [("gemm", 40, 2), ("copy", 5, 1)]);
        assert_eq!(times.steps, [StepTime { step: 4, time_ns: 50 }]);
    }
}
