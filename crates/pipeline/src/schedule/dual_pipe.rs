//! DualPipe: microbatches enter at both ends, and forwards overlap backwards (DeepSeek-AI, 2024,
//! "DeepSeek-V3 Technical Report").

mod steps;

pub(super) use steps::{Flow, Steps};

use super::{Schedule, ScheduleError, ScheduleKind};

/// Creates a DualPipe schedule. Rank r holds stage r of the first model copy and stage `p - 1 - r`
/// of the second. The first half of the microbatches uses the first copy from rank 0. The other
/// half uses the second copy from rank p - 1. The rank halves run mirrored orders.
///
/// Bubble: `(p / 2 - 1)(F&B + B - 3 W)` with F&B as the time of an overlapped pair and B = I + W.
/// Memory: p + 1 activations and two copies of the weights.
///
/// # Errors
/// If the number of ranks or microbatches is odd, or if there are fewer than 2 p microbatches.
pub fn dual_pipe(ranks: usize, microbatches: usize) -> Result<Schedule, ScheduleError> {
    admits(ranks, microbatches)?;
    let half = microbatches / 2;
    let orders = (0..ranks).map(|rank| {
        let first = Flow { stage: rank, first_microbatch: 0 };
        let second = Flow { stage: 2 * ranks - 1 - rank, first_microbatch: half };
        // Flow 0 enters in the rank's half.
        let flows = if 2 * rank < ranks { [first, second] } else { [second, first] };
        let position = rank.min(ranks - 1 - rank);
        Steps { places: ranks / 2, position, microbatches: half }.order(flows)
    });
    Ok(Schedule { stages: 2 * ranks, microbatches, orders: orders.collect() })
}

/// Validates the sizes.
pub(super) fn admits(ranks: usize, microbatches: usize) -> Result<(), ScheduleError> {
    let kind = ScheduleKind::DualPipe;
    if !ranks.is_multiple_of(2) {
        return Err(ScheduleError::OddRanks { kind, ranks });
    }
    if !microbatches.is_multiple_of(2) {
        return Err(ScheduleError::OddMicrobatches { kind, microbatches });
    }
    if microbatches < 2 * ranks {
        return Err(ScheduleError::TooFewMicrobatches { kind, min: 2 * ranks, ranks, microbatches });
    }
    Ok(())
}
