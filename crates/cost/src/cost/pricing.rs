//! Cache of layer costs, shared by the planners, layouts, batches and settings of a scenario.

mod store;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use store::{Known, PriceStore};

use super::layer::{LayerCost, LayerModel, mean_layer};
use super::load::{LoadKey, MicrobatchLoad, ModuleLoad};
use super::partition::OutputPart;
use super::strategy::LayerStrategy;
use super::table::{ByLoad, LayerTable, Pieces};
use planscope_core::cluster::Cluster;
use planscope_core::model::{LayerKind, Model, Module};
use planscope_core::training::{ContextExchange, Recompute, Training};

/// Maximum cached loads per module and degree. When the cache reaches this limit, it is cleared.
const MAX_REMEMBERED: usize = 65_536;

/// Cost of a layer with the recomputation settings of the scenario and without recomputation.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LayerCosts {
    /// With the settings of the scenario.
    pub layer: LayerCost,
    /// Without recomputation. Zero unless stages recompute only some layers.
    pub without_recompute: LayerCost,
}

/// Costs of a module's components for a load.
#[derive(Debug, Clone, Default)]
pub(super) struct ComponentCosts {
    /// Mean over the layers.
    pub mean: LayerCosts,
    /// Costs per kind of layer. `None` if all layers are equal.
    pub kinds: Option<Arc<[(LayerKind, LayerCosts)]>>,
    /// Cost of the input block.
    pub input: LayerCost,
    /// Cost of the output block.
    pub output: LayerCost,
    /// Cost of the loss, which is part of the output block.
    pub loss: LayerCost,
}

impl ComponentCosts {
    fn new(
        costs: &LayerModel<'_>,
        (module, kinds): (&Module, &[LayerKind]),
        load: ModuleLoad,
        some_layers: bool,
    ) -> Self {
        let layer_costs = |kind: LayerKind| LayerCosts {
            layer: costs.kind_layer(kind, load),
            without_recompute: if some_layers {
                costs.kind_without_recomputation(kind, load)
            } else {
                LayerCost::default()
            },
        };
        let all: Vec<_> = kinds.iter().map(|&kind| (kind, layer_costs(kind))).collect();
        Self {
            mean: mean(module, &all),
            kinds: (kinds.len() > 1).then(|| all.into()),
            input: costs.input(load),
            output: costs.output(load),
            loss: costs.loss(load),
        }
    }

    /// Moves a share of the activations to the host, at `host` bytes per second.
    fn offload(self, module: &Module, share: f64, host: f64) -> Self {
        if share <= 0.0 {
            return self;
        }
        let offload = |cost: LayerCost| cost.offload(share, host);
        let offload_both = |costs: LayerCosts| LayerCosts {
            layer: offload(costs.layer),
            without_recompute: offload(costs.without_recompute),
        };
        let kinds: Option<Vec<(LayerKind, LayerCosts)>> =
            self.kinds.map(|kinds| kinds.iter().map(|&(kind, costs)| (kind, offload_both(costs))).collect());
        Self {
            mean: kinds.as_ref().map_or_else(|| offload_both(self.mean), |kinds| mean(module, kinds)),
            kinds: kinds.map(Into::into),
            input: offload(self.input),
            output: offload(self.output),
            loss: offload(self.loss),
        }
    }

    /// Returns the cost of a part of the output block.
    pub(super) fn output_part(&self, part: OutputPart) -> LayerCost {
        match part {
            OutputPart::Whole => self.output,
            OutputPart::Head => self.output.without(self.loss),
            OutputPart::Loss => self.loss,
            OutputPart::Nothing => LayerCost::default(),
        }
    }

    /// Returns the cost of consecutive layers of `module` in sequence.
    pub(super) fn layers(&self, module: &Module, layers: Range<u32>, cost: fn(&LayerCosts) -> LayerCost) -> LayerCost {
        let Some(kinds) = &self.kinds else { return cost(&self.mean).times(layers.end - layers.start) };
        let count = |kind: LayerKind| layers.clone().filter(|&layer| module.layer_kind(layer) == kind).count() as u32;
        let all = kinds.iter().map(|(kind, costs)| cost(costs).times(count(*kind)));
        all.fold(LayerCost::default(), LayerCost::then)
    }
}

