//! Exposed communication inside actions as separate spans.
//!
//! The simulator computes the total time that an action waits for communication, but not the
//! position of the waits, because they are distributed over the layers. The chart draws the total
//! as a strip at the action's end.

use api::planner::timeline::levels::Level;
use api::planner::timeline::{SpanKind, Timeline};

use super::colours::MANY;

/// Exposed communication inside actions.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ExposedSpans {
    /// One span on the compute lane per action with exposed communication. The communication lanes
    /// are empty.
    pub(crate) spans: Timeline,
    /// Levels, finest first; empty for a small span count.
    pub(crate) levels: Vec<Level>,
}

impl ExposedSpans {
    /// Returns `None` if no action has exposed communication.
    pub(crate) fn from_timeline(timeline: &Timeline) -> Option<Self> {
        if timeline.exposed_ns.is_empty() {
            return None;
        }
        let mut spans = Timeline {
            ranks: timeline.ranks,
            makespan_ns: timeline.makespan_ns,
            lane_offsets: vec![0],
            ..Timeline::default()
        };
        for rank in 0..timeline.ranks as usize {
            for span in timeline.compute_lane(rank) {
                let (start, end) = ends(timeline, span);
                if end > start {
                    spans.kind.push(SpanKind::GradientSync as u8);
                    spans.stage.push(timeline.stage[span]);
                    spans.microbatch.push(timeline.microbatch[span]);
                    spans.start_ns.push(start);
                    spans.duration_ns.push(end - start);
                }
            }
            let offset = spans.len() as u32;
            spans.lane_offsets.extend([offset, offset]);
        }
        let levels = Level::all(&spans, &spans.kind, MANY);
        Some(Self { spans, levels })
    }
}

/// Start and end in ns for an action's strip. Equal if the action has no exposed communication.
pub(crate) fn ends(timeline: &Timeline, span: usize) -> (u64, u64) {
    let end = timeline.end_ns(span);
    (end - timeline.span_exposed_ns(span).min(timeline.duration_ns[span]), end)
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn a_strip_ends_with_its_action() {
        let mut timeline = sample::lane(&[(0, 0, 100), (1, 100, 300), (3, 300, 400)]);
        assert_eq!(ExposedSpans::from_timeline(&timeline), None);
        timeline.exposed_ns = vec![20, 500, 0];
        let inside = ExposedSpans::from_timeline(&timeline).unwrap();
        assert_eq!(inside.spans.start_ns, [80, 100], "no strip is longer than its action");
        assert_eq!(inside.spans.duration_ns, [20, 200]);
        assert_eq!(inside.spans.lane_offsets, [0, 2, 2]);
        assert!(inside.levels.is_empty());
    }
}
