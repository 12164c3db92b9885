//! Changes of a scenario as settings of a configuration file.

use api::job_config::ConfigFormat;
use planner::fit::{Change, FieldChange};
use planner::outcome::Layout;
use planner::scenario::Scenario;
use serde_json::Value;

/// A setting of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Setting {
    /// Command-line argument, with a value unless it is a flag.
    Argument { name: &'static str, value: Option<String> },
    /// Command-line argument that is removed.
    Removed { name: &'static str },
    /// Key in a section of a TOML file.
    Key { section: &'static str, key: &'static str, value: String },
}

/// Returns true if changes of a format have settings.
pub(super) const fn has_settings(format: ConfigFormat) -> bool {
    matches!(format, ConfigFormat::Megatron | ConfigFormat::Torchtitan)
}

/// Returns the settings of a change, or `None` if the format has none for one of its fields.
pub(super) fn settings(format: ConfigFormat, scenario: &Scenario, change: &Change) -> Option<Vec<Setting>> {
    let settings_of = |field: &FieldChange| match format {
        ConfigFormat::Megatron => megatron(scenario, field),
        ConfigFormat::Torchtitan => torchtitan(scenario, field).map(|setting| vec![setting]),
        _ => None,
    };
    // Without a number of layers, Megatron-LM needs a method for full recomputation.
    let is_full = change.fields.iter().any(|field| field.pointer == "/training/recompute" && field.value == "full");
    let is_megatron = format == ConfigFormat::Megatron;
    let is_implied = |field: &FieldChange| {
        field.pointer == "/training/recompute_layers" && field.value.is_null() && !(is_full && is_megatron)
    };
    let fields = expanded(change);
    let settings = fields.iter().filter(|field| !is_implied(field)).map(settings_of);
    settings.collect::<Option<Vec<_>>>().map(|settings| settings.concat())
}

/// Adds the setting that gives the global batch of the scenario, if the file derives it from the replicas.
pub(super) fn with_batch(
    format: ConfigFormat,
    scenario: &Scenario,
    change: &Change,
    mut settings: Vec<Setting>,
) -> Vec<Setting> {
    let (ConfigFormat::Torchtitan, Some(layout)) = (format, change.result.layout) else { return settings };
    let global = scenario.workload.global_batch;
    let key = |key, value: u32| Setting::Key { section: "training", key, value: value.to_string() };
    // A pipeline splits the local batch. Without one, gradients are accumulated.
    settings.push(if layout.pipeline > 1 {
        key("local_batch_size", global / layout.data.max(1))
    } else {
        key("global_batch_size", global)
    });
    settings
}

/// Returns the fields of a change, with the degrees of the found layout in place of a free layout.
fn expanded(change: &Change) -> Vec<FieldChange> {
    let fields = change.fields.iter().flat_map(|field| {
        let (true, Some(layout)) = (field.pointer == "/layout", change.result.layout) else {
            return vec![field.clone()];
        };
        let Layout { tensor, pipeline, chunks, microbatch, .. } = layout;
        let degree = |name: &str, value: u32| FieldChange { pointer: format!("/layout/{name}"), value: value.into() };
        let mut degrees =
            vec![degree("tensor", tensor), degree("pipeline", pipeline), degree("microbatch", microbatch)];
        if chunks > 1 {
            degrees.push(degree("chunks", chunks));
        }
        degrees
    });
    fields.collect()
}

/// Returns true if `edited` is the scenario with the change. The padded vocabulary may differ, because it depends on
/// the tensor-parallel degree.
pub(super) fn is_changed(scenario: &Scenario, change: &Change, edited: &Scenario) -> bool {
    let document = |scenario: &Scenario| serde_json::to_value(scenario).unwrap_or_default();
    let (before, after) = (document(scenario), document(edited));
    let is_set = |field: &FieldChange| match field.pointer.as_str() {
        "/training/zero" => field.value.as_u64() == Some(edited.training.zero_stage().into()),
        pointer => {
            let value = after.pointer(pointer).unwrap_or(&Value::Null);
            // A degree of 1 is the default.
            *value == field.value || value.is_null() && field.value == 1
        }
    };
    let is_equal = |pointer: &str| before.pointer(pointer) == after.pointer(pointer);
    expanded(change).iter().all(is_set)
        && ["/workload/global_batch", "/workload/context_length", "/cluster/nodes"].iter().all(|it| is_equal(it))
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn megatron(scenario: &Scenario, field: &FieldChange) -> Option<Vec<Setting>> {
    let value = text(&field.value);
    let argument = |name| Some(vec![Setting::Argument { name, value: Some(value.clone()) }]);
    let with = |name, value: &str| Setting::Argument { name, value: Some(value.to_owned()) };
    let flag = |name| Setting::Argument { name, value: None };
    match (field.pointer.as_str(), value.as_str()) {
        ("/training/recompute_layers", "null") => {
            Some(vec![with("recompute-method", "uniform"), with("recompute-num-layers", "1")])
        }
        (_, "null") => None,
        ("/layout/tensor", _) => argument("tensor-model-parallel-size"),
        ("/layout/pipeline", _) => argument("pipeline-model-parallel-size"),
        ("/layout/microbatch", _) => argument("micro-batch-size"),
        ("/layout/chunks", "1") => Some(vec![Setting::Removed { name: "num-layers-per-virtual-pipeline-stage" }]),
        ("/layout/chunks", _) => {
            let stages = scenario.layout.pipeline.unwrap_or(1).checked_mul(value.parse().ok()?)?;
            let layers = scenario.model.layers();
            let is_even = stages > 0 && layers.is_multiple_of(stages);
            is_even.then(|| vec![with("num-layers-per-virtual-pipeline-stage", &(layers / stages).to_string())])
        }
        ("/training/context_parallel", _) => argument("context-parallel-size"),
        ("/training/context_exchange", "ring") => Some(vec![with("cp-comm-type", "p2p")]),
        ("/training/context_exchange", "all_to_all") => Some(vec![with("cp-comm-type", "a2a")]),
        ("/training/expert_parallel", _) => argument("expert-model-parallel-size"),
        ("/training/sequence_parallel", "true") => Some(vec![flag("sequence-parallel")]),
        ("/training/recompute", "none") => Some(
            ["recompute-activations", "recompute-granularity", "recompute-method", "recompute-num-layers"]
                .map(|name| Setting::Removed { name })
                .to_vec(),
        ),
        ("/training/recompute", "selective") => Some(vec![
            with("recompute-granularity", "selective"),
            Setting::Removed { name: "recompute-method" },
            Setting::Removed { name: "recompute-num-layers" },
        ]),
        ("/training/recompute", "full") => Some(vec![with("recompute-granularity", "full")]),
        ("/training/recompute_layers", _) => {
            Some(vec![with("recompute-method", "block"), with("recompute-num-layers", &value)])
        }
        ("/training/zero", "0") => Some(vec![Setting::Removed { name: "use-distributed-optimizer" }]),
        ("/training/zero", "1") => Some(vec![flag("use-distributed-optimizer")]),
        ("/training/zero", "2") => {
            Some(vec![flag("use-megatron-fsdp"), with("data-parallel-sharding-strategy", "optim_grads")])
        }
        ("/training/zero", "3") => {
            Some(vec![flag("use-megatron-fsdp"), with("data-parallel-sharding-strategy", "optim_grads_params")])
        }
        _ => None,
    }
}

fn torchtitan(scenario: &Scenario, field: &FieldChange) -> Option<Setting> {
    let value = text(&field.value);
    let key = |section, key| Some(Setting::Key { section, key, value: value.clone() });
    let quoted = |section, key, value: &str| Some(Setting::Key { section, key, value: format!("\"{value}\"") });
    match (field.pointer.as_str(), value.as_str()) {
        (_, "null") => None,
        ("/layout/tensor", _) => key("parallelism", "tensor_parallel_degree"),
        ("/layout/pipeline", _) => key("parallelism", "pipeline_parallel_degree"),
        ("/layout/microbatch", _) if scenario.layout.pipeline.unwrap_or(1) > 1 => {
            key("parallelism", "pipeline_parallel_microbatch_size")
        }
        ("/layout/microbatch", _) => key("training", "local_batch_size"),
        ("/training/context_parallel", _) => key("parallelism", "context_parallel_degree"),
        ("/training/expert_parallel", _) => key("parallelism", "expert_parallel_degree"),
        ("/training/recompute", "none" | "selective" | "full") => quoted("activation_checkpoint", "mode", &value),
        ("/training/zero", "2") => quoted("parallelism", "fsdp_reshard_after_forward", "never"),
        ("/training/zero", "3") => quoted("parallelism", "fsdp_reshard_after_forward", "always"),
        _ => None,
    }
}
