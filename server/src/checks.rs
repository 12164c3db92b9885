//! Checks of training configurations, for the command line and the API.

mod edits;
mod expected;
mod possible;
mod schedule_label;
mod syntax;

use api::check::{Certainty, Check, CheckChanges, Edit, RISK, Verdict};
use api::job_config::{ConfigFormat, ReadSetting};
use ingest::job_config::{self, Hardware, JobConfig, JobConfigError};
use planner::analysis::AnalysisError;
use planner::cluster::presets;
use planner::fit::{self, Change, ChangeKind, Completed, Fit};
use planner::host::{Cancellation, Workers};
use planner::outcome::Budget;
use planner::scenario::{FieldError, FreeSetting, PlannerKind, Scenario, ValidScenario};
use planner::training::Training;
use planner::utilisation;

use crate::field_names;
use edits::Job;
use expected::{GLOBAL_BATCH, Target};
use syntax::Setting;

/// Maximum number of devices of a job.
pub(crate) const MAX_DEVICES: u32 = 131_072;

/// A configuration file as a scenario, with a report.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Configuration {
    /// `None` for a scenario file.
    pub(crate) format: Option<ConfigFormat>,
    /// The scenario. It is not validated.
    pub(crate) scenario: Scenario,
    read: Vec<ReadSetting>,
    assumed: Vec<String>,
    not_modelled: Vec<String>,
    refusals: Vec<String>,
    unknown: Vec<String>,
}

impl Configuration {
    /// Returns the key of the file that states a field, or its plain name. A scenario file has paths.
    pub(crate) fn field_name(&self, pointer: &str) -> String {
        match self.format {
            Some(ConfigFormat::Megatron) => field_names::argument(&field_names::of_job(pointer, &self.read)),
            Some(_) => field_names::of_job(pointer, &self.read),
            None => field_names::in_scenario(pointer),
        }
    }
}

/// Error that rejects a file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigurationError {
    /// The configuration cannot be read.
    #[error(transparent)]
    Config(#[from] JobConfigError),
    /// The scenario has invalid fields.
    #[error("{}", .0.iter().map(|error| field_names::describe(error, field_names::in_scenario)).collect::<Vec<_>>().join("\n"))]
    Scenario(Vec<FieldError>),
    /// The text is the log of a run.
    #[error(
        "this is the log of a run ({steps} steps read), not a configuration. Paste the configuration or the arguments of the run, and open \
         the log with “Open a log or a trace of the run” on the page Check, with --log on the command line, or as a run on the page Runs"
    )]
    Log { steps: usize },
    /// The number of devices does not fill nodes.
    #[error("{devices} devices do not fill nodes of {per_node}")]
    PartialNode { devices: u32, per_node: u32 },
}

/// Returns the cluster preset of a device type.
///
/// # Errors
/// The type is unknown; the message lists the known types.
pub(crate) fn preset(id: &str) -> Result<&'static str, String> {
    let presets = presets::clusters();
    if let Some(separator) = id.find([',', '+', ';']) {
        return Err(format!(
            "mixed devices are not modelled, a cluster has one device type: check {} and the other types one after the other. With equal \
             shares of the batch, the slowest type determines the step time",
            id[..separator].trim()
        ));
    }
    let known = presets.iter().find(|preset| preset.id.eq_ignore_ascii_case(id)).map(|preset| preset.id);
    // Names of products, such as `a100`, `H100-SXM5-80GB` and `NVIDIA A100-SXM4-40GB`.
    known.or_else(|| job_config::device_preset(id)).ok_or_else(|| {
        let ids: Vec<&str> = presets.iter().map(|preset| preset.id).collect();
        format!("unknown device type; known: {}", ids.join(", "))
    })
}

