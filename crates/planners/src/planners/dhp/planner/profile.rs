//! Rank profile: timings for the fit of DHP's cost model, and activation memory per token (the
//! profiler in DHP Sec. 5).

use crate::planners::dhp::group_costs::{GroupPrices, single_stage_partition};
use crate::planners::dhp::{
    AllowedDegrees, Exchange, Fit, GroupCost, Load, Measured, RankMemory, Sequence, TIMINGS_NEEDED, fit,
};
use planscope_core::model::{Mask, Model, Module, ModuleRole};
use planscope_core::training::ContextExchange;
use planscope_core::units::Bytes;
use planscope_core::workload::{PackedBatch, Packing, Sequence as PackedSequence};
use planscope_cost::cost::{MicrobatchLoad, ModuleLoad, Pricing, ReplicaLayout};
use planscope_plan::outcome::Layout;
use planscope_plan::scenario::Scenario;

/// Profiled sequences from the sizing batch, from shortest to longest.
const LENGTHS: usize = 12;
/// Number of profiled degrees, from 1 to the maximum.
const DEGREES: usize = 10;

/// Relative lengths for additional timings of the longest sequence, used if the batch has fewer
/// timings than the fit needs. Shorter lengths come first.
const SHARES: [f64; 10] = [0.5, 0.25, 0.125, 0.0625, 0.03125, 2.0, 4.0, 8.0, 16.0, 32.0];

/// Fitted cost and memory of a rank.
pub(crate) struct Profile {
    /// Coefficients for DHP's cost model, plus the fit error.
    pub fit: Fit,
    /// Memory limit, model states and bytes per token.
    pub memory: RankMemory,
    /// Mask factor η of the backbone.
    pub eta: f64,
}

impl Profile {
    /// Profiles the forward and backward pass for selected sequences and degrees.
    pub(crate) fn new(
        scenario: &Scenario,
        pricing: &Pricing<'_>,
        layout: Layout,
        exchange: ContextExchange,
        sizing: &PackedBatch,
        degrees: &AllowedDegrees,
    ) -> Result<Self, String> {
        let selected = spread(sizing);
        let mut loads: Vec<MicrobatchLoad> = crate::planners::dhp::group_costs::loads(scenario, sizing, &selected);
        let backbone = scenario.model.backbone();
        let eta = if backbone.is_some_and(|module| module.mask == Mask::Causal) { 0.0 } else { 1.0 };
        let tokens = |sequences: &Vec<u32>| u64::from(sizing.sequences[sequences[0] as usize].computed_tokens);
        let mut tokens: Vec<u64> = selected.iter().map(tokens).collect();
        let profiled: Vec<u32> = every(degrees.list(), DEGREES).collect();
        if let (Some(max_load), Some(max_tokens)) = (loads.last().cloned(), tokens.last().copied()) {
            let more = SHARES.into_iter().map(|share| (share, (max_tokens as f64 * share).round() as u64));
            for (share, length) in more.filter(|(_, length)| *length > 0) {
                if loads.len() * profiled.len() >= TIMINGS_NEEDED {
                    break;
                }
                loads.push(resized(&max_load, &scenario.model, share));
                tokens.push(length);
            }
        }
        let mut samples = Vec::with_capacity(LENGTHS * DEGREES);
        let stored_bytes = |prices: &GroupPrices, item: usize| {
            (prices.columns.activation[item] + prices.columns.transient[item]).get() as f64
        };
        let fixed =
            GroupPrices::new(pricing, &scenario.model, layout, &[single_token_load(&scenario.model)], &[(exchange, 1)])
                .map_or(0.0, |prices| stored_bytes(&prices, 0));
        let mut per_token = 0.0_f64;
        for degree in profiled {
            let exchange_degrees = vec![(exchange, degree); loads.len()];
            let prices = GroupPrices::new(pricing, &scenario.model, layout, &loads, &exchange_degrees)
                .ok_or_else(|| format!("there are no prices of degree {degree}"))?;
            for (item, &tokens) in tokens.iter().enumerate() {
                let load = Load::from_sequence(Sequence { tokens, eta });
                samples.push(Measured { load, degree, seconds: prices.seconds(item) });
                if degree == 1 {
                    per_token = per_token.max((stored_bytes(&prices, item) - fixed) / tokens as f64);
                }
            }
        }
        let fit = fit(&samples, &network(scenario, layout, exchange)).map_err(|error| error.to_string())?;
        let position = ReplicaLayout { pipeline: 1, data: layout.data, replica: 0 };
        let table =
            pricing.at_context(exchange, 1).ok_or("there are no prices of degree 1")?.table(layout.tensor, &loads);
        // Memory independent of sequence length counts as model state, including gathered weights
        // for a layer.
        let states =
            table.static_memory(&single_stage_partition(&scenario.model), position)[0] + Bytes::from_f64(fixed);
        let memory = RankMemory { budget: scenario.memory_limit(), states, per_token: per_token.max(1.0) };
        Ok(Self { fit, memory, eta })
    }

