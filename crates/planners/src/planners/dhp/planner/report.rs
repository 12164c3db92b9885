//! Decision texts of the planners of groups.

use std::collections::{BTreeMap, BTreeSet};

use super::Setting;
use super::arrangement::Arrangement;
use crate::planners::dhp::{GroupPool, PoolCount};
use crate::planners::{failed, measured_layers};
use planscope_cost::cost::overrides::AtDegrees;
use planscope_plan::outcome::Layout;

/// Limit on microbatches with listed degrees.
const MAX_NAMED: usize = 6;

/// Decision text for a batch.
pub(super) struct Report {
    pool_count: PoolCount,
    /// Degrees of each microbatch in DHP notation.
    names: Vec<String>,
    /// Time and lower bound under the fitted cost, in seconds.
    estimated_s: f64,
    bound_s: f64,
    simulated_s: f64,
}

impl Report {
    /// Counts the groups of a plan in the pool. `estimated_s` and `bound_s` are its time and the lower bound of plans under
    /// the fitted cost, in seconds.
    pub(super) fn new(arranged: &Arrangement, pool: &mut GroupPool, (estimated_s, bound_s): (f64, f64)) -> Self {
        let mut microbatches: BTreeMap<u32, BTreeSet<(u32, &[u32])>> = BTreeMap::new();
        let mut counts: BTreeMap<u32, BTreeMap<u32, u32>> = BTreeMap::new();
        for (item, ranks) in arranged.items.iter().zip(&arranged.ranks) {
            microbatches.entry(item.microbatch).or_default().insert((item.degree, ranks));
            *counts.entry(item.microbatch).or_default().entry(item.degree).or_default() += 1;
        }
        let pool_count = microbatches.values().fold(PoolCount::default(), |mut count, groups| {
            count += pool.ask_all(groups.iter().map(|(_, ranks)| *ranks));
            count
        });
        let name = |degrees: &BTreeMap<u32, u32>| {
            let terms: Vec<String> =
                degrees.iter().rev().map(|(degree, count)| format!("<{degree}>x{count}")).collect();
            terms.join(" ")
        };
        let names = counts.values().map(name).collect();
        Self { pool_count, names, estimated_s, bound_s, simulated_s: arranged.seconds }
    }

    /// Formats the degrees in DHP notation, estimated and simulated time, and the pool hits.
    pub(super) fn decision(&self) -> String {
        let count = self.names.len();
        let named: Vec<&str> = self.names.iter().take(MAX_NAMED).map(String::as_str).collect();
        let more = if count > MAX_NAMED { format!(" and {} more", count - MAX_NAMED) } else { String::new() };
        let groups = match self.pool_count.hits + self.pool_count.misses {
            0 => "no group of more than one rank".to_owned(),
            total => format!("{} of {total} groups existed already", self.pool_count.hits),
        };
        let noun = if count == 1 { "microbatch" } else { "microbatches" };
        format!(
            "{count} {noun}, degrees {}{more}; estimated {:.3} s for the groups, at most {:.1} % above a lower bound, simulated {:.3} s ({:+.1} %); {groups}",
            named.join(" | "),
            self.estimated_s,
            (self.estimated_s / self.bound_s - 1.0).max(0.0) * 100.0,
            self.simulated_s,
            (self.simulated_s / self.estimated_s - 1.0) * 100.0
        )
    }
}

/// Decision texts for the run.
pub(super) fn decisions(
    setting: &Setting<'_>,
    sequences: usize,
    failed_later: u32,
    created_groups: usize,
) -> Vec<String> {
    let Layout { tensor, data: ranks, .. } = setting.layout;
    let but = failed(failed_later);
    let mut decisions = vec![format!(
        "{ranks} ranks with TP {tensor}, each a model replica: the fastest layout on a representative batch of {sequences} sequences{but}."
    )];
    decisions.push(match (setting.fixed, setting.outgrown) {
        (Some(degree), None) => {
            format!("Context-parallel degree {degree} for every group: the fastest that divides the ranks and fits the longest sequence.")
        }
        (Some(degree), Some(smaller)) => format!(
            "Context-parallel degree {degree} for every group: {smaller} is faster, but the longest sequence does not fit."
        ),
        (None, _) => format!(
            "New degrees for every microbatch; the run creates {created_groups} communication group{}.",
            if created_groups == 1 { "" } else { "s" }
        ),
    });
    decisions.push(format!(
        "A rank has memory for {} tokens in addition to {:.1} GiB of model states.",
        setting.tokens_per_rank,
        setting.sides[0].profile.memory.states.gib()
    ));
    decisions.extend(setting.sides.iter().map(|side| side.profile.summary(side.exchange)));
    let at_degrees = setting.sides.iter().flat_map(|side| {
        let exchange = Some(side.exchange);
        side.degrees.list().iter().map(move |&context| AtDegrees { tensor, context, exchange })
    });
    decisions.extend(measured_layers::summary(setting.context.scenario, &at_degrees.collect::<Vec<_>>()));
    decisions
}
