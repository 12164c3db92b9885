//! Memory per rank during a schedule.

use super::execution::Execution;
use planscope_core::action::{ActionKind, Schedule};
use planscope_core::timeline::MemoryCurve;
use planscope_core::units::{Bytes, Nanos};
use planscope_cost::cost::PipelineCosts;

/// Calls `change(time, bytes)` for all changes of a rank's memory.
///
/// Activations use memory from the start of the forward pass to the end of the (full or weight)
/// backward pass, recomputed activations during the backward pass. A rank runs actions
/// sequentially, so the changes are in action order.
fn changes(
    rank: usize,
    schedule: &Schedule,
    execution: &Execution,
    costs: &PipelineCosts,
    mut change: impl FnMut(Nanos, u64),
) {
    let mut allocated = costs.static_memory[rank].get();
    for (index, action) in schedule.orders[rank].iter().enumerate() {
        let cell = costs.cell(action.stage as usize, action.microbatch as usize);
        let (activation, transient) = (costs.activation[cell].get(), costs.transient[cell].get());
        let (start, end) = (execution.start[rank][index], execution.end[rank][index]);
        match action.kind {
            ActionKind::Forward => {
                allocated = allocated.saturating_add(activation);
                change(start, allocated);
            }
            ActionKind::Backward => {
                if transient > 0 {
                    change(start, allocated.saturating_add(transient));
                }
                allocated = allocated.saturating_sub(activation);
                change(end, allocated);
            }
            ActionKind::InputGrad => {
                allocated = allocated.saturating_add(transient);
                change(start, allocated);
            }
            ActionKind::WeightGrad => {
                allocated = allocated.saturating_sub(activation.saturating_add(transient));
                change(end, allocated);
            }
        }
    }
}

/// Peak memory per rank, excluding model states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Peak {
    /// Earliest time at which the peak is reached.
    pub at: Nanos,
    /// Stored activations.
    pub activations: Bytes,
    /// Activation gradients and recomputed activations.
    pub temporary: Bytes,
    /// Number of forward passes whose backward pass is not complete.
    pub in_flight: u32,
}

/// Returns the components of a rank's peak memory.
pub fn peak_composition(rank: usize, schedule: &Schedule, execution: &Execution, costs: &PipelineCosts) -> Peak {
    let fixed = costs.static_memory[rank].get();
    let (mut stored, mut in_flight) = (0_u64, 0_u32);
    let mut best = Peak::default();
    let mut peak = 0;
    for (index, action) in schedule.orders[rank].iter().enumerate() {
        let cell = costs.cell(action.stage as usize, action.microbatch as usize);
        let (activation, transient) = (costs.activation[cell].get(), costs.transient[cell].get());
        let at = execution.start[rank][index];
        let mut see = |activations: u64, temporary: u64, in_flight: u32| {
            if activations.saturating_add(temporary) > peak {
                peak = activations.saturating_add(temporary);
                best = Peak { at, activations: Bytes::new(activations), temporary: Bytes::new(temporary), in_flight };
            }
        };
        match action.kind {
            ActionKind::Forward => {
                stored = stored.saturating_add(activation);
                in_flight += 1;
                see(stored, 0, in_flight);
            }
            ActionKind::Backward => {
                see(stored, transient, in_flight);
                stored = stored.saturating_sub(activation);
                in_flight -= 1;
            }
            ActionKind::InputGrad => {
                see(stored, transient, in_flight);
                // Until the weight gradient runs, its gradient inputs are stored in addition to the
                // activation.
                stored = stored.saturating_add(transient);
            }
            ActionKind::WeightGrad => {
                stored = stored.saturating_sub(activation.saturating_add(transient));
                in_flight -= 1;
            }
        }
    }
    debug_assert_eq!(fixed.saturating_add(peak), peak_memory(rank, schedule, execution, costs).get());
    best
}

/// Returns the peak memory per rank.
pub fn peak_memory(rank: usize, schedule: &Schedule, execution: &Execution, costs: &PipelineCosts) -> Bytes {
    let mut peak = costs.static_memory[rank].get();
    changes(rank, schedule, execution, costs, |_, bytes| peak = peak.max(bytes));
    Bytes::new(peak)
}

