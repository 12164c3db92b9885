//! Training settings that planners may choose, and the values that a plan uses.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Scenario;
use planscope_core::training::{
    AttentionKernel, ContextExchange, Framework, Recompute, RecomputedModule, RecomputedModules, Training,
};
use planscope_core::workload::Packing;

/// A setting that every planner may choose. Settings that a scenario does not list have the value of
/// the scenario, for all planners alike. Degrees of the layout are free if they are not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FreeSetting {
    /// Recomputation: none, selective, of modules, or full for any number of layers per stage.
    Recompute,
    /// Share of the activations in host memory.
    ActivationOffload,
    /// Share of the optimizer state in host memory, which also computes the update.
    OptimizerOffload,
    /// ZeRO stage.
    Zero,
    /// Context-parallel degree and exchange.
    ContextParallel,
    /// Expert-parallel degree.
    ExpertParallel,
    /// Tensor-parallel degree of experts: that of the model, or 1.
    ExpertTensorParallel,
    /// Sequence parallelism: norms and dropout on shares of the sequence, or whole sequences on every device of
    /// a tensor-parallel group.
    SequenceParallel,
    /// Microbatches of several samples without padding.
    Packing,
    /// Layers per stage: stages may be uneven, with embedding and head as load. Chunks per rank (VPP)
    /// need not divide the layers.
    LayersPerStage,
    /// Assignment of samples to replicas: in data-loader order, or balanced by compute time.
    Assignment,
    /// Instances per sub-microbatch of PipeWeaver: by its rule, or several sizes.
    SubMicrobatch,
}

impl FreeSetting {
    /// All settings, in display order.
    pub const ALL: [Self; 12] = [
        Self::Recompute,
        Self::ActivationOffload,
        Self::OptimizerOffload,
        Self::Zero,
        Self::ContextParallel,
        Self::ExpertParallel,
        Self::ExpertTensorParallel,
        Self::SequenceParallel,
        Self::Packing,
        Self::LayersPerStage,
        Self::Assignment,
        Self::SubMicrobatch,
    ];

    /// Returns the display name.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Recompute => "recomputation",
            Self::ActivationOffload => "activation offload",
            Self::OptimizerOffload => "optimizer offload",
            Self::Zero => "ZeRO stage",
            Self::ContextParallel => "context parallelism",
            Self::ExpertParallel => "expert parallelism",
            Self::ExpertTensorParallel => "expert tensor parallelism",
            Self::SequenceParallel => "sequence parallelism",
            Self::Packing => "packing",
            Self::LayersPerStage => "layers per stage",
            Self::Assignment => "assignment of samples",
            Self::SubMicrobatch => "sub-microbatch size",
        }
    }

    /// Returns true for properties of the layout search. They are not training settings, and have no value.
    const fn is_in_layout_search(self) -> bool {
        matches!(self, Self::LayersPerStage | Self::Assignment | Self::SubMicrobatch)
    }
}

impl Scenario {
    /// Returns true if planners may choose the setting.
    pub fn is_free(&self, setting: FreeSetting) -> bool {
        self.free.contains(&setting)
    }

    /// Returns true if planners may choose training settings or packing.
    pub fn has_free_settings(&self) -> bool {
        self.free.iter().any(|setting| !setting.is_in_layout_search())
    }

    /// Returns the scenario with the given settings in place of its own, and none of them free. The layout search
    /// has its free settings still.
    #[must_use]
    pub fn with_settings(&self, settings: &PlanSettings) -> Self {
        let mut scenario = self.clone();
        settings.apply(&mut scenario.training);
        scenario.workload.packing = settings.packing;
        scenario.free.retain(|setting| setting.is_in_layout_search());
        scenario
    }
}

/// Values of the settings that a plan uses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlanSettings {
    /// Activation recomputation.
    pub recompute: Recompute,
    /// With full recomputation: recomputed layers per stage; omitted if all are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recompute_layers: Option<u32>,
    /// With selective recomputation: recomputed modules; omitted if it is the attention core.
    #[serde(default, skip_serializing_if = "RecomputedModules::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<RecomputedModule>))]
    pub recompute_modules: RecomputedModules,
    /// Share of the stored activations in host memory, 0 to 1.
    pub activation_offload: f64,
    /// Share of the optimizer state in host memory, 0 to 1; omitted if 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub optimizer_offload: f64,
    /// ZeRO stage, 0 to 3.
    pub zero: u32,
    /// Context-parallel degree.
    pub context_parallel: u32,
    /// Context-parallel exchange.
    pub context_exchange: ContextExchange,
    /// Expert-parallel degree.
    pub expert_parallel: u32,
    /// Tensor-parallel degree of experts; omitted if it is that of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expert_tensor_parallel: Option<u32>,
    /// Sequence parallelism; omitted if it is that of the scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence_parallel: Option<bool>,
    /// Packing of samples into sequences.
    pub packing: Packing,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

impl PlanSettings {
    /// Returns the settings of a scenario.
    pub fn from_scenario(scenario: &Scenario) -> Self {
        let training = &scenario.training;
        Self {
            recompute: training.recompute,
            recompute_layers: training.recompute_layers.filter(|_| training.recompute == Recompute::Full),
            recompute_modules: match training.recompute {
                Recompute::Selective => RecomputedModules::of(&training.recompute_modules),
                _ => RecomputedModules::default(),
            },
            activation_offload: training.activation_offload,
            optimizer_offload: training.optimizer_offload,
            zero: training.zero_stage(),
            context_parallel: training.context_parallel,
            context_exchange: training.context_exchange,
            expert_parallel: training.expert_parallel,
            expert_tensor_parallel: training.expert_tensor_parallel,
            sequence_parallel: None,
            packing: scenario.workload.packing,
        }
    }

