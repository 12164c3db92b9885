//! Decision texts for grouped batches.

use crate::planners::dhp::{BatchPlan, PoolCount};

/// Limit on microbatches with listed degrees.
const MAX_NAMED: usize = 6;

/// Decision text for a batch.
pub(crate) struct Report {
    /// Hits and misses of the communication group pool.
    pub pool_count: PoolCount,
    names: Vec<String>,
}

impl Report {
    pub(crate) fn new(plan: &BatchPlan) -> Self {
        let names = plan.microbatches.iter().map(crate::planners::dhp::Microbatch::notation).collect();
        Self { pool_count: PoolCount::default(), names }
    }

    /// Formats the degrees in DHP notation, the estimate, the lower bound and the pool hits.
    pub(crate) fn decision(&self, plan: &BatchPlan) -> String {
        let count = self.names.len();
        let named: Vec<&str> = self.names.iter().take(MAX_NAMED).map(String::as_str).collect();
        let more = if count > MAX_NAMED { format!(" and {} more", count - MAX_NAMED) } else { String::new() };
        let groups = match self.pool_count.hits + self.pool_count.misses {
            0 => "no group of more than one rank".to_owned(),
            total => format!("{} of {total} groups existed already", self.pool_count.hits),
        };
        format!(
            "{count} microbatches, degrees {}{more}; estimated {:.3} s for the groups, lower bound {:.3} s; {groups}",
            named.join(" | "),
            plan.seconds,
            plan.bound
        )
    }
}
