//! `planscope check`: whether a job fits, its time and utilisation, and what to change.

mod syntax;
mod text;

use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use ingest::job_config::{self, ConfigFormat, Hardware, JobConfig};
use planner::cluster::presets;
use planner::fit::{Change, FewestDevices, FieldChange, Fit, fewest_devices, fit};
use planner::host::NeverCancelled;
use planner::outcome::{PlanOutcome, Planned};
use planner::scenario::validate::NoDatasets;
use planner::scenario::{FreeSetting, PlannerKind, Scenario, ValidScenario};
use planner::training::LayoutRequest;
use serde::Serialize;

use crate::config::CheckArguments;
use crate::plan_command::plan;
use crate::workers::Threads;

/// Exit code if the job does not fit.
const DOES_NOT_FIT: u8 = 3;
/// Largest file in bytes.
const MAX_BYTES: u64 = 4 << 20;

/// Whether the job fits the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Fits,
    /// Above 95 % of the limit.
    AtRisk,
    DoesNotFit,
}

/// Result for a configuration file.
#[derive(Debug, Serialize)]
struct Report {
    verdict: Verdict,
    /// Format of the file: `scenario`, `torchtitan`, `megatron` or `hugging_face_model`.
    format: &'static str,
    scenario: Scenario,
    /// Values read, as `key: setting`.
    read: Vec<String>,
    assumed: Vec<String>,
    not_modelled: Vec<String>,
    unknown: Vec<String>,
    /// Need, result and changes on one global batch.
    fit: Fit,
    /// Lines of the file's own syntax for each of the changes; empty if it has none.
    lines: Vec<Vec<String>>,
    /// Fewest devices of each device type, if no single change makes the job fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    fewest_devices: Option<Vec<FewestDevices>>,
    #[serde(skip)]
    is_best_requested: bool,
    /// Plan of the job, if it fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<Planned>,
    /// Best plan, if requested and found.
    #[serde(skip_serializing_if = "Option::is_none")]
    best: Option<Planned>,
}

/// Checks a configuration file and writes the report to standard output.
pub fn run(arguments: &CheckArguments) -> anyhow::Result<ExitCode> {
    let bytes = read_bytes(&arguments.file)?;
    let name = arguments.file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let hardware = Hardware { preset: arguments.device, devices: arguments.gpus };
    let Configuration { format, scenario, read, assumed, not_modelled, unknown } = read(&name, &bytes, hardware)?;
    let valid = match ValidScenario::new(scenario, &NoDatasets) {
        Ok(valid) => valid,
        Err(errors) => {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            anyhow::bail!("the configuration is contradictory:\n{}", errors.join("\n"));
        }
    };
    let threads = || arguments.search_threads.map_or_else(Threads::all_cores, Threads::new);
    let fit = fit(&valid, None, &threads(), &NeverCancelled)?;
    let own = Scenario { planners: vec![fit.planner], ..valid.scenario().clone() };
    let plan = planned(own, threads())?;
    let best = if arguments.best { planned(open(valid.scenario()), threads())? } else { None };
    let is_hopeless = fit.base.iteration_s.is_none() && fit.changes.is_empty();
    let devices = is_hopeless.then(|| fewest_devices(&valid, &threads(), &NeverCancelled)).transpose()?;
    let syntax = |change: &Change| syntax::lines(format, valid.scenario(), &change.fields, change.result.layout);
    let report = Report {
        verdict: verdict(&fit),
        format: format_name(format),
        read,
        assumed,
        not_modelled,
        unknown,
        lines: fit.changes.iter().map(syntax).collect(),
        scenario: valid.scenario().clone(),
        fewest_devices: devices.map(|table| table.rows),
        is_best_requested: arguments.best,
        fit,
        plan,
        best,
    };
    let mut out = std::io::stdout().lock();
    if arguments.json {
        serde_json::to_writer_pretty(&mut out, &report)?;
        writeln!(out)?;
    } else {
        write!(out, "{}", text::describe(&name, &report))?;
    }
    Ok(if report.verdict == Verdict::DoesNotFit { ExitCode::from(DOES_NOT_FIT) } else { ExitCode::SUCCESS })
}

