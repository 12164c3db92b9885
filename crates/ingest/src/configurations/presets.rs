//! Finds device and model presets by common names.

use std::borrow::Cow;

use planner::cluster::Cluster;
use planner::cluster::presets::{ClusterPreset, clusters};
use planner::model::presets::{ModelPreset, models};
use planner::model::{Model, ModuleRole};

use super::suggestion::did_you_mean;
use crate::job_config;

/// Alternative device names, normalized: without blanks, dashes, vendor and socket.
const DEVICE_ALIASES: [(&str, &str); 47] = [
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
    ("a100pcie80gb", "a100-80gb-pcie"),
    ("a100pcie40gb", "a100-40gb-pcie"),
    ("h100pcie80gb", "h100-pcie"),
    ("h10080gbpcie", "h100-pcie"),
    ("v10016g", "v100-16gb"),
    ("v10032g", "v100-32gb"),
    ("a1024gb", "a10"),
    ("a10g24gb", "a10g"),
    ("l424gb", "l4"),
    ("l2048gb", "l20"),
    ("l40s48gb", "l40s"),
    ("3090", "rtx-3090"),
    ("4090", "rtx-4090"),
    ("5090", "rtx-5090"),
    ("rtx309024gb", "rtx-3090"),
    ("rtx409024gb", "rtx-4090"),
    ("rtx509032gb", "rtx-5090"),
    ("a6000", "rtx-a6000"),
    ("6000ada", "rtx-6000-ada"),
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

/// Names of several devices, or of a variant without a preset: (normalized names, what the name is).
const UNCLEAR_DEVICES: [(&[&str], &str); 4] = [
    (&["v100"], "ambiguous: v100-16gb or v100-32gb"),
    (
        &["v100pcie", "v100pcie16gb", "v100pcie32gb"],
        "a board without a preset: v100-16gb and v100-32gb are modules (SXM2) with NVLink",
    ),
    (&["a100pcie"], "ambiguous: a100-80gb-pcie or a100-40gb-pcie"),
    (&["tpu"], "ambiguous: tpu-v5p or tpu-v6e"),
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

    /// Finds a device preset. The error says what the name is instead: "none of ..." or "ambiguous: ...".
    pub(super) fn cluster(&self, name: &str) -> Result<&Cluster, String> {
        let wanted = device_key(name);
        let id = DEVICE_ALIASES.iter().find(|(alias, _)| *alias == wanted).map(|(_, id)| *id);
        let fits = |preset: &&ClusterPreset| Some(preset.id) == id || device_key(preset.id) == wanted;
        let found = self.clusters.iter().find(fits).map(|preset| &preset.cluster);
        let ids = || self.clusters.iter().map(|preset| preset.id);
        let several = || UNCLEAR_DEVICES.iter().find(|(names, _)| names.contains(&wanted.as_str()));
        found.ok_or_else(|| match several() {
            Some((_, says)) => (*says).to_owned(),
            None => format!("none of {}{}", listed(ids()), did_you_mean(&wanted, ids())),
        })
    }

    /// Finds the preset of a language model.
    pub(super) fn model_preset(&self, name: &str) -> Option<&Model> {
        let wanted = key(name);
        let mut text = self.models.iter().filter(|preset| is_language_model(&preset.model));
        let found = text.find(|preset| key(preset.id) == wanted || key(&preset.model.name) == wanted);
        found.map(|preset| &preset.model)
    }

    /// Finds a language model by the name of a preset or of a published model, for example
    /// `meta-llama/Llama-3.1-8B`. The error says what the name is instead: "none of ...".
    pub(super) fn model(&self, name: &str) -> Result<Cow<'_, Model>, String> {
        let preset = self.model_preset(name).map(Cow::Borrowed);
        // Names of the hub have hyphens where texts have blanks.
        let hub_name = name.split_whitespace().collect::<Vec<_>>().join("-");
        let published = || job_config::published_model(&hub_name).filter(is_language_model).map(Cow::Owned);
        let text = || self.models.iter().filter(|preset| is_language_model(&preset.model));
        let ids = || text().map(|preset| preset.id);
        preset.or_else(published).ok_or_else(|| format!("none of {}{}", listed(ids()), did_you_mean(name, ids())))
    }
}

