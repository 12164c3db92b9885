//! `planscope plan`: runs the planner without a server.

use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use ingest::dataset::Options;
use ingest::execution_file::MAX_BYTES;
use ingest::job_config;
use planner::engine::{self, Observer, Record, Recorded};
use planner::host::Workers;
use planner::observer::BestSoFar;
use planner::outcome::{PlanOutcome, PlannerResult, Planning};
use planner::scenario::validate::Datasets;
use planner::scenario::{FieldError, PlannerKind, ValidScenario};
use planner::workload::Dataset;
use planner::workload::preprocessing::Preprocessing;
use serde_json::Value;

use crate::config::PlanArguments;
use crate::dataset_id;
use crate::field_names;
use crate::workers::Threads;

/// Time between two lines of progress.
const PROGRESS: Duration = Duration::from_millis(200);
/// Exit code for an invalid scenario.
const INVALID: u8 = 2;
/// Exit code if nothing fits.
pub(crate) const NOTHING_FITS: u8 = 3;

/// Plans a scenario file and writes the outcome to standard output.
pub fn run(arguments: &PlanArguments) -> anyhow::Result<ExitCode> {
    let text = read(&arguments.scenario)?;
    refuse_configuration(&arguments.scenario, &text)?;
    let files = Files::read(&arguments.datasets, arguments.preprocessing)?;
    let scenario = match validated(&text, &files)? {
        Ok(scenario) => scenario,
        Err(code) => return Ok(code),
    };
    if let Some(path) = &arguments.execution_plan
        && path.canonicalize().ok().is_some_and(|path| arguments.scenario.canonicalize().ok() == Some(path))
    {
        anyhow::bail!("{} is the scenario; name another file for the execution plan", path.display());
    }
    let (planning, file) = match &arguments.execution_plan {
        Some(path) => plan_to_file(&scenario, arguments, path)?,
        None => (plan(&scenario, arguments.search_threads())?, Ok(())),
    };
    if let Some(folder) = &arguments.timelines {
        write_timelines(folder, &planning)?;
    }
    let mut out = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, &planning.outcome)?;
    writeln!(out)?;
    // The outcome has the reasons if there is no file.
    file?;
    let is_planned = |result: &PlannerResult| matches!(result.answer, PlanOutcome::Planned(_));
    let has_plan = planning.outcome.results.iter().any(is_planned);
    Ok(if has_plan { ExitCode::SUCCESS } else { ExitCode::from(NOTHING_FITS) })
}

/// Refuses a configuration of a training job instead of a scenario.
pub(crate) fn refuse_configuration(path: &Path, text: &str) -> anyhow::Result<()> {
    let has_schema = serde_json::from_str::<Value>(text).is_ok_and(|document| document.get("schema").is_some());
    if !has_schema && let Ok(format) = job_config::format(text.as_bytes()) {
        let path = path.display();
        anyhow::bail!("{path} is no scenario but a configuration ({}): use planscope check {path}", format.name());
    }
    Ok(())
}

/// Validates a scenario. Reports invalid fields to standard error, and returns the exit code.
pub(crate) fn validated(text: &str, files: &Files) -> anyhow::Result<Result<ValidScenario, ExitCode>> {
    let valid = planner::scenario::parse(text).and_then(|scenario| ValidScenario::new(scenario, files));
    valid.map_or_else(|errors| report(&errors, files).map(Err), |scenario| Ok(Ok(scenario)))
}

/// Plans a scenario and writes an execution plan file. The second result is an error if the file is not written.
fn plan_to_file(
    scenario: &ValidScenario,
    arguments: &PlanArguments,
    path: &Path,
) -> anyhow::Result<(Planning, anyhow::Result<()>)> {
    let planners = &scenario.scenario().planners;
    if let Some(planner) = arguments.planner.filter(|planner| !planners.contains(planner)) {
        let ids: Vec<&str> = planners.iter().map(|planner| planner.id()).collect();
        anyhow::bail!("the scenario does not request {}; it requests {}", planner.id(), ids.join(", "));
    }
    let iterations = scenario.scenario().iterations;
    if arguments.iteration >= iterations {
        anyhow::bail!("--iteration {}: the scenario has {iterations} iterations, from 0", arguments.iteration);
    }
    let record = Record { planner: arguments.planner, iteration: arguments.iteration };
    let (planning, files) =
        engine::plan_recorded(scenario, Some(record), &mut OnThreads::new(arguments.search_threads()))?;
    let written = write_execution_plan(&planning, files, arguments.planner, path);
    Ok((planning, written))
}

