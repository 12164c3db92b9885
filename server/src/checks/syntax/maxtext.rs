//! Keys of `MaxText`. A degree is the product of its parts within a node (`ici_`) and between nodes (`dcn_`).

use planner::scenario::Scenario;
use planner::training::{AttentionKernel, Recompute};
use serde_json::Value;

use super::{Job, Setting, Target};
use crate::checks::expected::{GLOBAL_BATCH, REPLICAS};

pub(super) fn settings(job: &Job<'_>, target: &Target, field: &str) -> Option<Vec<Setting>> {
    settings_in("", job, target, field)
}

/// Returns the settings with keys in a section.
pub(super) fn settings_in(section: &str, job: &Job<'_>, target: &Target, field: &str) -> Option<Vec<Setting>> {
    let Scenario { layout, training, .. } = &target.scenario;
    let keys = MaxText { section, job };
    match field {
        "/layout/tensor" => keys.degree("tensor", layout.tensor?),
        "/layout/pipeline" => keys.degree("pipeline", layout.pipeline?),
        "/layout/microbatch" => keys.microbatch(target, layout.microbatch?),
        GLOBAL_BATCH => Some(vec![keys.set("gradient_accumulation_steps", keys.accumulation(target)?.into())]),
        REPLICAS => keys.replicas(target),
        "/training/context_parallel" => keys.degree("context", training.context_parallel),
        "/training/expert_parallel" => keys.degree("expert", training.expert_parallel),
        "/training/shard_degree" => keys.sharding(target.shards_and_copies()?.1),
        "/training/recompute" | "/training/recompute_layers" if training.recompute_layers.is_none() => {
            let policy = match training.recompute {
                Recompute::None => "none",
                Recompute::Full => "full",
                Recompute::Operators => "minimal",
                Recompute::Selective => return None,
            };
            Some(vec![keys.set("remat_policy", policy.into())])
        }
        "/training/attention" if matches!(training.attention, AttentionKernel::Flash | AttentionKernel::Flash2) => {
            Some(vec![keys.set("attention", "cudnn_flash_te".into())])
        }
        _ => None,
    }
}

/// Keys of a file.
#[derive(Debug, Clone, Copy)]
struct MaxText<'a> {
    section: &'a str,
    job: &'a Job<'a>,
}

impl MaxText<'_> {
    fn key(self, name: &str) -> String {
        if self.section.is_empty() { name.to_owned() } else { format!("{}.{name}", self.section) }
    }

    fn set(self, name: &str, value: Value) -> Setting {
        Setting::set(&[&self.key(name)], value)
    }

    fn number(self, name: &str) -> Option<i64> {
        self.job.value(&self.key(name))?.parse().ok()
    }

    /// Returns the setting of a degree: its part within a node, or the part between nodes if only that divides the degree.
    fn degree(self, name: &str, degree: u32) -> Option<Vec<Setting>> {
        let [within, between] = ["ici", "dcn"].map(|side| format!("{side}_{name}_parallelism"));
        let part = |name: &str| self.number(name).map_or(Some(1), |part| u32::try_from(part).ok());
        for (changed, other) in [(&within, part(&between)?), (&between, part(&within)?)] {
            if other > 0 && degree.is_multiple_of(other) {
                return Some(vec![self.set(changed, (degree / other).into())]);
            }
        }
        None
    }

    /// Returns the setting of the data-parallel degrees, if the file states all of them.
    fn replicas(self, target: &Target) -> Option<Vec<Setting>> {
        let parts = ["fsdp", "data"].into_iter().flat_map(|name| ["ici", "dcn"].map(|side| (side, name)));
        let parts: Vec<(String, i64)> = parts
            .filter_map(|(side, name)| {
                let name = format!("{side}_{name}_parallelism");
                self.number(&name).map(|part| (name, part))
            })
            .collect();
        // -1 is the rest of the devices.
        let Some((largest, _)) = parts.iter().max_by_key(|(_, part)| *part) else { return Some(Vec::new()) };
        if parts.iter().any(|(_, part)| *part < 0) {
            return Some(Vec::new());
        }
        let others = parts.iter().filter(|(name, _)| name != largest).map(|(_, part)| *part).product::<i64>();
        let replicas = i64::from(target.replicas()) / i64::from(target.scenario.training.expert_parallel.max(1));
        let is_whole = others > 0 && replicas % others == 0;
        is_whole.then(|| vec![self.set(largest, (replicas / others).into())])
    }

    /// Returns the settings of the copies of the sharded model between nodes. The other parts between nodes stay; -1 is no
    /// number of parts.
    fn sharding(self, copies: u32) -> Option<Vec<Setting>> {
        let [data, fsdp] = ["data", "fsdp"].map(|name| format!("dcn_{name}_parallelism"));
        let part = |name: &str| self.number(name).map_or(Some(1), |part| u32::try_from(part).ok());
        let within = part("ici_data_parallelism")?.max(1);
        let between = part(&data)?.checked_mul(part(&fsdp)?)?;
        let changed = copies / within;
        let is_whole = copies.is_multiple_of(within) && changed > 0 && between.is_multiple_of(changed);
        is_whole.then(|| vec![self.set(&data, changed.into()), self.set(&fsdp, (between / changed).into())])
    }

    /// Sequences of a replica and step without accumulation: the microbatches of a pipeline.
    fn microbatches(self) -> u32 {
        let stated = self.number("num_pipeline_microbatches").and_then(|count| u32::try_from(count).ok());
        stated.unwrap_or(1).max(1)
    }

    fn microbatch(self, target: &Target, microbatch: u32) -> Option<Vec<Setting>> {
        let sequences = microbatch.checked_mul(self.microbatches())?;
        let unit = target.devices_per_replica();
        let of_device: Value = if sequences.is_multiple_of(unit) {
            (sequences / unit).into()
        } else {
            (f64::from(sequences) / f64::from(unit)).into()
        };
        Some(vec![self.set("per_device_batch_size", of_device)])
    }

    /// Returns the accumulation steps; `None` if they are not whole.
    fn accumulation(self, target: &Target) -> Option<u32> {
        let (steps, microbatches) = (target.accumulation()?, self.microbatches());
        steps.is_multiple_of(microbatches).then_some(steps / microbatches)
    }
}
