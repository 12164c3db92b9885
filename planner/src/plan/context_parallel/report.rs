//! What a planner says of a batch that it grouped.

use crate::context_groups::{BatchPlan, PoolCount};

/// Microbatches whose groups are named one by one.
const MOST_NAMED: usize = 6;

/// What is said of one batch.
pub(super) struct Report {
    /// Communication groups asked of the pool.
    pub asked: PoolCount,
    names: Vec<String>,
}

impl Report {
    pub(super) fn new(plan: &BatchPlan) -> Self {
        let names = plan.microbatches.iter().map(crate::context_groups::Microbatch::notation).collect();
        Self { asked: PoolCount::default(), names }
    }

    /// Degrees in the paper's notation, the planner's own estimate, its bound, and what the pool had.
    pub(super) fn decision(&self, plan: &BatchPlan) -> String {
        let count = self.names.len();
        let named: Vec<&str> = self.names.iter().take(MOST_NAMED).map(String::as_str).collect();
        let more = if count > MOST_NAMED { format!(" and {} more", count - MOST_NAMED) } else { String::new() };
        let groups = match self.asked.hits + self.asked.misses {
            0 => "no group of more than one rank".to_owned(),
            asked => format!("{} of {asked} groups existed already", self.asked.hits),
        };
        format!(
            "{count} microbatches, degrees {}{more}; estimated {:.3} s for the groups, lower bound {:.3} s; {groups}",
            named.join(" | "),
            plan.seconds,
            plan.bound
        )
    }
}