    /// Formats the coefficients and the fit error.
    pub(crate) fn summary(&self) -> String {
        let GroupCost { a1, a2, a3, b1, b2, .. } = self.fit.cost;
        format!(
            "Cost fitted to {} timings of the operator graph: a1 {:.3} ns and a2 {:.3} µs a token, a3 {:.0} B a token, b1 {:.2} ms, b2 {:.2} \
             ms; mean error {:.1} %, nine in ten within {:.1} %. {:.0} KiB of activations a token.",
            self.fit.residuals.len(),
            a1 * 1e9,
            a2 * 1e6,
            a3,
            b1 * 1e3,
            b2 * 1e3,
            self.fit.mean * 100.0,
            self.fit.p90 * 100.0,
            self.memory.per_token / 1024.0
        )
    }
}

/// Load for a one-token text sequence.
fn single_token_load(model: &Model) -> MicrobatchLoad {
    let token = PackedSequence {
        samples: 1,
        tokens: 1,
        computed_tokens: 1,
        squared: 1,
        useful_squared: 1,
        ..PackedSequence::default()
    };
    MicrobatchLoad::new(&[token], model, Packing::Packed)
}

/// Network parameters between ranks. The fit sets the coefficients later.
fn network(scenario: &Scenario, layout: Layout, exchange: ContextExchange) -> GroupCost {
    let cluster = &scenario.cluster;
    GroupCost {
        a1: 0.0,
        a2: 0.0,
        a3: 0.0,
        b1: 0.0,
        b2: 0.0,
        within_node: cluster.intra_node.achieved_bandwidth().get(),
        across_nodes: cluster.inter_node.achieved_bandwidth().get(),
        ranks_per_node: (cluster.devices_per_node / layout.tensor).max(1),
        exchange: match exchange {
            ContextExchange::Ring => Exchange::Ring,
            ContextExchange::AllToAll => Exchange::AllToAll,
        },
    }
}

/// Scales a load to `share` times the sequence length. Modules other than the backbone get more
/// items with constant item length.
fn resized(load: &MicrobatchLoad, model: &Model, share: f64) -> MicrobatchLoad {
    let scaled_module = |(module_load, module): (&ModuleLoad, &Module)| {
        let squares = if module.role == ModuleRole::Backbone { share * share } else { share };
        ModuleLoad {
            tokens: module_load.tokens * share,
            squared: module_load.squared * squares,
            useful_tokens: module_load.useful_tokens * share,
            useful_squared: module_load.useful_squared * squares,
            items: module_load.items * share,
        }
    };
    MicrobatchLoad { modules: load.modules.iter().zip(&model.modules).map(scaled_module).collect(), shape: load.shape }
}

/// Selects sequences of different lengths in ascending order, as one-element lists.
fn spread(batch: &PackedBatch) -> Vec<Vec<u32>> {
    let mut order: Vec<u32> = (0..batch.sequences.len() as u32).collect();
    order.sort_by_key(|&index| batch.sequences[index as usize].computed_tokens);
    order.retain(|&index| batch.sequences[index as usize].computed_tokens > 0);
    every(&order, LENGTHS).map(|index| vec![index]).collect()
}

/// Selects at most `count` evenly spaced elements, including both ends.
fn every(list: &[u32], count: usize) -> impl Iterator<Item = u32> + '_ {
    let count = count.min(list.len());
    let last = list.len().saturating_sub(1);
    (0..count).map(move |index| list[index * last / count.saturating_sub(1).max(1)])
}
