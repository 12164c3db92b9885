//! The initial cluster of a calibration.

use std::path::Path;

use anyhow::{Context, anyhow};
use planner::cluster::{Cluster, presets};
use planner::run_comparison::DeviceName;
use planner::scenario::validate::NoDatasets;
use planner::scenario::{self, FieldError, SCHEMA, ValidScenario};
use serde_json::{Value, json};

/// The initial cluster of a calibration.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) cluster: Cluster,
    /// Identifier of the preset, or name of the cluster.
    pub(crate) name: String,
}

impl Start {
    /// Loads a preset, or a cluster from a file.
    pub(crate) fn new(device: Option<&str>, from: Option<&Path>) -> anyhow::Result<Self> {
        match (device, from) {
            (_, Some(path)) => Self::file(path),
            (Some(id), None) => Self::preset(id),
            (None, None) => Err(anyhow!("give --device or --from")),
        }
    }

    /// Returns the preset for a device name. Candidates share a model word with the name. If
    /// several match, the memory size or the full identifier in the name must select exactly one.
    pub(crate) fn from_device(device: &str) -> Option<Self> {
        let start = |preset: presets::ClusterPreset| Self { cluster: preset.cluster, name: preset.id.to_owned() };
        let mut candidates: Vec<Self> =
            presets::clusters().into_iter().map(start).filter(|start| start.may_be(device)).collect();
        // The A100 has presets of modules and of boards.
        if candidates.iter().any(Self::is_board) {
            let is_board = has_word(device, "pcie");
            candidates.retain(|start| start.is_board() == is_board);
        }
        let has_size =
            |start: &Self| size(device).is_some_and(|size| (start.cluster.device.memory_gib - size).abs() < 1.0);
        let has_name = |start: &Self| model_terms(device).any(|word| word == start.name);
        let only = |predicate: &dyn Fn(&Self) -> bool| -> Option<usize> {
            let mut found = candidates.iter().enumerate().filter(|(_, start)| predicate(start)).map(|(index, _)| index);
            found.next().filter(|_| found.next().is_none())
        };
        let index = only(&|_| true).or_else(|| only(&has_size)).or_else(|| only(&has_name))?;
        candidates.into_iter().nth(index)
    }

    /// True for a board on PCIe of a device that also is a module.
    fn is_board(&self) -> bool {
        has_word(&self.cluster.name, "pcie")
    }

    fn preset(id: &str) -> anyhow::Result<Self> {
        let cluster =
            presets::cluster(id).ok_or_else(|| anyhow!("no device preset {id:?}; there are {}", preset_ids()))?;
        Ok(Self { cluster, name: id.to_owned() })
    }

    fn file(path: &Path) -> anyhow::Result<Self> {
        let at = || path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let cluster: Value = serde_json::from_str(&text).with_context(at)?;
        let cluster = parse_cluster(&cluster).map_err(|errors| cluster_error(&errors)).with_context(at)?;
        Ok(Self { name: cluster.name.clone(), cluster })
    }

    /// True if the device name may refer to this cluster. Compares words with a letter and a digit,
    /// without memory sizes: `b200_bf16` is B200, `A100-SXM4-80GB` is A100-40GB.
    pub(crate) fn may_be(&self, device: &str) -> bool {
        // The peak performance of PCIe and NVL boards and MIG slices differs from the SXM module
        // with the same model name.
        let (name, own) = (DeviceName::find(device), DeviceName::find(&self.cluster.name));
        if [name, own].into_iter().flatten().any(DeviceName::is_variant) && name != own {
            return false;
        }
        if name.is_some() && name == own {
            return true;
        }
        let cluster_terms: Vec<String> = model_terms(&self.name).chain(model_terms(&self.cluster.name)).collect();
        model_terms(device).any(|word| cluster_terms.contains(&word))
    }
}

/// Identifiers of all presets, for error messages.
pub(crate) fn preset_ids() -> String {
    presets::clusters().iter().map(|preset| preset.id).collect::<Vec<_>>().join(", ")
}

/// Returns an error that lists the cluster fields a scenario would reject.
pub(crate) fn check(cluster: &Cluster) -> anyhow::Result<()> {
    parse_cluster(&serde_json::to_value(cluster)?).map(drop).map_err(|errors| cluster_error(&errors))
}

