//! Costs of one replica's pipeline: what the simulator and the schedule builders read.

use super::collective::{Group, point_to_point};
use super::layer::{LayerCost, LayerModel};
use super::load::MicrobatchLoad;
use super::memory;
use super::operator::{BF16, memory_bound};
use super::partition::{LayerRange, ModuleWeight, Partition};
use crate::cluster::Cluster;
use crate::model::Model;
use crate::timeline::MicrobatchShape;
use crate::training::Training;
use crate::units::{Bytes, Nanos, Seconds};

/// Costs of every microbatch on every stage of one pipeline, in columns: entry `stage * microbatches + microbatch`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PipelineCosts {
    /// Pipeline ranks, p.
    pub ranks: usize,
    /// Stages, p x v; stage `s` stands on rank `s mod p`.
    pub stages: usize,
    /// Microbatches, m.
    pub microbatches: usize,
    /// Forward.
    pub forward: Vec<Nanos>,
    /// Gradient of the input.
    pub input_grad: Vec<Nanos>,
    /// Gradient of the weights.
    pub weight_grad: Vec<Nanos>,
    /// Sending activations from this stage to the next.
    pub send_forward: Vec<Nanos>,
    /// Sending gradients from this stage to the previous one.
    pub send_backward: Vec<Nanos>,
    /// Kept from the start of the forward to the end of the backward.
    pub activation: Vec<Bytes>,
    /// Held during the backward.
    pub transient: Vec<Bytes>,
    /// Communication inside the forward.
    pub exposed_forward: Vec<Nanos>,
    /// Communication inside the backward.
    pub exposed_backward: Vec<Nanos>,
    /// Weights, gradients and optimizer state of each rank.
    pub static_memory: Vec<Bytes>,
    /// Exposed gradient reduction and parameter gathering of each rank.
    pub sync: Vec<Nanos>,
    /// Optimizer step of each rank.
    pub optimizer: Vec<Nanos>,
    /// What each microbatch holds.
    pub shapes: Vec<MicrobatchShape>,
}

impl PipelineCosts {
    /// Equal costs everywhere, in the unit of one nanosecond, without memory of weights: for schedules by themselves.
    /// Every microbatch of a stage keeps one byte, so that memory counts activations in flight.
    pub fn uniform(ranks: usize, chunks: usize, microbatches: usize, times: UniformTimes) -> Self {
        let (stages, cells) = (ranks * chunks, ranks * chunks * microbatches);
        let send = |from: usize, to: Option<usize>| match to {
            Some(to) if to % ranks != from % ranks => times.communication,
            _ => Nanos::ZERO,
        };
        let per_stage = |time: &dyn Fn(usize) -> Nanos| {
            (0..stages).flat_map(|stage| std::iter::repeat_n(time(stage), microbatches)).collect::<Vec<_>>()
        };
        Self {
            ranks,
            stages,
            microbatches,
            forward: vec![times.forward; cells],
            input_grad: vec![times.input_grad; cells],
            weight_grad: vec![times.weight_grad; cells],
            send_forward: per_stage(&|stage| send(stage, (stage + 1 < stages).then_some(stage + 1))),
            send_backward: per_stage(&|stage| send(stage, stage.checked_sub(1))),
            activation: vec![Bytes::new(1); cells],
            transient: vec![Bytes::ZERO; cells],
            exposed_forward: vec![Nanos::ZERO; cells],
            exposed_backward: vec![Nanos::ZERO; cells],
            static_memory: vec![Bytes::ZERO; ranks],
            sync: vec![Nanos::ZERO; ranks],
            optimizer: vec![Nanos::ZERO; ranks],
            shapes: vec![MicrobatchShape { samples: 1, tokens: 0, images: 0 }; microbatches],
        }
    }

    /// Column index of a stage and microbatch.
    pub const fn cell(&self, stage: usize, microbatch: usize) -> usize {
        stage * self.microbatches + microbatch
    }

