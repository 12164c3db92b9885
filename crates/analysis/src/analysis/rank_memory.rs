//! Variation in a rank's memory over time (PipeWeaver Fig. 11).

use planscope_core::timeline::{MemoryCurve, SpanKind, Timeline};

const BYTES_PER_GIB: f64 = (1_u64 << 30) as f64;

/// Memory of a rank in an iteration (docs/models.md, section 12).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankMemoryMetrics {
    /// Maximum, in GiB.
    pub peak_gib: f64,
    /// Mean over time, in GiB.
    pub mean_gib: f64,
    /// Standard deviation over time in the steady state, in GiB; `None` if there is no steady
    /// state.
    pub fluctuation_gib: Option<f64>,
}

/// Computes the figures for a rank. `None` if the timeline lacks the rank or its memory.
///
/// The steady state starts at the rank's first backward and ends when its last forward is done.
/// Before it the pipeline fills, after it the pipeline drains. If no backward starts before the
/// last forward is done, as in GPipe, there is no steady state.
pub fn rank_memory(timeline: &Timeline, rank: usize) -> Option<RankMemoryMetrics> {
    let curve = timeline.memory.get(rank).filter(|curve| !curve.time_ns.is_empty())?;
    let overall = Moments::from_curve(curve, curve.time_ns[0], timeline.makespan_ns)?;
    let steady = steady_state(timeline, rank).and_then(|(from, to)| Moments::from_curve(curve, from, to));
    Some(RankMemoryMetrics {
        peak_gib: curve.peak_bytes as f64 / BYTES_PER_GIB,
        mean_gib: overall.mean,
        fluctuation_gib: steady.map(|steady| steady.deviation),
    })
}

/// Returns the time from the rank's first backward to its last forward, if they overlap.
fn steady_state(timeline: &Timeline, rank: usize) -> Option<(u64, u64)> {
    let matching_spans = |wanted: &'static [SpanKind]| {
        let is_wanted =
            move |&span: &usize| SpanKind::from_index(timeline.kind[span]).is_some_and(|kind| wanted.contains(&kind));
        timeline.compute_lane(rank).filter(is_wanted)
    };
    let first = matching_spans(&[SpanKind::Backward, SpanKind::InputGrad]).map(|span| timeline.start_ns[span]).min()?;
    let last = matching_spans(&[SpanKind::Forward]).map(|span| timeline.end_ns(span)).max()?;
    (first < last).then_some((first, last))
}

/// Mean and standard deviation over time, in GiB.
struct Moments {
    mean: f64,
    deviation: f64,
}

impl Moments {
    fn from_curve(curve: &MemoryCurve, from: u64, to: u64) -> Option<Self> {
        if from >= to {
            return None;
        }
        let ends = curve.time_ns.iter().skip(1).copied().chain([u64::MAX]);
        let steps = || {
            curve.time_ns.iter().zip(ends.clone()).zip(&curve.bytes).filter_map(|((&start, end), &bytes)| {
                let (start, end) = (start.max(from), end.min(to));
                (start < end).then(|| ((end - start) as f64, bytes as f64 / BYTES_PER_GIB))
            })
        };
        let time: f64 = steps().map(|(time, _)| time).sum();
        if time <= 0.0 {
            return None;
        }
        let mean = steps().map(|(time, gib)| time * gib).sum::<f64>() / time;
        let variance = steps().map(|(time, gib)| time * (gib - mean) * (gib - mean)).sum::<f64>() / time;
        Some(Self { mean, deviation: variance.sqrt() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    /// Builds a rank from consecutive 10 ns spans. The numbers are the memory during a span, in
    /// GiB.
    fn timeline(spans: &[(SpanKind, u64)]) -> Timeline {
        let count = spans.len() as u64;
        Timeline {
            ranks: 1,
            makespan_ns: 10 * count,
            lane_offsets: vec![0, count as u32, count as u32],
            kind: spans.iter().map(|(kind, _)| *kind as u8).collect(),
            start_ns: (0..count).map(|span| 10 * span).collect(),
            duration_ns: vec![10; spans.len()],
            memory: vec![MemoryCurve {
                static_bytes: 0,
                peak_bytes: spans.iter().map(|(_, gib)| gib * GIB).max().unwrap_or(0),
                time_ns: (0..count).map(|span| 10 * span).collect(),
                bytes: spans.iter().map(|(_, gib)| gib * GIB).collect(),
            }],
            ..Timeline::default()
        }
    }

    #[test]
    fn metrics_match_a_small_staircase() {
        use SpanKind::{Backward as B, Forward as F};
        // Fill 1, 2; steady 3 (B), 1 (F), 3 (B), 1 (F); drain 8. The mean is 19 / 7. In the steady
        // state it is 2, with deviation 1.
        let metrics = rank_memory(&timeline(&[(F, 1), (F, 2), (B, 3), (F, 1), (B, 3), (F, 1), (B, 8)]), 0).unwrap();
        assert!((metrics.mean_gib - 19.0 / 7.0).abs() < 1e-12);
        assert!((metrics.peak_gib - 8.0).abs() < 1e-12);
        assert!((metrics.fluctuation_gib.unwrap() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn all_forwards_first_leave_no_steady_state() {
        use SpanKind::{Backward as B, Forward as F};
        let metrics = rank_memory(&timeline(&[(F, 1), (F, 2), (B, 2), (B, 1)]), 0).unwrap();
        assert_eq!((metrics.mean_gib, metrics.fluctuation_gib), (1.5, None));
        assert_eq!(rank_memory(&Timeline::default(), 0), None);
        assert_eq!(rank_memory(&timeline(&[(F, 1)]), 1), None);
    }
}
