//! `planscope check`: whether a job fits, its time and utilisation, and what to change.

pub(crate) mod text;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use api::check::{Certainty, Check, CheckChanges, Edit, LogCheck, MAX_LOG_BYTES, Verdict, apply_to_files};
use api::run::Comparison;
use ingest::job_config::Hardware;
use planner::fit::{DeviceTable, FieldChange, fewest_devices};
use planner::host::{Cancellation, NeverCancelled, Workers};
use planner::outcome::{Budget, PlanOutcome, Planned, Planning};
use planner::scenario::validate::NoDatasets;
use planner::scenario::{Scenario, ValidScenario};
use planner::slowness::{self, Measured, Slowness};
use planner::trace_comparison::Recorded;
use planner::trace_prediction::{self, TracePrediction};
use serde::Serialize;

use crate::checks::{self, Configuration};
use crate::config::CheckArguments;
use crate::deadline::Deadline;
use crate::field_names;
use crate::observation::{Log, check_log, roomy};
use crate::plan_command::plan;
use crate::trace_command;
use crate::workers::Threads;

/// Exit code if the job does not fit or does not start.
const REJECTED: u8 = 3;
/// Time limit for the table of the fewest devices.
const DEVICE_TIME: Duration = Duration::from_secs(20);
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
    pub(crate) fewest_devices: Option<DeviceTable>,
    /// Comparison with the measured step time, if it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) slowness: Option<Slowness>,
    /// Comparison with the log, if it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) log: Option<Comparison>,
    /// Comparison with a profiler trace, if it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<TracePrediction>,
    /// True if a measurement was given and the job does not fit.
    #[serde(skip)]
    is_not_compared: bool,
    /// Note that the need is above the device, within the error of the prediction.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_note: Option<String>,
    #[serde(skip)]
    is_best_requested: bool,
    /// Best plan, if requested and found.
    #[serde(skip_serializing_if = "Option::is_none")]
    best: Option<Planned>,
    /// Uncertainty of the best plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    best_certainty: Option<Certainty>,
}

/// Optional parts of a report.
#[derive(Debug, Clone, Default)]
pub(crate) struct Parts {
    /// Explain this measurement.
    pub(crate) measured: Option<Measured>,
    /// Compare this log.
    pub(crate) log: Option<Log>,
    /// Compare this trace, of the given rank.
    pub(crate) trace: Option<(Recorded, Option<u32>)>,
    /// Add duration and cost of a run over these tokens.
    pub(crate) budget: Option<Budget>,
}

impl Report {
    /// Edits of the files for each change.
    pub(crate) fn edits(&self) -> impl Iterator<Item = &[Edit]> {
        self.edits.iter().map(Vec::as_slice)
    }

    /// The best plan with its uncertainty, if it was requested and found.
    pub(crate) fn best_plan(&self) -> Option<(&Planned, &Certainty)> {
        self.best.as_ref().zip(self.best_certainty.as_ref())
    }

    /// Adds the result of the search for the best plan of the job.
    pub(crate) fn with_best(self, best: Option<Planned>) -> Self {
        let best_certainty = best.as_ref().map(|plan| Certainty::of_plan(&self.check.best_scenario, plan));
        Self { is_best_requested: true, best, best_certainty, ..self }
    }
}

/// Checks a configuration file and writes the report to standard output.
pub fn run(arguments: &CheckArguments) -> anyhow::Result<ExitCode> {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let files = arguments.files.iter().map(|path| Ok((name(path), read_text(path)?)));
    let files = files.collect::<anyhow::Result<Vec<(String, String)>>>()?;
    let mut seen = BTreeSet::new();
    if let Some(path) = arguments.files.iter().find(|path| !seen.insert(*path)) {
        anyhow::bail!("{} is given twice", path.display());
    }
    let hardware = Hardware { preset: arguments.device, devices: arguments.gpus };
    let log = arguments.log.as_deref().map(|path| read_log(path).with_context(|| path.display().to_string()));
    let trace =
        arguments.trace.as_deref().map(|path| Ok((trace_command::activity(path, arguments.rank)?, arguments.rank)));
    let parts = Parts {
        measured: arguments.measured(),
        log: log.transpose()?,
        trace: trace.transpose().map_err(|error: anyhow::Error| error)?,
        budget: arguments.budget()?,
    };
    let threads = arguments.search_threads.map_or_else(Threads::all_cores, Threads::new);
    let texts = files.clone();
    let mut report = JobFiles::read(files, hardware)?.report(parts, &threads, &NeverCancelled)?;
    if let Some(folder) = &arguments.export {
        export(&report, &texts, (folder, arguments.change))?;
    }
    if arguments.best {
        report.check.best_scenario.max_memory_risk =
            (arguments.max_risk > 0).then(|| f64::from(arguments.max_risk) / 100.0);
        let planning = plan(&validated(report.check.shown_best_scenario())?, threads)?;
        report = report.with_best(first_plan(planning));
    }
    let mut out = std::io::stdout().lock();
    if arguments.json {
        serde_json::to_writer_pretty(&mut out, &report)?;
        writeln!(out)?;
    } else {
        write!(out, "{}", text::describe(&report))?;
    }
    let is_rejected = matches!(report.check.verdict, Verdict::DoesNotFit | Verdict::DoesNotStart);
    Ok(if is_rejected { ExitCode::from(REJECTED) } else { ExitCode::SUCCESS })
}