    /// The rank of a stage.
    pub const fn rank_of(&self, stage: usize) -> usize {
        stage % self.ranks
    }

    /// Full backward of a cell.
    pub fn backward(&self, cell: usize) -> Nanos {
        self.input_grad[cell] + self.weight_grad[cell]
    }
}

/// Times of a uniform pipeline, in any one unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UniformTimes {
    /// Forward of one microbatch on one stage.
    pub forward: Nanos,
    /// Gradient of the input.
    pub input_grad: Nanos,
    /// Gradient of the weights.
    pub weight_grad: Nanos,
    /// Send between ranks.
    pub communication: Nanos,
}

/// Costs of the layers of every module for every microbatch under one tensor-parallel degree. They do not depend
/// on the pipeline and are shared by all its cuts.
#[derive(Debug, Clone)]
pub struct LayerTable<'a> {
    model: &'a Model,
    cluster: &'a Cluster,
    training: &'a Training,
    tensor: u32,
    loads: &'a [MicrobatchLoad],
    /// By module, then microbatch.
    layers: Vec<Vec<LayerCost>>,
    inputs: Vec<Vec<LayerCost>>,
    outputs: Vec<Vec<LayerCost>>,
}

/// Where a pipeline stands: its degrees and which replica it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Pipeline ranks.
    pub pipeline: u32,
    /// Replicas.
    pub data: u32,
    /// Which of the replicas.
    pub replica: u32,
}

impl<'a> LayerTable<'a> {
    /// Computes the table.
    pub fn new(
        model: &'a Model,
        cluster: &'a Cluster,
        training: &'a Training,
        tensor: u32,
        loads: &'a [MicrobatchLoad],
    ) -> Self {
        let mut table =
            Self { model, cluster, training, tensor, loads, layers: vec![], inputs: vec![], outputs: vec![] };
        for (index, module) in model.modules.iter().enumerate() {
            let costs = LayerModel::new(module, cluster, training, tensor);
            let of = |cost: &dyn Fn(super::ModuleLoad) -> LayerCost| {
                loads.iter().map(|load| cost(load.modules[index])).collect::<Vec<_>>()
            };
            table.layers.push(of(&|load| costs.layer(load)));
            table.inputs.push(of(&|load| costs.input(load)));
            table.outputs.push(of(&|load| costs.output(load)));
        }
        table
    }

    /// Mean time of each module's pieces over all microbatches, for balancing a partition.
    pub fn weights(&self) -> Vec<ModuleWeight> {
        let mean =
            |costs: &[LayerCost]| costs.iter().map(|cost| cost.total().secs()).sum::<f64>() / costs.len().max(1) as f64;
        (0..self.model.modules.len())
            .map(|module| ModuleWeight {
                layer: mean(&self.layers[module]),
                input: mean(&self.inputs[module]),
                output: mean(&self.outputs[module]),
            })
            .collect()
    }

    /// Microbatches of all replicas.
    pub fn microbatches(&self) -> usize {
        self.loads.len()
    }

    /// Forward and backward of every microbatch through the whole model, in seconds.
    pub fn microbatch_times(&self) -> Vec<f64> {
        let time = |microbatch: usize| {
            let modules = self.model.modules.iter().enumerate();
            let of_module = modules.map(|(index, module)| {
                self.layers[index][microbatch].total().secs() * f64::from(module.layers)
                    + self.inputs[index][microbatch].total().secs()
                    + self.outputs[index][microbatch].total().secs()
            });
            of_module.sum()
        };
        (0..self.loads.len()).map(time).collect()
    }

    /// Forward and backward of a stage's layers, summed over all microbatches, in seconds.
    pub fn stage_work(&self, ranges: &[LayerRange]) -> f64 {
        let total = |costs: &[LayerCost]| costs.iter().map(|cost| cost.total().secs()).sum::<f64>();
        ranges
            .iter()
            .map(|range| {
                let mut work = total(&self.layers[range.module]) * f64::from(range.len());
                if range.begins() {
                    work += total(&self.inputs[range.module]);
                }
                if range.ends(self.model) {
                    work += total(&self.outputs[range.module]);
                }
                work
            })
            .sum()
    }