/// Returns the format of the API.
pub(crate) const fn config_format(format: job_config::ConfigFormat) -> ConfigFormat {
    match format {
        job_config::ConfigFormat::HuggingFaceModel => ConfigFormat::HuggingFaceModel,
        job_config::ConfigFormat::Megatron => ConfigFormat::Megatron,
        job_config::ConfigFormat::MegatronYaml => ConfigFormat::MegatronYaml,
        job_config::ConfigFormat::Torchtitan => ConfigFormat::Torchtitan,
        job_config::ConfigFormat::Deepspeed => ConfigFormat::Deepspeed,
        job_config::ConfigFormat::TrainingArguments => ConfigFormat::TrainingArguments,
        job_config::ConfigFormat::Accelerate => ConfigFormat::Accelerate,
        job_config::ConfigFormat::LlamaFactory => ConfigFormat::LlamaFactory,
        job_config::ConfigFormat::Axolotl => ConfigFormat::Axolotl,
        job_config::ConfigFormat::Trl => ConfigFormat::Trl,
        job_config::ConfigFormat::Swift => ConfigFormat::Swift,
        job_config::ConfigFormat::OpenRlhf => ConfigFormat::OpenRlhf,
        job_config::ConfigFormat::GptNeox => ConfigFormat::GptNeox,
        job_config::ConfigFormat::Nanotron => ConfigFormat::Nanotron,
        job_config::ConfigFormat::LlmFoundry => ConfigFormat::LlmFoundry,
        job_config::ConfigFormat::Olmo => ConfigFormat::Olmo,
        job_config::ConfigFormat::Nemo => ConfigFormat::Nemo,
        job_config::ConfigFormat::MegatronBridge => ConfigFormat::MegatronBridge,
        job_config::ConfigFormat::Maxtext => ConfigFormat::Maxtext,
        job_config::ConfigFormat::Primus => ConfigFormat::Primus,
        job_config::ConfigFormat::Verl => ConfigFormat::Verl,
        job_config::ConfigFormat::Litgpt => ConfigFormat::Litgpt,
        job_config::ConfigFormat::Torchtune => ConfigFormat::Torchtune,
        job_config::ConfigFormat::Levanter => ConfigFormat::Levanter,
        job_config::ConfigFormat::OlmoCore => ConfigFormat::OlmoCore,
        job_config::ConfigFormat::Mlperf => ConfigFormat::Mlperf,
    }
}

/// Returns the settings of the API.
pub(crate) fn read_settings(read: Vec<job_config::ReadSetting>) -> Vec<ReadSetting> {
    let setting = |job_config::ReadSetting { key, value, setting }| ReadSetting { key, value, setting };
    read.into_iter().map(setting).collect()
}

/// Returns the number of steps of a text that is the log of a run. `None` for several files, for other texts and for a
/// single step, which another text can look like.
fn log_steps(files: &[(&str, &[u8])]) -> Option<usize> {
    let [(_, text)] = files else { return None };
    let (points, _) = crate::live::log_points(text).ok()?;
    Some(points.len()).filter(|&steps| steps > 1)
}

/// Reads a scenario or the configuration files of one job, on the given devices. A scenario is a single file.
pub(crate) fn read(files: &[(&str, &str)], hardware: Hardware) -> Result<Configuration, ConfigurationError> {
    let is_scenario =
        |text: &str| serde_json::from_str::<serde_json::Value>(text).is_ok_and(|json| json.get("schema").is_some());
    let scenario = match files {
        [(_, text)] if is_scenario(text) => Some(*text),
        _ => None,
    };
    let Some(text) = scenario else {
        let files: Vec<(&str, &[u8])> = files.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
        let config = job_config::read_files(&files, hardware).map_err(|error| match log_steps(&files) {
            Some(steps) => ConfigurationError::Log { steps },
            None => error.into(),
        })?;
        let JobConfig { format, scenario, read, assumed, not_modelled, refusals, unknown } = config;
        let (format, read) = (Some(config_format(format)), read_settings(read));
        return Ok(Configuration { format, scenario, read, assumed, not_modelled, refusals, unknown });
    };
    let mut scenario = planner::scenario::parse(text).map_err(ConfigurationError::Scenario)?;
    if let Some(cluster) = hardware.preset.and_then(presets::cluster) {
        let nodes = scenario.cluster.nodes;
        scenario.cluster = cluster;
        scenario.cluster.nodes = nodes;
    }
    if let Some(devices) = hardware.devices {
        let per_node = scenario.cluster.devices_per_node.min(devices);
        if !devices.is_multiple_of(per_node) {
            return Err(ConfigurationError::PartialNode { devices, per_node });
        }
        (scenario.cluster.nodes, scenario.cluster.devices_per_node) = (devices / per_node, per_node);
    }
    let (read, not_modelled, unknown) = (Vec::new(), Vec::new(), Vec::new());
    let (assumed, refusals) = (job_config::remarks(&scenario), job_config::refusals(&scenario));
    Ok(Configuration { format: None, scenario, read, assumed, not_modelled, refusals, unknown })
}

/// Returns the scenario of a job with the settings that its files leave open. They are added to the assumptions. A scenario
/// file states all settings.
pub(crate) fn complete(
    configuration: &mut Configuration,
    valid: ValidScenario,
    workers: &dyn Workers,
    cancellation: &dyn Cancellation,
) -> Result<ValidScenario, AnalysisError> {
    if configuration.format.is_none() {
        return Ok(valid);
    }
    let Some(Completed { valid, assumed }) = fit::complete(&valid, workers, cancellation)? else { return Ok(valid) };
    configuration.assumed.extend(assumed);
    configuration.scenario = valid.scenario().clone();
    Ok(valid)
}

