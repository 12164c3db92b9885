//! How the actions of one timeline differ from those of another one.
//!
//! An action is the same where kind, stage and microbatch are, and where the microbatch holds the same: planners that deal the samples
//! of a batch out differently have other microbatches under the same number.

use std::collections::HashMap;

use api::planner::timeline::{SpanKind, Timeline};

use super::time_text::duration;
use crate::format::signed_percent;

/// What is compared of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Aspect {
    /// How long it takes.
    #[default]
    Duration,
    /// When it ends.
    End,
}

/// The actions of a timeline beside those of another one.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Differences {
    /// Action of the other timeline by span; none where it has no such action.
    pub(crate) counterpart: Vec<Option<u32>>,
    /// Actions that have one.
    pub(crate) matched: usize,
    /// Actions that take part: all but sends.
    pub(crate) actions: usize,
}

impl Differences {
    /// Looks for every action of `timeline` in `other`.
    pub(crate) fn of(timeline: &Timeline, other: &Timeline) -> Self {
        let mut places: HashMap<(u8, u32, u32), u32> = HashMap::with_capacity(other.len());
        for span in 0..other.len() {
            places.insert((other.kind[span], place(other, span), other.microbatch[span]), span as u32);
        }
        let mut found = Self { counterpart: vec![None; timeline.len()], ..Self::default() };
        for span in 0..timeline.len() {
            let kind = SpanKind::from_index(timeline.kind[span]);
            let takes_part = kind.is_some_and(SpanKind::is_compute_lane);
            found.actions += usize::from(takes_part);
            let key = (timeline.kind[span], place(timeline, span), timeline.microbatch[span]);
            let same = places.get(&key).copied().filter(|&there| holds_the_same(timeline, span, other, there as usize));
            found.matched += usize::from(takes_part && same.is_some());
            found.counterpart[span] = same;
        }
        found
    }

    /// How much later or longer an action is than its counterpart, in ns, and as a share of the counterpart's time; of its end as a
    /// share of the counterpart's iteration.
    pub(crate) fn at(&self, timeline: &Timeline, other: &Timeline, span: usize, aspect: Aspect) -> Option<(f64, f64)> {
        let there = (*self.counterpart.get(span)?)? as usize;
        let (difference, whole) = match aspect {
            Aspect::Duration => {
                (timeline.duration_ns[span] as f64 - other.duration_ns[there] as f64, other.duration_ns[there] as f64)
            }
            Aspect::End => (timeline.end_ns(span) as f64 - other.end_ns(there) as f64, other.makespan_ns as f64),
        };
        Some((difference, if whole > 0.0 { difference / whole } else { 0.0 }))
    }

    /// The difference of an action in words, with sign and percent: "+1.20 ms (+8.0 %) than in the baseline".
    pub(crate) fn told(&self, timeline: &Timeline, other: &Timeline, span: usize, aspect: Aspect) -> String {
        let Some((ns, share)) = self.at(timeline, other, span, aspect) else {
            return "not in the baseline".to_owned();
        };
        let sign = if ns < 0.0 { '\u{2212}' } else { '+' };
        let by = format!("{sign}{} ({})", duration(ns.abs()), signed_percent(share));
        match aspect {
            Aspect::Duration if ns.abs() < 0.5 => "as long as in the baseline".to_owned(),
            Aspect::End if ns.abs() < 0.5 => "ends when it does in the baseline".to_owned(),
            Aspect::Duration => format!("{by} than in the baseline"),
            Aspect::End if ns < 0.0 => format!("{by} of the baseline's iteration: ends earlier"),
            Aspect::End => format!("{by} of the baseline's iteration: ends later"),
        }
    }

    /// The aspect that says more: durations where any differs by a thousandth, else ends.
    pub(crate) fn telling(&self, timeline: &Timeline, other: &Timeline) -> Aspect {
        let differs = (0..timeline.len())
            .any(|span| self.at(timeline, other, span, Aspect::Duration).is_some_and(|(_, share)| share.abs() >= 1e-3));
        if differs { Aspect::Duration } else { Aspect::End }
    }
}

/// Stage of an action; rank of those that belong to none.
fn place(timeline: &Timeline, span: usize) -> u32 {
    match SpanKind::from_index(timeline.kind[span]) {
        Some(SpanKind::GradientSync | SpanKind::Optimizer) => timeline.rank_of(span) as u32,
        _ => timeline.stage[span],
    }
}

fn holds_the_same(timeline: &Timeline, span: usize, other: &Timeline, there: usize) -> bool {
    if matches!(SpanKind::from_index(timeline.kind[span]), Some(SpanKind::GradientSync | SpanKind::Optimizer)) {
        return true;
    }
    let shape =
        |timeline: &Timeline, span: usize| timeline.microbatches.get(timeline.microbatch[span] as usize).copied();
    shape(timeline, span) == shape(other, there)
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn a_timeline_does_not_differ_from_itself() {
        let timeline = sample::one_f_one_b(3, 5);
        let same = Differences::of(&timeline, &timeline);
        assert_eq!((same.matched, same.actions), (30, 30), "3 ranks, 5 microbatches, F and B");
        for span in 0..timeline.len() {
            for aspect in [Aspect::Duration, Aspect::End] {
                assert_eq!(same.at(&timeline, &timeline, span, aspect), Some((0.0, 0.0)));
            }
        }
        assert_eq!(same.telling(&timeline, &timeline), Aspect::End);
    }

    #[test]
    fn differences_have_a_sign_and_a_share() {
        let before = sample::one_f_one_b(2, 3);
        let mut after = before.clone();
        let span = after.compute_lane(1).start;
        after.duration_ns[span] += 250;
        let found = Differences::of(&after, &before);
        // 1,250 ns against 1,000.
        assert_eq!(found.at(&after, &before, span, Aspect::Duration), Some((250.0, 0.25)));
        assert_eq!(found.telling(&after, &before), Aspect::Duration);
        let back = Differences::of(&before, &after);
        assert_eq!(back.at(&before, &after, span, Aspect::Duration), Some((-250.0, -0.2)));
        let told = |aspect| back.told(&before, &after, span, aspect);
        assert_eq!(told(Aspect::Duration), "\u{2212}250 ns (\u{2212}20.0\u{202f}%) than in the baseline");
        assert!(told(Aspect::End).ends_with("ends earlier"), "{}", told(Aspect::End));
        let same = Differences::of(&before, &before);
        assert_eq!(same.told(&before, &before, span, Aspect::Duration), "as long as in the baseline");
        let none = Differences { counterpart: vec![None; before.len()], ..Differences::default() };
        assert_eq!(none.told(&before, &after, span, Aspect::End), "not in the baseline");
    }

    #[test]
    fn other_microbatches_under_the_same_number_are_no_counterparts() {
        let one = sample::one_f_one_b(2, 3);
        let mut other = one.clone();
        other.microbatches[1].tokens += 1;
        let found = Differences::of(&one, &other);
        assert_eq!((found.matched, found.actions), (8, 12));
        assert_eq!(Differences::of(&one, &sample::one_f_one_b(2, 2)).matched, 8);
    }
}
