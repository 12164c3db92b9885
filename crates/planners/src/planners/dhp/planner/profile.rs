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
/// Profiled degrees: all up to this one, which short and medium sequences use.
const SMALL_DEGREES: u32 = 8;
/// Further profiled degrees, up to the maximum.
const LARGE_DEGREES: usize = 6;
/// Fill of the profiled packed groups, relative to the memory of a rank.
const FILLS: [f64; 3] = [0.25, 0.5, 1.0];

/// Groups of a plan that a round of refinement adds to the profile.
const MAX_ADDED: usize = 64;

/// Relative lengths for additional timings of the longest sequence, used if the batch has fewer
/// timings than the fit needs. Shorter lengths come first.
const SHARES: [f64; 10] = [0.5, 0.25, 0.125, 0.0625, 0.03125, 2.0, 4.0, 8.0, 16.0, 32.0];

/// Fitted cost and memory of a rank.
#[derive(Clone)]
pub(crate) struct Profile {
    /// Coefficients for DHP's cost model, plus the fit error.
    pub fit: Fit,
    /// Memory limit, model states and bytes per token.
    pub memory: RankMemory,
    /// Timings of the fit.
    samples: Vec<Measured>,
    network: GroupCost,
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
        let mut selected = spread(sizing);
        let mut loads: Vec<MicrobatchLoad> = crate::planners::dhp::group_costs::loads(scenario, sizing, &selected);
        let tokens = |sequences: &Vec<u32>| u64::from(sizing.sequences[sequences[0] as usize].computed_tokens);
        let mut tokens: Vec<u64> = selected.iter().map(tokens).collect();
        let small = degrees.list().partition_point(|&degree| degree <= SMALL_DEGREES);
        let (small, large) = degrees.list().split_at(small);
        let profiled: Vec<u32> = small.iter().copied().chain(every(large, LARGE_DEGREES)).collect();
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
        let mut samples = Vec::new();
        let stored_bytes = |prices: &GroupPrices, item: usize| {
            (prices.columns.activation[item] + prices.columns.transient[item]).get() as f64
        };
        let fixed =
            GroupPrices::new(pricing, &scenario.model, layout, &[single_token_load(&scenario.model)], &[(exchange, 1)])
                .map_or(0.0, |prices| stored_bytes(&prices, 0));
        let mut per_token = 0.0_f64;
        for &degree in &profiled {
            let exchange_degrees = vec![(exchange, degree); loads.len()];
            let prices = GroupPrices::new(pricing, &scenario.model, layout, &loads, &exchange_degrees)
                .ok_or_else(|| format!("there are no prices of degree {degree}"))?;
            for (item, &tokens) in tokens.iter().enumerate() {
                let eta = mask_factor(&scenario.model, &loads[item]);
                let load = Load::from_sequence(Sequence { tokens, eta });
                samples.push(Measured { load, degree, seconds: prices.seconds(item) });
                if degree == 1 {
                    per_token = per_token.max((stored_bytes(&prices, item) - fixed) / tokens as f64);
                }
            }
        }
        let position = ReplicaLayout { pipeline: 1, data: layout.data, replica: 0 };
        let table =
            pricing.at_context(exchange, 1).ok_or("there are no prices of degree 1")?.table(layout.tensor, &loads);
        // Memory independent of sequence length counts as model state, including gathered weights
        // for a layer.
        let states =
            table.static_memory(&single_stage_partition(&scenario.model), position)[0] + Bytes::from_f64(fixed);
        let memory = RankMemory { budget: scenario.memory_limit(), states, per_token: per_token.max(1.0) };
        selected.clear();
        let mut ways = Vec::new();
        for &degree in &profiled {
            for fill in FILLS {
                let capacity = (memory.tokens() as f64 * f64::from(degree) * fill) as u64;
                let sequences = packed(sizing, capacity);
                if sequences.len() > 1
                    && !selected.iter().zip(&ways).any(|known| known == (&sequences, &(exchange, degree)))
                {
                    selected.push(sequences);
                    ways.push((exchange, degree));
                }
            }
        }
        if !selected.is_empty() {
            let loads = crate::planners::dhp::group_costs::loads(scenario, sizing, &selected);
            let prices = GroupPrices::new(pricing, &scenario.model, layout, &loads, &ways)
                .ok_or("there are no prices of a degree")?;
            for (item, (sequences, way)) in selected.iter().zip(&ways).enumerate() {
                let sequence = |&index: &u32| packed_sequence(scenario, &sizing.sequences[index as usize]);
                let load = sequences.iter().map(sequence).map(Load::from_sequence).sum();
                samples.push(Measured { load, degree: way.1, seconds: prices.seconds(item) });
            }
        }
        let network = network(scenario, layout, exchange);
        let fit = fit(&samples, &network).map_err(|error| error.to_string())?;
        Ok(Self { fit, memory, samples, network })
    }

    /// Adds timings of groups that a plan uses, and fits again.
    pub(crate) fn refine(&mut self, groups: impl Iterator<Item = Measured>) {
        let before = self.samples.len();
        for group in groups.filter(|group| group.load.tokens > 0 && group.seconds > 0.0) {
            if self.samples.len() - before < MAX_ADDED && !self.samples.contains(&group) {
                self.samples.push(group);
            }
        }
        // The timings are valid, so a fit exists.
        if let Ok(fit) = fit(&self.samples, &self.network) {
            self.fit = fit;
        }
    }

    /// Formats the coefficients and the fit error.
    pub(crate) fn summary(&self, exchange: ContextExchange) -> String {
        let exchange = match exchange {
            ContextExchange::Ring => "ring",
            ContextExchange::AllToAll => "all-to-all",
        };
        let GroupCost { a1, a2, a3, b1, b2, .. } = self.fit.cost;
        format!(
            "Cost model of the {exchange} exchange (DHP Eq. 8 to 10): mean error {:.1} % on {} timings of the operator graph, nine in ten within {:.1} %. Attention \
             takes {:.2} ns per token², other computation {:.1} µs per token and {:.1} ms per group, the exchange {:.0} kB per token and {:.1} ms per group. A token \
             has {:.1} MiB of activations.",
            self.fit.mean * 100.0,
            self.fit.residuals.len(),
            self.fit.p90 * 100.0,
            a1 * 1e9,
            a2 * 1e6,
            b1 * 1e3,
            a3 / 1e3,
            b2 * 1e3,
            self.memory.per_token / f64::from(1_u32 << 20)
        )
    }
}