/// Configuration files of one job, and their valid scenario.
#[derive(Debug)]
pub(crate) struct JobFiles {
    /// Names and texts.
    files: Vec<(String, String)>,
    hardware: Hardware,
    configuration: Configuration,
    valid: ValidScenario,
}

impl JobFiles {
    /// Reads the files.
    pub(crate) fn read(files: Vec<(String, String)>, hardware: Hardware) -> anyhow::Result<Self> {
        let named: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let configuration = checks::read(&named, hardware)?;
        let valid = ValidScenario::new(configuration.scenario.clone(), &NoDatasets).map_err(|errors| {
            let mut lines: Vec<String> = errors
                .iter()
                .map(|error| field_names::describe(error, |field| configuration.field_name(field)))
                .collect();
            let is_degree = |pointer: &str| matches!(pointer, "/layout/tensor" | "/layout/pipeline");
            if hardware.devices.is_none() && errors.iter().any(|error| is_degree(&error.pointer)) {
                lines.push("If the job has another number of devices, state it with --gpus.".to_owned());
            }
            anyhow::anyhow!("{}", lines.join("\n")).context("the configuration is contradictory")
        })?;
        Ok(Self { files, hardware, configuration, valid })
    }

    /// The job as a scenario.
    pub(crate) fn scenario(&self) -> &Scenario {
        self.valid.scenario()
    }

    /// Checks the job.
    pub(crate) fn report(
        self,
        parts: Parts,
        workers: &dyn Workers,
        cancellation: &dyn Cancellation,
    ) -> anyhow::Result<Report> {
        let Self { files, hardware, mut configuration, valid } = self;
        let format = configuration.format;
        let valid = checks::complete(&mut configuration, valid, workers, cancellation)?;
        let check = checks::check(configuration, &valid, parts.budget, workers, cancellation)?;
        let texts: Vec<&str> = files.iter().map(|(_, text)| text.as_str()).collect();
        let CheckChanges { fit, edits, combination_edits } =
            checks::changes(&texts, hardware, format, &valid, workers, cancellation)?;
        let is_hopeless = fit.base.iteration_s.is_none() && fit.changes.is_empty();
        let limit = Deadline::start(cancellation, DEVICE_TIME);
        let devices = is_hopeless.then(|| fewest_devices(&valid, workers, &limit)).transpose()?;
        let is_measured = parts.measured.is_some() || parts.log.is_some() || parts.trace.is_some();
        let larger =
            if is_measured && fit.base.iteration_s.is_none() { roomy(&valid, workers, cancellation)? } else { None };
        // A job that needs much more than the device has no time to compare.
        let is_comparable = fit.base.iteration_s.is_some() || larger.is_some();
        let compared = larger.as_ref().map_or(&valid, |(larger, _)| larger);
        let comparable = parts.measured.filter(|_| is_comparable);
        let explained = comparable.map(|measured| slowness::explain(compared, measured, workers, cancellation));
        let planned = check.plan.as_ref();
        let trace = parts
            .trace
            .zip(planned)
            .map(|((recorded, rank), planned)| trace_prediction::compare(&valid, planned, &recorded, rank));
        let log = parts.log.filter(|_| is_comparable);
        let (log, slowness) = match log.map(|log| check_log(log, &valid, workers, cancellation)).transpose()? {
            Some(LogCheck { comparison, slowness }) => (Some(comparison), slowness),
            None => (None, explained.transpose()?),
        };
        Ok(Report {
            check: Check { fit, ..check },
            files: files.into_iter().map(|(name, _)| name).collect(),
            edits,
            combination_edits,
            fewest_devices: devices,
            memory_note: larger.map(|(_, note)| note).filter(|_| log.is_none() && slowness.is_some()),
            is_not_compared: is_measured && slowness.is_none() && log.is_none() && trace.is_none(),
            slowness,
            log,
            trace,
            is_best_requested: false,
            best: None,
            best_certainty: None,
        })
    }
}

