//! Where each rank's row stands, and what it is called: a bar for what it computes, a thin strip below for what it sends.

use std::ops::Range;

use api::planner::timeline::Timeline;

/// Height of a row with the gap below it, in px.
pub(crate) const ROW: f64 = 20.0;
/// Height of the bar of what a rank computes, in px.
pub(crate) const BAR: f64 = 15.0;
/// Height of the strip of communication inside an action, at the lower edge of its bar, in px.
pub(crate) const INSIDE: f64 = 3.0;
/// Height of the strip of what a rank sends, in px.
pub(crate) const STRIP: f64 = 4.0;
/// Width of the row headers, in px.
pub(crate) const HEADER: f64 = 52.0;
/// Height of the axis below the rows, in px.
pub(crate) const AXIS: f64 = 20.0;
/// More rows than this scroll inside the chart.
pub(crate) const ROWS_WITHOUT_SCROLLING: usize = 32;

/// A lane of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// What the rank computes.
    Compute,
    /// Communication inside its actions, drawn over their bars.
    Inside,
    /// What the rank sends.
    Communication,
}

/// What the rows of a chart are called: ranks, or stages of pipelines that stand side by side.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RowNames {
    /// Ranks of every pipeline; none where rows are ranks of one pipeline, or of groups.
    pipelines: Vec<Range<usize>>,
    /// Whether rows are ranks that work in groups.
    is_grouped: bool,
}

impl RowNames {
    /// Those of a timeline.
    pub(crate) fn of(timeline: &Timeline) -> Self {
        if timeline.is_grouped() {
            return Self { pipelines: Vec::new(), is_grouped: true };
        }
        let pipelines = timeline.pipelines();
        Self { pipelines: if pipelines.len() > 1 { pipelines } else { Vec::new() }, is_grouped: false }
    }

    /// Whether rows are ranks that work in groups.
    pub(crate) const fn is_grouped(&self) -> bool {
        self.is_grouped
    }

    /// Beside the row: "rank 3", or "P2·S1" for stage 1 of pipeline 2, both counted from 0 as in the table of pipelines.
    pub(crate) fn header(&self, rank: usize) -> String {
        match self.stage(rank) {
            Some((pipeline, stage)) => format!("P{pipeline}·S{stage}"),
            None => format!("rank {rank}"),
        }
    }

    /// In a sentence: "rank 3", or "pipeline 2 stage 1".
    pub(crate) fn words(&self, rank: usize) -> String {
        match self.stage(rank) {
            Some((pipeline, stage)) => format!("pipeline {pipeline} stage {stage}"),
            None => format!("rank {rank}"),
        }
    }

    /// Pipeline and stage of a row, where pipelines stand side by side.
    pub(crate) fn stage(&self, rank: usize) -> Option<(usize, usize)> {
        let pipeline = self.pipelines.iter().position(|ranks| ranks.contains(&rank))?;
        Some((pipeline, rank - self.pipelines[pipeline].start))
    }
}

/// Top and height of a lane inside its row, in px.
pub(crate) const fn lane_box(lane: Lane) -> (f64, f64) {
    match lane {
        Lane::Compute => (0.0, BAR),
        Lane::Inside => (BAR - INSIDE, INSIDE),
        Lane::Communication => (BAR, STRIP),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two ranks of one pipeline; then, with microbatches that stay on their rank, two pipelines of one stage.
    #[test]
    fn rows_are_ranks_or_stages_of_pipelines() {
        let mut timeline = super::super::sample::one_f_one_b(2, 3);
        let names = RowNames::of(&timeline);
        assert_eq!((names.header(1), names.words(1), names.stage(1)), ("rank 1".into(), "rank 1".into(), None));
        let second = timeline.compute_lane(1);
        for span in 0..timeline.len() {
            timeline.microbatch[span] = u32::from(second.contains(&span));
        }
        let names = RowNames::of(&timeline);
        assert_eq!((names.header(1), names.stage(1)), ("P1·S0".to_owned(), Some((1, 0))));
        assert_eq!(names.words(0), "pipeline 0 stage 0");
    }

    #[test]
    fn lanes_leave_the_gap_free() {
        let (compute_top, compute) = lane_box(Lane::Compute);
        let (strip_top, strip) = lane_box(Lane::Communication);
        assert!(compute_top + compute <= strip_top);
        assert!((ROW - (strip_top + strip) - 1.0).abs() < f64::EPSILON);
    }
}