/// True for the name of several devices that stands for the most usual of them: A100 for that with 80 GB.
pub(super) fn is_general(name: &str) -> bool {
    ["a100", "mi300"].contains(&device_key(name).as_str())
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

/// Splits `8xH100` and `H100 x 8` into the device and its number.
pub(super) fn counted(text: &str) -> (&str, Option<u32>) {
    let is_times = |c: char| matches!(c, 'x' | 'X' | '×' | '*');
    let count = |text: &str| {
        let text = text.trim();
        text.parse::<u32>().ok().filter(|&count| count > 0 && text.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let device = |text: &str| text.contains(|c: char| c.is_ascii_alphabetic());
    let mut splits = text.match_indices(is_times).map(|(at, times)| (&text[..at], &text[at + times.len()..]));
    let found = splits.find_map(|(before, after)| match (count(before), count(after)) {
        (Some(count), None) if device(after) => Some((after.trim(), count)),
        // The letter of a word such as RTX is no sign of multiplication.
        (None, Some(count)) if device(before) && !before.ends_with(|c: char| c.is_ascii_alphabetic()) => {
            Some((before.trim(), count))
        }
        _ => None,
    });
    found.map_or((text, None), |(name, count)| (name, Some(count)))
}

/// Normalizes a device name: removes vendor, product line, socket (SXM, SXM2, ...) and type of memory (HBM3, ...).
fn device_key(name: &str) -> String {
    let lower = name.to_lowercase();
    let terms = lower.split(|c: char| !c.is_alphanumeric());
    let retained = terms.filter(|word| !NEUTRAL.contains(word) && !is_socket(word) && !is_memory(word));
    let joined: String = retained.collect();
    joined.strip_prefix("nvidia").unwrap_or(&joined).to_owned()
}

/// Words of a device name that name no device.
const NEUTRAL: [&str; 11] =
    ["nvidia", "tesla", "geforce", "tensor", "core", "gpu", "gpus", "generation", "nvlink", "dgx", "hgx"];

fn is_socket(word: &str) -> bool {
    word.strip_prefix("sxm").is_some_and(|number| number.chars().all(|c| c.is_ascii_digit()))
}

fn is_memory(word: &str) -> bool {
    matches!(word, "hbm" | "hbm2" | "hbm2e" | "hbm3" | "hbm3e" | "gddr6" | "gddr6x" | "gddr7")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_found_by_the_names_that_people_give_them() {
        let presets = Presets::new();
        for (names, id) in [
            (&["a100", "A100", "A100-80GB", "a100_80gb", "A100-SXM-80GB", "NVIDIA A100-SXM4-80GB"][..], "a100-80gb"),
            (
                &[
                    "h100",
                    "H100-SXM",
                    "H100 SXM5",
                    "nvidia-h100",
                    "H100-80GB",
                    "NVIDIA H100 80GB HBM3",
                    "DGX H100",
                    "HGX H100",
                ],
                "h100",
            ),
            (&["h800", "H800-SXM"], "h800"),
            (&["A100-40GB", "a100-sxm4-40gb"], "a100-40gb"),
            (&["a800"], "a800"),
            (&["H100-96GB"], "h100-96gb"),
            (&["h200", "H200-SXM-141GB"], "h200"),
            (&["b200"], "b200"),
            (&["gb200", "GB200-NVL72"], "gb200-nvl72"),
            (&["H100 PCIe", "H100 PCIe 80GB", "NVIDIA H100 80GB PCIe"], "h100-pcie"),
            (&["NVIDIA A100-PCIE-40GB"], "a100-40gb-pcie"),
            (&["NVIDIA A100 80GB PCIe"], "a100-80gb-pcie"),
            (&["Tesla V100-SXM2-32GB", "V100 32GB"], "v100-32gb"),
            (&["NVIDIA GeForce RTX 4090", "RTX4090", "rtx-4090", "4090"], "rtx-4090"),
            (&["NVIDIA RTX A6000", "A6000"], "rtx-a6000"),
            (&["NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada"], "rtx-6000-ada"),
            (&["NVIDIA A10G"], "a10g"),
            (&["TPU v5p", "v5p"], "tpu-v5p"),
            (&["mi300x", "AMD MI300X"], "mi300x"),
            (&["910b", "Ascend 910B", "ascend-910b"], "ascend-910b"),
        ] {
            let expected = planner::cluster::presets::cluster(id);
            for name in names {
                assert_eq!(presets.cluster(name).ok(), expected.as_ref(), "{name}");
            }
        }
        for name in ["", "h1000", "rtx 6000"] {
            assert!(presets.cluster(name).unwrap_err().contains("a100-80gb, "), "{name}");
        }
        assert!(presets.cluster("h1000").unwrap_err().ends_with("; did you mean h100?"));
        for (name, says) in [
            ("Tesla V100", "ambiguous: v100-16gb or v100-32gb"),
            ("V100-PCIE-16GB", "a board without a preset: v100-16gb and v100-32gb are modules (SXM2) with NVLink"),
            ("a100-pcie", "ambiguous: a100-80gb-pcie or a100-40gb-pcie"),
            ("TPU", "ambiguous: tpu-v5p or tpu-v6e"),
        ] {
            assert_eq!(presets.cluster(name).unwrap_err(), says);
        }
    }

    #[test]
    fn devices_have_numbers() {
        for (text, expected) in [
            ("8xH100", ("H100", Some(8))),
            ("8x H100 80GB", ("H100 80GB", Some(8))),
            ("64 × A100-SXM4-80GB", ("A100-SXM4-80GB", Some(64))),
            ("H100 x 8", ("H100", Some(8))),
            ("H100x16", ("H100", Some(16))),
            ("MI300X", ("MI300X", None)),
            ("8xMI300X", ("MI300X", Some(8))),
            ("MI300X x8", ("MI300X", Some(8))),
            ("H100-SXM", ("H100-SXM", None)),
            ("0xH100", ("0xH100", None)),
            ("RTX 4090", ("RTX 4090", None)),
            ("8x RTX 4090", ("RTX 4090", Some(8))),
            ("8x", ("8x", None)),
        ] {
            assert_eq!(counted(text), expected, "{text}");
        }
    }

    #[test]
    fn models_are_found_by_identifier_and_name() {
        let presets = Presets::new();
        for name in ["llama-2-7b", "Llama-2 7B", "LLAMA2_7B"] {
            assert_eq!(presets.model(name).unwrap().name, "Llama-2 7B", "{name}");
        }
        let billions = |name: &str| presets.model(name).unwrap().parameters() as f64 / 1e9;
        for name in ["Llama 3.1 8B", "meta-llama/Llama-3.1-8B", "Meta-Llama-3.1-8B-Instruct"] {
            assert!((billions(name) - 8.03).abs() < 0.01, "{name}");
        }
        assert!((billions("Qwen/Qwen2.5-7B") - 7.616).abs() < 0.01);
        // A row has no column for images per sequence.
        assert!(presets.model("vlm-s").unwrap_err().contains("gpt-3-175b"));
        assert!(presets.model("GPT-3").unwrap_err().ends_with("; did you mean gpt-3-175b?"));
    }
}
