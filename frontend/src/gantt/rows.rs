//! Row geometry and row names. A row contains a bar for computation and a thin strip below it for
//! sends.

use std::ops::Range;

use api::planner::timeline::Timeline;

/// Row height including the gap, in px.
pub(crate) const ROW: f64 = 20.0;
/// Computation bar height in px.
pub(crate) const BAR: f64 = 15.0;
/// Strip height for communication inside an action, at the lower bar edge, in px.
pub(crate) const INSIDE: f64 = 3.0;
/// Send strip height in px.
pub(crate) const STRIP: f64 = 4.0;
/// Row header width in px.
pub(crate) const HEADER: f64 = 52.0;
/// Axis height in px.
pub(crate) const AXIS: f64 = 20.0;
/// Maximum row count without scrolling.
pub(crate) const ROWS_WITHOUT_SCROLLING: usize = 32;

/// Lane of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    Compute,
    /// Communication inside actions, drawn over the bars.
    Exposed,
    /// Sends.
    Communication,
}

/// Row names: ranks, or stages if the timeline contains several pipelines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RowNames {
    /// Ranks per pipeline. Empty for a single pipeline or for context-parallel groups.
    pipelines: Vec<Range<usize>>,
    /// True if the ranks form context-parallel groups.
    is_grouped: bool,
}

impl RowNames {
    /// Returns the row names of a timeline.
    pub(crate) fn from_timeline(timeline: &Timeline) -> Self {
        if timeline.is_grouped() {
            return Self { pipelines: Vec::new(), is_grouped: true };
        }
        let pipelines = timeline.pipelines();
        Self { pipelines: if pipelines.len() > 1 { pipelines } else { Vec::new() }, is_grouped: false }
    }

    /// Returns true if the ranks form context-parallel groups.
    pub(crate) const fn is_grouped(&self) -> bool {
        self.is_grouped
    }

    /// Row header: "rank 3", or "P2·S1" for stage 1 of pipeline 2, numbered from 0 as in the
    /// pipeline table.
    pub(crate) fn header(&self, rank: usize) -> String {
        match self.stage(rank) {
            Some((pipeline, stage)) => format!("P{pipeline}·S{stage}"),
            None => format!("rank {rank}"),
        }
    }

    /// Row name in a sentence: "rank 3", or "pipeline 2 stage 1".
    pub(crate) fn text(&self, rank: usize) -> String {
        match self.stage(rank) {
            Some((pipeline, stage)) => format!("pipeline {pipeline} stage {stage}"),
            None => format!("rank {rank}"),
        }
    }

    /// Pipeline and stage for a row; `None` for a single pipeline.
    pub(crate) fn stage(&self, rank: usize) -> Option<(usize, usize)> {
        let pipeline = self.pipelines.iter().position(|ranks| ranks.contains(&rank))?;
        Some((pipeline, rank - self.pipelines[pipeline].start))
    }
}

/// Lane top and height inside a row, in px.
pub(crate) const fn lane_box(lane: Lane) -> (f64, f64) {
    match lane {
        Lane::Compute => (0.0, BAR),
        Lane::Exposed => (BAR - INSIDE, INSIDE),
        Lane::Communication => (BAR, STRIP),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First two ranks of one pipeline. Then the microbatches stay on their rank, which gives two
    /// pipelines with one stage each.
    #[test]
    fn rows_are_named_by_rank_or_pipeline_stage() {
        let mut timeline = super::super::sample::one_f_one_b(2, 3);
        let names = RowNames::from_timeline(&timeline);
        assert_eq!((names.header(1), names.text(1), names.stage(1)), ("rank 1".into(), "rank 1".into(), None));
        let second = timeline.compute_lane(1);
        for span in 0..timeline.len() {
            timeline.microbatch[span] = u32::from(second.contains(&span));
        }
        let names = RowNames::from_timeline(&timeline);
        assert_eq!((names.header(1), names.stage(1)), ("P1·S0".to_owned(), Some((1, 0))));
        assert_eq!(names.text(0), "pipeline 0 stage 0");
    }

    #[test]
    fn lanes_leave_the_gap_free() {
        let (compute_top, compute) = lane_box(Lane::Compute);
        let (strip_top, strip) = lane_box(Lane::Communication);
        assert!(compute_top + compute <= strip_top);
        assert!((ROW - (strip_top + strip) - 1.0).abs() < f64::EPSILON);
    }
}