/// Validates a scenario without datasets. The error lists the invalid fields.
pub(crate) fn validated(scenario: Scenario) -> anyhow::Result<ValidScenario> {
    ValidScenario::new(scenario, &NoDatasets).map_err(|errors| {
        let lines = errors.iter().map(|error| field_names::describe(error, field_names::plain));
        anyhow::anyhow!(lines.collect::<Vec<_>>().join("\n"))
    })
}

/// Returns the plan of the first planner, or `None` if it has no plan.
pub(crate) fn first_plan(planning: Planning) -> Option<Planned> {
    match planning.outcome.results.into_iter().next()?.answer {
        PlanOutcome::Planned(planned) => Some(*planned),
        PlanOutcome::Infeasible { .. } => None,
    }
}

/// Writes the files of the job with a change.
fn export(report: &Report, texts: &[(String, String)], (folder, number): (&Path, Option<u32>)) -> anyhow::Result<()> {
    let changes = CheckChanges {
        fit: report.check.fit.clone(),
        edits: report.edits.clone(),
        combination_edits: report.combination_edits.clone(),
    };
    let texts_only: Vec<&str> = texts.iter().map(|(_, text)| text.as_str()).collect();
    let exported = changes.exported(number.map(|number| number - 1));
    let edited = exported.and_then(|(titles, edits)| Some((titles, apply_to_files(&texts_only, edits)?)));
    let Some((titles, edited)) = edited else {
        anyhow::bail!("nothing is exported: there is no such change, or the files have no setting for it");
    };
    let paths = export_paths(folder, texts.iter().map(|(name, _)| name.as_str()))?;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for (path, text) in paths.iter().zip(edited) {
        let file = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
        let mut file = file.with_context(|| format!("cannot create {}", path.display()))?;
        file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
        eprintln!("{}: {}", path.display(), titles.join("; "));
    }
    Ok(())
}

/// Returns the paths of exported files. Standard input has no name of its own.
///
/// # Errors
/// Two files have one name, or a file exists, so that a part of the export could not be written.
fn export_paths<'a>(folder: &Path, names: impl Iterator<Item = &'a str>) -> anyhow::Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for name in names {
        let path = folder.join(if matches!(name, "" | "-") { "configuration" } else { name });
        if paths.contains(&path) {
            anyhow::bail!("nothing is exported: two files have the name {}; rename one of them", path.display());
        }
        if path.exists() {
            anyhow::bail!("cannot create {}: the file exists, and nothing is exported", path.display());
        }
        paths.push(path);
    }
    Ok(paths)
}

fn read_log(path: &Path) -> anyhow::Result<Log> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(MAX_LOG_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Log::read(&name, &bytes).map_err(|error| {
        if is_trace(path, &bytes) {
            return anyhow::anyhow!("the file is a profiler trace, not a log; give it with --trace");
        }
        error.into()
    })
}

/// True for a trace of the PyTorch profiler, of Perfetto or of Nsight Systems.
fn is_trace(path: &Path, start: &[u8]) -> bool {
    let has = |word: &[u8]| start.windows(word.len()).any(|window| window == word);
    has(b"\"traceEvents\"") || start.starts_with(b"SQLite format 3\0") || trace_command::activity(path, None).is_ok()
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

/// Returns the new value of a field as text.
fn value_text(field: &FieldChange) -> String {
    field.value.as_str().map_or_else(|| field.value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exported_files_have_different_names() {
        let folder = Path::new("planscope-no-such-folder");
        let paths = |names: &[&str]| export_paths(folder, names.iter().copied());
        assert_eq!(paths(&["a.yaml", "-"]).unwrap(), [folder.join("a.yaml"), folder.join("configuration")]);
        let error = paths(&["a.yaml", "b.yaml", "a.yaml"]).unwrap_err().to_string();
        assert!(error.contains("two files have the name"), "{error}");
        let exists = export_paths(Path::new("."), ["Cargo.toml"].into_iter()).unwrap_err().to_string();
        assert!(exists.contains("exists"), "{exists}");
    }
}
