//! Changes of a scenario in the syntax of the configuration file.

use ingest::job_config::ConfigFormat;
use planner::fit::FieldChange;
use planner::outcome::Layout;
use planner::scenario::Scenario;

use super::value_text;

/// Returns one line per changed field, or nothing if the format has no setting for one of them. `layout` is the layout
/// with the change.
pub(super) fn lines(
    format: Option<ConfigFormat>,
    scenario: &Scenario,
    fields: &[FieldChange],
    layout: Option<Layout>,
) -> Vec<String> {
    let line = |field: &FieldChange| match format {
        Some(ConfigFormat::Megatron) => megatron(scenario, field),
        Some(ConfigFormat::Torchtitan) => torchtitan(scenario, field),
        _ => None,
    };
    // Without a number of layers, all are recomputed.
    let is_full = fields.iter().any(|field| field.pointer == "/training/recompute" && field.value == "full");
    let is_megatron = format == Some(ConfigFormat::Megatron);
    let is_implied = |field: &&FieldChange| {
        field.pointer == "/training/recompute_layers" && field.value.is_null() && !(is_full && is_megatron)
    };
    let fields: Vec<FieldChange> =
        fields.iter().filter(|field| !is_implied(field)).flat_map(|field| expanded(field, layout)).collect();
    fields.iter().map(line).collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// Returns the degrees of the found layout in place of a free layout.
fn expanded(field: &FieldChange, layout: Option<Layout>) -> Vec<FieldChange> {
    let (true, Some(Layout { tensor, pipeline, chunks, microbatch, .. })) = (field.pointer == "/layout", layout) else {
        return vec![field.clone()];
    };
    let degree = |name: &str, value: u32| FieldChange { pointer: format!("/layout/{name}"), value: value.into() };
    let mut degrees = vec![degree("tensor", tensor), degree("pipeline", pipeline), degree("microbatch", microbatch)];
    if chunks > 1 {
        degrees.push(degree("chunks", chunks));
    }
    degrees
}

fn megatron(scenario: &Scenario, field: &FieldChange) -> Option<String> {
    let value = value_text(field);
    let argument = |name: &str| Some(format!("--{name} {value}"));
    match (field.pointer.as_str(), value.as_str()) {
        ("/training/recompute_layers", "null") => {
            Some("--recompute-method uniform --recompute-num-layers 1".to_owned())
        }
        (_, "null") => None,
        ("/layout/tensor", _) => argument("tensor-model-parallel-size"),
        ("/layout/pipeline", _) => argument("pipeline-model-parallel-size"),
        ("/layout/microbatch", _) => argument("micro-batch-size"),
        ("/layout/chunks", _) => {
            let stages = scenario.layout.pipeline.unwrap_or(1).checked_mul(value.parse().ok()?)?;
            let layers = scenario.model.layers();
            let is_even = stages > 0 && layers.is_multiple_of(stages);
            is_even.then(|| format!("--num-layers-per-virtual-pipeline-stage {}", layers / stages))
        }
        ("/training/context_parallel", _) => argument("context-parallel-size"),
        ("/training/context_exchange", "ring") => Some("--cp-comm-type p2p".to_owned()),
        ("/training/context_exchange", "all_to_all") => Some("--cp-comm-type a2a".to_owned()),
        ("/training/expert_parallel", _) => argument("expert-model-parallel-size"),
        ("/training/sequence_parallel", "true") => Some("--sequence-parallel".to_owned()),
        ("/training/recompute", "none") => {
            Some("remove --recompute-activations and --recompute-granularity".to_owned())
        }
        ("/training/recompute", "selective") => Some("--recompute-granularity selective".to_owned()),
        ("/training/recompute", "full") => Some("--recompute-granularity full".to_owned()),
        ("/training/recompute_layers", _) => Some(format!("--recompute-method block --recompute-num-layers {value}")),
        ("/training/zero", "0") => Some("remove --use-distributed-optimizer".to_owned()),
        ("/training/zero", "1") => Some("--use-distributed-optimizer".to_owned()),
        ("/training/zero", "2") => Some("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads".to_owned()),
        ("/training/zero", "3") => {
            Some("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params".to_owned())
        }
        _ => None,
    }
}

fn torchtitan(scenario: &Scenario, field: &FieldChange) -> Option<String> {
    let value = value_text(field);
    let parallelism = |key: &str| Some(format!("[parallelism] {key} = {value}"));
    match (field.pointer.as_str(), value.as_str()) {
        (_, "null") => None,
        ("/layout/tensor", _) => parallelism("tensor_parallel_degree"),
        ("/layout/pipeline", _) => parallelism("pipeline_parallel_degree"),
        ("/layout/microbatch", _) if scenario.layout.pipeline.unwrap_or(1) > 1 => {
            parallelism("pipeline_parallel_microbatch_size")
        }
        ("/layout/microbatch", _) => Some(format!("[training] local_batch_size = {value}")),
        ("/training/context_parallel", _) => parallelism("context_parallel_degree"),
        ("/training/expert_parallel", _) => parallelism("expert_parallel_degree"),
        ("/training/recompute", "none" | "selective" | "full") => {
            Some(format!("[activation_checkpoint] mode = \"{value}\""))
        }
        ("/training/zero", "2") => Some("[parallelism] fsdp_reshard_after_forward = \"never\"".to_owned()),
        ("/training/zero", "3") => Some("[parallelism] fsdp_reshard_after_forward = \"always\"".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use planner::scenario::parse;
    use serde_json::{Value, json};

    use super::*;

    fn scenario() -> Scenario {
        let document = json!({
            "schema": "scenario/1", "model": { "preset": "llama-3-8b" }, "cluster": { "preset": "h100", "nodes": 2 },
            "workload": {
                "samples": {
                    "kind": "drawn", "text_tokens": { "kind": "constant", "value": 8192 },
                    "images": { "kind": "constant", "value": 0 }
                },
                "global_batch": 64, "context_length": 8192, "packing": "packed"
            },
            "layout": { "tensor": 2, "pipeline": 4 }, "planners": ["1f1b"]
        });
        parse(&document.to_string()).unwrap()
    }

    fn field(pointer: &str, value: Value) -> FieldChange {
        FieldChange { pointer: pointer.to_owned(), value }
    }

    #[test]
    fn changes_have_lines_in_the_syntax_of_the_file() {
        let text = |format, fields: &[FieldChange]| lines(Some(format), &scenario(), fields, None).join("; ");
        let full = [field("/training/recompute", json!("full")), field("/training/recompute_layers", json!(4))];
        assert_eq!(
            text(ConfigFormat::Megatron, &[field("/layout/tensor", json!(4)), field("/layout/chunks", json!(2))]),
            "--tensor-model-parallel-size 4; --num-layers-per-virtual-pipeline-stage 4"
        );
        assert!(text(ConfigFormat::Megatron, &full).ends_with("--recompute-method block --recompute-num-layers 4"));
        let selective = [field("/training/recompute", json!("selective"))];
        assert_eq!(text(ConfigFormat::Torchtitan, &selective), "[activation_checkpoint] mode = \"selective\"");
        assert_eq!(
            text(ConfigFormat::Torchtitan, &[field("/layout/microbatch", json!(2))]),
            "[parallelism] pipeline_parallel_microbatch_size = 2"
        );
    }

    /// torchtitan has no number of recomputed layers, and a removed field has no line.
    #[test]
    fn a_change_without_a_setting_has_no_lines() {
        let all = [field("/training/recompute", json!("full")), field("/training/recompute_layers", json!(4))];
        assert!(lines(Some(ConfigFormat::Torchtitan), &scenario(), &all, None).is_empty());
        let removed = [field("/layout/tensor", Value::Null)];
        assert!(lines(Some(ConfigFormat::Megatron), &scenario(), &removed, None).is_empty());
        assert!(lines(None, &scenario(), &all, None).is_empty());
    }

    #[test]
    fn a_free_layout_has_the_degrees_that_were_found() {
        let found = Layout { tensor: 2, pipeline: 1, data: 8, chunks: 1, microbatch: 4, group: None };
        let free = [field("/layout", json!({}))];
        let lines = lines(Some(ConfigFormat::Megatron), &scenario(), &free, Some(found));
        let expected = ["--tensor-model-parallel-size 2", "--pipeline-model-parallel-size 1", "--micro-batch-size 4"];
        assert_eq!(lines, expected);
    }
}
