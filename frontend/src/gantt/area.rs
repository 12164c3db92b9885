//! Time sums by activity for a set of ranks in a time range.

use std::ops::Range;

use api::planner::timeline::{SpanKind, Timeline};

use super::TimeWindow;
use super::exposed as strip;
use super::lod::visible;

/// Time range on a set of ranks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Area {
    pub(crate) window: TimeWindow,
    /// Ascending rank indices.
    pub(crate) ranks: Vec<usize>,
}

/// Time and span count per span kind.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct KindSum {
    /// Time inside the area, in ns.
    pub(crate) ns: f64,
    /// Spans that overlap the area.
    pub(crate) spans: usize,
}

/// Time sums for an area. `compute_ns`, `exposed_ns` and `idle_ns` sum to `total_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Sums {
    /// Area duration times rank count, in ns.
    pub(crate) total_ns: f64,
    /// Computation and optimizer step, in ns.
    pub(crate) compute_ns: f64,
    /// Exposed communication in ns: inside actions, and gradient synchronization. The ranking table
    /// lists the corresponding fraction over all ranks.
    pub(crate) exposed_ns: f64,
    /// Idle time in ns. The ranking table lists the corresponding fraction as "bubble".
    pub(crate) idle_ns: f64,
    /// Time in which a rank sends to another stage, in ns.
    pub(crate) sending_ns: f64,
    /// Part of `sending_ns` in which the rank is idle, in ns.
    pub(crate) sending_idle_ns: f64,
    /// Sums by span kind.
    pub(crate) kinds: [KindSum; SpanKind::ALL.len()],
}

impl Sums {
    /// Computes the sums of an area.
    pub(crate) fn in_area(timeline: &Timeline, area: &Area) -> Self {
        let mut sums = Self::default();
        let window = area.window;
        for &rank in area.ranks.iter().filter(|&&rank| rank < timeline.ranks as usize) {
            let (actions, sends) = (timeline.compute_lane(rank), timeline.communication_lane(rank));
            let active_ns = sums.lane(timeline, actions.clone(), window);
            let sending = sums.lane(timeline, sends.clone(), window);
            let exposed: f64 =
                visible(timeline, actions.clone(), window).map(|span| exposed(timeline, span, window)).sum();
            sums.total_ns += window.width_ns();
            sums.compute_ns += active_ns - exposed;
            sums.exposed_ns += exposed;
            sums.idle_ns += window.width_ns() - active_ns;
            sums.sending_ns += sending;
            sums.sending_idle_ns += sending - overlap(timeline, actions, sends, window);
        }
        sums
    }

    fn lane(&mut self, timeline: &Timeline, lane: Range<usize>, window: TimeWindow) -> f64 {
        let mut all = 0.0;
        for span in visible(timeline, lane, window) {
            let inside = inside(timeline, span, window);
            all += inside;
            if let Some(sum) = self.kinds.get_mut(usize::from(timeline.kind[span])) {
                sum.ns += inside;
                sum.spans += 1;
            }
        }
        all
    }

    /// Total span count.
    pub(crate) fn spans(&self) -> usize {
        self.kinds.iter().map(|kind| kind.spans).sum()
    }
}

/// Exposed communication per span inside a window, in ns: an action's exposed part, or a complete
/// gradient synchronization.
fn exposed(timeline: &Timeline, span: usize, window: TimeWindow) -> f64 {
    if timeline.kind[span] == SpanKind::GradientSync as u8 {
        return inside(timeline, span, window);
    }
    let (start, end) = strip::ends(timeline, span);
    ((end as f64).min(window.end_ns) - (start as f64).max(window.start_ns)).max(0.0)
}

fn ends(timeline: &Timeline, span: usize, window: TimeWindow) -> (f64, f64) {
    ((timeline.start_ns[span] as f64).max(window.start_ns), (timeline.end_ns(span) as f64).min(window.end_ns))
}

fn inside(timeline: &Timeline, span: usize, window: TimeWindow) -> f64 {
    let (start, end) = ends(timeline, span, window);
    (end - start).max(0.0)
}

