//! Keys of YAML files of Megatron-LM: its arguments with underscores, in two sections and outside.

use super::megatron;
use super::nemo::renamed;
use super::{Setting, Target};

pub(super) fn settings(target: &Target, field: &str) -> Option<Vec<Setting>> {
    let settings = match field {
        // Megatron-LM reads the layers of a chunk from these files, not the number of chunks, and only with three ranks.
        "/layout/chunks" if target.scenario.layout.chunks > Some(1) && target.scenario.layout.pipeline <= Some(2) => {
            None
        }
        "/layout/chunks" => megatron::chunks_by_layers(target),
        _ => megatron::yaml_arguments(target, field),
    };
    Some(renamed(settings?, |name| {
        let is_parallel = name.ends_with("parallel-size") || matches!(name, "sequence-parallel" | "tp-comm-overlap");
        let section = match name {
            _ if is_parallel => "model_parallel.",
            _ if name.starts_with("recompute") => "language_model.",
            _ => "",
        };
        vec![format!("{section}{}", name.replace('-', "_"))]
    }))
}
