//! Report of a layout search: slower and rejected layouts, and the reason if there is no plan.

use super::nearest;
use super::{LayoutSearch, Score, Sized};
use crate::planners::NoPlan;
use crate::planners::infeasible::BindingConstraint;
use planscope_core::units::Bytes;
use planscope_plan::outcome::{Loser, RejectionCount, Search};
use planscope_plan::plan::describe;

/// Limit on reported losers, in ascending time order.
const MAX_LOSERS: usize = 40;

impl LayoutSearch<'_> {
    /// Returns the search statistics. Explains losers and rejections.
    pub(crate) fn report(&self) -> Search {
        let best = self.best().map(|(score, sized)| (*score, sized.layout));
        let mut simulated: Vec<&(Score, Sized)> = self.simulated.iter().collect();
        simulated.sort_by_key(|(score, sized)| (score.time, sized.layout));
        let mut losers: Vec<Loser> = simulated
            .into_iter()
            .filter(|(_, sized)| best.is_some_and(|(_, winner)| winner != sized.layout))
            .map(|(score, sized)| Loser {
                layout: sized.layout,
                reason: best.map_or_else(String::new, |(best, _)| why_slower(score, &best)),
                iteration_s: Some(score.time.secs()),
                peak_memory_gib: Some(score.peak.gib()),
            })
            .collect();
        let mut memory: Vec<_> = self
            .rejected
            .iter()
            .filter_map(|(layout, infeasibility)| Some((layout, infeasibility, infeasibility.constraint.memory()?)))
            .collect();
        memory.sort_by_key(|(layout, _, (_, bytes))| (*bytes, **layout));
        let capacity = MAX_LOSERS.saturating_sub(memory.len().min(MAX_LOSERS / 2));
        losers.truncate(capacity);
        let nearest = memory.into_iter().take(MAX_LOSERS - losers.len());
        losers.extend(nearest.map(|(layout, infeasibility, (rank, bytes))| Loser {
            layout: *layout,
            reason: self.lack(rank, bytes, matches!(infeasibility.constraint, BindingConstraint::Activations(..))),
            iteration_s: None,
            peak_memory_gib: Some(bytes.gib()),
        }));
        Search {
            candidates: self.total,
            simulated: self.simulated.len() as u32,
            pruned: self.pruned + (self.open.len() + self.slow.len()) as u32,
            rejected: self.rejected.len() as u32,
            losers,
            rejections: self.rejection_counts(),
            nearest: None,
        }
    }

    /// Describes a rank's missing memory.
    fn lack(&self, rank: usize, bytes: Bytes, is_complete: bool) -> String {
        let (needs, limit) = (bytes.gib(), self.limit.gib());
        if is_complete {
            format!("rank {rank} needs {needs:.1} GiB; {limit:.1} GiB available")
        } else {
            format!(
                "rank {rank} needs {needs:.1} GiB for weights, gradients and optimizer alone; {limit:.1} GiB available"
            )
        }
    }

    fn rejection_counts(&self) -> Vec<RejectionCount> {
        let mut counts: Vec<RejectionCount> = Vec::new();
        for (_, infeasibility) in &self.rejected {
            match counts.iter_mut().find(|count| count.reason == infeasibility.reason) {
                Some(count) => count.count += 1,
                None => counts.push(RejectionCount { reason: infeasibility.reason.clone(), count: 1 }),
            }
        }
        counts.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.reason.cmp(&b.reason)));
        counts
    }

    /// Builds the error if no layout remains: the binding constraint of the latest check, and the
    /// peak memory of layouts rejected for memory in ascending order.
    pub(crate) fn no_plan(&self) -> NoPlan {
        let needs = self.needs();
        let furthest = self.rejected.iter().map(|(_, infeasibility)| infeasibility.constraint.stage()).max();
        let mut furthest =
            self.rejected.iter().filter(|(_, infeasibility)| Some(infeasibility.constraint.stage()) == furthest);
        let binding = match (needs.first(), furthest.next()) {
            (_, Some((_, infeasibility))) if infeasibility.constraint == BindingConstraint::Run => {
                infeasibility.reason.clone()
            }
            (Some(need), _) => {
                format!("{} ({})", self.lack(need.rank, need.bytes, need.is_complete()), describe(need.layout))
            }
            (None, _) if self.pruned > 0 || !self.slow.is_empty() || !self.open.is_empty() => {
                "no layout is faster than another planner".to_owned()
            }
            (None, Some(_)) => self.rejection_counts().swap_remove(0).reason,
            (None, None) => "no valid layout: the requested degrees do not divide the devices".to_owned(),
        };
        let mut search = self.report();
        search.losers = needs
            .iter()
            .take(MAX_LOSERS)
            .map(|need| Loser {
                layout: need.layout,
                reason: self.lack(need.rank, need.bytes, need.is_complete()),
                iteration_s: None,
                peak_memory_gib: need.is_complete().then(|| need.bytes.gib()),
            })
            .collect();
        search.nearest = needs.into_iter().find(nearest::Need::is_complete).map(|need| Box::new(need.miss(self.limit)));
        NoPlan { binding, search }
    }
}

/// Describes the largest difference among computation, communication and idle time.
fn why_slower(score: &Score, best: &Score) -> String {
    let more = score.time.secs() - best.time.secs();
    let compute = (score.active - score.exposed) - (best.active - best.exposed);
    let communication = score.exposed - best.exposed;
    let idle = (score.time.secs() - score.active) - (best.time.secs() - best.active);
    let (kind, much) = [("computation", compute), ("communication", communication), ("idle time", idle)]
        .into_iter()
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .unwrap_or(("time", more));
    format!("+{more:.3} s: {much:.3} s more {kind}")
}
