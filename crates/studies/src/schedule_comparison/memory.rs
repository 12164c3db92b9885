//! Computes activation memory per rank during a schedule.

use planscope_core::action::{ActionKind, Schedule};
use planscope_core::timeline::MemoryCurve;
use planscope_cost::cost::PipelineCosts;
use planscope_pipeline::simulate::Execution;

use super::costs::BenchCosts;

/// Activation memory on a rank as a step function. The forward allocates at its start. The backward
/// frees at its end, or in two parts if it is split.
pub(crate) fn curve(rank: usize, schedule: &Schedule, execution: &Execution, bench: &BenchCosts) -> MemoryCurve {
    let BenchCosts { costs, released } = bench;
    let mut curve = MemoryCurve { static_bytes: 0, peak_bytes: 0, time_ns: vec![0], bytes: vec![0] };
    let mut allocated = 0_u64;
    for (index, action) in schedule.orders[rank].iter().enumerate() {
        let cell = cell(costs, action.stage, action.microbatch);
        let (activation, early) = (costs.activation[cell].get(), released.get(cell).map_or(0, |bytes| bytes.get()));
        let (start, end) = (execution.start[rank][index], execution.end[rank][index]);
        let at = match action.kind {
            ActionKind::Forward => {
                allocated += activation;
                start
            }
            ActionKind::Backward => {
                allocated = allocated.saturating_sub(activation);
                end
            }
            ActionKind::InputGrad => {
                allocated = allocated.saturating_sub(early);
                end
            }
            ActionKind::WeightGrad => {
                allocated = allocated.saturating_sub(activation - early);
                end
            }
        };
        curve.peak_bytes = curve.peak_bytes.max(allocated);
        match (curve.time_ns.last(), curve.bytes.last_mut()) {
            (Some(&last), Some(bytes)) if last == at.get() => *bytes = allocated,
            (_, Some(&mut bytes)) if bytes == allocated => {}
            _ => {
                curve.time_ns.push(at.get());
                curve.bytes.push(allocated);
            }
        }
    }
    curve
}

fn cell(costs: &PipelineCosts, stage: u32, microbatch: u32) -> usize {
    costs.cell(stage as usize, microbatch as usize)
}