/// Converts a sequence for the group solver. An empty sample counts as a single token, so that the solver assigns it
/// like any other.
pub(crate) fn packed_sequence(scenario: &Scenario, packed: &PackedSequence) -> Sequence {
    let load = MicrobatchLoad::new(std::slice::from_ref(packed), &scenario.model, scenario.workload.packing);
    Sequence { tokens: packed.computed_tokens.max(1).into(), eta: mask_factor(&scenario.model, &load) }
}

/// Returns the mask factor η of a load: the attention work under full masks (vision and audio tokens in their encoders)
/// relative to that under the causal mask of the backbone, at most 1. It is 1 for a backbone with full attention.
fn mask_factor(model: &Model, load: &MicrobatchLoad) -> f64 {
    let Some(index) = model.modules.iter().position(|module| module.role == ModuleRole::Backbone) else { return 1.0 };
    if model.modules[index].mask != Mask::Causal {
        return 1.0;
    }
    let work = |(module, load): (&Module, &ModuleLoad)| module.attention_flops(load.tokens, load.squared).get();
    let works: Vec<f64> = model.modules.iter().zip(&load.modules).map(work).collect();
    let all: f64 = works.iter().sum();
    // The operations of a causal mask include its masked half.
    let causal = works[index] / 2.0;
    if causal > 0.0 { ((all - works[index]) / causal).clamp(0.0, 1.0) } else { 0.0 }
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

/// Selects sequences of all lengths with about `capacity` tokens: every k-th in ascending order.
fn packed(batch: &PackedBatch, capacity: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..batch.sequences.len() as u32).collect();
    let tokens = |index: u32| u64::from(batch.sequences[index as usize].computed_tokens);
    order.retain(|&index| tokens(index) > 0);
    order.sort_by_key(|&index| tokens(index));
    let total: u64 = order.iter().map(|&index| tokens(index)).sum();
    let step = total.div_ceil(capacity.max(1)).max(1) as usize;
    let mut free = capacity;
    let fits = |index: &u32| {
        let fits = tokens(*index) <= free;
        free -= if fits { tokens(*index) } else { 0 };
        fits
    };
    order.iter().copied().skip(step / 2).step_by(step).filter(fits).collect()
}

/// Selects at most `count` evenly spaced elements, including both ends.
fn every(list: &[u32], count: usize) -> impl Iterator<Item = u32> + '_ {
    let count = count.min(list.len());
    let last = list.len().saturating_sub(1);
    (0..count).map(move |index| list[index * last / count.saturating_sub(1).max(1)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use planscope_core::model::presets;

    /// Text has the causal mask. An image adds its attention in the encoder: with length l there, and s in the backbone,
    /// 2 L_e h_e l² / (L_b h_b s²). The factor decreases with the text beside the image, and is at most 1.
    #[test]
    fn images_raise_the_mask_factor() {
        let model = presets::model("internvl3-2b").unwrap();
        let length = f64::from(model.modules[0].tokens_per_item());
        let factor = |text: f64, images: f64| {
            let vision = model.modules[0].attention_flops(images * length, images * length * length).get();
            let tokens = text + images * length / 4.0;
            let load = MicrobatchLoad {
                modules: vec![
                    ModuleLoad::unpadded(images * length, images * length * length),
                    ModuleLoad::unpadded(tokens, tokens * tokens),
                ],
                shape: planscope_core::timeline::MicrobatchShape::default(),
            };
            (mask_factor(&model, &load), 2.0 * vision / model.modules[1].attention_flops(tokens, tokens * tokens).get())
        };
        assert!(factor(4000.0, 0.0).0 < 1e-12);
        let (found, expected) = factor(4000.0, 8.0);
        assert!((found / expected - 1.0).abs() < 1e-12 && found > 0.0 && found < 1.0, "{found} {expected}");
        assert!(factor(16_000.0, 8.0).0 < found);
        assert!((factor(10.0, 1.0).0 - 1.0).abs() < 1e-12);
    }
}
