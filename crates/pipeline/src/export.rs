//! Schedule export for other programs.

use std::fmt::Write;

use crate::execution_plan::ExecutionPlan;
use planscope_core::action::{Action, Schedule};
use planscope_core::timeline::{SpanKind, Timeline};

/// Formats a timeline in the torch action grammar, with a row per rank and a cell per action. A
/// timeline does not store overlapped pairs, so such actions have separate cells.
pub fn torch_csv(timeline: &Timeline) -> String {
    let rows = (0..timeline.ranks as usize).map(|rank| {
        let actions = timeline.compute_lane(rank).filter_map(|span| {
            let kind = SpanKind::from_index(timeline.kind[span])?;
            let scheduled =
                matches!(kind, SpanKind::Forward | SpanKind::Backward | SpanKind::InputGrad | SpanKind::WeightGrad);
            scheduled.then(|| format!("{}{}{}", timeline.stage[span], kind.letter(), timeline.microbatch[span]))
        });
        actions.collect::<Vec<_>>().join(",")
    });
    lines(rows)
}

/// Formats a schedule in the torch action grammar, with a row per rank and a cell per action.
/// Overlapped actions share a cell: `(4F4;3B0)OVERLAP_F_B`.
pub fn schedule_csv(schedule: &Schedule) -> String {
    lines(schedule.orders.iter().map(|order| cells(order).join(",")))
}

fn cells(order: &[Action]) -> Vec<String> {
    let mut cells = Vec::with_capacity(order.len());
    let mut left = order;
    loop {
        left = match left {
            [] => return cells,
            [first, second, rest @ ..] if first.with_next => {
                cells.push(format!("({first};{second})OVERLAP_F_B"));
                rest
            }
            [action, rest @ ..] => {
                cells.push(action.to_string());
                rest
            }
        };
    }
}

/// Returns the column in [`schedule_csv`] for the action at `place`, from 0.
pub fn torch_csv_column(order: &[Action], index: usize) -> usize {
    let behind_first = order[..index].iter().filter(|action| action.with_next).count();
    index - behind_first
}

/// Columns of [`execution_csv`].
const EXECUTION_COLUMNS: &str = "rank,index,start_us,action,stage,microbatch,peer,tag,batch,bytes,payload,peer_stage,\
                                 peer_microbatch,with_next";

/// Formats an execution plan as CSV, with a row per action. Cells are numbers or fixed names, so a
/// spreadsheet never interprets them as formulas. Missing values are empty.
pub fn execution_csv(plan: &ExecutionPlan) -> String {
    let mut text = format!("{EXECUTION_COLUMNS}\n");
    for (rank, list) in plan.ranks.iter().enumerate() {
        for (index, action) in list.iter().enumerate() {
            let (us, ns) = (action.start_ns / 1000, action.start_ns % 1000);
            let (name, stage, microbatch) = (action.action.name(), action.stage, action.microbatch);
            let transfer = action.transfer.map_or_else(
                || ",,,,,,".to_owned(),
                |transfer| {
                    let bytes = transfer.bytes.map(|bytes| bytes.to_string()).unwrap_or_default();
                    let (peer, tag, batch, payload) =
                        (transfer.peer, transfer.tag, transfer.batch, transfer.payload.name());
                    let (stage, microbatch) = (transfer.peer_stage, transfer.peer_microbatch);
                    format!("{peer},{tag},{batch},{bytes},{payload},{stage},{microbatch}")
                },
            );
            let with_next = if action.with_next { "1" } else { "" };
            writeln!(text, "{rank},{index},{us}.{ns:03},{name},{stage},{microbatch},{transfer},{with_next}")
                .expect("text grows");
        }
    }
    text
}

fn lines(rows: impl Iterator<Item = String>) -> String {
    rows.map(|row| row + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution_plan::{Buffers, compile};
    use crate::schedule::one_f_one_b;
    use crate::simulate::{StepEnd, assemble, execute};
    use planscope_core::units::{Bytes, Nanos};
    use planscope_cost::cost::{PipelineCosts, UniformTimes};

    #[test]
    fn overlapped_actions_share_a_cell() {
        let order = vec![
            Action::forward(0, 3).overlapped(),
            Action::backward(3, 1),
            Action::input_grad(0, 2),
            Action::weight_grad(0, 2),
        ];
        assert_eq!((0..4).map(|index| torch_csv_column(&order, index)).collect::<Vec<_>>(), [0, 0, 1, 2]);
        let schedule = Schedule { stages: 4, microbatches: 4, orders: vec![order] };
        assert_eq!(schedule_csv(&schedule), "(0F3;3B1)OVERLAP_F_B,0I2,0W2\n");
    }

    #[test]
    fn export_has_a_row_per_rank_in_execution_order() {
        let unit = Nanos::new(1);
        let times = UniformTimes { forward: unit, input_grad: unit, weight_grad: unit, communication: unit };
        let (schedule, costs) = (one_f_one_b(2, 3), PipelineCosts::uniform(2, 1, 3, times));
        let execution = execute(&schedule, &costs).unwrap();
        let end = StepEnd::from_executions(2, std::iter::once(&execution));
        let csv = torch_csv(&assemble(&schedule, &execution, &costs, &end));
        assert_eq!(csv, "0F0,0F1,0B0,0F2,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n");
        assert_eq!(csv, schedule_csv(&schedule));
    }

    /// Two ranks, one microbatch. Forward, input gradient and weight gradient take 1,500 ns, a send
    /// takes 250 ns.
    #[test]
    fn an_execution_plan_has_a_row_for_every_action() {
        let half = Nanos::new(1500);
        let times = UniformTimes { forward: half, input_grad: half, weight_grad: half, communication: Nanos::new(250) };
        let (schedule, costs) = (one_f_one_b(2, 1), PipelineCosts::uniform(2, 1, 1, times));
        let execution = execute(&schedule, &costs).unwrap();
        let timeline =
            assemble(&schedule, &execution, &costs, &StepEnd::from_executions(2, std::iter::once(&execution)));
        let plan = compile(&timeline, Buffers::default()).unwrap().sized(|_, _| Some(Bytes::new(4096)));
        let csv = execution_csv(&plan);
        insta::assert_snapshot!(csv, @r"
        rank,index,start_us,action,stage,microbatch,peer,tag,batch,bytes,payload,peer_stage,peer_microbatch,with_next
        0,0,0.000,irecv,0,0,1,0,0,4096,gradient,1,0,
        0,1,0.000,forward_stage,0,0,,,,,,,,
        0,2,1.500,isend,0,0,1,0,1,4096,activation,1,0,
        0,3,1.500,wait_irecv,0,0,1,0,0,4096,gradient,1,0,
        0,4,6.500,backward_stage,0,0,,,,,,,,
        0,5,9.500,wait_isend,0,0,1,0,1,4096,activation,1,0,
        1,0,0.000,irecv,1,0,0,0,0,4096,activation,0,0,
        1,1,0.000,wait_irecv,1,0,0,0,0,4096,activation,0,0,
        1,2,1.750,forward_stage,1,0,,,,,,,,
        1,3,3.250,backward_stage,1,0,,,,,,,,
        1,4,6.250,isend,1,0,0,0,1,4096,gradient,0,0,
        1,5,6.250,wait_isend,1,0,0,0,1,4096,gradient,0,0,
        ");
        let cells = csv.lines().flat_map(|line| line.split(','));
        assert!(
            cells.clone().all(|cell| cell.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._".contains(&byte)))
        );
        assert!(csv.lines().all(|line| line.split(',').count() == 14));
    }
}