/// Returns the rank with the maximum peak memory, and the value.
pub fn peak_memory_over(schedule: &Schedule, execution: &Execution, costs: &PipelineCosts) -> (usize, Bytes) {
    (0..schedule.ranks())
        .map(|rank| (rank, peak_memory(rank, schedule, execution, costs)))
        .max_by_key(|&(rank, peak)| (peak, std::cmp::Reverse(rank)))
        .unwrap_or((0, Bytes::ZERO))
}

/// Returns the rank with the maximum peak of host memory per device, and the value: offloaded optimizer state, and
/// activations between their forward and the end of their backward.
pub fn peak_host_memory(schedule: &Schedule, costs: &PipelineCosts) -> (usize, Bytes) {
    let is_offloaded = costs.offloaded.iter().any(|bytes| *bytes > Bytes::ZERO);
    let peak = |rank: usize| {
        let (mut stored, mut peak) = (0_u64, 0_u64);
        if !is_offloaded {
            return costs.state[rank].host;
        }
        for action in &schedule.orders[rank] {
            let bytes = costs.offloaded[costs.cell(action.stage as usize, action.microbatch as usize)].get();
            match action.kind {
                ActionKind::Forward => stored = stored.saturating_add(bytes),
                ActionKind::InputGrad => {}
                ActionKind::Backward | ActionKind::WeightGrad => stored = stored.saturating_sub(bytes),
            }
            peak = peak.max(stored);
        }
        Bytes::new(costs.state[rank].host.get().saturating_add(peak))
    };
    (0..schedule.ranks())
        .map(|rank| (rank, peak(rank)))
        .max_by_key(|&(rank, peak)| (peak, std::cmp::Reverse(rank)))
        .unwrap_or((0, Bytes::ZERO))
}

/// Returns the memory curve per rank.
pub(super) fn curve(rank: usize, schedule: &Schedule, execution: &Execution, costs: &PipelineCosts) -> MemoryCurve {
    let static_bytes = costs.static_memory[rank].get();
    let mut curve = MemoryCurve { static_bytes, peak_bytes: static_bytes, time_ns: vec![0], bytes: vec![static_bytes] };
    changes(rank, schedule, execution, costs, |time, bytes| {
        curve.peak_bytes = curve.peak_bytes.max(bytes);
        if curve.time_ns.last() == Some(&time.get()) {
            *curve.bytes.last_mut().expect("a curve starts with a value") = bytes;
        } else {
            curve.time_ns.push(time.get());
            curve.bytes.push(bytes);
        }
    });
    curve
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Grouping, gpipe, interleaved, one_f_one_b};
    use crate::simulate::execute;
    use planscope_cost::cost::UniformTimes;

    /// One byte per activation: p - r stored microbatches for 1F1B, all m for GPipe. The
    /// interleaved schedule stores one more than the 2 (p - r - 1) + (v - 1) p from the warm-up.
    #[test]
    fn uniform_schedules_keep_the_activations_that_the_literature_says() {
        let times = UniformTimes {
            forward: Nanos::new(100),
            input_grad: Nanos::new(100),
            weight_grad: Nanos::new(100),
            communication: Nanos::ZERO,
        };
        let (p, m) = (4, 8);
        let peaks = |schedule: &Schedule, chunks| {
            let costs = PipelineCosts::uniform(p, chunks, m, times);
            let execution = execute(schedule, &costs).unwrap();
            (0..p).map(|rank| peak_memory(rank, schedule, &execution, &costs).get()).collect::<Vec<_>>()
        };
        assert_eq!(peaks(&gpipe(p, m), 1), [8; 4]);
        assert_eq!(peaks(&one_f_one_b(p, m), 1), [4, 3, 2, 1]);
        assert_eq!(peaks(&interleaved(p, 2, m, Grouping::Balanced), 2), [11, 9, 7, 5]);
    }
}