    /// Returns the settings with another recomputation: of `layers` per stage if it is full, of the attention core
    /// if it is selective.
    #[must_use]
    pub fn with_recompute(self, recompute: Recompute, layers: Option<u32>) -> Self {
        Self { recompute, recompute_layers: layers, recompute_modules: RecomputedModules::default(), ..self }
    }

    /// Returns the settings with recomputation of modules.
    #[must_use]
    pub fn with_recomputed_modules(self, modules: RecomputedModules) -> Self {
        Self { recompute_modules: modules, ..self.with_recompute(Recompute::Selective, None) }
    }

    /// Returns the layers per stage for which full recomputation is tried: 1, 2, 3, 4, 6, 8, 12, .. below `layers`.
    pub fn recomputed_layers(layers: u32) -> Vec<u32> {
        let counts = (0..31).map(|power| 1_u32 << power).flat_map(|count| [count, count + count / 2]);
        let mut counts: Vec<u32> = counts.take_while(|&count| count < layers).collect();
        counts.dedup();
        counts
    }

    /// Returns the sets of modules that are tried, those that save most memory per second first. Only Megatron-LM
    /// recomputes chosen modules.
    pub fn recomputed_modules(scenario: &Scenario) -> Vec<RecomputedModules> {
        if scenario.training.framework != Framework::Megatron {
            return Vec::new();
        }
        let modules = &scenario.model.modules;
        let mut set = RecomputedModules::of(&[RecomputedModule::Layernorm]);
        if modules.iter().any(|module| module.latent.is_some()) {
            set = set.with(RecomputedModule::MlaUpProj);
        }
        let has_experts = modules.iter().any(|module| module.moe.is_some());
        if has_experts {
            set = set.with(RecomputedModule::MoeAct);
        }
        let mut sets = vec![set];
        if scenario.training.attention == AttentionKernel::Unfused {
            set = set.with(RecomputedModule::CoreAttn);
            sets.push(set);
        }
        // The MLP is the largest product of a layer, so it comes last.
        if has_experts {
            let whole = set.without(RecomputedModule::MoeAct).with(RecomputedModule::Moe);
            sets.push(whole.with(RecomputedModule::Mlp).with(RecomputedModule::SharedExperts));
        } else {
            sets.push(set.with(RecomputedModule::Mlp));
        }
        sets
    }

    /// Sets the values in `training`.
    pub fn apply(&self, training: &mut Training) {
        training.recompute = self.recompute;
        training.recompute_layers = self.recompute_layers;
        if self.recompute == Recompute::Selective {
            training.recompute_modules = self.recompute_modules.iter().collect();
        }
        training.activation_offload = self.activation_offload;
        training.optimizer_offload = self.optimizer_offload;
        if training.zero_stage() != self.zero {
            training.zero = Some(self.zero);
        }
        training.context_parallel = self.context_parallel;
        training.context_exchange = self.context_exchange;
        training.expert_parallel = self.expert_parallel;
        training.expert_tensor_parallel = self.expert_tensor_parallel;
        training.sequence_parallel = self.sequence_parallel.unwrap_or(training.sequence_parallel);
    }
}

/// Terms of the settings that differ from the defaults, for example "full recomputation of 4 layers
/// per stage, ZeRO 3".
impl fmt::Display for PlanSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.recompute, self.recompute_layers) {
            (Recompute::None, _) => f.write_str("no recomputation")?,
            (Recompute::Selective, _) if self.recompute_modules.is_empty() => f.write_str("selective recomputation")?,
            (Recompute::Selective, _) => {
                let names: Vec<&str> = self.recompute_modules.iter().map(RecomputedModule::id).collect();
                write!(f, "recomputation of {}", names.join(", "))?;
            }
            (Recompute::Operators, _) => f.write_str("recomputation by operator")?,
            (Recompute::Full, None) => f.write_str("full recomputation")?,
            (Recompute::Full, Some(1)) => f.write_str("full recomputation of 1 layer per stage")?,
            (Recompute::Full, Some(layers)) => write!(f, "full recomputation of {layers} layers per stage")?,
        }
        write!(f, ", ZeRO {}", self.zero)?;
        if self.activation_offload > 0.0 {
            write!(f, ", {:.0} % of the activations offloaded", 100.0 * self.activation_offload)?;
        }
        if self.optimizer_offload > 0.0 {
            write!(f, ", {:.0} % of the optimizer offloaded", 100.0 * self.optimizer_offload)?;
        }
        if self.context_parallel > 1 {
            let exchange = match self.context_exchange {
                ContextExchange::Ring => "ring",
                ContextExchange::AllToAll => "all-to-all",
            };
            write!(f, ", CP {} ({exchange})", self.context_parallel)?;
        }
        if self.expert_parallel > 1 {
            write!(f, ", EP {}", self.expert_parallel)?;
        }
        if let Some(degree) = self.expert_tensor_parallel {
            write!(f, ", expert TP {degree}")?;
        }
        match self.sequence_parallel {
            Some(true) => f.write_str(", sequence parallelism")?,
            Some(false) => f.write_str(", no sequence parallelism")?,
            None => {}
        }
        if self.packing == Packing::Packed { f.write_str(", packed") } else { Ok(()) }
    }
}