/// Returns the mean costs over all layers of a module.
fn mean(module: &Module, kinds: &[(LayerKind, LayerCosts)]) -> LayerCosts {
    let names: Vec<LayerKind> = kinds.iter().map(|(kind, _)| *kind).collect();
    let mean_of = |cost: fn(&LayerCosts) -> LayerCost| {
        mean_layer(module, &names, &kinds.iter().map(|(_, costs)| cost(costs)).collect::<Vec<_>>())
    };
    LayerCosts { layer: mean_of(|costs| costs.layer), without_recompute: mean_of(|costs| costs.without_recompute) }
}

type Prices = BTreeMap<LoadKey, ComponentCosts>;
/// Layer costs per strategy.
type LayerPrices = BTreeMap<LoadKey, [LayerCost; 4]>;

/// Training settings for all context-parallel degrees and exchanges.
#[derive(Debug, Clone)]
pub struct ContextSettings {
    settings: Vec<Training>,
}

impl ContextSettings {
    /// Creates settings for both exchanges and degrees 1 to `largest`.
    pub fn up_to(training: &Training, max_degree: u32) -> Self {
        let exchange_settings = |exchange| {
            (1..=max_degree).map(move |degree| Training {
                context_parallel: degree,
                context_exchange: exchange,
                ..training.clone()
            })
        };
        Self {
            settings: exchange_settings(ContextExchange::Ring)
                .chain(exchange_settings(ContextExchange::AllToAll))
                .collect(),
        }
    }
}

/// Training settings for other context- and expert-parallel degrees, for modules with separate
/// degrees.
#[derive(Debug, Clone, Default)]
pub struct DegreeSettings {
    settings: Vec<Training>,
}

impl DegreeSettings {
    /// Creates settings for all pairs of the given degrees, except the scenario's pair.
    pub fn new(training: &Training, contexts: &[u32], experts: &[u32]) -> Self {
        let pairs = contexts.iter().flat_map(|&context| experts.iter().map(move |&expert| (context, expert)));
        let other = |degrees: &(u32, u32)| *degrees != (training.context_parallel, training.expert_parallel);
        let degree_setting =
            |(context_parallel, expert_parallel)| Training { context_parallel, expert_parallel, ..training.clone() };
        Self { settings: pairs.filter(other).map(degree_setting).collect() }
    }
}

/// Placement of context-parallel groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContextGroups {
    /// In consecutive blocks.
    Tiled,
    /// On the minimum number of nodes.
    Compact,
}

/// Cached costs for one model, cluster and training configuration. The results are independent of
/// earlier requests and threads.
#[derive(Debug)]
pub struct Pricing<'a> {
    model: &'a Model,
    cluster: &'a Cluster,
    training: &'a Training,
    /// Without offload of activations, which is added to cached costs.
    resident: Training,
    /// Shared by settings with equal layer costs.
    known: Arc<Known>,
    store: Arc<PriceStore>,
    /// Settings with a uniform strategy. `layers` caches the resulting layer costs.
    strategies: [Training; 4],
    layers: Mutex<BTreeMap<(u32, usize), LayerPrices>>,
    /// Costs for other context-parallel settings, in the order of [`ContextSettings`].
    contexts: Vec<Self>,
    /// Costs for other degrees, in the order of [`DegreeSettings`].
    degrees: Vec<Self>,
    groups: ContextGroups,
}

impl<'a> Pricing<'a> {
    /// Creates an empty cache.
    pub fn new(model: &'a Model, cluster: &'a Cluster, training: &'a Training) -> Self {
        Self::with_store(model, cluster, training, Arc::default())
    }

