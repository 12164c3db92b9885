//! Action names in links: `r3.s1.mb7.B` is the backward of microbatch 7 on stage 1 of rank 3.

use api::planner::scenario::PlannerKind;
use api::planner::timeline::{SpanKind, Timeline};

/// Name of an action. Names are independent of the engine version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ActionName {
    rank: u32,
    stage: u32,
    microbatch: u32,
    kind: SpanKind,
    /// Index among actions with the same rank, stage, microbatch and kind.
    turn: u32,
    /// Planner of the plan; `None` for the planner in the link.
    pub(crate) planner: Option<PlannerKind>,
}

impl ActionName {
    /// Parses a name. A suffix `.2` selects the third action with this name, and `@1f1b` the
    /// planner.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (text, planner) = match text.split_once('@') {
            Some((text, planner)) => (text, Some(PlannerKind::from_id(planner)?)),
            None => (text, None),
        };
        let mut parts = text.split('.');
        let mut number = |mark: &str| parts.next()?.strip_prefix(mark)?.parse().ok();
        let (rank, stage, microbatch) = (number("r")?, number("s")?, number("mb")?);
        let letter = parts.next()?;
        let kind = SpanKind::ALL.into_iter().find(|kind| kind.letter() == letter)?;
        let turn = parts.next().map_or(Some(0), |turn| turn.parse().ok())?;
        parts.next().is_none().then_some(Self { rank, stage, microbatch, kind, turn, planner })
    }

    /// Formats the name for links.
    pub(crate) fn write(&self) -> String {
        let Self { rank, stage, microbatch, kind, turn, planner } = self;
        let turn = if *turn > 0 { format!(".{turn}") } else { String::new() };
        let planner = planner.map(|planner| format!("@{}", planner.id())).unwrap_or_default();
        format!("r{rank}.s{stage}.mb{microbatch}.{}{turn}{planner}", kind.letter())
    }

    /// Returns the name of a span.
    pub(crate) fn from_span(timeline: &Timeline, span: usize, planner: Option<PlannerKind>) -> Option<Self> {
        let kind = SpanKind::from_index(*timeline.kind.get(span)?)?;
        let lane = timeline.lane_offsets.partition_point(|offset| *offset as usize <= span).checked_sub(1)?;
        let rank = u32::try_from(lane / 2).ok()?;
        let (stage, microbatch) = (*timeline.stage.get(span)?, *timeline.microbatch.get(span)?);
        let name = Self { rank, stage, microbatch, kind, turn: 0, planner };
        let turn = name.namesakes(timeline).take_while(|other| *other < span).count();
        Some(Self { turn: u32::try_from(turn).ok()?, ..name })
    }

    /// Finds the span with this name.
    pub(crate) fn find(&self, timeline: &Timeline) -> Option<usize> {
        self.namesakes(timeline).nth(self.turn as usize)
    }

    /// Spans with the same rank, stage, microbatch and kind.
    fn namesakes<'t>(&self, timeline: &'t Timeline) -> impl Iterator<Item = usize> + use<'t> {
        let lane = (self.rank as usize).saturating_mul(2).saturating_add(usize::from(!self.kind.is_compute_lane()));
        let offset = |lane: usize| timeline.lane_offsets.get(lane).map_or(0, |offset| *offset as usize);
        let (kind, stage, microbatch) = (self.kind as u8, self.stage, self.microbatch);
        // The lane of a missing rank is empty.
        (offset(lane)..offset(lane.saturating_add(1))).filter(move |&span| {
            timeline.kind[span] == kind && timeline.stage[span] == stage && timeline.microbatch[span] == microbatch
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gantt::sample::one_f_one_b;

    #[test]
    fn names_are_read_as_they_are_written() {
        for text in ["r3.s1.mb7.B", "r0.s0.mb0.SEND_F", "r1.s2.mb3.F.4", "r3.s1.mb7.W@gpipe", "r0.s0.mb0.OPT"] {
            assert_eq!(ActionName::parse(text).expect(text).write(), text);
        }
        for bad in [
            "",
            "r999",
            "r1.s1.mb1",
            "r1.s1.mb1.X",
            "r1.s1.mb1.F.x",
            "r1.s1.mb1.F.1.1",
            "r-1.s1.mb1.F",
            "r1.s1.mb1.F@magic",
            "r99999999999.s1.mb1.F",
        ] {
            assert_eq!(ActionName::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn every_span_is_found_by_its_name() {
        let timeline = one_f_one_b(4, 8);
        for span in 0..timeline.len() {
            let name = ActionName::from_span(&timeline, span, None).expect("a name");
            assert_eq!(name.find(&timeline), Some(span), "{}", name.write());
        }
        for nowhere in ["r999.s1.mb7.B", "r4294967295.s1.mb7.B", "r4.s1.mb7.B", "r0.s0.mb8.F", "r0.s0.mb0.F.1"] {
            assert_eq!(ActionName::parse(nowhere).expect("a name").find(&timeline), None, "{nowhere}");
        }
        assert_eq!(ActionName::from_span(&timeline, timeline.len(), None), None);
    }
}
