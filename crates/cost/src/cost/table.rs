//! Layer costs per microbatch, and pipelines built from them.

mod disaggregated;
mod exchange;
mod optimizer_step;
mod pieces;
mod sharding;
mod stage;
mod weights;

pub use disaggregated::Disaggregated;
pub(super) use pieces::{ByLoad, Pieces};

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use exchange::Exchange;
use stage::{Routes, neighbours};

use super::collective::point_to_point;
use super::layer::LayerCost;
use super::load::MicrobatchLoad;
use super::memory::{StateBytes, shards_masters_alone};
use super::operator::Rates;
use super::partition::{LayerRange, ModuleWeight, Partition};
use super::pipeline::{NO_GAIN_PPM, PipelineCosts, StateMemory};
use super::pricing::Pricing;
use super::strategy::StrategyMix;
use planscope_core::cluster::Cluster;
use planscope_core::model::{Model, Module, ParameterCount};
use planscope_core::stage_graph::Flows;
use planscope_core::training::Training;
use planscope_core::units::{Bytes, Nanos, Seconds};

/// Layer costs per module, microbatch and tensor-parallel degree, independent of the pipeline
/// partition.
#[derive(Debug, Clone)]
pub struct LayerTable<'a> {
    model: &'a Model,
    cluster: &'a Cluster,
    training: &'a Training,
    tensor: u32,
    loads: &'a [MicrobatchLoad],
    /// Component costs by module.
    pieces: Vec<Pieces>,
    /// Mean component times per module: for balancing with recomputation, and without.
    mean_weights: [OnceLock<Vec<ModuleWeight>>; 2],
    /// Layer costs per strategy, by module. Empty unless stages mix strategies.
    strategies: Vec<ByLoad<[LayerCost; 4]>>,
    /// Microbatches with distinct loads.
    representatives: OnceLock<Vec<(usize, u32)>>,
    /// Number of devices with the same parameters, if different from DP x CP.
    all_replicas: Option<u32>,
    /// First device of the replicas.
    first_device: u32,
    /// Number of microbatches in all replicas.
    microbatches: usize,
    /// Number of microbatches of the replica, if the loads are those of one replica.
    in_replica: Option<usize>,
}

/// Parallel degrees and replica index of a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicaLayout {
    /// Number of pipeline ranks.
    pub pipeline: u32,
    /// Number of replicas.
    pub data: u32,
    /// Replica index.
    pub replica: u32,
}

/// Parameters per device. Dense and expert parameters have different replica counts.
#[derive(Debug, Clone, Copy, Default)]
struct Parameters {
    dense: f64,
    expert: f64,
    /// Frozen parameters, which have only weights. Quantized weights count by their share of the
    /// training precision.
    frozen: f64,
    /// Frozen expert parameters, which have only weights, replicated like experts.
    frozen_expert: f64,
    /// What fp8 weights save in a gather: dense and expert, in weights of the training precision.
    saved: [f64; 2],
    /// The same for frozen parameters.
    saved_frozen: [f64; 2],
}

fn sum(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    [a[0] + b[0], a[1] + b[1]]
}

impl Parameters {
    fn and(self, other: Self) -> Self {
        Self {
            dense: self.dense + other.dense,
            expert: self.expert + other.expert,
            frozen: self.frozen + other.frozen,
            frozen_expert: self.frozen_expert + other.frozen_expert,
            saved: sum(self.saved, other.saved),
            saved_frozen: sum(self.saved_frozen, other.saved_frozen),
        }
    }

    fn trained(self) -> f64 {
        self.dense + self.expert
    }

    /// Gathered weights of trained dense and expert parameters, in weights of the training precision.
    fn trained_weights(self) -> [f64; 2] {
        [self.dense - self.saved[0], self.expert - self.saved[1]]
    }

