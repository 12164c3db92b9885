//! Numbers of the planners' charts, which selections refer to.

use api::planner::scenario::PlannerKind;

/// Returns the number of a planner's chart.
pub(crate) fn chart_index(planner: PlannerKind) -> usize {
    PlannerKind::ALL.iter().position(|kind| *kind == planner).unwrap_or(PlannerKind::ALL.len())
}

/// Returns the planner of a chart.
pub(crate) fn planner_at_chart(chart: usize) -> Option<PlannerKind> {
    PlannerKind::ALL.get(chart).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chart_numbers_are_unique_per_planner() {
        for planner in PlannerKind::ALL {
            assert_eq!(planner_at_chart(chart_index(planner)), Some(planner));
        }
        assert_eq!(planner_at_chart(99), None);
    }
}