fn read_bytes(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let context = || format!("cannot read {}", path.display());
    if path == Path::new("-") {
        std::io::stdin().lock().take(MAX_BYTES).read_to_end(&mut bytes).with_context(context)?;
    } else {
        let file = std::fs::File::open(path).with_context(context)?;
        file.take(MAX_BYTES).read_to_end(&mut bytes).with_context(context)?;
    }
    Ok(bytes)
}

/// A scenario and its source.
struct Configuration {
    /// `None` for a scenario file.
    format: Option<ConfigFormat>,
    scenario: Scenario,
    read: Vec<String>,
    assumed: Vec<String>,
    not_modelled: Vec<String>,
    unknown: Vec<String>,
}

/// Reads a scenario or the configuration of a job.
fn read(name: &str, bytes: &[u8], hardware: Hardware) -> anyhow::Result<Configuration> {
    let text = String::from_utf8_lossy(bytes);
    let is_scenario = serde_json::from_str::<serde_json::Value>(&text).is_ok_and(|json| json.get("schema").is_some());
    if !is_scenario {
        let JobConfig { format, scenario, read, assumed, not_modelled, unknown } =
            job_config::read_on(name, bytes, hardware)?;
        let read = read.into_iter().map(|setting| format!("{}: {}", setting.key, setting.setting)).collect();
        return Ok(Configuration { format: Some(format), scenario, read, assumed, not_modelled, unknown });
    }
    let mut scenario = planner::scenario::parse(&text)
        .map_err(|errors| anyhow::anyhow!(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")))?;
    if let Some(cluster) = hardware.preset.and_then(presets::cluster) {
        let nodes = scenario.cluster.nodes;
        scenario.cluster = cluster;
        scenario.cluster.nodes = nodes;
    }
    if let Some(devices) = hardware.devices {
        let per_node = scenario.cluster.devices_per_node.min(devices);
        anyhow::ensure!(devices.is_multiple_of(per_node), "{devices} devices do not fill nodes of {per_node}");
        (scenario.cluster.nodes, scenario.cluster.devices_per_node) = (devices / per_node, per_node);
    }
    Ok(Configuration {
        format: None,
        scenario,
        read: Vec::new(),
        assumed: Vec::new(),
        not_modelled: Vec::new(),
        unknown: Vec::new(),
    })
}

const fn format_name(format: Option<ConfigFormat>) -> &'static str {
    match format {
        None => "scenario",
        Some(format) => format.id(),
    }
}

fn verdict(fit: &Fit) -> Verdict {
    match fit.base.iteration_s {
        None => Verdict::DoesNotFit,
        _ if fit.is_at_risk() => Verdict::AtRisk,
        _ => Verdict::Fits,
    }
}

/// Returns the scenario with free layout and settings, for the planner `best`.
fn open(scenario: &Scenario) -> Scenario {
    Scenario {
        layout: LayoutRequest::default(),
        free: FreeSetting::ALL.to_vec(),
        planners: vec![PlannerKind::Best],
        ..scenario.clone()
    }
}

/// Returns the plan of a scenario with one planner, or `None` if it has no plan.
fn planned(scenario: Scenario, threads: Threads) -> anyhow::Result<Option<Planned>> {
    let valid = ValidScenario::new(scenario, &NoDatasets)
        .map_err(|errors| anyhow::anyhow!(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")))?;
    let mut results = plan(&valid, threads)?.outcome.results;
    Ok(match results.pop().map(|result| result.answer) {
        Some(PlanOutcome::Planned(planned)) => Some(*planned),
        _ => None,
    })
}

/// Returns the new value of a field as text.
fn value_text(field: &FieldChange) -> String {
    field.value.as_str().map_or_else(|| field.value.to_string(), str::to_owned)
}
