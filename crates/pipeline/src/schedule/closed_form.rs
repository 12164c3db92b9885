//! Published formulas for bubble and memory of the schedules, for equal stage times.

use super::{ScheduleKind, Shape};
use planscope_core::units::Nanos;

/// Published formulas of a schedule kind, as display text. F, I, W and B = I + W are times of a
/// stage, which is one of v chunks per rank. F&B is the time of an overlapped pair. The bubble is
/// the maximum span of a rank (from the start of the first to the end of the last action), minus
/// the minimum work of any rank (with overlapped pairs, the work differs). Memory is the maximum
/// number of stage activations on a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClosedForm {
    /// Bubble formula.
    pub bubble: &'static str,
    /// Memory formula.
    pub memory: &'static str,
    /// Conditions for both formulas.
    pub conditions: &'static str,
}

/// Times of a uniform pipeline without communication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageTimes {
    /// Forward time, F.
    pub forward: Nanos,
    /// Input gradient time, I.
    pub input_grad: Nanos,
    /// Weight gradient time, W.
    pub weight_grad: Nanos,
    /// Time of an overlapped forward and full backward, F&B.
    pub overlapped: Nanos,
}

impl ScheduleKind {
    /// Returns the formulas; `None` for the dynamic schedule.
    pub const fn closed_form(self) -> Option<ClosedForm> {
        let (bubble, memory, conditions) = match self {
            Self::Gpipe => ("(p - 1)(F + B)", "m", "equal times"),
            Self::LoopedBfs => ("(p - 1)(F + B)", "m v", "equal times, m >= p"),
            Self::OneFOneB => ("(p - 1)(F + B)", "min(p, m)", "equal times"),
            Self::Interleaved => {
                ("(p - 1)(F + B)", "2 (p - 1) + (v - 1) p + 1", "equal times, groups of p, p divides m")
            }
            Self::InterleavedZeroBubble => {
                ("(p - 1)(F + I - W)", "v p", "equal times, W <= F, groups of p, p divides m")
            }
            Self::ZbH1 => ("(p - 1)(F + I - W)", "p", "equal times, W <= F and I, m >= p"),
            Self::ZbH2 => ("(p - 1)(F + I - 2 W) at most", "2 p", "equal times, W <= F and I, m >= 2 p - 1"),
            Self::Zbv => ("0", "2 p", "F = I = W, m >= 2 p - 1"),
            Self::VHalf => ("3 (p - 1) F at most, half of 1F1B's", "2 (floor(p / 2) + 1)", "F = I = W, m >= 2 p"),
            Self::VMin => {
                ("4 (p - 1) F at most, two thirds of 1F1B's", "2 (floor((p + 1) / 3) + 1)", "F = I = W, m >= 2 p")
            }
            Self::DualPipe => ("(p / 2 - 1)(F&B + B - 3 W)", "p + 1", "F = I = W, p and m even, m >= 2 p"),
            Self::DualPipeV => ("(p - 1)(F&B + B - 3 W)", "2 p + 1", "F = I = W, m >= 2 p"),
            Self::WaitFreeCyclic => return None,
        };
        Some(ClosedForm { bubble, memory, conditions })
    }

    /// Returns the bubble, or `None` if the conditions do not hold.
    pub fn expected_bubble(self, shape: Shape, times: StageTimes) -> Option<Nanos> {
        let StageTimes { forward, input_grad, weight_grad, overlapped } = times;
        let (p, m) = (shape.ranks as u64, shape.microbatches as u64);
        let others = p - 1;
        let (f, i, w) = (forward.get(), input_grad.get(), weight_grad.get());
        let is_equal = f == i && i == w;
        let (times, each) = match self {
            Self::Gpipe | Self::OneFOneB => (others, f + i + w),
            Self::LoopedBfs if m >= p => (others, f + i + w),
            Self::Interleaved if shape.has_full_groups() => (others, f + i + w),
            Self::InterleavedZeroBubble if shape.has_full_groups() && w <= f => (others, f + i - w),
            Self::ZbH1 if m >= p && w <= f && w <= i => (others, f + i - w),
            Self::ZbH2 if m + 1 >= 2 * p && w <= f && w <= i => (others, f + i - 2 * w),
            Self::Zbv if m + 1 >= 2 * p && is_equal => (others, 0),
            Self::VHalf if m >= 2 * p && is_equal => (others, 3 * f),
            Self::VMin if m >= 2 * p && is_equal => (others, 4 * f),
            Self::DualPipe if is_equal => (p / 2 - 1, (overlapped.get() + i + w).saturating_sub(3 * w)),
            Self::DualPipeV if is_equal => (others, (overlapped.get() + i + w).saturating_sub(3 * w)),
            _ => return None,
        };
        Some(Nanos::new(times.saturating_mul(each)))
    }

    /// Returns the maximum number of stage activations on a rank, or `None` if the conditions do
    /// not hold.
    pub fn expected_peak(self, shape: Shape) -> Option<u64> {
        let (p, m, v) = (shape.ranks as u64, shape.microbatches as u64, shape.chunks as u64);
        match self {
            Self::Gpipe => Some(m),
            Self::LoopedBfs => Some(m * v),
            Self::OneFOneB | Self::ZbH1 => Some(p.min(m)),
            Self::Interleaved if shape.has_full_groups() => Some((2 * (p - 1) + (v - 1) * p + 1).min(m * v)),
            Self::InterleavedZeroBubble if shape.has_full_groups() => Some(v * p),
            Self::ZbH2 if p > 1 && m >= 3 * p => Some(2 * p),
            Self::Zbv if m + 1 >= 2 * p => Some(2 * p),
            Self::VHalf if m >= 2 * p => Some(2 * (p / 2 + 1)),
            Self::VMin if m >= 2 * p => Some(2 * ((p + 1) / 3 + 1)),
            Self::DualPipe if p > 2 => Some(p + 1),
            Self::DualPipeV if p > 1 => Some(2 * p + 1),
            _ => None,
        }
    }
}

impl Shape {
    /// Returns whether p divides m and groups have p microbatches.
    fn has_full_groups(self) -> bool {
        self.group.is_none_or(|group| group == self.ranks) && self.microbatches.is_multiple_of(self.ranks)
    }
}