/// Writes the execution plan of `planner`, or of the fastest one.
fn write_execution_plan(
    planning: &Planning,
    mut files: Vec<Recorded>,
    planner: Option<PlannerKind>,
    path: &Path,
) -> anyhow::Result<()> {
    // Results are sorted by time.
    let fastest = planning.outcome.results.iter().find(|result| matches!(result.answer, PlanOutcome::Planned(_)));
    let planner = planner.or_else(|| fastest.map(|result| result.planner));
    let planner = planner.context("no planner has a plan, so there is no execution plan")?;
    let result = planning.outcome.results.iter().find(|result| result.planner == planner);
    if let Some(PlanOutcome::Infeasible { binding, .. }) = result.map(|result| &result.answer) {
        anyhow::bail!("{} has no plan: {binding}", planner.title());
    }
    let position = files.iter().position(|recorded| recorded.planner == planner);
    let recorded = files.swap_remove(position.context("the plan was not recorded")?);
    let file = recorded.file.with_context(|| format!("no execution plan of {}", planner.title()))?;
    let bytes = serde_json::to_vec(&file)?;
    anyhow::ensure!(
        bytes.len() <= MAX_BYTES,
        "the execution plan of {} has {} MiB, {} MiB are allowed: ask for fewer microbatches",
        planner.title(),
        bytes.len().div_ceil(1 << 20),
        MAX_BYTES >> 20
    );
    std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// Plans a scenario. `threads` is the number of worker threads per search.
pub(crate) fn plan(scenario: &ValidScenario, threads: Threads) -> Result<Planning, engine::PlanError> {
    engine::plan(scenario, &mut OnThreads::new(threads))
}

/// The progress in one line of a terminal. Without a terminal nothing is written.
pub(crate) struct ProgressLine {
    is_terminal: bool,
    /// Time of the next progress.
    next: Instant,
}

impl ProgressLine {
    pub(crate) fn new() -> Self {
        Self { is_terminal: std::io::stderr().is_terminal(), next: Instant::now() + PROGRESS }
    }

    /// Shows the progress, unless the last one is recent.
    pub(crate) fn show(&mut self, phase: &str, done: u32, total: u32) {
        if self.is_terminal && Instant::now() >= self.next {
            self.next = Instant::now() + PROGRESS;
            self.write(&format!("{phase}, {done} of {total}"));
        }
    }

    /// Writes to standard error in place of the progress. A closed terminal must not end the planning.
    pub(crate) fn write(&self, text: &str) {
        if self.is_terminal {
            drop(write!(std::io::stderr().lock(), "\r\x1b[K{text}"));
        }
    }
}

/// An observer without cancellation, with worker threads for searches. On a terminal it shows the progress in one line.
struct OnThreads {
    threads: Threads,
    line: ProgressLine,
}

impl OnThreads {
    fn new(threads: Threads) -> Self {
        Self { threads, line: ProgressLine::new() }
    }
}

impl Observer for OnThreads {
    fn started(&mut self, _: PlannerKind) {}
    fn progress(&mut self, planner: PlannerKind, phase: &'static str, done: u32, total: u32) {
        self.line.show(&format!("{}: {phase}", planner.title()), done, total);
    }
    fn improved(&mut self, best: BestSoFar) {
        self.line.write(&format!("step {}: {:.3} s with {}\n", best.step, best.iteration_s, best.planner.title()));
    }
    fn finished(&mut self, _: PlannerKind) {
        self.line.write("");
    }
    fn cancelled(&self) -> bool {
        false
    }
    fn workers(&self) -> &dyn Workers {
        &self.threads
    }
    fn split(&self, planners: &[PlannerKind]) -> Option<Vec<Box<dyn Observer + Send>>> {
        let observer = |_: &PlannerKind| -> Box<dyn Observer + Send> { Box::new(Self::new(self.threads)) };
        (self.threads.count() > 1).then(|| planners.iter().map(observer).collect())
    }
}

/// Datasets from files, by content address.
pub(crate) struct Files(Vec<(String, Arc<Dataset>)>);

impl Files {
    /// Reads length files. `rule` converts media to encoder items.
    pub(crate) fn read(paths: &[PathBuf], rule: Option<Preprocessing>) -> anyhow::Result<Self> {
        let dataset = |path: &PathBuf| {
            let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
            let options = Options { preprocessing: rule, ..Options::default() };
            let imported = ingest::dataset::import(&bytes, &options).with_context(|| path.display().to_string())?;
            for warning in &imported.report.warnings {
                writeln!(std::io::stderr().lock(), "{}: {warning}", path.display())?;
            }
            if let Some(advice) = imported.report.media.and_then(|media| media.advice) {
                writeln!(std::io::stderr().lock(), "{}: {advice}", path.display())?;
            }
            let id = dataset_id::from_content(&dataset_id::canonical(&imported.dataset));
            Ok((id, Arc::new(imported.dataset)))
        };
        paths.iter().map(dataset).collect::<anyhow::Result<_>>().map(Self)
    }
}

impl Datasets for Files {
    fn dataset(&self, id: &str) -> Option<Arc<Dataset>> {
        self.0.iter().find(|(known, _)| known == id).map(|(_, dataset)| Arc::clone(dataset))
    }
}

pub(crate) fn read(path: &Path) -> anyhow::Result<String> {
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
        return Ok(text);
    }
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn report(errors: &[FieldError], files: &Files) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stderr().lock();
    for error in errors {
        writeln!(out, "planscope: {}", field_names::describe(error, field_names::in_scenario))?;
    }
    for (id, _) in &files.0 {
        writeln!(out, "dataset at hand: {id}")?;
    }
    Ok(ExitCode::from(INVALID))
}

fn write_timelines(folder: &Path, planning: &Planning) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for planned in &planning.timelines {
        let path = folder.join(format!("{}-{}.json", planned.planner.id(), planned.iteration));
        std::fs::write(&path, serde_json::to_vec(&planned.timeline)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
