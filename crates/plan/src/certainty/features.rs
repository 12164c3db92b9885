//! Properties of a prediction on which its error may depend.

use planscope_core::cluster::Cluster;
use planscope_core::model::Model;
use planscope_core::training::{Framework, Precision, Recompute, Training};
use serde::{Deserialize, Serialize};

use crate::estimate::{Configuration, Estimate};
use crate::outcome::{Layout, Planned};
use crate::scenario::Scenario;

/// A property of a predicted step that is known before the run. Values are 0 to about 1; 0 is the
/// common case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    /// 1 for fp8 products with weights sharded over replicas, as in FSDP.
    Fp8Sharded,
    /// 1 for fp8 products.
    Fp8,
    /// 1 for weights sharded over replicas (ZeRO 3, FSDP).
    Sharded,
    /// 1 for full recomputation.
    Recomputed,
    /// 1 if no published timings determine the rates of the device.
    Unmeasured,
    /// log2 of the number of nodes, divided by 5.
    Nodes,
    /// Exposed communication divided by (ranks x time), times 4.
    Exposed,
    /// Idle time divided by (ranks x time), times 2.
    Bubble,
    /// log2(4096 / tokens of a microbatch on one device) / 3, at least 0.
    SmallKernels,
    /// Operations of the attention core divided by all operations of a layer, times 2.
    Attention,
    /// ln(0.4 / MFU), at least 0.
    LowUtilisation,
    /// log2 of the degree of context parallelism, divided by 3.
    Context,
    /// 1 for a framework other than Megatron-LM and Megatron-DeepSpeed.
    OtherFramework,
}

impl Feature {
    /// All properties.
    pub const ALL: [Self; 13] = [
        Self::Fp8Sharded,
        Self::Fp8,
        Self::Sharded,
        Self::Recomputed,
        Self::Unmeasured,
        Self::Nodes,
        Self::Exposed,
        Self::Bubble,
        Self::SmallKernels,
        Self::Attention,
        Self::LowUtilisation,
        Self::Context,
        Self::OtherFramework,
    ];

    /// Returns the display name.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Fp8Sharded => "fp8 with ZeRO 3",
            Self::Fp8 => "fp8",
            Self::Sharded => "ZeRO 3",
            Self::Recomputed => "full recomputation",
            Self::Unmeasured => "device without published timings",
            Self::Nodes => "number of nodes",
            Self::Exposed => "exposed communication",
            Self::Bubble => "bubble",
            Self::SmallKernels => "few tokens per device",
            Self::Attention => "share of attention",
            Self::LowUtilisation => "low MFU",
            Self::Context => "context parallelism",
            Self::OtherFramework => "framework other than Megatron-LM",
        }
    }
}

/// Properties of a predicted step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Features {
    values: [f64; Feature::ALL.len()],
}

/// Predicted metrics that properties depend on.
#[derive(Debug, Clone, Copy)]
struct Prediction {
    exposed: f64,
    bubble: f64,
    mfu: f64,
    /// Backbone tokens of a microbatch.
    tokens: f64,
    /// Backbone tokens of a sequence.
    length: f64,
}

impl Features {
    /// Returns the properties of an estimate.
    pub fn of_estimate(configuration: &Configuration, estimate: &Estimate) -> Self {
        let Configuration { model, cluster, training, layout, sequence_length, .. } = configuration;
        let length = f64::from(*sequence_length);
        let prediction = Prediction {
            exposed: estimate.exposed_communication,
            bubble: estimate.bubble_fraction,
            mfu: estimate.mfu,
            tokens: f64::from(layout.microbatch) * length,
            length,
        };
        Self::new(model, cluster, training, *layout, prediction)
    }

    /// Returns the properties of a plan. Tokens are means over its microbatches.
    pub fn of_plan(scenario: &Scenario, planned: &Planned) -> Self {
        let mut training = scenario.training.clone();
        if let Some(settings) = &planned.settings {
            settings.apply(&mut training);
        }
        let metrics = &planned.metrics;
        let count: f64 = planned.iterations.iter().map(|iteration| f64::from(iteration.microbatches)).sum();
        let microbatches = count / planned.iterations.len().max(1) as f64 * f64::from(planned.layout.data);
        let tokens = metrics.tokens_per_s * metrics.iteration_s / microbatches.max(1.0);
        let prediction = Prediction {
            exposed: metrics.exposed_communication,
            bubble: metrics.bubble,
            mfu: metrics.mfu,
            tokens,
            length: f64::from(scenario.workload.context_length).min(tokens),
        };
        Self::new(&scenario.model, &scenario.cluster, &training, planned.layout, prediction)
    }

    fn new(model: &Model, cluster: &Cluster, training: &Training, layout: Layout, prediction: Prediction) -> Self {
        let Prediction { exposed, bubble, mfu, tokens, length } = prediction;
        let samples = cluster.device.curves.as_ref().map_or(0, |curves| curves.calibration.samples());
        let module = model.backbone().or_else(|| model.modules.first());
        let attention = module.map_or(0.0, |module| {
            let core = module.layer_attention_flops(length, length * length).get();
            core / (core + module.layer_linear_flops(length).get()).max(1.0)
        });
        let one = |is: bool| f64::from(u8::from(is));
        let (fp8, sharded) = (training.precision == Precision::Fp8, training.zero_stage() == 3);
        let device_tokens = tokens / f64::from(layout.tensor.max(1) * training.context_parallel.max(1));
        let value = |feature| match feature {
            Feature::Fp8Sharded => one(fp8 && sharded),
            Feature::Fp8 => one(fp8),
            Feature::Sharded => one(sharded),
            Feature::Recomputed => one(training.recompute == Recompute::Full),
            Feature::Unmeasured => one(samples == 0),
            Feature::Nodes => libm::log2(f64::from(cluster.nodes.max(1))) / 5.0,
            Feature::Exposed => 4.0 * exposed,
            Feature::Bubble => 2.0 * bubble,
            Feature::SmallKernels => (libm::log2(4096.0 / device_tokens.max(1.0)) / 3.0).max(0.0),
            Feature::Attention => 2.0 * attention,
            Feature::LowUtilisation => libm::log(0.4 / mfu.max(0.02)).max(0.0),
            Feature::Context => libm::log2(f64::from(training.context_parallel.max(1))) / 3.0,
            Feature::OtherFramework => {
                one(!matches!(training.framework, Framework::Megatron | Framework::MegatronDeepspeed))
            }
        };
        Self { values: Feature::ALL.map(value) }
    }

    /// Returns the value of a property.
    pub const fn get(&self, feature: Feature) -> f64 {
        self.values[feature as usize]
    }
}
