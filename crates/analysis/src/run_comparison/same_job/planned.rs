//! The job that a plan was made for.

use super::{DeviceName, StatedLayout};
use crate::run_comparison::flop_formula::{FlopFormula, StepFlops, step_flops};
use planscope_core::training::{AttentionKernel, Framework, Precision};
use planscope_core::workload::Packing;
use planscope_plan::outcome::{BatchSummary, Layout, Planned};
use planscope_plan::scenario::Scenario;

/// Minimum, mean and maximum of the simulated batches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Minimum.
    pub min: f64,
    /// Mean.
    pub mean: f64,
    /// Maximum.
    pub max: f64,
}

impl Spread {
    fn new(values: impl Iterator<Item = f64> + Clone) -> Self {
        let count = values.clone().count().max(1) as f64;
        Self {
            min: values.clone().fold(f64::INFINITY, f64::min),
            mean: values.clone().sum::<f64>() / count,
            max: values.fold(0.0, f64::max),
        }
    }
}

/// Dimensions of a language model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelShape {
    /// Number of transformer layers.
    pub layers: f64,
    /// Hidden size.
    pub hidden: f64,
    /// MLP hidden size per expert.
    pub feed_forward: f64,
    /// Query heads.
    pub heads: f64,
    /// Key and value heads.
    pub kv_heads: f64,
    /// Experts per layer; 0 for a dense model.
    pub experts: f64,
    /// Vocabulary size.
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

/// Job description of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedJob {
    /// Number of devices.
    pub devices: f64,
    /// Samples per step.
    pub samples: f64,
    /// Sequences per step.
    pub sequences: Spread,
    /// True if samples are packed into sequences. Training frameworks then report sequences as
    /// samples.
    pub is_packed: bool,
    /// Model dimensions; `None` for a model with several modules.
    pub shape: Option<ModelShape>,
    /// Context length in tokens.
    pub context_length: f64,
    /// Tokens per step, not including padding.
    pub tokens: Spread,
    /// Tokens per step with sequences padded to the context length. Equal to `tokens` if sequences
    /// are not padded.
    pub padded_tokens: Spread,
    /// FLOPs per step by all applicable formulas; the plan's formula is first.
    pub flops: Vec<StepFlops>,
    /// Device peak for the plan's number format, in TFLOP/s.
    pub peak_tflops: f64,
    /// Memory per device in GiB.
    pub memory_gib: f64,
    /// Parameters of the trained modules.
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

/// Returns the peak of a device in TFLOP/s for the number format of the matrix products.
pub fn product_peak_tflops(scenario: &Scenario) -> f64 {
    let device = &scenario.cluster.device;
    match scenario.training.precision {
        Precision::Fp8 => device.fp8_tflops.unwrap_or(device.peak_tflops),
        Precision::Bf16 | Precision::Fp32 => device.peak_tflops,
    }
}

/// Layout and settings of a plan. Settings without an effect at its degrees are absent.
pub(super) fn stated_layout(scenario: &Scenario, degrees: Layout) -> StatedLayout {
    let training = &scenario.training;
    // With DeepSpeed, the arguments of Megatron-LM do not decide over state and communication of the replicas.
    let is_own = degrees.data > 1 && training.framework == Framework::Megatron;
    let zero = training.zero_stage();
    let hidden = training.data_overlap;
    // With a share between, only one of both is hidden: the gradients have at least half of the bytes.
    let (gradients, weights) = match () {
        () if hidden <= 0.0 => (Some(false), Some(false)),
        () if hidden >= 1.0 => (Some(true), Some(true)),
        () if hidden >= 0.5 => (Some(true), Some(false)),
        () => (None, None),
    };
    StatedLayout {
        tensor: Some(degrees.tensor),
        pipeline: Some(degrees.pipeline),
        context: Some(training.context_parallel),
        expert: Some(training.expert_parallel),
        data: Some(degrees.data),
        chunks: Some(degrees.chunks),
        microbatch: Some(degrees.microbatch),
        recompute: Some(training.recompute),
        sequence_parallel: (degrees.tensor > 1).then_some(training.sequence_parallel),
        // FSDP in Megatron-LM shards the optimizer without its distributed optimizer.
        sharded_optimizer: (is_own && zero < 2).then_some(zero == 1),
        overlapped_gradients: gradients.filter(|_| is_own && zero < 2),
        overlapped_weights: weights.filter(|_| is_own && zero == 1),
        separate_attention: Some(training.attention == AttentionKernel::Unfused),
    }
}

impl PlannedJob {
    /// Creates the job description for a plan that was simulated on `batches`.
    pub fn new(scenario: &Scenario, planned: &Planned, batches: &[BatchSummary]) -> Self {
        let workload = &scenario.workload;
        let devices = f64::from(scenario.cluster.devices());
        let sequences = Spread::new(batches.iter().map(|batch| f64::from(batch.sequences)));
        let tokens = Spread::new(batches.iter().map(|batch| batch.tokens as f64));
        let context_length = f64::from(workload.context_length);
        let metrics = &planned.metrics;
        let device = &scenario.cluster.device;
        let padded_tokens = if workload.packing == Packing::Single {
            tokens
        } else {
            Spread::new(batches.iter().map(|batch| f64::from(batch.sequences) * context_length))
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
            peak_tflops: product_peak_tflops(scenario),
            memory_gib: device.memory_gib,
            trained_parameters: scenario.model.modules.iter().map(|module| module.trained_parameters() as f64).sum(),
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
            layout: planned.placement.is_none().then(|| stated_layout(scenario, planned.layout)),
        }
    }

    /// Returns samples per step as reported by training frameworks: sequences if samples are
    /// packed.
    pub fn samples_per_step(&self) -> f64 {
        if self.is_packed { self.sequences.mean } else { self.samples }
    }

    /// Returns true if sequences and samples are equal in number for all batches, so that a logged
    /// batch size is valid for either unit.
    pub(super) fn has_a_sample_per_sequence(&self) -> bool {
        let is_all = |sequences: f64| (sequences - self.samples).abs() < 0.5;
        !self.is_packed || (is_all(self.sequences.min) && is_all(self.sequences.max))
    }

    /// Returns the ranges of valid logged batch sizes.
    pub(super) fn batch_sizes(&self) -> impl Iterator<Item = (f64, f64)> {
        let sequences = self.is_packed.then_some((self.sequences.min, self.sequences.max));
        std::iter::once((self.samples, self.samples)).chain(sequences)
    }

    /// Returns the ratio between FLOPs by `formula` and by the plan's formula; 1 for `None` or an
    /// inapplicable formula.
    pub fn flops_ratio(&self, formula: Option<FlopFormula>) -> f64 {
        let step = self.flops.iter().find(|step| Some(step.formula) == formula);
        step.map_or(1.0, |step| step.flops / self.model_flops().max(f64::MIN_POSITIVE))
    }

    /// Returns FLOPs per step by the plan's formula.
    pub fn model_flops(&self) -> f64 {
        self.flops.first().map_or(0.0, |step| step.flops)
    }
}
