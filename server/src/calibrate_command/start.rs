//! The cluster that a calibration starts from.

use std::path::Path;

use anyhow::{Context, anyhow};
use planner::cluster::{Cluster, presets};
use planner::scenario::validate::NoDatasets;
use planner::scenario::{self, FieldError, SCHEMA, ValidScenario};
use serde_json::{Value, json};

use crate::config::CalibrateArguments;

/// The cluster that a calibration starts from.
#[derive(Debug)]
pub(crate) struct Start {
    /// The cluster.
    pub(crate) cluster: Cluster,
    /// What it is called: a preset's identifier or the cluster's own name.
    pub(crate) name: String,
}

impl Start {
    /// A preset, or the cluster of a file.
    pub(crate) fn of(arguments: &CalibrateArguments) -> anyhow::Result<Self> {
        match (&arguments.device, &arguments.from) {
            (_, Some(path)) => Self::file(path),
            (Some(id), None) => Self::preset(id),
            (None, None) => Err(anyhow!("give --device or --from")),
        }
    }

    fn preset(id: &str) -> anyhow::Result<Self> {
        let cluster = presets::cluster(id).ok_or_else(|| {
            let known: Vec<&str> = presets::clusters().iter().map(|preset| preset.id).collect();
            anyhow!("no device preset {id:?}; there are {}", known.join(", "))
        })?;
        Ok(Self { cluster, name: id.to_owned() })
    }

    fn file(path: &Path) -> anyhow::Result<Self> {
        let at = || path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let cluster: Value = serde_json::from_str(&text).with_context(at)?;
        let cluster = question(&cluster).map_err(|errors| told(&errors)).with_context(at)?;
        Ok(Self { name: cluster.name.clone(), cluster })
    }

    /// Whether a device of that name may be this one. Names are compared by their words that hold a letter and a
    /// digit, without sizes of memory: `b200_bf16` is B200, `A100-SXM4-80GB` is A100-40GB.
    pub(crate) fn may_be(&self, device: &str) -> bool {
        let own: Vec<String> = words(&self.name).chain(words(&self.cluster.name)).collect();
        words(device).any(|word| own.contains(&word))
    }
}

/// Says which fields of a cluster no scenario may have.
pub(crate) fn check(cluster: &Cluster) -> anyhow::Result<()> {
    question(&serde_json::to_value(cluster)?).map(drop).map_err(|errors| told(&errors))
}

/// The cluster of a scenario that is valid but for the cluster: the same rules in both places.
fn question(cluster: &Value) -> Result<Cluster, Vec<FieldError>> {
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

fn told(errors: &[FieldError]) -> anyhow::Error {
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    anyhow!("not the cluster of a scenario: {}", errors.join("; "))
}

fn words(name: &str) -> impl Iterator<Item = String> {
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
    fn devices_are_compared_by_the_words_that_name_them() {
        for (preset, device, same) in [
            ("a100-80gb", "a100_pcie", true),
            ("a100-80gb", "NVIDIA A100-SXM4-40GB", true),
            ("b200", "b200_bf16_ceperm", true),
            ("ascend-910b", "Ascend 910B", true),
            ("h100", "b200_bf16_ceperm", false),
            ("a100-80gb", "H100-80GB", false),
            ("b200", "GB200", false),
        ] {
            assert_eq!(Start::preset(preset).unwrap().may_be(device), same, "{preset} {device}");
        }
    }

    #[test]
    fn every_preset_is_the_cluster_of_a_scenario() {
        for preset in presets::clusters() {
            check(&preset.cluster).unwrap();
        }
    }
}
