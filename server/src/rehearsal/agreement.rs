//! What a rank took, beside what was planned, iteration by iteration.

use planner::execution_plan::{ExecutionPlan, Payload, PlanActionKind};
use planner::timeline::SpanKind;

use super::control::Record;
use super::walk::unit;

/// Where the time of a rank goes, by the names that Megatron-LM gives its timers.
pub(super) const TIMERS: [&str; 9] = [
    "forward-backward",
    "forward-compute",
    "backward-compute",
    "forward-recv",
    "forward-send",
    "backward-recv",
    "backward-send",
    "all-grads-sync",
    "optimizer",
];

/// One rank in one iteration. Times are those of the rehearsal multiplied by its speed, in ns from the beginning of the
/// iteration.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Tally {
    /// When its last computation ended by the plan, gradient synchronisation and optimizer included.
    pub(super) planned_ns: f64,
    /// When it ended.
    pub(super) ended_ns: f64,
    /// How much later than planned anything ended at most.
    pub(super) latest_ns: f64,
    /// Times by [`TIMERS`].
    pub(super) timers: [f64; TIMERS.len()],
    /// Records of what it computes.
    pub(super) computed: usize,
}

/// All ranks in one iteration.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Iteration<'a> {
    plan: &'a ExecutionPlan,
    begin_ns: u64,
    speed: f64,
    pub(super) ranks: Vec<Tally>,
}

impl<'a> Iteration<'a> {
    pub(super) fn new(plan: &'a ExecutionPlan, begin_ns: u64, speed: f64) -> Self {
        let planned = |rank: usize| {
            let stages = plan.ranks[rank].iter().filter(|action| action.action.computes());
            let stages = stages.map(|action| action.start_ns + action.duration_ns.unwrap_or(0));
            let endings = plan.endings.iter().filter(|ending| ending.rank as usize == rank);
            stages.chain(endings.map(|ending| ending.start_ns + ending.duration_ns)).max().unwrap_or(0)
        };
        let ranks = (0..plan.ranks.len()).map(|rank| Tally {
            planned_ns: planned(rank) as f64,
            latest_ns: f64::NEG_INFINITY,
            ..Tally::default()
        });
        Self { plan, begin_ns, speed, ranks: ranks.collect() }
    }

    /// Adds what a rank did.
    pub(super) fn take(&mut self, rank: usize, record: &Record) {
        let lasted_ns = record.end_ns.saturating_sub(record.begin_ns) as f64 * self.speed;
        let ended_ns = record.end_ns.saturating_sub(self.begin_ns) as f64 * self.speed;
        let list = &self.plan.ranks[rank];
        let (timer, planned_end) = match list.get(record.index as usize) {
            Some(action) if action.action.computes() => {
                let unit = unit(list, record.index as usize);
                let lasts: u64 = unit.iter().filter_map(|one| one.duration_ns).sum();
                let timer = if action.action == PlanActionKind::ForwardStage { 1 } else { 2 };
                (timer, Some(action.start_ns + lasts))
            }
            Some(action) => {
                let gradient = action.transfer.is_some_and(|transfer| transfer.payload == Payload::Gradient);
                let timer = match action.action {
                    PlanActionKind::WaitIrecv => 3,
                    PlanActionKind::WaitIsend => 4,
                    // Transfers take no time of the rank's own.
                    _ => return,
                };
                (timer + 2 * usize::from(gradient), None)
            }
            None => {
                let place = record.index as usize - list.len();
                let own = self.plan.endings.iter().filter(|ending| ending.rank as usize == rank).nth(place);
                let Some(ending) = own else { return };
                let timer = if ending.kind == SpanKind::GradientSync { 7 } else { 8 };
                (timer, Some(ending.start_ns + ending.duration_ns))
            }
        };
        let tally = &mut self.ranks[rank];
        tally.timers[timer] += lasted_ns;
        let Some(planned_end) = planned_end else { return };
        tally.computed += 1;
        tally.ended_ns = tally.ended_ns.max(ended_ns);
        tally.latest_ns = tally.latest_ns.max(ended_ns - planned_end as f64);
        if timer < 7 {
            tally.timers[0] = tally.timers[0].max(ended_ns);
        }
    }

    /// When the last rank ended, by the plan and in the rehearsal.
    pub(super) fn makespans(&self) -> (f64, f64) {
        let ended = self.ranks.iter().map(|tally| tally.ended_ns).fold(0.0, f64::max);
        (self.plan.iteration_ns() as f64, ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rehearsal::score::Score;

    /// F 0-10, then an optimizer of 5 at 12, as another replica is waited for, at double speed from 100 on.
    #[test]
    fn times_are_scaled_back_and_held_against_the_plan() {
        let text = r#"{"buffers": {"receive": 2, "send": 2}, "planned_ns": 10, "ranks": [
            [{"start_ns": 0, "duration_ns": 10, "action": "forward_stage", "stage": 0, "microbatch": 0}]],
            "endings": [{"rank": 0, "kind": "optimizer", "start_ns": 12, "duration_ns": 5}]}"#;
        let score = Score::read(text).unwrap();
        let mut iteration = Iteration::new(&score.movements()[0].plan, 100, 2.0);
        iteration.take(0, &Record { index: 0, begin_ns: 101, end_ns: 107 });
        iteration.take(0, &Record { index: 1, begin_ns: 107, end_ns: 110 });
        let tally = iteration.ranks[0];
        // Computed until (107 - 100) x 2 = 14, 4 later than planned; ended at 20 in place of 17.
        assert_eq!((tally.planned_ns, tally.ended_ns, tally.latest_ns), (17.0, 20.0, 4.0));
        assert_eq!((tally.timers[0], tally.timers[1], tally.timers[8]), (14.0, 12.0, 6.0));
        assert_eq!(iteration.makespans(), (17.0, 20.0));
    }
}
