//! Device activity of a rank.

use std::collections::BTreeMap;

use planscope_core::timeline::covered::Covered;
use serde::{Deserialize, Serialize};

/// Phase of a training step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Forward pass.
    Forward,
    /// Backward pass, with recomputation.
    Backward,
    /// Optimizer, with clipping of gradients.
    Optimizer,
}

/// Type of a device slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// Compute kernel.
    Compute,
    /// Communication kernel.
    Communication,
    /// Copy or fill of memory.
    Copy,
}

/// A slice on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceSlice {
    /// Index in [`Recorded::names`].
    pub name: u32,
    /// Type.
    pub activity: Activity,
    /// Phase, if known.
    pub phase: Option<Phase>,
    /// Start on the clock of the trace.
    pub start_ns: u64,
    /// Duration.
    pub duration_ns: u64,
    /// Number of the step that launches the slice.
    pub step: Option<u64>,
    /// Index in [`Recorded::calls`], for collectives.
    pub call: Option<u32>,
    /// Time of the launch on the host, if known.
    pub launched_ns: Option<u64>,
}

impl DeviceSlice {
    /// Returns the end on the clock of the trace.
    pub const fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.duration_ns)
    }
}

/// Work of the host that keeps the device waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostWork {
    /// Reading of data.
    Reading,
    /// Waiting for the device.
    Synchronisation,
    /// Allocation or release of device memory.
    Allocation,
}

/// A slice on a host thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostSlice {
    /// Work.
    pub work: HostWork,
    /// Start on the clock of the trace.
    pub start_ns: u64,
    /// Duration.
    pub duration_ns: u64,
}

impl HostSlice {
    /// Returns the end on the clock of the trace.
    pub const fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.duration_ns)
    }
}

/// A call of a collective operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Operation, for example "allreduce".
    pub operation: String,
    /// Process group; empty if the trace does not name it.
    pub group: String,
    /// Sequence number in the group.
    pub sequence: Option<u64>,
    /// True if the operation ends on no rank before all ranks have arrived: all-reduce, all-gather,
    /// reduce-scatter, all-to-all, barrier.
    pub waits_for_all: bool,
}

/// A training step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedStep {
    /// Step number.
    pub number: u64,
    /// Duration.
    pub duration_ns: u64,
}

/// Device activity of a rank.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recorded {
    /// File or trace.
    pub name: String,
    /// Rank number.
    pub rank: u32,
    /// Distinct slice names, normalised.
    pub names: Vec<String>,
    /// Slices in start order.
    pub slices: Vec<DeviceSlice>,
    /// Calls of collectives.
    pub calls: Vec<Call>,
    /// Slices of the host that can keep the device waiting, in start order; empty for traces of several devices.
    pub host: Vec<HostSlice>,
    /// Steps in time order.
    pub steps: Vec<RecordedStep>,
    /// Number of ranks of the job, if the trace states it.
    pub world_size: Option<u32>,
    /// Text that names the model of the device, if the trace states it.
    pub model: Option<String>,
    /// Number of slices that occur again, and are left out.
    pub duplicates: u64,
}

/// Total time and count by activity and name.
pub(super) type ByName<'r> = BTreeMap<(Activity, &'r str), (u64, u64)>;

/// Unions of intervals by activity, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Usage {
    pub(crate) span: u64,
    pub(crate) compute: u64,
    pub(crate) communication: u64,
    pub(crate) exposed: u64,
    pub(crate) copies: u64,
    pub(crate) busy: u64,
}

impl Usage {
    /// Computes the unions of slices.
    pub(crate) fn of<'s>(slices: impl Iterator<Item = &'s DeviceSlice>) -> Self {
        let mut intervals: [Vec<(u64, u64)>; 3] = Default::default();
        for slice in slices {
            intervals[slice.activity as usize].push((slice.start_ns, slice.end_ns()));
        }
        let [compute, communication, copies] = intervals.map(Covered::by);
        let kernels = compute.or(&communication);
        let busy = kernels.or(&copies);
        let compute_ns = compute.length_ns();
        Self {
            span: busy.ends().map_or(0, |(first, last)| last - first),
            compute: compute_ns,
            communication: communication.length_ns(),
            exposed: kernels.length_ns() - compute_ns,
            copies: copies.length_ns(),
            busy: busy.length_ns(),
        }
    }
}

impl Recorded {
    /// Returns a note about slices that are left out.
    pub(super) fn duplicates_note(&self) -> Option<String> {
        (self.duplicates > 0).then(|| {
            format!("{} device slices of {} occur twice in the file and count once.", self.duplicates, self.name)
        })
    }

    /// Returns total time, count and activity by name.
    pub(super) fn by_name(&self, wanted: impl Fn(&DeviceSlice) -> bool) -> ByName<'_> {
        let mut found = ByName::new();
        for slice in self.slices.iter().filter(|slice| wanted(slice)) {
            let name = self.names.get(slice.name as usize).map_or("", String::as_str);
            let (time, count) = found.entry((slice.activity, name)).or_default();
            *time = time.saturating_add(slice.duration_ns);
            *count += 1;
        }
        found
    }
}
