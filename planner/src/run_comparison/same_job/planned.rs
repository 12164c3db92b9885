//! The job that a plan was made for.

use super::{DeviceName, StatedLayout};
use crate::run_comparison::flop_formula::{FlopFormula, StepFlops, step_flops};
use crate::outcome::{BatchSummary, Planned};
use crate::scenario::Scenario;
use crate::training::Precision;
use crate::workload::Packing;

/// Least, mean and largest value over the simulated batches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Smallest value.
    pub least: f64,
    /// Mean.
    pub mean: f64,
    /// Largest value.
    pub most: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let count = values.clone().count().max(1) as f64;
        Self {
            least: values.clone().fold(f64::INFINITY, f64::min),
            mean: values.clone().sum::<f64>() / count,
            most: values.fold(0.0, f64::max),
        }
    }
}

/// Dimensions of a language model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelShape {
    /// Transformer layers.
    pub layers: f64,
    /// Width of the residual stream.
    pub hidden: f64,
    /// Width inside the MLP, of one expert.
    pub feed_forward: f64,
    /// Query heads.
    pub heads: f64,
    /// Key and value heads.
    pub kv_heads: f64,
    /// Experts of a layer; 0 for a dense model.
    pub experts: f64,
    /// Vocabulary.
    pub vocabulary: f64,
}

/// A module with its parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct ModuleParameters {
    /// Name of the module.
    pub name: String,
    /// Parameters.
    pub parameters: f64,
}

/// The job that a plan was made for.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedJob {
    /// Devices.
    pub devices: f64,
    /// Samples of a step.
    pub samples: f64,
    /// Sequences of a step.
    pub sequences: Spread,
    /// Whether several samples share a sequence, which is what training programs then count as a sample.
    pub is_packed: bool,
    /// Dimensions of the model; absent for one of several modules.
    pub shape: Option<ModelShape>,
    /// Longest sequence, in tokens.
    pub context_length: f64,
    /// Tokens of a step, padding not counted.
    pub tokens: Spread,
    /// Tokens of a step with every sequence padded to the context length; the same as `tokens` where sequences are not.
    pub padded_tokens: Spread,
    /// Operations of a step by every formula that applies, the plan's own first.
    pub flops: Vec<StepFlops>,
    /// Peak of the device at the plan's number format, in TFLOP/s.
    pub peak_tflops: f64,
    /// Memory of the device, in GiB.
    pub memory_gib: f64,
    /// Parameters of the modules that are trained.
    pub trained_parameters: f64,
    /// Modules of a model of several.
    pub modules: Vec<ModuleParameters>,
    /// Number format of products.
    pub precision: Precision,
    /// The device that the name of the cluster names.
    pub device: Option<DeviceName>,
    /// Layout of the plan; absent where modules have layouts of their own.
    pub layout: Option<StatedLayout>,
}

impl PlannedJob {
    /// The job of a plan of a scenario that was judged on `batches`.
    pub fn new(scenario: &Scenario, planned: &Planned, batches: &[BatchSummary]) -> Self {
        let workload = &scenario.workload;
        let devices = f64::from(scenario.cluster.devices());
        let sequences = Spread::of(batches.iter().map(|batch| f64::from(batch.sequences)));
        let tokens = Spread::of(batches.iter().map(|batch| batch.tokens as f64));
        let context_length = f64::from(workload.context_length);
        let metrics = &planned.metrics;
        let device = &scenario.cluster.device;
        let padded_tokens = if workload.packing == Packing::Single {
            tokens
        } else {
            Spread::of(batches.iter().map(|batch| f64::from(batch.sequences) * context_length))
        };
        Self {
            devices,
            samples: f64::from(workload.global_batch),
            sequences,
            is_packed: workload.packing == Packing::Packed,
            shape: match scenario.model.modules.as_slice() {
                [module] => Some(ModelShape {
                    layers: f64::from(module.layers),
                    hidden: f64::from(module.hidden),
                    feed_forward: f64::from(module.ffn),
                    heads: f64::from(module.heads),
                    kv_heads: f64::from(module.kv_heads),
                    experts: module.moe.map_or(0.0, |moe| f64::from(moe.experts)),
                    vocabulary: f64::from(module.vocab),
                }),
                _ => None,
            },
            context_length,
            tokens,
            padded_tokens,
            flops: step_flops(scenario, batches, metrics.tflops_per_device * 1e12 * devices * metrics.iteration_s),
            peak_tflops: match scenario.training.precision {
                Precision::Fp8 => device.fp8_tflops.unwrap_or(device.peak_tflops),
                Precision::Bf16 | Precision::Fp32 => device.peak_tflops,
            },
            memory_gib: device.memory_gib,
            trained_parameters: scenario
                .model
                .modules
                .iter()
                .filter(|module| !module.frozen)
                .map(|module| module.parameters() as f64)
                .sum(),
            modules: match scenario.model.modules.as_slice() {
                [_] => Vec::new(),
                modules => modules
                    .iter()
                    .map(|module| ModuleParameters {
                        name: module.name.clone(),
                        parameters: module.parameters() as f64,
                    })
                    .collect(),
            },
            precision: scenario.training.precision,
            device: DeviceName::find(&scenario.cluster.name),
            layout: planned.placement.is_none().then(|| StatedLayout {
                tensor: Some(planned.layout.tensor),
                pipeline: Some(planned.layout.pipeline),
                context: Some(scenario.training.context_parallel),
                expert: Some(scenario.training.expert_parallel),
                data: Some(planned.layout.data),
                chunks: Some(planned.layout.chunks),
                microbatch: Some(planned.layout.microbatch),
                recompute: Some(scenario.training.recompute),
            }),
        }
    }

    /// Samples of a step as training programs count them: sequences where samples are packed.
    pub fn samples_of_a_step(&self) -> f64 {
        if self.is_packed { self.sequences.mean } else { self.samples }
    }

    /// Whether a batch has as many sequences as samples, so that a log that counts either states both.
    pub(super) fn has_a_sample_per_sequence(&self) -> bool {
        let is_all = |sequences: f64| (sequences - self.samples).abs() < 0.5;
        !self.is_packed || (is_all(self.sequences.least) && is_all(self.sequences.most))
    }

    /// Ranges of the sizes that a log may state for the batch of a step.
    pub(super) fn batch_sizes(&self) -> impl Iterator<Item = (f64, f64)> {
        let sequences = self.is_packed.then_some((self.sequences.least, self.sequences.most));
        std::iter::once((self.samples, self.samples)).chain(sequences)
    }

    /// Operations of a step by a formula over those by the plan's own; 1 for none, or one that does not apply.
    pub fn flops_ratio(&self, formula: Option<FlopFormula>) -> f64 {
        let step = self.flops.iter().find(|step| Some(step.formula) == formula);
        step.map_or(1.0, |step| step.flops / self.model_flops().max(f64::MIN_POSITIVE))
    }

    /// Model operations of a step by the plan's own formula.
    pub fn model_flops(&self) -> f64 {
        self.flops.first().map_or(0.0, |step| step.flops)
    }
}