    /// Weights, gradients and optimizer state of every rank.
    pub fn static_memory(&self, partition: &Partition, place: Place) -> Vec<Bytes> {
        let bytes = memory::state_bytes_per_parameter(self.training, place.data);
        self.rank_parameters(partition, place).into_iter().map(|count| Bytes::from_f64(count * bytes)).collect()
    }

    /// Parameters that each device of a rank holds; a tied output head on another rank is a second copy.
    fn rank_parameters(&self, partition: &Partition, place: Place) -> Vec<f64> {
        let ranks = place.pipeline as usize;
        let of_rank = |rank: usize| {
            let ranges = || partition.stages.iter().skip(rank).step_by(ranks).flatten();
            let own: u64 = ranges()
                .map(|range| {
                    let module = &self.model.modules[range.module];
                    let input = if range.begins() { module.input_parameters() } else { 0 };
                    let output = if range.ends(self.model) { module.output_parameters() } else { 0 };
                    u64::from(range.len()) * module.layer_parameters() + input + output
                })
                .sum();
            let tied = self.tied_ranks(partition, ranks).filter(|(_, _, last)| *last == rank);
            let copies: u64 = tied.map(|(module, ..)| self.embedding_parameters(module)).sum();
            (own + copies) as f64 / f64::from(self.tensor)
        };
        (0..ranks).map(of_rank).collect()
    }

    fn embedding_parameters(&self, module: usize) -> u64 {
        u64::from(self.model.modules[module].hidden) * u64::from(self.model.modules[module].vocab)
    }

