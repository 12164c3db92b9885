//! `planscope check`: whether a job fits, its time and utilisation, and what to change.

pub(crate) mod text;

use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use api::check::{Check, CheckChanges, Edit, Verdict};
use ingest::job_config::Hardware;
use planner::fit::{FewestDevices, FieldChange, fewest_devices};
use planner::host::NeverCancelled;
use planner::outcome::{PlanOutcome, Planned};
use planner::scenario::validate::NoDatasets;
use planner::scenario::{Scenario, ValidScenario};
use planner::slowness::{self, Measured, Slowness};
use serde::Serialize;

use crate::checks;
use crate::config::CheckArguments;
use crate::plan_command::plan;
use crate::workers::Threads;

/// Exit code if the job does not fit.
const DOES_NOT_FIT: u8 = 3;
/// Largest file in bytes.
const MAX_BYTES: u64 = 4 << 20;

/// Result for a configuration file.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Its `fit` contains the changes.
    #[serde(flatten)]
    pub(crate) check: Check,
    /// Names of the files.
    #[serde(skip)]
    files: Vec<String>,
    /// Edits of the files for each of the changes; empty if the format has no setting for it.
    edits: Vec<Vec<Edit>>,
    /// Edits of the files for the combination of changes; empty if there is none.
    combination_edits: Vec<Edit>,
    /// Fewest devices of each device type, if no single change makes the job fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    fewest_devices: Option<Vec<FewestDevices>>,
    /// Comparison with the measured step time, if it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) slowness: Option<Slowness>,
    #[serde(skip)]
    is_best_requested: bool,
    /// Best plan, if requested and found.
    #[serde(skip_serializing_if = "Option::is_none")]
    best: Option<Planned>,
}

/// Optional parts of a report.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Parts {
    /// Search the best plan, with free layout and settings.
    pub(crate) best: bool,
    /// Explain this measurement.
    pub(crate) measured: Option<Measured>,
    /// Worker threads per search. Default: number of cores.
    pub(crate) search_threads: Option<usize>,
}

/// Checks a configuration file and writes the report to standard output.
pub fn run(arguments: &CheckArguments) -> anyhow::Result<ExitCode> {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let files = arguments.files.iter().map(|path| Ok((name(path), read_text(path)?)));
    let files = files.collect::<anyhow::Result<Vec<(String, String)>>>()?;
    let names = files.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    let named: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let hardware = Hardware { preset: arguments.device, devices: arguments.gpus };
    let measured = arguments.step_time.map(Measured::StepS);
    let parts = Parts { best: arguments.best, measured, search_threads: arguments.search_threads };
    let report = report(&named, hardware, parts)?;
    let mut out = std::io::stdout().lock();
    if arguments.json {
        serde_json::to_writer_pretty(&mut out, &report)?;
        writeln!(out)?;
    } else {
        write!(out, "{}", text::describe(&names, &report))?;
    }
    let does_not_fit = report.check.verdict == Verdict::DoesNotFit;
    Ok(if does_not_fit { ExitCode::from(DOES_NOT_FIT) } else { ExitCode::SUCCESS })
}

/// Checks the configuration files of one job.
pub(crate) fn report(files: &[(&str, &str)], hardware: Hardware, parts: Parts) -> anyhow::Result<Report> {
    let configuration = checks::read(files, hardware)?;
    let valid = match ValidScenario::new(configuration.scenario.clone(), &NoDatasets) {
        Ok(valid) => valid,
        Err(errors) => {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            anyhow::bail!("the configuration is contradictory:\n{}", errors.join("\n"));
        }
    };
    let threads = || parts.search_threads.map_or_else(Threads::all_cores, Threads::new);
    let format = configuration.format;
    let check = checks::check(configuration, &valid, &threads(), &NeverCancelled)?;
    let texts: Vec<&str> = files.iter().map(|(_, text)| *text).collect();
    let CheckChanges { fit, edits, combination_edits } =
        checks::changes(&texts, hardware, format, &valid, &threads(), &NeverCancelled)?;
    let best = if parts.best { planned(check.best_scenario.clone(), threads())? } else { None };
    let is_hopeless = fit.base.iteration_s.is_none() && fit.changes.is_empty();
    let devices = is_hopeless.then(|| fewest_devices(&valid, &threads(), &NeverCancelled)).transpose()?;
    // A job that does not fit has no time to compare.
    let slowness = match parts.measured {
        Some(measured) if fit.base.iteration_s.is_some() => {
            Some(slowness::explain(&valid, measured, &threads(), &NeverCancelled)?)
        }
        _ => None,
    };
    Ok(Report {
        check: Check { fit, ..check },
        files: files.iter().map(|(name, _)| (*name).to_owned()).collect(),
        edits,
        combination_edits,
        fewest_devices: devices.map(|table| table.rows),
        slowness,
        is_best_requested: parts.best,
        best,
    })
}

fn read_text(path: &Path) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let context = || format!("cannot read {}", path.display());
    if path == Path::new("-") {
        std::io::stdin().lock().take(MAX_BYTES).read_to_end(&mut bytes).with_context(context)?;
    } else {
        let file = std::fs::File::open(path).with_context(context)?;
        file.take(MAX_BYTES).read_to_end(&mut bytes).with_context(context)?;
    }
    String::from_utf8(bytes).map_err(|error| {
        anyhow::anyhow!("{}: the file is not UTF-8 text (byte {})", path.display(), error.utf8_error().valid_up_to())
    })
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
