//! Keys of YAML files of Megatron-LM: its arguments with underscores, in two sections and outside.

use super::megatron::{self, CHUNKS};
use super::nemo::renamed;
use super::{Setting, Target};

pub(super) fn settings(target: &Target, field: &str) -> Option<Vec<Setting>> {
    Some(renamed(megatron::arguments(target, field)?, |name| {
        let name = if name == CHUNKS { "virtual-pipeline-model-parallel-size" } else { name };
        let is_parallel = name.ends_with("parallel-size") || matches!(name, "sequence-parallel" | "tp-comm-overlap");
        let section = match name {
            _ if is_parallel => "model_parallel.",
            _ if name.starts_with("recompute") => "language_model.",
            _ => "",
        };
        vec![format!("{section}{}", name.replace('-', "_"))]
    }))
}
