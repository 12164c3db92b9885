//! Configurations in torchtitan's code, by the names that `--config` and `CONFIG` state.

use crate::job_config::JobConfigError;
use crate::job_config::keys::Keys;

/// Keys of the configuration, without its model.
type Settings = &'static [(&'static str, &'static str)];

/// Name of a configuration, its model, the flavor of the model, and the other settings.
const KNOWN: [(&str, &str, &str, Settings); 14] = [
    (
        "llama3_8b",
        "llama3",
        "8B",
        &[
            ("training.local_batch_size", "1"),
            ("training.seq_len", "8192"),
            ("activation_checkpoint.mode", "selective"),
            ("activation_checkpoint.selective_ac_option", "op"),
        ],
    ),
    (
        "llama3_70b",
        "llama3",
        "70B",
        &[
            ("training.local_batch_size", "8"),
            ("training.seq_len", "8192"),
            ("parallelism.tensor_parallel_degree", "8"),
            ("activation_checkpoint.mode", "full"),
        ],
    ),
    (
        "llama3_405b",
        "llama3",
        "405B",
        &[
            ("training.local_batch_size", "2"),
            ("training.seq_len", "8192"),
            ("parallelism.tensor_parallel_degree", "8"),
            ("parallelism.enable_async_tensor_parallel", "true"),
            ("activation_checkpoint.mode", "full"),
            ("compile.enable", "true"),
            ("model.converters", "float8"),
        ],
    ),
    (
        "deepseek_v3_16b",
        "deepseek_v3",
        "16B",
        &[
            ("training.local_batch_size", "4"),
            ("training.seq_len", "4096"),
            ("parallelism.pipeline_parallel_schedule", "Interleaved1F1B"),
            ("parallelism.expert_parallel_degree", "8"),
            ("activation_checkpoint.mode", "selective"),
            ("activation_checkpoint.selective_ac_option", "op"),
        ],
    ),
    (
        "deepseek_v3_671b",
        "deepseek_v3",
        "671B",
        &[
            ("training.local_batch_size", "4"),
            ("training.seq_len", "4096"),
            ("parallelism.pipeline_parallel_schedule", "Interleaved1F1B"),
            ("parallelism.expert_parallel_degree", "2"),
            ("activation_checkpoint.mode", "selective"),
            ("activation_checkpoint.selective_ac_option", "op"),
            ("model.converters", "float8"),
        ],
    ),
    (
        "qwen3_0_6b",
        "qwen3",
        "0.6B",
        &[
            ("training.local_batch_size", "4"),
            ("training.seq_len", "4096"),
            ("activation_checkpoint.mode", "selective"),
            ("activation_checkpoint.selective_ac_option", "op"),
        ],
    ),
    (
        "qwen3_1_7b",
        "qwen3",
        "1.7B",
        &[
            ("training.local_batch_size", "4"),
            ("training.seq_len", "4096"),
            ("activation_checkpoint.mode", "selective"),
            ("activation_checkpoint.selective_ac_option", "op"),
        ],
    ),
    (
        "qwen3_14b",
        "qwen3",
        "14B",
        &[("training.local_batch_size", "4"), ("training.seq_len", "4096"), ("activation_checkpoint.mode", "full")],
    ),
    (
        "qwen3_30b_a3b",
        "qwen3",
        "30B-A3B",
        &[("training.local_batch_size", "2"), ("training.seq_len", "4096"), ("activation_checkpoint.mode", "full")],
    ),
    (
        "qwen3_32b",
        "qwen3",
        "32B",
        &[("training.local_batch_size", "2"), ("training.seq_len", "4096"), ("activation_checkpoint.mode", "full")],
    ),
    (
        "llama4_17bx16e",
        "llama4",
        "17bx16e",
        &[
            ("training.local_batch_size", "8"),
            ("training.seq_len", "8192"),
            ("activation_checkpoint.mode", "full"),
            ("parallelism.tensor_parallel_degree", "8"),
        ],
    ),
    (
        "llama4_17bx128e",
        "llama4",
        "17bx128e",
        &[
            ("training.local_batch_size", "1"),
            ("training.seq_len", "8192"),
            ("activation_checkpoint.mode", "full"),
            ("parallelism.tensor_parallel_degree", "8"),
            ("parallelism.pipeline_parallel_degree", "4"),
        ],
    ),
    (
        "gpt_oss_20b",
        "gpt_oss",
        "20b",
        &[("training.local_batch_size", "1"), ("training.seq_len", "8192"), ("activation_checkpoint.mode", "full")],
    ),
    (
        "gpt_oss_120b",
        "gpt_oss",
        "120b",
        &[("training.local_batch_size", "1"), ("training.seq_len", "8192"), ("activation_checkpoint.mode", "full")],
    ),
];

/// Returns the key, the argument and the value that name a configuration in code; `None` if a job file or nothing is
/// named.
pub(super) fn named(command: &Keys) -> Option<(&'static str, &'static str, String)> {
    let stated = [("config", "--config"), ("$CONFIG", "CONFIG")].into_iter().find(|(key, _)| command.has(key));
    let (key, argument) = stated?;
    let text = command.peek(key)?.split_whitespace().next()?;
    let name = text.rsplit(['/', '\\']).next()?.to_owned();
    let is_file = name.contains('.') || name.contains('$') || name.is_empty();
    (!is_file).then_some((key, argument, name))
}

/// Adds the settings of the configuration that a command names, except for those that it states itself.
pub(super) fn add(command: &mut Keys) {
    let Some((key, _, name)) = named(command).filter(|_| !command.has("model.name")) else { return };
    let Some((_, model, flavor, settings)) = KNOWN.into_iter().find(|(known, ..)| *known == name) else { return };
    // Newer versions count the local batch in tokens, under another name.
    let renamed = [
        ("training.local_batch_size", "training.num_tokens_per_microbatch_per_dp_rank"),
        ("training.seq_len", "training.max_context_length"),
    ];
    let is_open = |key: &str| {
        let newer = renamed.into_iter().find(|(old, _)| *old == key).map_or(key, |(_, new)| new);
        !command.has(key) && !command.has(newer)
    };
    let open: Vec<&(&str, &str)> = settings.iter().filter(|(key, _)| is_open(key)).collect();
    let listed: Vec<String> = open.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    for (key, value) in open {
        command.derive(key, value, "");
    }
    command.derive("model.name", model, key);
    command.derive("model.flavor", flavor, "");
    command
        .assume(format!("The configuration {name} of torchtitan's code has {model} {flavor}, {}.", listed.join(", ")));
}

/// Error for a configuration that is not known.
pub(super) fn unknown(argument: &str, name: &str) -> JobConfigError {
    let known: Vec<&str> = KNOWN.iter().map(|(known, ..)| *known).collect();
    let detail = format!(
        "the configuration {name} is in torchtitan's code; known are {}; for another one, state --model.name and \
         --model.flavor",
        known.join(", ")
    );
    JobConfigError::Value { key: argument.to_owned(), detail }
}
