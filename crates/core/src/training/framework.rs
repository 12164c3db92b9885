//! Training frameworks: the kernels, buffers and host overhead that differ between them.

use serde::{Deserialize, Serialize};

use super::{AttentionKernel, GradientFormat, Training};

/// Framework that runs the training. It selects a [`Profile`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Framework {
    /// Megatron-LM, Megatron-Core and the frameworks that use their layers: fused kernels.
    #[default]
    Megatron,
    /// Megatron-DeepSpeed.
    MegatronDeepspeed,
    /// torchtitan.
    Torchtitan,
    /// FSDP of PyTorch with fused norms, for example llm-foundry, OLMo and composer.
    Fsdp,
    /// nanotron.
    Nanotron,
    /// Transformers of Hugging Face, with accelerate or FSDP.
    HuggingFace,
    /// Transformers of Hugging Face, with DeepSpeed.
    Deepspeed,
    /// InternEvo.
    Internevo,
}

/// Default assignment of layers to pipeline stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StageRule {
    /// Equal numbers of layers.
    Equal,
    /// Stages are filled in order up to an equal share of the parameters, including the output head.
    ByParameters,
    /// Equal numbers of layers; the first stages have one more of the remaining layers.
    FirstLonger,
    /// Equal numbers of layers, where the embedding and the output head count as a layer each. The first stages have
    /// the remaining layers.
    EndsAsLayers,
}

impl Framework {
    /// All frameworks.
    pub const ALL: [Self; 8] = [
        Self::Megatron,
        Self::MegatronDeepspeed,
        Self::Torchtitan,
        Self::Fsdp,
        Self::Nanotron,
        Self::HuggingFace,
        Self::Deepspeed,
        Self::Internevo,
    ];