/// Plans one global batch of the job. `valid` is the scenario of the configuration. With a valid `budget`, the check
/// has the duration and the cost of the whole run.
pub(crate) fn check(
    configuration: Configuration,
    valid: &ValidScenario,
    budget: Option<Budget>,
    workers: &dyn Workers,
    cancellation: &dyn Cancellation,
) -> Result<Check, AnalysisError> {
    let need = fit::need(valid, None, workers, cancellation)?;
    let Configuration { format, scenario: _, read, assumed, not_modelled, refusals, unknown } = configuration;
    let certainty = need.plan.as_ref().map(|plan| Certainty::of_plan(valid.scenario(), plan));
    let utilisation = need.plan.as_ref().map(|plan| utilisation::by_formula(valid.scenario(), plan));
    let layout = need.plan.as_ref().map(|plan| plan.layout).or(need.fit.base.layout);
    let schedule = schedule_label::label(format, valid.scenario(), need.fit.planner, layout);
    let devices = valid.scenario().cluster.devices();
    let predicted = need.plan.as_ref().zip(certainty.as_ref());
    let run = budget.zip(predicted).and_then(|(budget, (plan, certainty))| {
        budget.forecast(&plan.metrics, (certainty.step_s.low, certainty.step_s.high), devices)
    });
    Ok(Check {
        verdict: Verdict::new(certainty.as_ref(), !need.fit.ranks.is_empty(), &refusals),
        format,
        schedule,
        scenario: valid.scenario().clone(),
        best_scenario: free(valid.scenario()),
        read,
        assumed,
        not_modelled,
        refusals,
        unknown,
        fit: need.fit,
        certainty,
        utilisation: utilisation.unwrap_or_default(),
        run,
        plan: need.plan.map(|plan| *plan),
    })
}

/// Simulates single changes of a job with files, and finds the edits of its files for each. `valid` is the scenario of
/// the files on `hardware`.
pub(crate) fn changes(
    files: &[&str],
    hardware: Hardware,
    format: Option<ConfigFormat>,
    valid: &ValidScenario,
    workers: &dyn Workers,
    cancellation: &dyn Cancellation,
) -> Result<CheckChanges, AnalysisError> {
    let scenario = valid.scenario();
    // The name of a file can state the device.
    let hardware = Hardware { preset: hardware.preset.or_else(|| preset_of(scenario)), ..hardware };
    let job = format.filter(|&format| syntax::has_settings(format, scenario)).map(|format| Job::new(format, files));
    let edits_of = |change: &Change| {
        let edits = job.as_ref().and_then(|job| edits_of(job, files, hardware, scenario, change));
        edits.unwrap_or_default()
    };
    // Without settings at all, a person applies the changes.
    let is_applicable = |change: &Change| job.is_none() || !edits_of(change).is_empty();
    let mut fit = fit::fit_applicable(valid, None, &is_applicable, workers, cancellation)?;
    if let Some(job) = &job {
        possible::keep_possible(&mut fit, job, scenario);
    }
    list_cluster_last(&mut fit);
    let edits = fit.changes.iter().map(edits_of).collect();
    let combined = fit.combination.as_ref().map(|combination| {
        let changes = combination.changes.iter().filter_map(|&index| fit.changes.get(index as usize));
        Change {
            title: String::new(),
            kind: ChangeKind::Training,
            fields: changes.flat_map(|change| change.fields.clone()).collect(),
            result: combination.result.clone(),
            difference_s: combination.difference_s,
            probability_faster: None,
        }
    });
    let combination_edits = combined.as_ref().map(edits_of).unwrap_or_default();
    Ok(CheckChanges { fit, edits, combination_edits })
}

/// Returns the preset with the device of a scenario.
fn preset_of(scenario: &Scenario) -> Option<&'static str> {
    let presets = presets::clusters();
    presets.iter().find(|preset| preset.cluster.device == scenario.cluster.device).map(|preset| preset.id)
}

