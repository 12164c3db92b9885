//! DualPipe: microbatches enter at both ends, forwards and backwards overlap (DeepSeek-AI, 2024, "DeepSeek-V3 Technical
//! Report").

mod steps;

pub(super) use steps::{Flow, Steps};

use super::{Schedule, ScheduleError, ScheduleKind};

/// Each rank holds stage r of the first copy of the model and stage `p - 1 - r` of the second. The first half of the
/// microbatches goes through the first copy from rank 0 on, the second half through the second from rank p - 1 on. Both
/// halves of the ranks do the same, each counted from its own end.
///
/// Bubble: `(p / 2 - 1)(F&B + B - 3 W)` with F&B the time of an overlapped pair and B = I + W. Memory: p + 1 activations
/// and two copies of the weights.
///
/// # Errors
/// Ranks and microbatches must be even, and microbatches at least 2 p.
pub fn dual_pipe(ranks: usize, microbatches: usize) -> Result<Schedule, ScheduleError> {
    admits(ranks, microbatches)?;
    let half = microbatches / 2;
    let orders = (0..ranks).map(|rank| {
        let first = Flow { stage: rank, first_microbatch: 0 };
        let second = Flow { stage: 2 * ranks - 1 - rank, first_microbatch: half };
        // A rank's first flow is the one that enters at its own half.
        let flows = if 2 * rank < ranks { [first, second] } else { [second, first] };
        let place = rank.min(ranks - 1 - rank);
        Steps { places: ranks / 2, place, microbatches: half }.order(flows)
    });
    Ok(Schedule { stages: 2 * ranks, microbatches, orders: orders.collect() })
}

/// Whether there is a DualPipe of that size.
pub(super) fn admits(ranks: usize, microbatches: usize) -> Result<(), ScheduleError> {
    let kind = ScheduleKind::DualPipe;
    if !ranks.is_multiple_of(2) {
        return Err(ScheduleError::OddRanks { kind, ranks });
    }
    if !microbatches.is_multiple_of(2) {
        return Err(ScheduleError::OddMicrobatches { kind, microbatches });
    }
    if microbatches < 2 * ranks {
        return Err(ScheduleError::TooFewMicrobatches { kind, least: 2 * ranks, ranks, microbatches });
    }
    Ok(())
}
