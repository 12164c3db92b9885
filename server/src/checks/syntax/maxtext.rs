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
        // Experts take devices of data parallelism.
        "/training/expert_parallel" => {
            Some([keys.degree("expert", training.expert_parallel)?, keys.replicas(target)?].concat())
        }
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

/// Degrees of data parallelism.
const DATA: [&str; 2] = ["fsdp", "data"];
/// Other degrees, in the order of [`MaxText::others`].
const OTHERS: [&str; 4] = ["tensor", "pipeline", "context", "expert"];
/// Degrees that no change sets.
const FIXED: [&str; 5] = ["fsdp_transpose", "sequence", "tensor_transpose", "tensor_sequence", "autoregressive"];

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
        let (side, part) = self.changed_part(name, degree)?;
        Some(vec![self.set(&format!("{side}_{name}_parallelism"), part.into())])
    }

    /// Returns the side whose part of a degree changes, and this part.
    fn changed_part(self, name: &str, degree: u32) -> Option<(&'static str, u32)> {
        let part = |side: &str| {
            self.number(&format!("{side}_{name}_parallelism")).map_or(Some(1), |part| u32::try_from(part).ok())
        };
        let sides = [("ici", part("dcn")?), ("dcn", part("ici")?)];
        sides
            .into_iter()
            .find_map(|(side, other)| (other > 0 && degree.is_multiple_of(other)).then(|| (side, degree / other)))
    }

    /// Returns the settings of the data-parallel degrees. The product of the parts within a node is the number of its devices,
    /// and that of the parts between nodes the number of nodes: MaxText refuses other products. A part of -1, or FSDP that is
    /// not stated, takes the rest of the devices.
    fn replicas(self, target: &Target) -> Option<Vec<Setting>> {
        let parts = ["ici", "dcn"].map(|side| DATA.map(|name| self.number(&format!("{side}_{name}_parallelism"))));
        let is_stated = parts.iter().flatten().any(Option::is_some);
        if !is_stated || parts.iter().flatten().any(|part| part.is_some_and(|part| part < 0)) {
            return Some(Vec::new());
        }
        let within = self.product("ici", &[DATA.as_slice(), &OTHERS, &FIXED].concat())?;
        let devices = target.scenario.cluster.devices();
        // Without stated parts within a node, these take the rest.
        if parts[0].iter().all(Option::is_none) || within == 0 || !devices.is_multiple_of(within) {
            return Some(Vec::new());
        }
        let mut settings = Vec::new();
        for ((side, devices), parts) in [("ici", within), ("dcn", devices / within)].into_iter().zip(parts) {
            // MaxText's default has one part between nodes that takes the rest.
            if parts.iter().all(Option::is_none) {
                continue;
            }
            let others = self.others(side, target)?;
            let largest = usize::from(parts[0] < parts[1]);
            let other = u32::try_from(parts[1 - largest].unwrap_or(1)).ok()?;
            let taken = others.checked_mul(other)?;
            if taken == 0 || !devices.is_multiple_of(taken) {
                return None;
            }
            settings.push(self.set(&format!("{side}_{}_parallelism", DATA[largest]), (devices / taken).into()));
        }
        Some(settings)
    }

    /// Returns the product of the stated degrees of a side; `None` if one is no number.
    fn product(self, side: &str, names: &[&str]) -> Option<u32> {
        let mut parts = names.iter().filter_map(|name| self.number(&format!("{side}_{name}_parallelism")));
        parts.try_fold(1_u32, |product, part| product.checked_mul(u32::try_from(part).ok()?))
    }

    /// Returns the product of the degrees of a side that are not data-parallel, after the change.
    fn others(self, side: &str, target: &Target) -> Option<u32> {
        let Scenario { layout, training, .. } = &target.scenario;
        let degrees = [layout.tensor?, layout.pipeline?, training.context_parallel, training.expert_parallel];
        OTHERS.iter().zip(degrees).try_fold(self.product(side, &FIXED)?, |product, (name, degree)| {
            let (changed, part) = self.changed_part(name, degree)?;
            let part = if changed == side { part } else { degree.checked_div(part)? };
            product.checked_mul(part)
        })
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

    /// Microbatches of a replica and step without accumulation: those of a pipeline, by default one for each stage.
    fn microbatches(self, target: &Target) -> u32 {
        let stated = self.number("num_pipeline_microbatches").and_then(|count| u32::try_from(count).ok());
        stated.or(target.scenario.layout.pipeline).unwrap_or(1).max(1)
    }

    fn microbatch(self, target: &Target, microbatch: u32) -> Option<Vec<Setting>> {
        let sequences = microbatch.checked_mul(self.microbatches(target))?;
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
        let (steps, microbatches) = (target.accumulation()?, self.microbatches(target));
        steps.is_multiple_of(microbatches).then_some(steps / microbatches)
    }
}
