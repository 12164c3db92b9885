//! Comparisons of profiler traces: two traces of a program (before, after), and the ranks of one
//! run.
//!
//! [`difference`] compares time by kernel, phase and step. [`ranks`] finds who waits for whom in
//! collectives, and the straggler. [`times`] sums up a single trace. [`segments`] draws several ranks on one axis. Input is
//! [`Recorded`], the device activity of a rank.

mod difference;
mod names;
mod ranks;
mod recorded;
mod segments;
mod summary;

pub use difference::{KernelDifference, PhaseDifference, StepDifference, TraceDifference, TraceSide, difference};
pub use names::normalised;
pub use ranks::{
    Cause, GroupWait, KernelExcess, Occurrence, RankReport, RankWait, RanksError, StepWait, Straggler, Wait, ranks,
};
pub(crate) use recorded::Usage;
pub use recorded::{Activity, Call, DeviceSlice, HostSlice, HostWork, Phase, Recorded, RecordedStep};
pub use segments::{RankAxis, Segment, SegmentKind, SegmentRow, segments};
pub use summary::{KernelTime, PhaseTime, StepTime, TraceTimes, times};

/// Returns `left - right`, saturated to the `i64` range.
fn signed(left: u64, right: u64) -> i64 {
    let difference = i128::from(left) - i128::from(right);
    i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX })
}

/// Returns the upper median; 0 if empty.
fn median<T: Copy + Ord + Default>(mut values: Vec<T>) -> T {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}
