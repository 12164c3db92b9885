//! Arguments of Megatron-LM. Other formats give them other names.

use planner::scenario::Scenario;
use planner::training::{AttentionKernel, ContextExchange, Framework, GradientFormat, MomentFormat, Recompute};
use serde_json::Value;

use super::{Job, Setting, Target};
use crate::checks::expected::{GLOBAL_BATCH, REPLICAS, STAGES};
use crate::export::megatron::stage_arguments;

/// Keys of the ZeRO stage of DeepSpeed.
const DEEPSPEED_STAGE: [&str; 2] = ["zero-stage", "deepspeed.zero_optimization.stage"];
/// Number of model chunks of a rank.
pub(super) const CHUNKS: &str = "num-virtual-stages-per-pipeline-rank";
const LAYERS_PER_CHUNK: &str = "num-layers-per-virtual-pipeline-stage";

/// Setting of a script that Megatron-LM refuses with FSDP.
const ONE_CONNECTION: [&str; 2] = ["CUDA_DEVICE_MAX_CONNECTIONS=1", "CUDA_DEVICE_MAX_CONNECTIONS:-1"];

/// Returns the settings of a field in Megatron-DeepSpeed, which has other arguments for sequence and expert parallelism,
/// and none for several newer settings.
fn deepspeed_settings(job: &Job<'_>, target: &Target, field: &str) -> Option<Vec<Setting>> {
    let training = &target.scenario.training;
    match field {
        // DeepSpeed takes the stage from its file.
        "/training/zero" | "/training/distributed_optimizer"
            if job.states(&["deepspeed_config"]) && !job.mentions("zero_optimization") =>
        {
            None
        }
        "/training/zero" | "/training/distributed_optimizer" => {
            let stage = training.zero_stage();
            let document = document(job, "zero_optimization", "zero_optimization.stage", stage)?;
            Some([Setting::set(&DEEPSPEED_STAGE, stage)].into_iter().chain(document).collect())
        }
        "/layout/microbatch" | GLOBAL_BATCH | REPLICAS => {
            let mut settings = arguments(target, field)?;
            let batches = [
                ("train_micro_batch_size_per_gpu", target.scenario.layout.microbatch),
                ("train_batch_size", Some(target.scenario.workload.global_batch)),
                ("gradient_accumulation_steps", target.accumulation()),
            ];
            for (name, value) in batches.into_iter().filter(|(name, _)| job.mentions(name)) {
                settings.extend(document(job, name, name, value?)?);
            }
            Some(settings)
        }
        "/layout/tensor" | "/layout/pipeline" | "/training/sequence_parallel" => arguments(target, field),
        "/training/context_parallel" | "/training/context_exchange"
            if training.context_exchange == ContextExchange::AllToAll || training.context_parallel == 1 =>
        {
            Some(vec![Setting::set(&["ds-sequence-parallel-size"], training.context_parallel)])
        }
        "/training/expert_parallel" => {
            Some(vec![Setting::set(&["moe-expert-parallel-size"], training.expert_parallel)])
        }
        "/training/recompute" | "/training/recompute_layers" if training.recompute_layers.is_none() => {
            let is_full = match training.recompute {
                Recompute::Full => true,
                Recompute::None => false,
                Recompute::Selective | Recompute::Operators => return None,
            };
            let names = ["checkpoint-activations", "deepspeed-activation-checkpointing"];
            let newer = ["recompute-granularity", "recompute-method", "recompute-num-layers", "recompute-activations"];
            let newer = newer.map(|name| Setting::if_stated(&[name], Value::Null));
            Some(names.map(|name| switch(name, is_full)).into_iter().chain(newer).collect())
        }
        _ => None,
    }
}

/// Returns the setting of a document of DeepSpeed, in a file or in the text of the script; none if no text mentions its name.
/// `None` if the value is not found.
fn document(job: &Job<'_>, name: &str, path: &str, value: u32) -> Option<Vec<Setting>> {
    let keys = ["inline", "deepspeed"].map(|prefix| format!("{prefix}.{path}"));
    let keys = keys.each_ref().map(String::as_str);
    match (job.mentions(name), job.states(&keys)) {
        (false, _) => Some(Vec::new()),
        (true, true) => Some(vec![Setting::if_stated(&keys, value)]),
        (true, false) => None,
    }
}

/// Arguments for the layers of the stages.
const STAGE_ARGUMENTS: [&str; 5] = [
    "pipeline-model-parallel-layout",
    "decoder-first-pipeline-num-layers",
    "decoder-last-pipeline-num-layers",
    "account-for-embedding-in-pipeline-split",
    "account-for-loss-in-pipeline-split",
];

