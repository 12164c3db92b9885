//! DualPipeV: DualPipe cut in half, the two directions becoming the arms of a V, so that the weights are kept once
//! (Qi et al., 2025; DeepSeek-AI, 2025).

use super::dual_pipe::{Flow, Steps};
use super::zbv::v_stages;
use super::{Schedule, ScheduleError, ScheduleKind};

/// Rank r does on stages r and `2 p - 1 - r` what DualPipe over 2 p ranks does on rank r.
///
/// Bubble: `(p - 1)(F&B + B - 3 W)`, the times being those of one of the 2 p stages, that is DualPipe's with P = 2 p.
/// Memory: 2 p + 1 activations of a stage.
///
/// # Errors
/// Microbatches must be at least 2 p.
pub fn dual_pipe_v(ranks: usize, microbatches: usize) -> Result<Schedule, ScheduleError> {
    admits(ranks, microbatches)?;
    let orders = (0..ranks).map(|rank| {
        let flows = v_stages(rank, ranks).map(|stage| Flow { stage, first_microbatch: 0 });
        Steps { places: ranks, place: rank, microbatches }.order(flows)
    });
    Ok(Schedule { stages: 2 * ranks, microbatches, orders: orders.collect() })
}

/// Whether there is a DualPipeV of that size.
pub(super) fn admits(ranks: usize, microbatches: usize) -> Result<(), ScheduleError> {
    let kind = ScheduleKind::DualPipeV;
    if microbatches < 2 * ranks {
        return Err(ScheduleError::TooFewMicrobatches { kind, least: 2 * ranks, ranks, microbatches });
    }
    Ok(())
}