/// Time in which both lanes are busy, in ns.
fn overlap(timeline: &Timeline, first: Range<usize>, other: Range<usize>, window: TimeWindow) -> f64 {
    let (mut first_spans, mut other) = (visible(timeline, first, window), visible(timeline, other, window));
    let mut both = 0.0;
    while let (false, false) = (first_spans.is_empty(), other.is_empty()) {
        let (a, b) = (ends(timeline, first_spans.start, window), ends(timeline, other.start, window));
        both += (a.1.min(b.1) - a.0.max(b.0)).max(0.0);
        if a.1 <= b.1 {
            first_spans.start += 1;
        } else {
            other.start += 1;
        }
    }
    both
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn area_sums_its_contents() {
        // Rank 0 of 1F1B with 2 ranks and 3 microbatches starts with F0 and F1 of 1,000 ns each,
        // and sends for 100 ns after each.
        let timeline = sample::one_f_one_b(2, 3);
        let area = Area { window: TimeWindow { start_ns: 500.0, end_ns: 1_500.0 }, ranks: vec![0] };
        let sums = Sums::in_area(&timeline, &area);
        assert!((sums.total_ns - 1_000.0).abs() < 1e-9 && (sums.compute_ns - 1_000.0).abs() < 1e-9);
        assert!((sums.sending_ns - 100.0).abs() < 1e-9, "it sends F0 from 1,000 to 1,100");
        assert!(sums.sending_idle_ns.abs() < 1e-9 && sums.idle_ns.abs() < 1e-9, "while it computes F1");
        assert_eq!((sums.kinds[0].spans, sums.kinds[4].spans, sums.spans()), (2, 1, 3));
    }

    #[test]
    fn computation_communication_and_idle_time_sum_to_total() {
        let mut timeline = sample::one_f_one_b(4, 6);
        timeline.exposed_ns = timeline.duration_ns.iter().map(|duration| duration / 5).collect();
        let end = timeline.makespan_ns as f64;
        for (from, to) in [(0.0, 1.0), (0.13, 0.14), (0.4, 0.9)] {
            let window = TimeWindow { start_ns: from * end, end_ns: to * end };
            let sums = Sums::in_area(&timeline, &Area { window, ranks: vec![1, 2, 3] });
            assert!((sums.compute_ns + sums.idle_ns + sums.exposed_ns - sums.total_ns).abs() < 1e-6);
            assert!(sums.sending_idle_ns <= sums.sending_ns + 1e-9 && sums.idle_ns >= -1e-6);
            assert!(sums.exposed_ns > 0.0);
        }
    }

    #[test]
    fn ranks_that_are_not_there_count_nothing() {
        let timeline = sample::one_f_one_b(2, 3);
        let area = Area { window: TimeWindow { start_ns: 0.0, end_ns: 10.0 }, ranks: vec![7] };
        assert_eq!(Sums::in_area(&timeline, &area), Sums::default());
    }

    /// TP 8 x PP 4, one replica and one iteration: the timeline contains all ranks of the table.
    #[test]
    fn sums_equal_ranking_table_metrics() {
        use api::planner::outcome::PlanOutcome;
        use api::planner::scenario::validate::NoDatasets;
        use api::planner::scenario::{ValidScenario, parse};
        use planner::engine::{Unobserved, plan};
        let scenario_json = r#"{"schema": "scenario/1", "model": {"preset": "llama-2-7b"},
            "cluster": {"preset": "h100", "nodes": 4},
            "workload": {"samples": {"kind": "drawn", "text_tokens": {"kind": "uniform", "min": 500, "max": 4000}},
                "global_batch": 12, "context_length": 4096, "packing": "single"},
            "layout": {"tensor": 8, "pipeline": 4}, "planners": ["1f1b"], "iterations": 1, "seed": 3}"#;
        let scenario = ValidScenario::new(parse(scenario_json).unwrap(), &NoDatasets).unwrap();
        let planning = plan(&scenario, &mut Unobserved).unwrap();
        let PlanOutcome::Planned(planned) = &planning.outcome.results[0].answer else { panic!("a plan") };
        let timeline = &planning.timelines[0].timeline;
        let window = TimeWindow { start_ns: 0.0, end_ns: timeline.makespan_ns as f64 };
        let sums = Sums::in_area(timeline, &Area { window, ranks: (0..4).collect() });
        let metrics = &planned.metrics;
        assert!(metrics.exposed_communication > 0.01, "{}", metrics.exposed_communication);
        assert!((sums.exposed_ns / sums.total_ns - metrics.exposed_communication).abs() < 1e-9);
        assert!((sums.idle_ns / sums.total_ns - metrics.bubble).abs() < 1e-9);
        for rank in &planned.ranks {
            let sums = Sums::in_area(timeline, &Area { window, ranks: vec![rank.rank as usize] });
            assert!((sums.exposed_ns * 1e-9 - rank.time.exposed_s - rank.time.sync_s).abs() < 1e-9);
        }
    }
}