pub(super) fn settings(job: &Job<'_>, target: &Target, field: &str) -> Option<Vec<Setting>> {
    let Scenario { training, layout, .. } = &target.scenario;
    let stage = training.zero_stage();
    if training.framework == Framework::MegatronDeepspeed {
        return deepspeed_settings(job, target, field);
    }
    match field {
        // Megatron-LM refuses FSDP with one connection of kernels or the old wrapper, and PyTorch's FSDP with a pipeline.
        "/training/zero"
            if stage > 1 && (job.states(&["DDP-impl"]) || ONE_CONNECTION.iter().any(|text| job.mentions(text))) =>
        {
            None
        }
        "/layout/pipeline" | "/layout/chunks" if job.states(&["use-torch-fsdp2"]) && layout.pipeline > Some(1) => None,
        "/training/zero" | "/training/distributed_optimizer" if job.states(&DEEPSPEED_STAGE) => {
            Some(vec![Setting::if_stated(&DEEPSPEED_STAGE, stage)])
        }
        "/layout/chunks" if !job.states(&[CHUNKS]) => chunks_by_layers(target),
        STAGES => Some(stage_layers(target)),
        // The optimizer with other formats is a distributed one.
        "/training/moments" if stage == 1 && training.moments == MomentFormat::Bf16 => Some(vec![
            Setting::set(&["use-precision-aware-optimizer"], true),
            Setting::set(&["exp-avg-dtype"], "bf16"),
            Setting::set(&["exp-avg-sq-dtype"], "bf16"),
        ]),
        "/training/recompute_modules" => Some(vec![Setting::set(&["recompute-modules"], modules(target)?.join(" "))]),
        _ => arguments(target, field),
    }
}

/// Returns the arguments of a field in a YAML file, in which modules are a list. Megatron-LM refuses a text of words.
pub(super) fn yaml_arguments(target: &Target, field: &str) -> Option<Vec<Setting>> {
    match field {
        "/training/recompute_modules" => Some(vec![Setting::set(&["recompute-modules"], modules(target)?)]),
        _ => arguments(target, field),
    }
}

/// Returns the arguments of a field. The chunks are counted.
pub(super) fn arguments(target: &Target, field: &str) -> Option<Vec<Setting>> {
    let Scenario { layout, training, workload, .. } = &target.scenario;
    let set = |name, value: u32| Some(vec![Setting::set(&[name], value)]);
    match field {
        "/layout/tensor" => {
            let mut settings = vec![Setting::set(&["tensor-model-parallel-size"], layout.tensor?)];
            // Megatron-LM refuses the overlap without tensor parallelism.
            settings.extend((layout.tensor == Some(1)).then(|| Setting::if_stated(&["tp-comm-overlap"], false)));
            Some(settings)
        }
        "/layout/pipeline" => set("pipeline-model-parallel-size", layout.pipeline?),
        "/layout/microbatch" => set("micro-batch-size", layout.microbatch?),
        "/layout/chunks" => Some(match layout.chunks.filter(|&chunks| chunks > 1) {
            Some(chunks) => vec![Setting::set(&[CHUNKS], chunks)],
            None => vec![Setting::if_stated(&[CHUNKS], Value::Null)],
        }),
        GLOBAL_BATCH => set("global-batch-size", workload.global_batch),
        REPLICAS => Some(Vec::new()),
        "/training/context_parallel" => set("context-parallel-size", training.context_parallel),
        "/training/context_exchange" => Some(vec![match training.context_exchange {
            ContextExchange::AllToAll => Setting::set(&["cp-comm-type"], "a2a"),
            ContextExchange::Ring => Setting::if_stated(&["cp-comm-type"], "p2p"),
        }]),
        "/training/expert_parallel" => set("expert-model-parallel-size", training.expert_parallel),
        "/training/expert_tensor_parallel" if training.expert_tensor_parallel == Some(1) => {
            set("expert-tensor-parallel-size", 1)
        }
        "/training/sequence_parallel" => Some(vec![switch("sequence-parallel", training.sequence_parallel)]),
        "/training/tensor_overlap" => Some(vec![switch("tp-comm-overlap", training.tensor_overlap > 0.0)]),
        "/training/data_overlap" => {
            let is_on = training.data_overlap > 0.0;
            Some([switch("overlap-grad-reduce", is_on)].into_iter().chain(gathered_weights(target)).collect())
        }
        "/training/gradients" => Some(vec![switch("grad-reduce-in-bf16", training.gradients == GradientFormat::Bf16)]),
        "/training/attention" if matches!(training.attention, AttentionKernel::Flash | AttentionKernel::Flash2) => {
            Some(if training.framework == Framework::MegatronDeepspeed {
                vec![switch("use-flash-attn-v2", true)]
            } else {
                // Local layers have no fused attention.
                let layers = Setting::if_stated(&["transformer-impl"], "transformer_engine");
                vec![Setting::set(&["attention-backend"], "flash"), layers]
            })
        }
        // The offload is one of the precision-aware optimizer, which is a distributed one.
        "/training/optimizer_offload" if training.optimizer_offload > 0.0 => (training.zero_stage() >= 1).then(|| {
            vec![
                Setting::set(&["optimizer-cpu-offload"], true),
                Setting::set(&["optimizer-offload-fraction"], training.optimizer_offload),
                Setting::set(&["use-precision-aware-optimizer"], true),
            ]
        }),
        "/training/optimizer_offload" => Some(vec![Setting::if_stated(&["optimizer-cpu-offload"], false)]),
        "/training/recompute" | "/training/recompute_layers" => Some(recompute(target)),
        "/training/zero" | "/training/distributed_optimizer" => {
            Some(sharding(training.zero_stage()).into_iter().chain(gathered_weights(target)).collect())
        }
        "/training/shard_degree" => set("num-distributed-optimizer-instances", target.shards_and_copies()?.1),
        _ => None,
    }
}

