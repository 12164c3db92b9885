//! Numbers of the planners' charts, which selections refer to.

use api::planner::scenario::PlannerKind;

/// Returns the number of a planner's chart.
pub(crate) fn chart_of(planner: PlannerKind) -> usize {
    PlannerKind::ALL.iter().position(|kind| *kind == planner).unwrap_or(PlannerKind::ALL.len())
}

/// Returns the planner of a chart.
pub(crate) fn planner_of(chart: usize) -> Option<PlannerKind> {
    PlannerKind::ALL.get(chart).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_planner_has_its_own_chart_number() {
        for planner in PlannerKind::ALL {
            assert_eq!(planner_of(chart_of(planner)), Some(planner));
        }
        assert_eq!(planner_of(99), None);
    }
}