    /// All gathered weights: dense and expert.
    fn weights(self) -> [f64; 2] {
        let [dense, expert] = self.trained_weights();
        [dense + self.frozen - self.saved_frozen[0], expert + self.frozen_expert - self.saved_frozen[1]]
    }

    /// Parameters whose fp8 weights have a second copy, or that are stored as master weights: nothing is saved.
    fn without_saving(self, trained: bool, frozen: bool) -> Self {
        Self {
            saved: if trained { [0.0; 2] } else { self.saved },
            saved_frozen: if frozen { [0.0; 2] } else { self.saved_frozen },
            ..self
        }
    }
}

impl<'a> LayerTable<'a> {
    /// Computes a table with a private cache.
    pub fn new(
        model: &'a Model,
        cluster: &'a Cluster,
        training: &'a Training,
        tensor: u32,
        loads: &'a [MicrobatchLoad],
    ) -> Self {
        Pricing::new(model, cluster, training).table(tensor, loads)
    }

    /// Creates a table from component costs per module and load.
    pub(super) fn from_components(
        model: &'a Model,
        cluster: &'a Cluster,
        training: &'a Training,
        tensor: u32,
        loads: &'a [MicrobatchLoad],
        pieces: Vec<Pieces>,
    ) -> Self {
        let (strategies, all_replicas, first_device) = (Vec::new(), None, 0);
        let (mean_weights, representatives) = Default::default();
        Self {
            model,
            cluster,
            training,
            tensor,
            loads,
            pieces,
            mean_weights,
            strategies,
            representatives,
            all_replicas,
            first_device,
            microbatches: loads.len(),
            in_replica: None,
        }
    }

    /// Sets the number of microbatches in all replicas, for a table of one microbatch that is repeated.
    #[must_use]
    pub fn repeated(self, microbatches: usize) -> Self {
        Self { microbatches, ..self }
    }

    /// States that the loads are those of one replica, which has `microbatches` microbatches. Microbatches can have
    /// several loads.
    #[must_use]
    pub fn of_replica(self, microbatches: usize) -> Self {
        Self { in_replica: Some(microbatches), ..self }
    }

    /// Sets the number of devices with equal parameters. Use it for variable context-parallel
    /// degrees, because this number is then independent of the degree.
    pub(super) fn shared_by(self, replicas: u32) -> Self {
        Self { all_replicas: Some(replicas), ..self }
    }

    /// Places the replicas on the devices starting at `first_device`.
    #[must_use]
    pub fn from_device(self, first_device: u32) -> Self {
        Self { first_device, ..self }
    }

    /// Adds layer costs per strategy.
    pub(super) fn with_strategies(self, strategies: Vec<ByLoad<[LayerCost; 4]>>) -> Self {
        Self { strategies, ..self }
    }

    /// Returns one microbatch of each distinct load and the number of microbatches with this load.
    pub fn representatives(&self) -> &[(usize, u32)] {
        self.representatives.get_or_init(|| {
            let mut found: BTreeMap<Vec<u32>, (usize, u32)> = BTreeMap::new();
            let mut key = Vec::with_capacity(self.pieces.len());
            for microbatch in 0..self.loads.len() {
                key.clear();
                key.extend(self.pieces.iter().map(|pieces| pieces.position(microbatch)));
                match found.get_mut(&key) {
                    Some((_, count)) => *count += 1,
                    None => drop(found.insert(key.clone(), (microbatch, 1))),
                }
            }
            let mut representatives: Vec<(usize, u32)> = found.into_values().collect();
            representatives.sort_unstable();
            representatives
        })
    }

    /// Number of microbatches in all replicas.
    pub fn microbatches(&self) -> usize {
        self.microbatches
    }

    /// Returns the model state memory per rank.
    pub fn static_memory(&self, partition: &Partition, replica_layout: ReplicaLayout) -> Vec<Bytes> {
        self.state_memory(partition, replica_layout).into_iter().map(StateMemory::total).collect()
    }