/// Returns the switch that hides the gathering of weights, for a sharded optimizer whose whole communication is hidden.
fn gathered_weights(target: &Target) -> Option<Setting> {
    let training = &target.scenario.training;
    let is_sharded = training.zero_stage() >= 1 && training.framework == Framework::Megatron;
    (is_sharded && training.data_overlap >= 1.0).then(|| switch("overlap-param-gather", true))
}

/// Returns the setting of a switch that is off by default.
fn switch(name: &str, is_on: bool) -> Setting {
    if is_on { Setting::set(&[name], true) } else { Setting::if_stated(&[name], false) }
}

/// Returns the layers of the stages. Arguments with other numbers of layers are taken away.
fn stage_layers(target: &Target) -> Vec<Setting> {
    let stages = target.stages().unwrap_or_default();
    let arguments = stage_arguments(&stages, target.scenario.layout.chunks.unwrap_or(1)).unwrap_or_default();
    let has_layout = arguments.iter().any(|(name, _)| *name == STAGE_ARGUMENTS[0]);
    // A layout counts its chunks.
    let counted = [CHUNKS, LAYERS_PER_CHUNK].into_iter().filter(|_| has_layout);
    let is_other = |name: &&str| !arguments.iter().any(|(argument, _)| argument == name);
    let others = STAGE_ARGUMENTS.into_iter().filter(is_other).chain(counted);
    let taken: Vec<Setting> = others.map(|name| Setting::if_stated(&[name], Value::Null)).collect();
    taken.into_iter().chain(arguments.into_iter().map(|(name, value)| Setting::set(&[name], value))).collect()
}

pub(super) fn chunks_by_layers(target: &Target) -> Option<Vec<Setting>> {
    let setting = match target.scenario.layout.chunks.filter(|&chunks| chunks > 1) {
        Some(_) => Setting::set(&[LAYERS_PER_CHUNK], target.layers_per_chunk()?),
        None => Setting::if_stated(&[LAYERS_PER_CHUNK], Value::Null),
    };
    Some(vec![setting])
}

/// Returns the modules of selective recomputation; `None` if there are none.
fn modules(target: &Target) -> Option<Vec<&'static str>> {
    let modules = &target.scenario.training.recompute_modules;
    let names: Vec<&str> = modules.iter().map(|module| module.id()).collect();
    (!names.is_empty()).then_some(names)
}

fn recompute(target: &Target) -> Vec<Setting> {
    let training = &target.scenario.training;
    let value = |name, value: Option<Value>| match value {
        Some(value) => Setting::set(&[name], value),
        None => Setting::if_stated(&[name], Value::Null),
    };
    let (granularity, method, layers) = match (training.recompute, training.recompute_layers) {
        (Recompute::None, _) => (None, None, None),
        (Recompute::Selective | Recompute::Operators, _) => (Some("selective".into()), None, None),
        // Without a number of layers, full recomputation needs a method.
        (Recompute::Full, None) => (Some("full".into()), Some("uniform".into()), Some(1.into())),
        (Recompute::Full, Some(layers)) => (Some("full".into()), Some("block".into()), Some(layers.into())),
    };
    let older = ["recompute-activations", "checkpoint-activations", "deepspeed-activation-checkpointing"];
    let older = older.map(|name| Setting::if_stated(&[name], false));
    let newer = [
        value("recompute-granularity", granularity),
        value("recompute-method", method),
        value("recompute-num-layers", layers),
    ];
    older.into_iter().chain(newer).collect()
}

fn sharding(stage: u32) -> Vec<Setting> {
    let other = ["use-torch-fsdp2", "use-custom-fsdp"].map(|name| Setting::if_stated(&[name], false));
    let strategy = "data-parallel-sharding-strategy";
    let own = match stage {
        0 | 1 => vec![
            switch("use-megatron-fsdp", false),
            Setting::if_stated(&[strategy], Value::Null),
            switch("use-distributed-optimizer", stage == 1),
        ],
        stage => vec![
            switch("use-megatron-fsdp", true),
            Setting::set(&[strategy], if stage == 2 { "optim_grads" } else { "optim_grads_params" }),
            Setting::set(&["ckpt-format"], "fsdp_dtensor"),
        ],
    };
    other.into_iter().chain(own).collect()
}