/// Lists changes of the configuration before those of the cluster, which cost money.
fn list_cluster_last(fit: &mut Fit) {
    let mut order: Vec<u32> = (0..).take(fit.changes.len()).collect();
    order.sort_by_key(|&index| fit.changes[index as usize].kind == ChangeKind::Cluster);
    fit.changes.sort_by_key(|change| change.kind == ChangeKind::Cluster);
    let place = |index: &u32| (0..).zip(&order).find(|(_, old)| *old == index).map(|(new, _)| new);
    if let Some(combination) = &mut fit.combination {
        combination.changes = combination.changes.iter().filter_map(place).collect();
    }
}

/// Returns the edits that make a change, or `None` if the files have no settings for it. The edited files are read
/// again. Fields that then differ from the simulated scenario get settings of their own, for example the accumulation
/// steps of the same global batch. The result is the simulated scenario.
fn edits_of(
    job: &Job<'_>,
    files: &[&str],
    hardware: Hardware,
    scenario: &Scenario,
    change: &Change,
) -> Option<Vec<Edit>> {
    let (target, mut fields) = Target::new(scenario, change)?;
    let unchanged: Vec<String> = files.iter().map(|text| (*text).to_owned()).collect();
    let refusals = read_again(&unchanged, hardware, scenario).map_or(0, |job| job.refusals.len());
    let mut settled: Vec<String> = Vec::new();
    let mut settings: Vec<Setting> = Vec::new();
    loop {
        fields.retain(|field| !settled.contains(field));
        // Settings for the remaining fields have no effect.
        if fields.is_empty() {
            return None;
        }
        for setting in
            fields.iter().map(|field| syntax::settings(job, &target, field)).collect::<Option<Vec<_>>>()?.concat()
        {
            settings.retain(|other| other.keys != setting.keys);
            settings.push(setting);
        }
        settled.append(&mut fields);
        let edits = job.locate(&settings)?;
        let edited = api::check::apply_to_files(files, &edits)?;
        fields = match read_again(&edited, hardware, &target.scenario) {
            Ok(again) if possible::runs_all_forwards_first(&again.scenario, &target.scenario) => return None,
            Ok(again) => {
                let differences = target.differences(&with_effects(again.scenario, &target));
                // The framework refuses the edited job, for example because of the batch of its new replicas.
                let is_refused = again.refusals.len() > refusals;
                if differences.is_empty() && is_refused { vec![GLOBAL_BATCH.to_owned()] } else { differences }
            }
            // The accumulation of the file contradicts its global batch.
            Err(_) => vec![GLOBAL_BATCH.to_owned()],
        };
        if fields.is_empty() {
            return Some(edits);
        }
    }
}

/// Returns a scenario with the values of the target for settings that have no effect there.
fn with_effects(mut scenario: Scenario, target: &Target) -> Scenario {
    let Training {
        zero,
        distributed_optimizer,
        chunked_loss,
        in_place_loss,
        context_parallel,
        microbatches_per_flush,
        ..
    } = target.scenario.training;
    // One device has nothing to share its states with.
    if target.replicas() == 1 && context_parallel == 1 {
        (scenario.training.zero, scenario.training.distributed_optimizer) = (zero, distributed_optimizer);
    }
    // All microbatches of a step run before its only flush, and a job without a pipeline has none.
    let is_single = |flush: Option<u32>| {
        target.scenario.layout.pipeline == Some(1)
            || flush.is_none_or(|flush| target.accumulation().is_some_and(|all| flush >= all))
    };
    if is_single(microbatches_per_flush) && is_single(scenario.training.microbatches_per_flush) {
        scenario.training.microbatches_per_flush = microbatches_per_flush;
    }
    // A loss in chunks stores no logits.
    if chunked_loss && scenario.training.chunked_loss {
        scenario.training.in_place_loss = in_place_loss;
    }
    scenario
}

/// Reads the files of a job on the devices of a scenario, if the files leave them open.
fn read_again(files: &[String], hardware: Hardware, expected: &Scenario) -> Result<JobConfig, JobConfigError> {
    let files: Vec<(&str, &[u8])> = files.iter().map(|text| ("", text.as_bytes())).collect();
    let again = job_config::read_files(&files, hardware);
    if again.as_ref().is_ok_and(|again| again.scenario.cluster == expected.cluster) {
        return again;
    }
    let hardware = Hardware { devices: Some(expected.cluster.devices()), ..hardware };
    job_config::read_files(&files, hardware)
}

/// Returns the scenario with free layout and settings, for the planner `best`.
pub(crate) fn free(scenario: &Scenario) -> Scenario {
    let mut free = scenario.clone();
    free.free_layout();
    (free.free, free.planners) = (FreeSetting::ALL.to_vec(), vec![PlannerKind::Best]);
    free.max_memory_risk = Some(RISK);
    free
}

#[cfg(test)]
mod tests;
