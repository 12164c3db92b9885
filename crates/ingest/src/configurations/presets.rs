//! Finds device and model presets by common names.

use planner::cluster::Cluster;
use planner::cluster::presets::{ClusterPreset, clusters};
use planner::model::presets::{ModelPreset, models};
use planner::model::{Model, ModuleRole};

/// Alternative device names, normalized: without blanks, dashes, vendor and socket.
const DEVICE_ALIASES: [(&str, &str); 28] = [
    ("a100", "a100-80gb"),
    ("a10080g", "a100-80gb"),
    ("a10040g", "a100-40gb"),
    ("a80080gb", "a800"),
    ("h10080gb", "h100"),
    ("h10080g", "h100"),
    ("h10096g", "h100-96gb"),
    ("h80080gb", "h800"),
    ("h200141gb", "h200"),
    ("b200180gb", "b200"),
    ("b200192gb", "b200"),
    ("b300288gb", "b300"),
    ("gb200", "gb200-nvl72"),
    ("gb300", "gb300-nvl72"),
    ("h2096gb", "h20"),
    ("v5p", "tpu-v5p"),
    ("v6e", "tpu-v6e"),
    ("trillium", "tpu-v6e"),
    ("trn2", "trainium2"),
    ("mi300", "mi300x"),
    ("mi300x192gb", "mi300x"),
    ("amdmi300x", "mi300x"),
    ("instinctmi300x", "mi300x"),
    ("amdinstinctmi300x", "mi300x"),
    ("910b", "ascend-910b"),
    ("npu910b", "ascend-910b"),
    ("huawei910b", "ascend-910b"),
    ("huaweiascend910b", "ascend-910b"),
];

/// All presets, loaded once.
#[derive(Debug, Clone)]
pub(super) struct Presets {
    clusters: Vec<ClusterPreset>,
    models: Vec<ModelPreset>,
}

impl Presets {
    pub(super) fn new() -> Self {
        Self { clusters: clusters(), models: models() }
    }

    /// Finds a device preset. The error lists the available identifiers.
    pub(super) fn cluster(&self, name: &str) -> Result<&Cluster, String> {
        let wanted = device_key(name);
        let id = DEVICE_ALIASES.iter().find(|(alias, _)| *alias == wanted).map(|(_, id)| *id);
        let fits = |preset: &&ClusterPreset| Some(preset.id) == id || device_key(preset.id) == wanted;
        let found = self.clusters.iter().find(fits).map(|preset| &preset.cluster);
        found.ok_or_else(|| listed(self.clusters.iter().map(|preset| preset.id)))
    }

    /// Finds a language model preset. The error lists the available identifiers.
    pub(super) fn model(&self, name: &str) -> Result<&Model, String> {
        let wanted = key(name);
        let text = || self.models.iter().filter(|preset| is_language_model(&preset.model));
        let found = text().find(|preset| key(preset.id) == wanted || key(&preset.model.name) == wanted);
        found.map(|preset| &preset.model).ok_or_else(|| listed(text().map(|preset| preset.id)))
    }
}

/// True for models without image or video input and output. Rows have no columns for images and
/// clips.
fn is_language_model(model: &Model) -> bool {
    model.modules.len() == 1 && model.modules.iter().all(|module| module.role == ModuleRole::Backbone)
}

fn listed<'p>(ids: impl Iterator<Item = &'p str>) -> String {
    ids.collect::<Vec<_>>().join(", ")
}

/// Normalizes a name for comparison.
fn key(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Normalizes a device name: removes vendor and socket (SXM, SXM2, ...).
fn device_key(name: &str) -> String {
    let lower = name.to_lowercase();
    let terms = lower.split(|c: char| !c.is_alphanumeric());
    let retained = terms.filter(|word| *word != "nvidia" && !is_socket(word));
    let joined: String = retained.collect();
    joined.strip_prefix("nvidia").unwrap_or(&joined).to_owned()
}

fn is_socket(word: &str) -> bool {
    word.strip_prefix("sxm").is_some_and(|number| number.chars().all(|c| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_found_by_the_names_that_people_give_them() {
        let presets = Presets::new();
        for (names, id) in [
            (&["a100", "A100", "A100-80GB", "a100_80gb", "A100-SXM-80GB", "NVIDIA A100-SXM4-80GB"][..], "a100-80gb"),
            (&["h100", "H100-SXM", "H100 SXM5", "nvidia-h100", "H100-80GB"], "h100"),
            (&["h800", "H800-SXM"], "h800"),
            (&["A100-40GB", "a100-sxm4-40gb"], "a100-40gb"),
            (&["a800"], "a800"),
            (&["H100-96GB"], "h100-96gb"),
            (&["h200", "H200-SXM-141GB"], "h200"),
            (&["b200"], "b200"),
            (&["gb200", "GB200-NVL72"], "gb200-nvl72"),
            (&["H100 PCIe"], "h100-pcie"),
            (&["TPU v5p", "v5p"], "tpu-v5p"),
            (&["mi300x", "AMD MI300X"], "mi300x"),
            (&["910b", "Ascend 910B", "ascend-910b"], "ascend-910b"),
        ] {
            let expected = planner::cluster::presets::cluster(id);
            for name in names {
                assert_eq!(presets.cluster(name).ok(), expected.as_ref(), "{name}");
            }
        }
        for name in ["", "h1000", "a100-pcie", "tpu"] {
            assert!(presets.cluster(name).unwrap_err().contains("a100-80gb, "), "{name}");
        }
    }

    #[test]
    fn models_are_found_by_identifier_and_name() {
        let presets = Presets::new();
        for name in ["llama-2-7b", "Llama-2 7B", "LLAMA2_7B"] {
            assert_eq!(presets.model(name).unwrap().name, "Llama-2 7B", "{name}");
        }
        // A row has no column for images per sequence.
        assert!(presets.model("vlm-s").unwrap_err().contains("gpt-3-175b"));
    }
}
