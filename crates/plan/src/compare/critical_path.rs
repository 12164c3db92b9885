//! Critical path composition.

use crate::outcome::CriticalPathShares;
use planscope_core::timeline::{SpanKind, Timeline};
use planscope_cost::cost::PipelineCosts;

/// Computes the fractions of the critical path by activity. Communication inside an action counts
/// as communication. So does waiting for a different replica, which has no span in this timeline.
pub fn shares(timeline: &Timeline, costs: &PipelineCosts) -> CriticalPathShares {
    let mut shares = CriticalPathShares::default();
    if timeline.makespan_ns == 0 {
        return shares;
    }
    let mut covered = 0;
    for &span in &timeline.critical_path {
        let span = span as usize;
        let duration = timeline.duration_ns[span];
        covered += duration;
        // Only compute actions have a cell; subsequent spans have no microbatch.
        let cell = || cell(timeline, costs, span);
        let inside = match SpanKind::from_index(timeline.kind[span]) {
            Some(SpanKind::SendForward | SpanKind::SendBackward | SpanKind::GradientSync) => duration,
            Some(SpanKind::Optimizer) => {
                shares.optimizer += duration as f64;
                continue;
            }
            Some(SpanKind::Forward) => costs.exposed_forward[cell()].get(),
            Some(SpanKind::Backward | SpanKind::InputGrad) => costs.exposed_backward[cell()].get(),
            Some(SpanKind::WeightGrad) | None => 0,
        };
        shares.communication += inside as f64;
        shares.compute += duration.saturating_sub(inside) as f64;
    }
    shares.communication += timeline.makespan_ns.saturating_sub(covered) as f64;
    let makespan = timeline.makespan_ns as f64;
    shares.compute /= makespan;
    shares.communication /= makespan;
    shares.optimizer /= makespan;
    shares
}

/// Returns the cell of an action. All ranks in a gang show the same stage, so the rank identifies
/// the cell.
fn cell(timeline: &Timeline, costs: &PipelineCosts, span: usize) -> usize {
    let (flows, microbatch) = (&costs.flows, timeline.microbatch[span] as usize);
    if flows.microbatch_gang(microbatch).is_none() {
        return costs.cell(timeline.stage[span] as usize, microbatch);
    }
    let rank = timeline.span_rank(span);
    let mut cells = flows.microbatch_stages(microbatch).zip(flows.microbatch_cells(microbatch));
    let rank_cell = cells.find(|&(stage, _)| costs.rank_for_stage(stage) == rank);
    rank_cell.expect("a span of a gang stands on a lane of one of its ranks").1
}

#[cfg(test)]
mod tests {
    use super::*;
    use planscope_core::action::{Action, Schedule};
    use planscope_core::stage_graph::{Flows, Gathered};
    use planscope_core::units::Nanos;
    use planscope_cost::cost::UniformTimes;
    use planscope_pipeline::simulate::{StepEnd, assemble, execute};

    /// Item 0 runs on two ranks and its forward contains 30 of communication. Item 1 runs on rank 0
    /// and has none: 30 of 600.
    #[test]
    fn every_group_item_adds_its_communication() {
        let item = |ranks: &[u32], gang| Gathered { ranks: ranks.to_vec(), gang };
        let flows = Flows::together(2, &[item(&[0, 1], 0), item(&[0], 1)]).unwrap();
        let unit = Nanos::new(100);
        let times = UniformTimes { forward: unit, input_grad: unit, weight_grad: unit, communication: Nanos::ZERO };
        let mut costs = PipelineCosts::uniform_over(flows, times);
        for cell in costs.flows.microbatch_cells(0) {
            costs.exposed_forward[cell] = Nanos::new(30);
        }
        let [both, single] = [0, 1].map(|item| costs.flows.microbatch_stages(item));
        let actions = |stage: usize, item: usize| [Action::forward(stage, item), Action::backward(stage, item)];
        let ([f0, b0], [f1, b1], [f2, b2]) =
            (actions(both.start, 0), actions(both.start + 1, 0), actions(single.start, 1));
        let orders = vec![vec![f0, f2, b2, b0], vec![f1, b1]];
        let schedule = Schedule { stages: costs.stages(), microbatches: 2, orders };
        let execution = execute(&schedule, &costs).unwrap();
        let timeline =
            assemble(&schedule, &execution, &costs, &StepEnd::from_executions(2, std::iter::once(&execution)));
        let shares = shares(&timeline, &costs);
        assert!((shares.communication - 30.0 / 600.0).abs() < 1e-12, "{shares:?}");
    }
}
