//! DualPipeV: half of a DualPipe. The two directions become the arms of a V, so a single copy of
//! the weights is stored (Qi et al., 2025; DeepSeek-AI, 2025).

use super::dual_pipe::{Flow, Steps};
use super::zbv::v_stages;
use super::{Schedule, ScheduleError, ScheduleKind};

/// Creates a DualPipeV schedule. Rank r runs the order of rank r in a DualPipe over 2 p ranks, on
/// stages r and `2 p - 1 - r`.
///
/// Bubble: `(p - 1)(F&B + B - 3 W)` with the times of one of 2 p stages, equal to DualPipe with P =
/// 2 p. Memory: 2 p + 1 stage activations.
///
/// # Errors
/// If there are fewer than 2 p microbatches.
pub fn dual_pipe_v(ranks: usize, microbatches: usize) -> Result<Schedule, ScheduleError> {
    admits(ranks, microbatches)?;
    let orders = (0..ranks).map(|rank| {
        let flows = v_stages(rank, ranks).map(|stage| Flow { stage, first_microbatch: 0 });
        Steps { places: ranks, position: rank, microbatches }.order(flows)
    });
    Ok(Schedule { stages: 2 * ranks, microbatches, orders: orders.collect() })
}

/// Validates the sizes.
pub(super) fn admits(ranks: usize, microbatches: usize) -> Result<(), ScheduleError> {
    let kind = ScheduleKind::DualPipeV;
    if microbatches < 2 * ranks {
        return Err(ScheduleError::TooFewMicrobatches { kind, min: 2 * ranks, ranks, microbatches });
    }
    Ok(())
}