/// Parses a cluster inside an otherwise valid scenario, so the scenario rules apply.
fn parse_cluster(cluster: &Value) -> Result<Cluster, Vec<FieldError>> {
    let scenario = json!({
        "schema": SCHEMA,
        "model": {"preset": "llama-2-7b"},
        "cluster": cluster,
        "workload": {
            "samples": {
                "kind": "drawn",
                "text_tokens": {"kind": "constant", "value": 1024},
                "images": {"kind": "constant", "value": 0}
            },
            "global_batch": 1,
            "context_length": 1024,
            "packing": "single"
        },
        "planners": ["1f1b"]
    });
    let scenario = scenario::parse(&scenario.to_string())?;
    let cluster = scenario.cluster.clone();
    let mut errors = ValidScenario::new(scenario, &NoDatasets).err().unwrap_or_default();
    errors.retain(|error| error.pointer.starts_with("/cluster"));
    if errors.is_empty() { Ok(cluster) } else { Err(errors) }
}

fn cluster_error(errors: &[FieldError]) -> anyhow::Error {
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    anyhow!("not the cluster of a scenario: {}", errors.join("; "))
}

/// Parses the memory size in GB from a name such as `A100-SXM4-80GB`.
fn size(name: &str) -> Option<f64> {
    let mut parts = name.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_ascii_lowercase);
    parts.find_map(|word| word.strip_suffix("gb")?.parse::<u32>().ok()).map(f64::from)
}

fn has_word(name: &str, wanted: &str) -> bool {
    name.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word.eq_ignore_ascii_case(wanted))
}

fn model_terms(name: &str) -> impl Iterator<Item = String> {
    let has = |word: &str, test: fn(&char) -> bool| word.chars().any(|c| test(&c));
    name.split(|c: char| !c.is_ascii_alphanumeric())
        .filter(move |word| has(word, char::is_ascii_digit) && has(word, char::is_ascii_alphabetic))
        .map(str::to_ascii_lowercase)
        .filter(|word| !word.ends_with("gb"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_compared_by_model_terms() {
        for (preset, device, same) in [
            ("a100-80gb", "a100_pcie", true),
            ("a100-80gb", "NVIDIA A100-SXM4-40GB", true),
            ("b200", "b200_bf16_ceperm", true),
            ("ascend-910b", "Ascend 910B", true),
            ("h100", "b200_bf16_ceperm", false),
            ("a100-80gb", "H100-80GB", false),
            ("h100", "NVIDIA H100 80GB HBM3", true),
            ("h100", "NVIDIA H100 PCIe", false),
            ("h100", "NVIDIA H100 NVL", false),
            ("h100", "NVIDIA H100 80GB HBM3 MIG 1g.10gb", false),
            ("b200", "GB200", false),
        ] {
            assert_eq!(Start::preset(preset).unwrap().may_be(device), same, "{preset} {device}");
        }
    }

    #[test]
    fn device_has_a_single_preset_or_none() {
        for (device, preset) in [
            ("NVIDIA A100-SXM4-80GB", Some("a100-80gb")),
            ("NVIDIA A100-SXM4-40GB", Some("a100-40gb")),
            ("A100", None),
            ("NVIDIA H100 80GB HBM3", Some("h100")),
            ("H100", Some("h100")),
            ("NVIDIA B200", Some("b200")),
            ("NVIDIA H200", Some("h200")),
            ("NVIDIA A40", None),
            ("NVIDIA H100 PCIe", Some("h100-pcie")),
            ("GB200", Some("gb200-nvl72")),
            ("NVIDIA A100-PCIE-40GB", Some("a100-40gb-pcie")),
            ("Tesla V100-SXM2-32GB", Some("v100-32gb")),
            ("NVIDIA GeForce RTX 4090", Some("rtx-4090")),
            ("NVIDIA RTX 6000 Ada Generation", Some("rtx-6000-ada")),
        ] {
            assert_eq!(Start::from_device(device).map(|start| start.name).as_deref(), preset, "{device}");
        }
    }

    #[test]
    fn every_preset_is_valid_in_a_scenario() {
        for preset in presets::clusters() {
            check(&preset.cluster).unwrap();
        }
    }
}
