//! Names of scenario fields in the texts of the command line.

use api::job_config::ReadSetting;
use planner::scenario::FieldError;

/// Fields with plain names, and the settings of configurations that state them.
const FIELDS: [(&str, &str, &[&str]); 29] = [
    ("/layout/tensor", "tensor parallelism", &["tensor parallelism"]),
    ("/layout/pipeline", "pipeline parallelism", &["pipeline parallelism"]),
    ("/layout/chunks", "model chunks of a rank", &["model chunks of a rank"]),
    (
        "/layout/microbatch",
        "microbatch",
        &["sequences of a microbatch", "sequences of a replica", "sequences of a device"],
    ),
    ("/layers_per_stage", "layers of the stages", &["layers of the stages", "layers of a model chunk"]),
    ("/training/context_parallel", "context parallelism", &["context parallelism", "context parallelism (Ulysses)"]),
    ("/training/context_exchange", "exchange of context parallelism", &["exchange of context parallelism"]),
    ("/training/expert_parallel", "expert parallelism", &["expert parallelism"]),
    ("/training/expert_tensor_parallel", "tensor parallelism of experts", &["tensor parallelism of experts"]),
    ("/training/recompute", "recomputation", &["recomputation"]),
    ("/training/recompute_layers", "layers with recomputation", &["layers with recomputation"]),
    ("/training/recompute_modules", "recomputed modules", &["recomputed modules"]),
    ("/training/fp8_recipe", "recipe of fp8", &["recipe of fp8"]),
    ("/training/fp8_weights", "fp8 weights", &["fp8 weights"]),
    ("/training/fp8_activation_input", "fp8 inputs of activation functions", &["fp8 inputs of activation functions"]),
    ("/training/zero", "ZeRO stage", &["ZeRO stage", "sharding"]),
    ("/training/attention", "attention kernel", &["attention kernel"]),
    ("/training/execution", "execution", &["torch.compile", "fused kernels"]),
    ("/training/gradients", "format of gradients", &["format of gradients"]),
    (
        "/training/data_overlap",
        "overlap of gradient communication",
        &["overlap of communication", "overlap of gradient communication"],
    ),
    ("/training/tensor_overlap", "overlap of tensor-parallel communication", &["overlap"]),
    ("/workload/global_batch", "global batch", &["global batch"]),
    ("/workload/context_length", "sequence length", &["sequence length"]),
    ("/cluster/nodes", "nodes", &["nodes", "devices"]),
    ("/cluster/devices_per_node", "devices of a node", &["devices of a node"]),
    ("/cluster/intra_node/gb_per_s", "bandwidth within a node, GB/s", &[]),
    ("/cluster/inter_node/gb_per_s", "bandwidth between nodes, GB/s", &[]),
    ("/free", "free settings", &[]),
    ("/max_memory_risk", "highest risk of running out of memory", &[]),
];

/// Sizes of a module: the end of the field, and the setting.
const SIZES: [(&str, &str); 6] = [
    ("layers", "layers"),
    ("hidden", "width"),
    ("heads", "heads"),
    ("kv_heads", "key and value heads"),
    ("ffn", "width of the MLP"),
    ("vocab", "vocabulary"),
];

/// Returns a plain name of a field.
pub(crate) fn plain(pointer: &str) -> String {
    if let Some((_, name, _)) = FIELDS.iter().find(|(field, ..)| *field == pointer) {
        return (*name).to_owned();
    }
    let size = pointer.starts_with("/model/").then(|| pointer.rsplit('/').next()).flatten();
    if let Some((_, name)) = SIZES.iter().find(|(field, _)| Some(*field) == size) {
        return format!("{name} of the model");
    }
    let terms: Vec<&str> = pointer.split('/').filter(|term| !term.is_empty() && term.parse::<u32>().is_err()).collect();
    // The section is part of the name of a field that it contains.
    let terms = if terms.len() > 1 && ["training", "layout"].contains(&terms[0]) { &terms[1..] } else { &terms[..] };
    if terms.is_empty() { "scenario".to_owned() } else { terms.join(" ").replace('_', " ") }
}

/// Returns the key of a configuration that states a field, or its plain name.
pub(crate) fn of_job(pointer: &str, read: &[ReadSetting]) -> String {
    let size = pointer.starts_with("/model/").then(|| pointer.rsplit('/').next()).flatten();
    let settings: Vec<&str> = FIELDS
        .iter()
        .filter(|(field, ..)| *field == pointer)
        .flat_map(|(_, _, settings)| settings.iter().copied())
        .chain(SIZES.iter().filter(|(field, _)| Some(*field) == size).map(|(_, setting)| *setting))
        .collect();
    let stated = settings.iter().find_map(|setting| read.iter().find(|read| read.setting == *setting));
    stated.map_or_else(|| plain(pointer), |read| read.key.clone())
}

/// Returns an argument with its dashes. Plain names and variables have none.
pub(crate) fn argument(name: &str) -> String {
    let is_argument = name.contains('-') && !name.contains(' ') && !name.starts_with(['-', '$', '#']);
    if is_argument { format!("--{name}") } else { name.to_owned() }
}

/// Returns the path of a field in a scenario file: `layout.tensor`.
pub(crate) fn in_scenario(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".")
}

/// Describes an error. `name` gives the name of a field.
pub(crate) fn describe(error: &FieldError, name: impl Fn(&str) -> String) -> String {
    if error.pointer.is_empty() { error.detail.clone() } else { format!("{}: {}", name(&error.pointer), error.detail) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_key_of_the_file_or_a_plain_name() {
        let read = [("--tensor-model-parallel-size", "tensor parallelism"), ("num_attention_heads", "heads")];
        let read = read.map(|(key, setting)| ReadSetting {
            key: key.to_owned(),
            value: "8".to_owned(),
            setting: setting.to_owned(),
        });
        for (pointer, name) in [
            ("/layout/tensor", "--tensor-model-parallel-size"),
            ("/layout/pipeline", "pipeline parallelism"),
            ("/model/modules/0/heads", "num_attention_heads"),
            ("/model/modules/0/ffn", "width of the MLP of the model"),
            ("/training/optimizer_offload", "optimizer offload"),
            ("/cluster/device/memory_gib", "cluster device memory gib"),
            ("", "scenario"),
        ] {
            assert_eq!(of_job(pointer, &read), name, "{pointer}");
        }
        assert_eq!(in_scenario("/cluster/nodes"), "cluster.nodes");
        assert_eq!(argument("tensor-model-parallel-size"), "--tensor-model-parallel-size");
        assert_eq!(
            (argument("tensor parallelism"), argument("$TP")),
            ("tensor parallelism".to_owned(), "$TP".to_owned())
        );
        let error = FieldError::new("/layout/tensor", "8 does not divide 36 heads".to_owned());
        assert_eq!(describe(&error, plain), "tensor parallelism: 8 does not divide 36 heads");
    }
}