    /// Returns the stable identifier, as in JSON.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Megatron => "megatron",
            Self::MegatronDeepspeed => "megatron_deepspeed",
            Self::Torchtitan => "torchtitan",
            Self::Fsdp => "fsdp",
            Self::Nanotron => "nanotron",
            Self::HuggingFace => "hugging_face",
            Self::Deepspeed => "deepspeed",
            Self::Internevo => "internevo",
        }
    }

    /// Returns the display name.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Megatron => "Megatron-LM",
            Self::MegatronDeepspeed => "Megatron-DeepSpeed",
            Self::Torchtitan => "torchtitan",
            Self::Fsdp => "PyTorch FSDP",
            Self::Nanotron => "nanotron",
            Self::HuggingFace => "Hugging Face",
            Self::Deepspeed => "Hugging Face with DeepSpeed",
            Self::Internevo => "InternEvo",
        }
    }

    /// Returns the framework that a text names, for example "NeMo AutoModel" or "InternEvo v0.2.1".
    /// Projects without a profile of their own stand for the framework whose layers they use.
    pub fn named(text: &str) -> Option<Self> {
        let plain: String = text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        NAMES.iter().find(|(name, _)| plain.contains(name)).map(|(_, framework)| *framework)
    }

    /// True for the trainers of Hugging Face.
    pub const fn is_hugging_face(self) -> bool {
        matches!(self, Self::HuggingFace | Self::Deepspeed)
    }

    /// True if the framework hides the communication of a sharded optimizer behind computation.
    pub const fn overlaps_sharded_optimizer(self) -> bool {
        !matches!(self, Self::Nanotron)
    }

    /// Returns the overlap of tensor-parallel communication that an option of the framework gives (`tensor_overlap`).
    /// Megatron-LM overlaps all chunks in user buffers. Asynchronous TP of torchtitan gains about half as much, by six
    /// published pairs of steps (docs/models.md, section 3).
    pub const fn tensor_overlap(self) -> Option<f64> {
        match self {
            Self::Megatron => Some(1.0),
            Self::Torchtitan => Some(0.5),
            _ => None,
        }
    }

    /// Returns the usual format of accumulated gradients. InternEvo accumulates in the format of the weights.
    pub const fn gradients(self) -> GradientFormat {
        match self {
            Self::Internevo => GradientFormat::Bf16,
            _ => GradientFormat::Fp32,
        }
    }

    /// True if the product kernels add weight gradients to the accumulated ones. PyTorch adds them
    /// with a kernel of its own.
    pub const fn fuses_weight_gradients(self) -> bool {
        matches!(self, Self::Megatron)
    }

    /// Returns the rule by which the framework assigns layers to pipeline stages by default.
    pub const fn stage_rule(self) -> StageRule {
        match self {
            Self::Nanotron => StageRule::ByParameters,
            Self::Torchtitan => StageRule::EndsAsLayers,
            Self::MegatronDeepspeed => StageRule::FirstLonger,
            _ => StageRule::Equal,
        }
    }

    /// Returns the attention kernel that the framework calls on a device with fp8 (Hopper and
    /// later) or without. `None`: the kernel of the device.
    pub const fn attention(self, has_fp8: bool) -> Option<AttentionKernel> {
        match self {
            Self::Megatron | Self::MegatronDeepspeed => None,
            // On Hopper, PyTorch and flash-attn 2 call the kernels of FlashAttention 2. On Ampere,
            // these are the kernels of the device.
            Self::Torchtitan | Self::Fsdp | Self::Nanotron | Self::HuggingFace | Self::Deepspeed | Self::Internevo => {
                if has_fp8 {
                    Some(AttentionKernel::Flash2)
                } else {
                    None
                }
            }
        }
    }

    /// Returns the attention kernel of a job that states none. Megatron-DeepSpeed has separate kernels, unless an argument
    /// selects a fused one. The current versions of all others call a fused kernel.
    pub fn usual_attention(self, has_fp8: bool) -> AttentionKernel {
        match self {
            Self::MegatronDeepspeed => AttentionKernel::Unfused,
            _ => self.fused_attention(has_fp8),
        }
    }

    /// Returns the fused attention kernel that the framework calls.
    pub fn fused_attention(self, has_fp8: bool) -> AttentionKernel {
        self.attention(has_fp8).unwrap_or_default()
    }

    const fn profile(self) -> Profile {
        match self {
            Self::Megatron | Self::MegatronDeepspeed => Profile::FUSED,
            Self::Torchtitan => Profile {
                norms: Kernels::Eager,
                rotary: Kernels::Eager,
                activation: Kernels::Eager,
                loss: Kernels::Eager,
                logit_bytes: 12.0,
                gathered_inputs: true,
                shards: Shards::Masters,
                ..Profile::FUSED
            },
            Self::Fsdp => Profile {
                activation: Kernels::Eager,
                loss: Kernels::Eager,
                logit_bytes: 16.0,
                shards: Shards::Masters,
                ..Profile::FUSED
            },
            Self::Nanotron => Profile {
                activation: Kernels::Eager,
                loss: Kernels::Eager,
                logit_bytes: 16.0,
                gathered_inputs: true,
                gradient_copy_bytes: 2.0,
                host_us: Some(NANOTRON_HOST_US),
                ..Profile::FUSED
            },
            Self::HuggingFace => Profile::HUGGING_FACE,
            Self::Deepspeed => {
                Profile { gather_us: DEEPSPEED_GATHER_US, shards: Shards::MastersAndWeights, ..Profile::HUGGING_FACE }
            }
            Self::Internevo => Profile {
                loss: Kernels::Eager,
                logit_bytes: 12.0,
                update_bytes: INTERNEVO_UPDATE_BYTES,
                owners_broadcast: true,
                ..Profile::FUSED
            },
        }
    }
}

