//! Times of groups from the operator graph, each computed once.

use std::collections::BTreeMap;

use crate::planners::dhp::group_costs::{self, GroupPrices};
use planscope_core::training::ContextExchange;
use planscope_core::workload::PackedBatch;
use planscope_cost::cost::Pricing;
use planscope_plan::outcome::Layout;
use planscope_plan::scenario::Scenario;

/// Forward and backward time of a group, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Time {
    pub forward: f64,
    pub backward: f64,
}

impl Time {
    pub(crate) fn total(self) -> f64 {
        self.forward + self.backward
    }
}

/// Exchange and degree of a group.
pub(crate) type Way = (ContextExchange, u32);

/// Times of the groups of a batch.
pub(crate) struct Prices<'a> {
    scenario: &'a Scenario,
    pricing: &'a Pricing<'a>,
    layout: Layout,
    batch: &'a PackedBatch,
    /// By exchange (true for all-to-all), degree and sequences.
    known: BTreeMap<(bool, u32, Vec<u32>), Time>,
}

impl<'a> Prices<'a> {
    pub(crate) const fn new(
        scenario: &'a Scenario,
        pricing: &'a Pricing<'a>,
        layout: Layout,
        batch: &'a PackedBatch,
    ) -> Self {
        Self { scenario, pricing, layout, batch, known: BTreeMap::new() }
    }

    /// Returns the time of each group, in request order. `None` if a degree has no costs.
    pub(crate) fn times(&mut self, groups: &[(Vec<u32>, Way)]) -> Option<Vec<Time>> {
        let key = |(sequences, (exchange, degree)): &(Vec<u32>, Way)| {
            // One rank exchanges nothing.
            let all_to_all = *degree > 1 && *exchange == ContextExchange::AllToAll;
            let mut sorted = sequences.clone();
            sorted.sort_unstable();
            (all_to_all, *degree, sorted)
        };
        let keys: Vec<_> = groups.iter().map(key).collect();
        let mut missing: Vec<_> = keys.iter().filter(|key| !self.known.contains_key(*key)).cloned().collect();
        missing.sort_unstable();
        missing.dedup();
        if !missing.is_empty() {
            let lists: Vec<Vec<u32>> = missing.iter().map(|key| key.2.clone()).collect();
            let loads = group_costs::loads(self.scenario, self.batch, &lists);
            let exchange = |all_to_all| if all_to_all { ContextExchange::AllToAll } else { ContextExchange::Ring };
            let ways: Vec<Way> = missing.iter().map(|key| (exchange(key.0), key.1)).collect();
            let prices = GroupPrices::new(self.pricing, &self.scenario.model, self.layout, &loads, &ways)?;
            for (item, key) in missing.into_iter().enumerate() {
                let columns = &prices.columns;
                let time = Time { forward: columns.forward[item].secs(), backward: columns.backward(item).secs() };
                self.known.insert(key, time);
            }
        }
        Some(keys.iter().map(|key| self.known[key]).collect())
    }
}
