//! Checks of training configurations, for the command line and the API.

mod edits;
mod syntax;

use api::check::{Certainty, Check, CheckChanges, Edit, Verdict};
use api::job_config::{ConfigFormat, ReadSetting};
use ingest::job_config::{self, Hardware, JobConfig, JobConfigError};
use planner::analysis::AnalysisError;
use planner::cluster::presets;
use planner::fit::{self, Change, ChangeKind, Fit};
use planner::host::{Cancellation, Workers};
use planner::scenario::{FieldError, FreeSetting, PlannerKind, Scenario, ValidScenario};
use planner::training::LayoutRequest;

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
    unknown: Vec<String>,
}

/// Error that rejects a file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigurationError {
    /// The configuration cannot be read.
    #[error(transparent)]
    Config(#[from] JobConfigError),
    /// The scenario has invalid fields.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Scenario(Vec<FieldError>),
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
    let known = presets.iter().find(|preset| preset.id.eq_ignore_ascii_case(id)).map(|preset| preset.id);
    known.ok_or_else(|| {
        let ids: Vec<&str> = presets.iter().map(|preset| preset.id).collect();
        format!("unknown device type; known: {}", ids.join(", "))
    })
}

/// Returns the format of the API.
pub(crate) const fn config_format(format: job_config::ConfigFormat) -> ConfigFormat {
    match format {
        job_config::ConfigFormat::HuggingFaceModel => ConfigFormat::HuggingFaceModel,
        job_config::ConfigFormat::Megatron => ConfigFormat::Megatron,
        job_config::ConfigFormat::Torchtitan => ConfigFormat::Torchtitan,
        job_config::ConfigFormat::Deepspeed => ConfigFormat::Deepspeed,
        job_config::ConfigFormat::TrainingArguments => ConfigFormat::TrainingArguments,
        job_config::ConfigFormat::Accelerate => ConfigFormat::Accelerate,
        job_config::ConfigFormat::LlamaFactory => ConfigFormat::LlamaFactory,
        job_config::ConfigFormat::Axolotl => ConfigFormat::Axolotl,
        job_config::ConfigFormat::Nanotron => ConfigFormat::Nanotron,
        job_config::ConfigFormat::LlmFoundry => ConfigFormat::LlmFoundry,
        job_config::ConfigFormat::Olmo => ConfigFormat::Olmo,
        job_config::ConfigFormat::Nemo => ConfigFormat::Nemo,
        job_config::ConfigFormat::MegatronBridge => ConfigFormat::MegatronBridge,
        job_config::ConfigFormat::Maxtext => ConfigFormat::Maxtext,
        job_config::ConfigFormat::Primus => ConfigFormat::Primus,
        job_config::ConfigFormat::Verl => ConfigFormat::Verl,
        job_config::ConfigFormat::Mlperf => ConfigFormat::Mlperf,
    }
}

/// Returns the settings of the API.
pub(crate) fn read_settings(read: Vec<job_config::ReadSetting>) -> Vec<ReadSetting> {
    let setting = |job_config::ReadSetting { key, value, setting }| ReadSetting { key, value, setting };
    read.into_iter().map(setting).collect()
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
        let JobConfig { format, scenario, read, assumed, not_modelled, unknown } =
            job_config::read_files(&files, hardware)?;
        let (format, read) = (Some(config_format(format)), read_settings(read));
        return Ok(Configuration { format, scenario, read, assumed, not_modelled, unknown });
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
    let (read, assumed, not_modelled, unknown) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    Ok(Configuration { format: None, scenario, read, assumed, not_modelled, unknown })
}

/// Plans one global batch of the job. `valid` is the scenario of the configuration.
pub(crate) fn check(
    configuration: Configuration,
    valid: &ValidScenario,
    workers: &dyn Workers,
    cancellation: &dyn Cancellation,
) -> Result<Check, AnalysisError> {
    let need = fit::need(valid, None, workers, cancellation)?;
    let Configuration { format, scenario: _, read, assumed, not_modelled, unknown } = configuration;
    let certainty = need.plan.as_ref().map(|plan| Certainty::of_plan(valid.scenario(), plan));
    Ok(Check {
        verdict: Verdict::new(certainty.as_ref()),
        format,
        scenario: valid.scenario().clone(),
        best_scenario: free(valid.scenario()),
        read,
        assumed,
        not_modelled,
        unknown,
        fit: need.fit,
        certainty,
        plan: need.plan.map(|plan| *plan),
    })
}

/// Simulates single changes of the job, and finds the edits of its file for each. `text` is `None` if the job has
/// several files, which have no edits.
pub(crate) fn changes(
    text: Option<&str>,
    format: Option<ConfigFormat>,
    valid: &ValidScenario,
    workers: &dyn Workers,
    cancellation: &dyn Cancellation,
) -> Result<CheckChanges, AnalysisError> {
    let edits_of = |change: &Change| match (text, format) {
        (Some(text), Some(format)) => edits_of(text, format, valid, change),
        _ => Vec::new(),
    };
    // A combination of changes without settings in the file cannot be applied.
    let has_settings = text.is_some() && format.is_some_and(syntax::has_settings);
    let is_combined = |change: &Change| !has_settings || !edits_of(change).is_empty();
    let mut fit = fit::fit_combining(valid, None, &is_combined, workers, cancellation)?;
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

/// Returns the edits that make a change, or nothing if the format has no setting for it. The edited file is read
/// again: it must give the scenario that was simulated.
fn edits_of(text: &str, format: ConfigFormat, valid: &ValidScenario, change: &Change) -> Vec<Edit> {
    let Some(settings) = syntax::settings(format, valid.scenario(), change) else { return Vec::new() };
    let scenario = valid.scenario();
    let gives_change = |edits: &Vec<Edit>| {
        let edited = api::check::apply(text, edits)?;
        let hardware = Hardware { preset: None, devices: Some(scenario.cluster.devices()) };
        let again = job_config::read_on("", edited.as_bytes(), hardware).ok()?.scenario;
        syntax::is_changed(scenario, change, &again).then_some(())
    };
    let candidates = [settings.clone(), syntax::with_batch(format, scenario, change, settings)];
    let located = candidates.iter().filter_map(|settings| edits::locate(text, settings));
    located.into_iter().find(|edits| gives_change(edits).is_some()).unwrap_or_default()
}

/// Returns the scenario with free layout and settings, for the planner `best`.
pub(crate) fn free(scenario: &Scenario) -> Scenario {
    Scenario {
        layout: LayoutRequest::default(),
        free: FreeSetting::ALL.to_vec(),
        planners: vec![PlannerKind::Best],
        ..scenario.clone()
    }
}

#[cfg(test)]
mod tests;