/// Names of frameworks and of projects, longer names first: (lowercase letters and digits, framework).
const NAMES: [(&str, Framework); 23] = [
    ("megatrondeepspeed", Framework::MegatronDeepspeed),
    ("torchtitan", Framework::Torchtitan),
    ("nanotron", Framework::Nanotron),
    ("internevo", Framework::Internevo),
    ("internlm", Framework::Internevo),
    ("automodel", Framework::Fsdp),
    ("llmfoundry", Framework::Fsdp),
    ("composer", Framework::Fsdp),
    ("olmo", Framework::Fsdp),
    ("fsdp", Framework::Fsdp),
    ("megatron", Framework::Megatron),
    ("nemo", Framework::Megatron),
    ("primus", Framework::Megatron),
    ("maxtext", Framework::Megatron),
    ("neuron", Framework::Megatron),
    ("deepspeed", Framework::Deepspeed),
    ("huggingface", Framework::HuggingFace),
    ("transformers", Framework::HuggingFace),
    ("axolotl", Framework::HuggingFace),
    ("llamafactory", Framework::HuggingFace),
    ("hftrainer", Framework::HuggingFace),
    ("hfaccelerate", Framework::HuggingFace),
    ("torchtune", Framework::Fsdp),
];

/// Host time per operator of nanotron in µs. A layer with tensor parallelism takes at least 4.6 ms
/// per microbatch for forward and backward, whatever its size (Ultra-Scale Playbook, layouts with
/// TP 4 and 8 and 4,096 tokens).
const NANOTRON_HOST_US: f64 = 125.0;

/// Bytes per owned parameter that the update of InternEvo allocates: the gradient in fp32, and a
/// temporary of the multi-tensor AdamW of PyTorch.
const INTERNEVO_UPDATE_BYTES: f64 = 8.0;

/// Host time of DeepSpeed at ZeRO stage 3 per weight tensor and pass, in µs. Public steps with short sequences
/// imply 550 and 740 (docs/models.md, section 3).
const DEEPSPEED_GATHER_US: f64 = 600.0;

/// Bytes per logit if its gradient in 16 bits replaces it.
const IN_PLACE_LOGIT_BYTES: f64 = 2.0;

/// How the operators of PyTorch run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Execution {
    /// Each operator is a kernel of its own, launched by Python.
    Eager,
    /// torch.compile: memory-bound operators are fused.
    Compiled,
    /// Compiled and replayed as a CUDA graph: no host time.
    CudaGraph,
}

impl Execution {
    /// Returns the stable identifier, as in JSON.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Eager => "eager",
            Self::Compiled => "compiled",
            Self::CudaGraph => "cuda_graph",
        }
    }
}

/// Implementation of a memory-bound operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernels {
    /// One kernel per direction.
    Fused,
    /// A kernel per arithmetic operation, in fp32.
    Eager,
}

/// Order of the experts of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Experts {
    /// Grouped kernels for all experts.
    Together,
    /// A loop of the host, which reads the number of tokens of each expert.
    OneByOne,
}

/// Shards of trained weights at ZeRO stage 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shards {
    /// Master weights, and weights in the compute precision.
    MastersAndWeights,
    /// Master weights alone, converted in the gather (FSDP).
    Masters,
}

/// Properties of a framework that change time and memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Profile {
    /// Norms.
    pub norms: Kernels,
    /// Rotary positions.
    pub rotary: Kernels,
    /// Gated activation. Eager code stores the activated gate for the backward.
    pub activation: Kernels,
    /// Cross entropy.
    pub loss: Kernels,
    /// Bytes per logit at the peak of the loss.
    pub logit_bytes: f64,
    /// With sequence parallelism, the gathered inputs of products are stored. Otherwise the
    /// backward gathers them again.
    pub gathered_inputs: bool,
    /// Bytes per parameter of gradients in the weight format, in addition to the accumulated ones.
    pub gradient_copy_bytes: f64,
    /// Bytes per parameter that the optimizer step allocates on the owner of the parameter.
    pub update_bytes: f64,
    /// A sharded optimizer divides whole tensors. Gradients are all-reduced, and after the step every
    /// owner broadcasts its weights, which nothing hides.
    pub owners_broadcast: bool,
    /// Host time per operator in µs. `None`: the value of the device.
    pub host_us: Option<f64>,
    /// Order of the experts of a layer.
    pub experts: Experts,
    /// Host time to gather and release a sharded weight tensor, in µs per pass.
    pub gather_us: f64,
    /// Shards at ZeRO stage 3.
    pub shards: Shards,
}

