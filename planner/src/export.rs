//! Schedules in formats that other programs read.

use crate::schedule::Schedule;
use crate::timeline::{SpanKind, Timeline};

/// The schedule of a timeline in the torch action grammar: one row per rank, one cell per action in order.
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

/// A schedule in the torch action grammar: one row per rank, one cell per action in order.
pub fn torch_csv_of(schedule: &Schedule) -> String {
    let rows = schedule.orders.iter().map(|order| order.iter().map(ToString::to_string).collect::<Vec<_>>().join(","));
    lines(rows)
}

fn lines(rows: impl Iterator<Item = String>) -> String {
    rows.map(|row| row + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{PipelineCosts, UniformTimes};
    use crate::schedule::one_f_one_b;
    use crate::simulate::{StepEnd, assemble, execute};
    use crate::units::Nanos;

    #[test]
    fn one_row_per_rank_in_the_order_of_execution() {
        let unit = Nanos::new(1);
        let times = UniformTimes { forward: unit, input_grad: unit, weight_grad: unit, communication: unit };
        let (schedule, costs) = (one_f_one_b(2, 3), PipelineCosts::uniform(2, 1, 3, times));
        let execution = execute(&schedule, &costs).unwrap();
        let end = StepEnd::of(2, std::iter::once(&execution));
        let csv = torch_csv(&assemble(&schedule, &execution, &costs, &end));
        assert_eq!(csv, "0F0,0F1,0B0,0F2,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n");
        assert_eq!(csv, torch_csv_of(&schedule));
    }
}
