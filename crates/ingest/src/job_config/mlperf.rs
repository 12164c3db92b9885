//! Variables of `MLPerf` Training submissions, read as Megatron-LM arguments.

use planner::model::Adapters;
use planner::training::Precision;

use super::keys::Keys;
use super::settings::{Batch, Settings};
use super::{JobConfigError, megatron};

/// Variables with their arguments.
const NAMES: [(&str, &str); 19] = [
    ("$ASYM_PP_EMBED", "account-for-embedding-in-pipeline-split"),
    ("$ASYM_PP_LOSS", "account-for-loss-in-pipeline-split"),
    ("$TENSOR_MODEL_PARALLEL", "tensor-model-parallel-size"),
    ("$TP", "tensor-model-parallel-size"),
    ("$PIPELINE_MODEL_PARALLEL", "pipeline-model-parallel-size"),
    ("$PP", "pipeline-model-parallel-size"),
    ("$INTERLEAVED_PIPELINE", "num-virtual-stages-per-pipeline-rank"),
    ("$CONTEXT_PARALLEL", "context-parallel-size"),
    ("$CP", "context-parallel-size"),
    ("$EXPERT_PARALLEL", "expert-model-parallel-size"),
    ("$MICRO_BATCH_SIZE", "micro-batch-size"),
    ("$MBS", "micro-batch-size"),
    ("$DGXNNODES", "nnodes"),
    ("$DGXNGPU", "nproc-per-node"),
    ("$USE_DIST_OPTIMIZER", "use-distributed-optimizer"),
    ("$OVERLAP_GRAD_REDUCE", "overlap-grad-reduce"),
    ("$OVERLAP_PARAM_GATHER", "overlap-param-gather"),
    ("$TP_COMM_OVERLAP", "tp-comm-overlap"),
    ("$SP", "sequence-parallel"),
];

pub(super) fn is_job(keys: &Keys) -> bool {
    keys.has("$DGXNNODES") && (keys.has("$MINIBS") || keys.has("$TENSOR_MODEL_PARALLEL") || keys.has("$TP"))
}

pub(super) fn read(keys: &mut Keys) -> Result<Settings, JobConfigError> {
    keys.rename(|key| NAMES.into_iter().find(|(from, _)| *from == key).map(|(_, to)| to.to_owned()));
    if keys.flag(&["$FP8"], "precision").unwrap_or(false) {
        keys.derive("fp8-format", "hybrid", "$FP8");
    }
    for name in ["$FP8_PARAM_GATHER", "$FP8_PARAMS"] {
        if keys.flag(&[name], "fp8 weights").unwrap_or(false) {
            keys.derive("fp8-param-gather", "true", name);
        }
    }
    if keys.flag(&["$FP8_ACT"], "fp8 inputs of activation functions").unwrap_or(false) {
        keys.derive("activation-func-fp8-input-store", "true", "$FP8_ACT");
    }
    keys.assume("The precision outside fp8 products is bf16.");
    keys.derive("bf16", "true", "");
    // The files that the variables configure set these, and are not part of the submission.
    for (overlap, needed, sentence) in [
        ("tp-comm-overlap", "sequence-parallel", "SP is not stated. It is on: TP_COMM_OVERLAP needs it."),
        (
            "overlap-param-gather",
            "use-distributed-optimizer",
            "USE_DIST_OPTIMIZER is not stated. It is on: OVERLAP_PARAM_GATHER needs it.",
        ),
    ] {
        let is_on =
            keys.peek(overlap).is_some_and(|value| matches!(value.trim().to_ascii_lowercase().as_str(), "true" | "1"));
        if is_on && !keys.has(needed) {
            keys.derive(needed, "true", "");
            keys.assume(sentence);
        }
    }
    let of_replica = keys.count(&["$MINIBS"], "sequences of a replica")?;
    let size = keys.text(&["$MODEL_SIZE"], "model");
    let is_lora = keys.has("$LORA_A2A");
    let mut settings = megatron::read_job(keys)?;
    settings.batch = of_replica.map_or(settings.batch, Batch::Replica);
    if is_lora {
        keys.assume("The rules of the benchmark state adapters of rank 16 on the products of attention.");
        if settings.precision == Some(Precision::Fp8) && !settings.fp8.has_weights {
            keys.assume("The frozen weights are in fp8, as in NVIDIA's implementation of the benchmark with FP8.");
            settings.fp8.has_weights = true;
        }
        settings.adapters = Some(Adapters { rank: 16, mlp: false, base_bits: None });
    }
    // The benchmarks that the variables identify.
    let benchmark = match size.as_deref() {
        Some("405b") => Some(("MODEL_SIZE", "llama-3.1-405b")),
        _ if is_lora => Some(("LORA_A2A", "llama-2-70b")),
        _ => None,
    };
    if let Some((variable, name)) = benchmark {
        keys.assume("The benchmark has sequences of 8192 tokens.");
        settings.sequence = Some(8192);
        settings.model_name = Some((variable, name.to_owned()));
    }
    Ok(settings)
}