impl Profile {
    /// Fused kernels, as in Megatron-LM.
    pub const FUSED: Self = Self {
        norms: Kernels::Fused,
        rotary: Kernels::Fused,
        activation: Kernels::Fused,
        loss: Kernels::Fused,
        logit_bytes: 6.0,
        gathered_inputs: false,
        gradient_copy_bytes: 0.0,
        update_bytes: 0.0,
        owners_broadcast: false,
        host_us: None,
        experts: Experts::Together,
        gather_us: 0.0,
        shards: Shards::MastersAndWeights,
    };

    /// Modules of Transformers.
    const HUGGING_FACE: Self = Self {
        norms: Kernels::Eager,
        rotary: Kernels::Eager,
        activation: Kernels::Eager,
        loss: Kernels::Eager,
        logit_bytes: 16.0,
        experts: Experts::OneByOne,
        shards: Shards::Masters,
        ..Self::FUSED
    };
}

impl Training {
    /// Returns the profile of the framework, after the setting of execution.
    pub const fn profile(&self) -> Profile {
        let mut profile = self.framework.profile();
        if self.in_place_loss {
            profile.logit_bytes = IN_PLACE_LOGIT_BYTES;
        }
        if self.grouped_experts {
            profile.experts = Experts::Together;
        }
        let (kernels, host_us) = match self.execution {
            None => return profile,
            Some(Execution::Eager) => (Kernels::Eager, profile.host_us),
            Some(Execution::Compiled) => (Kernels::Fused, profile.host_us),
            Some(Execution::CudaGraph) => (Kernels::Fused, Some(0.0)),
        };
        Profile { norms: kernels, rotary: kernels, activation: kernels, loss: kernels, host_us, ..profile }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_frameworks() {
        for (text, framework) in [
            ("Megatron-LM", Framework::Megatron),
            ("Megatron-DeepSpeed", Framework::MegatronDeepspeed),
            ("torchtitan + torchao", Framework::Torchtitan),
            ("NeMo AutoModel", Framework::Fsdp),
            ("InternEvo v0.2.1", Framework::Internevo),
            ("Hugging Face Transformers", Framework::HuggingFace),
            ("HF Trainer", Framework::HuggingFace),
            ("DeepSpeed ZeRO-3", Framework::Deepspeed),
        ] {
            assert_eq!(Framework::named(text), Some(framework), "{text}");
        }
        assert_eq!(Framework::named("typo"), None);
        for framework in Framework::ALL {
            assert_eq!(Framework::named(framework.id()), Some(framework));
        }
    }

    #[test]
    fn a_loss_in_place_has_one_copy_of_the_logits() {
        let bytes = |in_place_loss, execution| {
            let framework = Framework::HuggingFace;
            Training { in_place_loss, framework, execution, ..Training::default() }.profile().logit_bytes
        };
        for execution in [None, Some(Execution::Compiled)] {
            assert!((bytes(false, execution) - 16.0).abs() < 1e-12 && (bytes(true, execution) - 2.0).abs() < 1e-12);
        }
    }

    #[test]
    fn execution_replaces_the_kernels_of_a_framework() {
        let profile = |framework, execution| Training { framework, execution, ..Training::default() }.profile();
        let eager = profile(Framework::Torchtitan, None);
        let compiled = profile(Framework::Torchtitan, Some(Execution::Compiled));
        assert_eq!((eager.norms, compiled.norms), (Kernels::Eager, Kernels::Fused));
        assert_eq!(compiled.logit_bytes.to_bits(), eager.logit_bytes.to_bits());
        assert_eq!(profile(Framework::Nanotron, Some(Execution::CudaGraph)).host_us, Some(0.0));
        assert_eq!(profile(Framework::Megatron, Some(Execution::Eager)).loss, Kernels::Eager);
    }
}
