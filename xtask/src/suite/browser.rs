//! Browser tests with the real server, real pages and Chromium.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::{Pictures, with_data};
use crate::step::Step;
use crate::web::{self, Profile};
use crate::workspace::Workspace;
use crate::{chromium, node};

/// Build state of the server executable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Server {
    /// The workspace tests have built it. A build of this package alone selects different features
    /// and recompiles half the dependencies.
    Built,
    /// It must be built.
    ToBuild,
}

/// Runs all test files, as many at a time as there are cores. On CI, failed files run a second time.
///
/// Returns notes for the summary: the failures of the first attempt, if the second one passes. Such a failure is still
/// a bug in the test or in the dashboard, but it does not block the build.
pub(super) fn run(
    workspace: &Workspace,
    data: Option<&str>,
    pictures: Pictures,
    server: Server,
) -> Result<Vec<String>> {
    let chromium = chromium::ensure(workspace)?;
    web::build(workspace, Profile::Dev)?;
    if server == Server::ToBuild {
        Step::cargo(workspace).args(["build", "--package", "planscope-server", "--bin", "planscope"]).run()?;
    }
    let mut files = files(workspace)?;
    let mut notes = Vec::new();
    for attempt in 1..=super::tries() {
        let step = step(workspace, &files, &chromium, pictures);
        let Err(error) = with_data(step, data).run() else { return Ok(notes) };
        let failures = failures(workspace);
        notes.push(format!("attempt {attempt}: {error}\n{}", lines(&failures)));
        // No failures are listed if the test process ended early. Then all files run again.
        if !failures.is_empty() {
            files.retain(|file| failures.iter().any(|failure| Path::new(&failure.file) == file));
        }
    }
    bail!("{}", notes.join("\n"))
}

/// Returns the test files in order.
fn files(workspace: &Workspace) -> Result<Vec<PathBuf>> {
    let mut files: Vec<_> = std::fs::read_dir(workspace.at("tests/e2e"))
        .context("tests/e2e is part of the source")?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.to_string_lossy().ends_with(".test.mjs"))
        .collect();
    files.sort();
    Ok(files)
}

/// Runs test files. The output goes to the terminal; a separate file receives a line per failed test.
fn step(workspace: &Workspace, files: &[PathBuf], chromium: &Path, pictures: Pictures) -> Step {
    let files_at_a_time = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let mut step = node::node(workspace)
        .args(["--test", &format!("--test-concurrency={files_at_a_time}")])
        .args(["--test-reporter=spec", "--test-reporter-destination=stdout"])
        .args(["--test-reporter=./tests/e2e/failures.mjs", "--test-reporter-destination"])
        .arg(failure_list(workspace))
        .args(files)
        .env("CHROMIUM", chromium)
        .env("PLANSCOPE_PROGRAM", workspace.program("debug", "planscope"))
        .env("PLANSCOPE_WEB", workspace.web());
    if pictures == Pictures::Renew {
        step = step.env("PLANSCOPE_PICTURES", workspace.at("docs/images"));
    }
    step
}

/// A failed test.
#[derive(Debug)]
struct Failure {
    /// Test file.
    file: String,
    /// Name of the test, line, message.
    text: String,
}

/// Path of the list with the failed tests of the last attempt.
fn failure_list(workspace: &Workspace) -> PathBuf {
    workspace.at("target/e2e-failures.txt")
}

/// Returns the failed tests. Empty if the test process ended early.
fn failures(workspace: &Workspace) -> Vec<Failure> {
    let text = std::fs::read_to_string(failure_list(workspace)).unwrap_or_default();
    let failure = |line: &str| {
        let (file, text) = line.split_once(" | ")?;
        Some(Failure { file: file.to_owned(), text: text.to_owned() })
    };
    text.lines().filter_map(failure).collect()
}

/// Returns a line per failure, indented.
fn lines(failures: &[Failure]) -> String {
    failures.iter().flat_map(|failure| ["      ", &failure.text, "\n"]).collect()
}
