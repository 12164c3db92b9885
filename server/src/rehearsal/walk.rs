//! A rank walks through its list.

use planner::execution_plan::{PlanAction, PlanActionKind};

use super::clock;
use super::control::{Content, Part};
use super::journal::Journal;
use super::post::{Post, Posting};
use super::shelf::Shelf;

/// One iteration of a rank.
pub(super) struct Walk<'a> {
    pub(super) part: &'a Part,
    pub(super) content: Content,
    pub(super) post: &'a Post,
    pub(super) journal: &'a Journal,
}

impl Walk<'_> {
    /// Does everything in order, beginning at a moment of the common clock.
    ///
    /// # Errors
    /// The index of the action that cannot be done and why, in words.
    pub(super) fn run(&self, at_ns: u64) -> Result<(), (usize, String)> {
        let list = &self.part.actions;
        let mut shelf = Shelf::of(list);
        let mut fed = false;
        let mut index = 0;
        clock::sleep_until(at_ns);
        while index < list.len() {
            let action = &list[index];
            self.journal.arrive(index);
            let fault = |text: String| (index, text);
            if action.action.computes() {
                let unit = unit(list, index);
                for one in unit {
                    shelf.check(one).map_err(|error| fault(error.to_string()))?;
                }
                // Nothing that is sent to it holds up the first stage of a rank that begins late: other pipelines do.
                let earliest_ns = if fed { 0 } else { at_ns.saturating_add(self.scaled(action.start_ns)) };
                fed = true;
                let begin_ns = clock::sleep_until(earliest_ns);
                let lasts = unit.iter().filter_map(|one| one.duration_ns).sum();
                let end_ns = clock::sleep_until(begin_ns.saturating_add(self.scaled(lasts)));
                self.journal.note(index as u32, begin_ns, end_ns);
                for one in unit {
                    shelf.make(one);
                }
                index += unit.len();
                continue;
            }
            shelf.check(action).map_err(|error| fault(error.to_string()))?;
            let Some(transfer) = action.transfer else {
                return Err(fault("a transfer to nowhere".to_owned()));
            };
            match action.action {
                PlanActionKind::Isend => {
                    let share_ns = self.scaled(action.duration_ns.unwrap_or(0));
                    let posting = Posting { index: index as u32, action, share_ns };
                    self.post.send(&posting, self.content).map_err(fault)?;
                }
                PlanActionKind::Irecv => self.post.receive(index as u32, action).map_err(fault)?,
                _ => {
                    let begin_ns = clock::now();
                    let until_ns = self.post.wait(transfer.batch).map_err(fault)?;
                    let end_ns = clock::sleep_until(until_ns);
                    self.journal.note(index as u32, begin_ns, end_ns);
                    shelf.receive(action);
                    // A rank that was sent something begins when that is there.
                    fed |= action.action == PlanActionKind::WaitIrecv;
                }
            }
            index += 1;
        }
        self.journal.arrive(list.len());
        let fault = |text: String| (list.len(), text);
        clock::sleep_until(self.post.wait_for_all().map_err(fault)?);
        shelf.is_finished().map_err(|error| fault(error.to_string()))?;
        self.end(at_ns);
        Ok(())
    }

    /// Synchronises gradients and steps the optimizer, waiting for other replicas as the plan does.
    fn end(&self, at_ns: u64) {
        let stages = self.part.actions.iter().filter(|action| action.action.computes());
        let ends = stages.map(|action| action.start_ns.saturating_add(action.duration_ns.unwrap_or(0)));
        let mut planned_ns = ends.max().unwrap_or(0);
        for (place, ending) in self.part.endings.iter().enumerate() {
            let waits = ending.start_ns > planned_ns;
            let earliest_ns = if waits { at_ns.saturating_add(self.scaled(ending.start_ns)) } else { 0 };
            let begin_ns = clock::sleep_until(earliest_ns);
            let end_ns = clock::sleep_until(begin_ns.saturating_add(self.scaled(ending.duration_ns)));
            self.journal.note((self.part.actions.len() + place) as u32, begin_ns, end_ns);
            planned_ns = ending.start_ns.saturating_add(ending.duration_ns);
        }
    }

    fn scaled(&self, planned_ns: u64) -> u64 {
        (planned_ns as f64 / self.part.speed).round() as u64
    }
}

/// A stage with those that run overlapped with it.
pub(super) fn unit(list: &[PlanAction], first: usize) -> &[PlanAction] {
    let joined = list[first..].iter().take_while(|action| action.with_next && action.action.computes()).count();
    &list[first..(first + joined + 1).min(list.len())]
}