    /// Creates a cache for other training settings of the same model and cluster. Settings with equal layer costs share
    /// them.
    #[must_use]
    pub fn for_training<'b>(&self, training: &'b Training) -> Pricing<'b>
    where
        'a: 'b,
    {
        Pricing::with_store(self.model, self.cluster, training, Arc::clone(&self.store))
    }

    fn with_store(model: &'a Model, cluster: &'a Cluster, training: &'a Training, store: Arc<PriceStore>) -> Self {
        let strategies = LayerStrategy::ALL.map(|strategy| strategy.training(training));
        let (known, layers) = (store.known(training), Mutex::default());
        let (contexts, degrees, groups) = (Vec::new(), Vec::new(), ContextGroups::Tiled);
        let resident = Training { activation_offload: 0.0, ..training.clone() };
        Self { model, cluster, training, resident, known, store, strategies, layers, contexts, degrees, groups }
    }

    /// Adds costs for other context-parallel settings.
    #[must_use]
    pub fn with_contexts(self, contexts: &'a ContextSettings) -> Self {
        // Compact groups have other costs than tiled ones, so they have a store of their own.
        let context_pricing = |training: &'a Training| Self {
            groups: ContextGroups::Compact,
            ..Self::new(self.model, self.cluster, training)
        };
        Self { contexts: contexts.settings.iter().map(context_pricing).collect(), ..self }
    }

    /// Adds costs for other degrees.
    #[must_use]
    pub fn with_degrees(self, degrees: &'a DegreeSettings) -> Self {
        let degree_pricing = |training: &'a Training| self.for_training(training);
        Self { degrees: degrees.settings.iter().map(degree_pricing).collect(), ..self }
    }

    /// Returns the costs for the given degrees, or `None` if there are no such settings.
    pub fn at_degrees(&self, context: u32, expert: u32) -> Option<&Self> {
        let has =
            |pricing: &Self| (pricing.training.context_parallel, pricing.training.expert_parallel) == (context, expert);
        if has(self) { Some(self) } else { self.degrees.iter().find(|pricing| has(pricing)) }
    }

    /// Returns the costs for sequences split across `degree` devices, or `None` if there are no
    /// such settings.
    pub fn at_context(&self, exchange: ContextExchange, degree: u32) -> Option<&Self> {
        let each = self.contexts.len() / 2;
        let offset = (degree as usize).checked_sub(1).filter(|index| *index < each)?;
        let first = if exchange == ContextExchange::Ring { 0 } else { each };
        Some(&self.contexts[first + offset])
    }

    /// Returns the cost table for `loads`.
    pub fn table<'b>(&self, tensor: u32, loads: &'b [MicrobatchLoad]) -> LayerTable<'b>
    where
        'a: 'b,
    {
        let pieces = (0..self.model.modules.len()).map(|module| self.pieces(tensor, module, loads)).collect();
        let table = LayerTable::from_components(self.model, self.cluster, self.training, tensor, loads, pieces);
        match self.groups {
            ContextGroups::Tiled => table,
            ContextGroups::Compact => table.shared_by(self.cluster.devices() / tensor.max(1)),
        }
    }

    /// Returns the cost table for `loads` under a tensor- and a context-parallel degree with ring
    /// exchange. `replicas` is the number of devices with equal parameters. Returns `None` if there
    /// are no such settings.
    pub fn table_shared_by<'b>(
        &self,
        tensor: u32,
        context: u32,
        replicas: u32,
        loads: &'b [MicrobatchLoad],
    ) -> Option<LayerTable<'b>>
    where
        'a: 'b,
    {
        let pricing = if context == 1 { self } else { self.at_context(ContextExchange::Ring, context)? };
        Some(pricing.table(tensor, loads).shared_by(replicas))
    }

    /// Like [`Self::table`], but with layer costs for all strategies, for stages with mixed
    /// strategies.
    pub fn tunable_table<'b>(&self, tensor: u32, loads: &'b [MicrobatchLoad]) -> LayerTable<'b>
    where
        'a: 'b,
    {
        let layers = (0..self.model.modules.len()).map(|module| self.strategy_layers(tensor, module, loads)).collect();
        self.table(tensor, loads).with_strategies(layers)
    }

    fn layer_model<'b>(&'b self, module: usize, training: &'b Training, tensor: u32) -> LayerModel<'b> {
        let model = LayerModel::new(&self.model.modules[module], self.cluster, training, tensor)
            .with_gradients(self.model.module_gradients(module));
        match self.groups {
            ContextGroups::Tiled => model,
            ContextGroups::Compact => model.in_groups(self.cluster, tensor),
        }
    }

    /// Returns a module's layer costs per load and strategy.
    fn strategy_layers(&self, tensor: u32, module: usize, loads: &[MicrobatchLoad]) -> ByLoad<[LayerCost; 4]> {
        let mut known = self.layers.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.entry((tensor, module)).or_default();
        if known.len() > MAX_REMEMBERED {
            known.clear();
        }
        let models: Vec<LayerModel<'_>> =
            self.strategies.iter().map(|training| self.layer_model(module, training, tensor)).collect();
        let price = |load: ModuleLoad| std::array::from_fn(|strategy| models[strategy].layer(load));
        let layer_costs = |load: ModuleLoad| *known.entry(load.key()).or_insert_with(|| price(load));
        ByLoad::new(loads.iter().map(|load| load.modules[module]), layer_costs)
    }

    /// Returns the component costs of a module per load.
    fn pieces(&self, tensor: u32, module: usize, loads: &[MicrobatchLoad]) -> Pieces {
        let known = self.known.prices(tensor, module);
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() > MAX_REMEMBERED {
            known.clear();
        }
        let some_layers = self.training.recompute == Recompute::Full && self.training.recompute_layers.is_some();
        let of_module = &self.model.modules[module];
        let kinds = of_module.layer_kinds();
        let (share, host) = (self.training.activation_offload, self.cluster.host_rate().get());
        let mut model = None;
        let mut price = |load: ModuleLoad| {
            let costs = model.get_or_insert_with(|| self.layer_model(module, &self.resident, tensor));
            ComponentCosts::new(costs, (of_module, &kinds), load, some_layers)
        };
        let component_costs = |load: ModuleLoad| {
            known.entry(load.key()).or_insert_with(|| price(load)).clone().offload(of_module, share, host)
        };
        ByLoad::new(loads.iter().map(|load| load.modules[module]), component_costs).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Partition;
    use crate::cost::partition::LayerRange;
    use crate::cost::table::ReplicaLayout;
    use planscope_core::cluster::presets::cluster;
    use planscope_core::model::presets::model;
    use planscope_core::stage_graph::Placement;
    use planscope_core::units::{Bytes, Nanos};
    use planscope_core::workload::{Packing, Sequence};

    fn loads(model: &Model, sizes: &[(u32, u32)]) -> Vec<MicrobatchLoad> {
        let load = |&(tokens, images): &(u32, u32)| {
            let squared = u64::from(tokens) * u64::from(tokens);
            let sequence = Sequence {
                samples: 1,
                tokens,
                computed_tokens: tokens,
                squared,
                useful_squared: squared,
                images,
                ..Sequence::default()
            };
            MicrobatchLoad::new(&[sequence], model, Packing::Packed)
        };
        sizes.iter().map(load).collect()
    }

    /// A frozen encoder runs only the forward: a third of the operations, no activations, 2 of 18
    /// bytes per unsharded parameter, no incoming gradient. A frozen backbone still sends gradients
    /// to the encoder.
    #[test]
    fn frozen_modules_skip_unneeded_gradients() {
        let (cluster, base_model) = (cluster("h800").unwrap(), model("vlm-s").unwrap());
        let training = Training { zero: Some(0), ..Training::default() };
        let freeze = |frozen: usize| {
            let mut model = base_model.clone();
            model.modules[frozen].frozen = true;
            model
        };
        let evaluate = |model: &Model| {
            let loads = loads(model, &[(4096, 8)]);
            let pricing = Pricing::new(model, &cluster, &training);
            let table = pricing.table(4, &loads);
            let half = |module: usize, second: u32| {
                let layers = base_model.modules[module].layers;
                let middle = layers / 2;
                let (first, end) = if second == 0 { (0, middle) } else { (middle, layers) };
                vec![LayerRange::new(module, first, end)]
            };
            let stages = vec![half(0, 0), half(0, 1), half(1, 0), half(1, 1)];
            let partition = Partition { stages, placement: Placement::Cyclic };
            let costs = table.pipeline(&partition, ReplicaLayout { pipeline: 4, data: 1, replica: 0 }, &[0]);
            (costs, loads[0].model_flops(model).get())
        };
        let (trained, encoder, backbone) = (evaluate(&base_model), evaluate(&freeze(0)), evaluate(&freeze(1)));
        // Two encoder stages and two backbone stages.
        assert!(trained.0.backward(0) > Nanos::ZERO && trained.0.send_backward[1] > Nanos::ZERO);
        assert_eq!((encoder.0.backward(0), encoder.0.activation[0]), (Nanos::ZERO, Bytes::ZERO));
        assert_eq!((encoder.0.send_backward[1], encoder.0.forward[0]), (Nanos::ZERO, trained.0.forward[0]));
        assert_eq!((encoder.0.sync[0], encoder.0.optimizer[0]), (Nanos::ZERO, Nanos::ZERO));
        let ratio = encoder.0.static_memory[0].get() as f64 / trained.0.static_memory[0].get() as f64;
        assert!((ratio - 2.0 / 18.0).abs() < 1e-6, "{ratio}");
        assert_eq!(encoder.0.backward(3), trained.0.backward(3));
        assert_eq!((backbone.0.weight_grad[3], backbone.0.input_grad[0]), (Nanos::ZERO, trained.0.input_grad[0]));
        assert!(backbone.0.input_grad[3] > Nanos::ZERO && backbone.0.send_backward[3] > Nanos::ZERO);
        // Model operations are 3 E + 3 B, E + 3 B and 3 E + 2 B, where E and B are the forward
        // operations of encoder and backbone.
        let (encoder_forward, backbone_forward) = ((trained.1 - encoder.1) / 2.0, trained.1 - backbone.1);
        assert!((3.0 * (encoder_forward + backbone_forward) / trained.1 - 1.0).abs() < 1e-9);
    }

    /// Settings that share layer costs give the costs of a cache of their own, whichever comes first.
    #[test]
    fn shared_costs_equal_computed_costs() {
        let (model, cluster) = (model("vlm-s").unwrap(), cluster("h800").unwrap());
        let loads = loads(&model, &[(512, 0), (4096, 8)]);
        let base = Training { recompute: Recompute::Full, recompute_layers: Some(2), ..Training::default() };
        let unfused = Training { fused_weight_gradients: false, ..base.clone() };
        let settings = [base, unfused].into_iter().flat_map(|base| {
            [
                Training { zero: Some(0), ..base.clone() },
                Training { zero: Some(3), ..base.clone() },
                Training { optimizer_offload: 1.0, ..base.clone() },
                Training { activation_offload: 0.5, ..base.clone() },
                Training { activation_offload: 1.0, recompute: Recompute::None, ..base.clone() },
                Training { recompute_layers: None, ..base.clone() },
                Training { recompute_layers: Some(4), ..base },
            ]
        });
        let settings: Vec<Training> = settings.collect();
        let shared = Pricing::new(&model, &cluster, &settings[0]);
        let costs = |table: LayerTable<'_>| {
            let partition = Partition::balanced(&model, &table.weights(2), 2).unwrap();
            table.pipeline(&partition, ReplicaLayout { pipeline: 2, data: 2, replica: 0 }, &[0, 1])
        };
        let mut known = Vec::new();
        for training in &settings {
            let computed = costs(LayerTable::new(&model, &cluster, training, 4, &loads));
            assert_eq!(costs(shared.for_training(training).table(4, &loads)), computed, "{training:?}");
            known.push(computed);
        }
        assert!(known.windows(2).all(|pair| pair[0] != pair[1]), "each setting changes the costs");
    }

    #[test]
    fn cached_costs_equal_computed_costs() {
        let (model, cluster, training) = (model("vlm-s").unwrap(), cluster("h800").unwrap(), Training::default());
        let loads = loads(&model, &[(512, 0), (2048, 3), (512, 0), (4096, 8)]);
        let pricing = Pricing::new(&model, &cluster, &training);
        let costs = |table: LayerTable<'_>| {
            let partition = Partition::balanced(&model, &table.weights(2), 2).unwrap();
            table.pipeline(&partition, ReplicaLayout { pipeline: 2, data: 1, replica: 0 }, &[0, 1, 2, 3])
        };
        let first = costs(pricing.table(4, &loads));
        assert_eq!(costs(pricing.table(4, &loads)), first);
        assert_eq!(costs(LayerTable::new(&model, &cluster, &training, 4, &loads)), first);
        assert_ne!(costs(pricing.table(2, &loads)), first, "degrees are remembered apart");
    }
}