    /// Modules whose embedding and output head share a matrix and stand on different ranks: module, rank of the
    /// embedding, rank of the head.
    fn tied_ranks<'b>(
        &'b self,
        partition: &'b Partition,
        ranks: usize,
    ) -> impl Iterator<Item = (usize, usize, usize)> + 'b {
        let rank_with = move |wanted: &dyn Fn(&LayerRange) -> bool| {
            partition.stages.iter().position(|ranges| ranges.iter().any(wanted)).map(|stage| stage % ranks)
        };
        let tied = self.model.modules.iter().enumerate().filter(|(_, module)| module.tied_embeddings);
        tied.filter_map(move |(index, _)| {
            let first = rank_with(&|range| range.module == index && range.begins())?;
            let last = rank_with(&|range| range.module == index && range.ends(self.model))?;
            (first != last).then_some((index, first, last))
        })
    }

    /// Exposed gradient synchronisation and optimizer step of every rank.
    pub fn step_end(&self, partition: &Partition, place: Place) -> (Vec<Nanos>, Vec<Nanos>) {
        let group = Group::placed(self.cluster, place.data, self.tensor);
        let exposed = 1.0 - self.training.data_overlap;
        let distributed = self.training.distributed_optimizer;
        let tied: Vec<_> = self.tied_ranks(partition, place.pipeline as usize).collect();
        let mut sync = Vec::new();
        let mut optimizer = Vec::new();
        for (rank, parameters) in self.rank_parameters(partition, place).into_iter().enumerate() {
            let reduction = if distributed {
                group.reduce_scatter(4.0 * parameters) + group.all_gather(BF16 * parameters)
            } else {
                group.all_reduce(4.0 * parameters)
            };
            let concerned = tied.iter().filter(|(_, first, last)| *first == rank || *last == rank);
            let shared: Seconds = concerned.map(|&shared| self.tied_embedding_sync(shared, place)).sum();
            sync.push((reduction * exposed + shared).to_nanos());
            // Read gradient, master weight and two moments, write the last three and the bf16 weight.
            let share = if distributed { parameters / f64::from(place.data) } else { parameters };
            optimizer.push(memory_bound(&self.cluster.device, 30.0 * share).to_nanos());
        }
        (sync, optimizer)
    }

    /// The ranks of embedding and output head add up their gradients of the shared matrix.
    fn tied_embedding_sync(&self, (module, first, last): (usize, usize, usize), place: Place) -> Seconds {
        let device = |rank: usize| rank as u32 * self.tensor * place.data;
        let bytes = 4.0 * self.embedding_parameters(module) as f64 / f64::from(self.tensor);
        point_to_point(self.cluster, device(first), device(last), bytes) * 2.0
    }

    /// The costs of one replica, which runs the microbatches `assigned`.
    pub fn pipeline(&self, partition: &Partition, place: Place, assigned: &[usize]) -> PipelineCosts {
        let stages = partition.stages.len();
        let cells = stages * assigned.len();
        let (sync, optimizer) = self.step_end(partition, place);
        let mut costs = PipelineCosts {
            ranks: place.pipeline as usize,
            stages,
            microbatches: assigned.len(),
            forward: Vec::with_capacity(cells),
            input_grad: Vec::with_capacity(cells),
            weight_grad: Vec::with_capacity(cells),
            send_forward: Vec::with_capacity(cells),
            send_backward: Vec::with_capacity(cells),
            activation: Vec::with_capacity(cells),
            transient: Vec::with_capacity(cells),
            exposed_forward: Vec::with_capacity(cells),
            exposed_backward: Vec::with_capacity(cells),
            static_memory: self.static_memory(partition, place),
            sync,
            optimizer,
            shapes: assigned.iter().map(|&index| self.loads[index].shape).collect(),
        };
        for stage in 0..stages {
            for &index in assigned {
                let cost = self.stage_cost(&partition.stages[stage], index);
                costs.forward.push(cost.forward.to_nanos());
                costs.input_grad.push(cost.input_grad.to_nanos());
                costs.weight_grad.push(cost.weight_grad.to_nanos());
                costs.exposed_forward.push(cost.exposed_forward.to_nanos());
                costs.exposed_backward.push(cost.exposed_backward.to_nanos());
                costs.activation.push(Bytes::from_f64(cost.activation));
                costs.transient.push(Bytes::from_f64(cost.transient));
                let forward =
                    partition.stages.get(stage + 1).map(|next| self.send(next, place, stage, stage + 1, index));
                let backward =
                    stage.checked_sub(1).map(|to| self.send(&partition.stages[stage], place, stage, to, index));
                costs.send_forward.push(forward.unwrap_or(Nanos::ZERO));
                costs.send_backward.push(backward.unwrap_or(Nanos::ZERO));
            }
        }
        costs
    }

    fn stage_cost(&self, ranges: &[LayerRange], microbatch: usize) -> LayerCost {
        let mut cost = LayerCost::default();
        for range in ranges {
            if range.begins() {
                cost = cost.then(self.inputs[range.module][microbatch]);
            }
            cost = cost.then(self.layers[range.module][microbatch].times(range.len()));
            if range.ends(self.model) {
                cost = cost.then(self.outputs[range.module][microbatch]);
            }
        }
        cost
    }

    /// Sending what enters the stage `entered` between the ranks of two stages. Under sequence parallelism each
    /// device sends its share of the sequence.
    fn send(&self, entered: &[LayerRange], place: Place, from: usize, to: usize, microbatch: usize) -> Nanos {
        let range = entered[0];
        let module = &self.model.modules[range.module];
        let load = &self.loads[microbatch];
        let tokens = if range.begins() {
            // Between modules travel the merged image tokens, already as wide as the backbone.
            f64::from(load.shape.images) * f64::from(self.model.tokens_per_image())
        } else {
            load.modules[range.module].tokens
        };
        let split = if self.training.sequence_parallel { f64::from(self.tensor) } else { 1.0 };
        let bytes = BF16 * tokens * f64::from(module.hidden) / split;
        let device = |stage: usize| {
            let rank = (stage % place.pipeline as usize) as u32;
            rank * self.tensor * place.data + place.replica * self.tensor
        };
        point_to_point(self.cluster, device(from), device(to), bytes).to_nanos()
    }
}