    /// Returns weights, gradients and optimizer state per rank.
    pub fn state_memory(&self, partition: &Partition, replica_layout: ReplicaLayout) -> Vec<StateMemory> {
        let training = self.accumulating(replica_layout);
        let [dense, expert] = self.sharding(replica_layout).map(|sharding| StateBytes::new(&training, sharding.shards));
        let state = |parameters: Parameters| {
            let sum = |component: fn(StateBytes) -> f64| {
                Bytes::from_f64(parameters.dense * component(dense) + parameters.expert * component(expert))
            };
            let is_double = !self.training.has_single_fp8_copy(&self.cluster.device);
            let stored = parameters.without_saving(is_double || shards_masters_alone(self.training), is_double);
            let [dense_weights, expert_weights] = stored.weights();
            let weights = dense_weights * dense.weights + expert_weights * expert.weights;
            StateMemory {
                weights: Bytes::from_f64(weights),
                gradients: sum(|bytes| bytes.gradients),
                optimizer: sum(|bytes| bytes.optimizer),
                host: sum(|bytes| bytes.host),
            }
        };
        self.rank_parameters(partition, replica_layout).into_iter().map(state).collect()
    }

    /// Returns the training settings, with unsharded gradients only if a replica has several microbatches.
    fn accumulating(&self, replica_layout: ReplicaLayout) -> Cow<'a, Training> {
        if !self.training.unsharded_gradients || self.accumulates(replica_layout) {
            return Cow::Borrowed(self.training);
        }
        Cow::Owned(Training { unsharded_gradients: false, ..self.training.clone() })
    }

    /// True if a replica has several microbatches.
    fn accumulates(&self, replica_layout: ReplicaLayout) -> bool {
        match self.in_replica {
            Some(microbatches) => microbatches > 1,
            None => self.microbatches > replica_layout.data as usize,
        }
    }

    /// Number of devices with the same parameters.
    fn replicas(&self, replica_layout: ReplicaLayout) -> u32 {
        self.all_replicas.unwrap_or_else(|| replica_layout.data.saturating_mul(self.training.context_parallel))
    }

    /// Parameters per device for all ranks. If the tied output head is on a different rank, it is a
    /// second copy, frozen or trained like the first.
    fn rank_parameters(&self, partition: &Partition, replica_layout: ReplicaLayout) -> Vec<Parameters> {
        let ranks = replica_layout.pipeline as usize;
        let parameters_on_rank = |rank: usize| {
            let mut parameters = self.ranges_parameters(partition.stages_on(rank, ranks).flatten());
            for (module, ..) in self.tied_ranks(partition, ranks).filter(|(_, _, last)| *last == rank) {
                let copy = self.embedding_parameters(module) as f64 / f64::from(self.tensor);
                let definition = &self.model.modules[module];
                let is_frozen = definition.frozen || definition.adapters.is_some();
                let destination = if is_frozen { &mut parameters.frozen } else { &mut parameters.dense };
                *destination += copy;
            }
            parameters
        };
        (0..ranks).map(parameters_on_rank).collect()
    }

    fn ranges_parameters<'b>(&self, ranges: impl IntoIterator<Item = &'b LayerRange>) -> Parameters {
        ranges.into_iter().map(|range| self.range_parameters(range)).fold(Parameters::default(), Parameters::and)
    }

    /// Parameters per device in a layer range, including adjacent input and output blocks.
    fn range_parameters(&self, range: &LayerRange) -> Parameters {
        let module = &self.model.modules[range.module];
        let input = if range.begins() { module.input_parameters() } else { 0 };
        let output = if range.ends(self.model) { module.output_parameters() } else { 0 };
        let ahead = if range.ends(self.model) { module.prediction_parameters() } else { ParameterCount::default() };
        let layers = module.range_parameters(range.first, range.end).and(ahead);
        let adapters = module.range_adapters(range.first, range.end);
        self.parameters_per_device(module, layers, adapters, (input, output))
    }

    /// Parameters per device in layers with `layers` parameters and `adapters` adapter parameters,
    /// plus the given input and output block parameters.
    fn parameters_per_device(
        &self,
        module: &Module,
        layers: ParameterCount,
        adapters: u64,
        (input, output): (u64, u64),
    ) -> Parameters {
        let dense = layers.dense + input + output;
        let tensor = f64::from(self.tensor);
        let expert_tensor = f64::from(self.training.expert_tensor(self.tensor));
        let experts = layers.expert as f64 / expert_tensor / f64::from(self.training.expert_parallel);
        // Embeddings and output head are not quantized.
        let share = self.training.layer_weight_bytes() / self.training.width();
        if let Some(settings) = module.adapters {
            let width = settings.base_bits.map_or(1.0, |bits| stored_bits(bits) / 8.0 / self.training.width());
            let saved = if settings.base_bits.is_none() { 1.0 - share } else { 0.0 };
            let ends = (input + output) as f64;
            return Parameters {
                dense: adapters as f64 / tensor,
                frozen: (layers.dense as f64 * width + ends) / tensor,
                frozen_expert: experts * width,
                saved_frozen: [layers.dense as f64 * saved / tensor, experts * saved],
                ..Parameters::default()
            };
        }
        if module.frozen {
            let trained = if module.has_projection() { output } else { 0 };
            return Parameters {
                dense: trained as f64 / tensor,
                frozen: (dense - trained) as f64 / tensor,
                frozen_expert: experts,
                saved_frozen: [layers.dense as f64 * (1.0 - share) / tensor, experts * (1.0 - share)],
                ..Parameters::default()
            };
        }
        Parameters {
            dense: dense as f64 / tensor,
            expert: experts,
            saved: [layers.dense as f64 * (1.0 - share) / tensor, experts * (1.0 - share)],
            ..Parameters::default()
        }
    }

    fn embedding_parameters(&self, module: usize) -> u64 {
        u64::from(self.model.modules[module].hidden) * u64::from(self.model.modules[module].vocab)
    }

    /// Modules with tied embeddings on different ranks: (module, embedding rank, head rank).
    fn tied_ranks<'b>(
        &'b self,
        partition: &'b Partition,
        ranks: usize,
    ) -> impl Iterator<Item = (usize, usize, usize)> + 'b {
        let rank_with = move |wanted: &dyn Fn(&LayerRange) -> bool| {
            let stage = partition.stages.iter().position(|ranges| ranges.iter().any(wanted))?;
            Some(partition.placement.rank_for_stage(stage, ranks))
        };
        let tied = self.model.modules.iter().enumerate().filter(|(_, module)| module.tied_embeddings);
        tied.filter_map(move |(index, _)| {
            let first = rank_with(&|range| range.module == index && range.begins())?;
            let last = rank_with(&|range| range.module == index && range.ends(self.model))?;
            (first != last).then_some((index, first, last))
        })
    }

    /// Returns exposed gradient synchronization and optimizer time per rank.
    ///
    /// `windows` contains the last backward and the first forward per rank. These limit how much
    /// reduction and gathering can overlap. Without windows the overlap is unlimited, which gives a
    /// lower bound.
    pub fn step_end(
        &self,
        partition: &Partition,
        replica_layout: ReplicaLayout,
        windows: Option<&[(Seconds, Seconds)]>,
    ) -> (Vec<Nanos>, Vec<Nanos>) {
        let [dense, expert] = self.sharding(replica_layout).map(|sharding| sharding.shards);
        let rates = Rates::new(&self.cluster.device);
        // Frozen parameters have no gradients to reduce.
        let trained = |(module, ..): &(usize, usize, usize)| {
            !self.model.modules[*module].frozen && self.model.modules[*module].adapters.is_none()
        };
        let tied: Vec<_> = self.tied_ranks(partition, replica_layout.pipeline as usize).filter(trained).collect();
        let mut sync = Vec::new();
        let mut optimizer = Vec::new();
        for (rank, parameters) in self.rank_parameters(partition, replica_layout).into_iter().enumerate() {
            let window = windows.map(|windows| windows[rank]);
            let exchange = Exchange {
                dense: parameters.dense,
                expert: parameters.expert,
                weights: parameters.trained_weights(),
                window,
            };
            let reduced = self.exchange(&exchange, (partition, rank), replica_layout);
            let concerned = tied.iter().filter(|(_, first, last)| *first == rank || *last == rank);
            let shared: Seconds = concerned.map(|&shared| self.tied_embedding_sync(shared, replica_layout)).sum();
            sync.push((reduced + shared).to_nanos());
            let shares = [(parameters.dense, dense), (parameters.expert, expert)];
            let updated = optimizer_step::Parameters::sharded(self.training, shares);
            optimizer.push(self.optimizer_time(&rates, updated));
        }
        (sync, optimizer)
    }

    /// Returns the time of the optimizer step of a device.
    fn optimizer_time(&self, rates: &Rates, parameters: optimizer_step::Parameters) -> Nanos {
        optimizer_step::time(self.training, self.cluster, self.widest(), rates, parameters).to_nanos()
    }

    /// Largest hidden size of a module.
    fn widest(&self) -> f64 {
        self.model.modules.iter().map(|module| f64::from(module.hidden)).fold(1.0, f64::max)
    }

    /// Time to reduce a tied matrix gradient between embedding rank and head rank.
    fn tied_embedding_sync(
        &self,
        (module, first, last): (usize, usize, usize),
        replica_layout: ReplicaLayout,
    ) -> Seconds {
        let device = |rank: usize| self.first_device + rank as u32 * self.devices_per_rank(replica_layout);
        let bytes = self.training.gradients.bytes() * self.embedding_parameters(module) as f64 / f64::from(self.tensor);
        point_to_point(self.cluster, device(first), device(last), bytes) * 2.0
    }

    /// Devices per pipeline rank in all replicas.
    fn devices_per_rank(&self, replica_layout: ReplicaLayout) -> u32 {
        self.tensor.saturating_mul(self.training.context_parallel).saturating_mul(replica_layout.data)
    }

    /// Returns the costs of a replica that runs the microbatches `assigned` through all stages.
    pub fn pipeline(&self, partition: &Partition, replica_layout: ReplicaLayout, assigned: &[usize]) -> PipelineCosts {
        let stages = partition.stages.len();
        let (ranks, count) = (replica_layout.pipeline as usize, assigned.len());
        let flows = Flows::placed(ranks, stages, count, partition.placement);
        self.pipeline_over(partition, replica_layout, flows, assigned, &[])
    }

    /// Returns the costs of a replica. The (sub-)microbatch `i` has the load `assigned[i]`. `mixes`
    /// contains layer strategies per cell; if it is empty, all layers follow the training settings.
    pub fn pipeline_over(
        &self,
        partition: &Partition,
        replica_layout: ReplicaLayout,
        flows: Flows,
        assigned: &[usize],
        mixes: &[StrategyMix],
    ) -> PipelineCosts {
        let cells = flows.cells();
        let state = self.state_memory(partition, replica_layout);
        let column = || Vec::with_capacity(cells);
        let mut costs = PipelineCosts {
            forward: column(),
            input_grad: column(),
            weight_grad: column(),
            send_forward: column(),
            send_backward: column(),
            activation: Vec::with_capacity(cells),
            offloaded: Vec::with_capacity(cells),
            transient: Vec::with_capacity(cells),
            exposed_forward: column(),
            exposed_backward: column(),
            recomputed: column(),
            communication: column(),
            static_memory: state.iter().map(|state| state.total()).collect(),
            state,
            sync: Vec::new(),
            optimizer: Vec::new(),
            shapes: assigned.iter().map(|&index| self.loads[index].shape).collect(),
            overlapped_ppm: NO_GAIN_PPM,
            flows,
        };
        let stage_traffic: Vec<_> = partition
            .stages
            .iter()
            .map(|ranges| (self.sharded_traffic(ranges, replica_layout), self.gathered_bytes(ranges, replica_layout)))
            .collect();
        // Per stage: forward of the first microbatch, backward of the last.
        let mut ends = vec![[None::<Seconds>; 2]; partition.stages.len()];
        let (mut routes, host) = (Routes::new(partition.stages.len()), self.host_microbatch());
        for (microbatch, &index) in assigned.iter().enumerate() {
            for stage in costs.flows.microbatch_stages(microbatch) {
                let (traffic, gathered) = stage_traffic[stage];
                let ranges = &partition.stages[stage];
                let cell = costs.flows.cell(stage, microbatch);
                let cost = match mixes.get(cell) {
                    Some(&mix) => self.mixed_stage_cost(ranges, index, mix),
                    None => self.stage_cost(ranges, index),
                };
                let cost = self.as_run(cost, traffic, host);
                ends[stage][0].get_or_insert(cost.forward);
                ends[stage][1] = Some(cost.input_grad + cost.weight_grad);
                let [next, previous] = neighbours(&costs.flows, stage, microbatch);
                let forward = next.map(|to| {
                    let route = routes.to(stage, false, to, || self.route(partition, to, replica_layout, [stage, to]));
                    self.send(route, index)
                });
                let wanted = previous.filter(|_| self.sends_input_gradient(ranges));
                let backward = wanted.map(|to| {
                    let route =
                        routes.to(stage, true, to, || self.route(partition, stage, replica_layout, [stage, to]));
                    self.send(route, index)
                });
                let mut sends = [forward.unwrap_or(Nanos::ZERO), backward.unwrap_or(Nanos::ZERO)];
                // Blocking sends occupy the rank.
                let waits = if self.training.overlapped_sends { [Nanos::ZERO; 2] } else { std::mem::take(&mut sends) };
                costs.forward.push(cost.forward.to_nanos() + waits[0]);
                costs.input_grad.push(cost.input_grad.to_nanos() + waits[1]);
                costs.weight_grad.push(cost.weight_grad.to_nanos());
                costs.exposed_forward.push(cost.exposed_forward.to_nanos() + waits[0]);
                costs.exposed_backward.push(cost.exposed_backward.to_nanos() + waits[1]);
                costs.send_forward.push(sends[0]);
                costs.send_backward.push(sends[1]);
                costs.recomputed.push(cost.recomputed.to_nanos());
                costs.communication.push(cost.communication.to_nanos());
                costs.activation.push(Bytes::from_f64(cost.activation));
                costs.offloaded.push(Bytes::from_f64(cost.offloaded));
                costs.transient.push(Bytes::from_f64(cost.transient + gathered));
            }
        }
        let mut windows = vec![(Seconds::ZERO, Seconds::ZERO); costs.ranks()];
        for (stage, [forward, backward]) in ends.into_iter().enumerate() {
            let window = &mut windows[costs.rank_for_stage(stage)];
            window.1 += forward.unwrap_or(Seconds::ZERO);
            window.0 += backward.unwrap_or(Seconds::ZERO);
        }
        (costs.sync, costs.optimizer) = self.step_end(partition, replica_layout, Some(&windows));
        costs
    }
}

/// Bits per weight of quantized base weights. With 4 bits, blocks of weights have scales that are quantized too: 0.127 bits
/// per weight (Dettmers et al. 2023, Sec. 3).
fn stored_bits(bits: u32) -> f64 {
    f64::from(bits) + if bits == 4 { 0.127 } else { 0.0 }
}

#[cfg(test)]
mod tests;
