//! Browser tests with the real server, real pages and Chromium, file by file.

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

/// Runs all test files. On CI, a failed file runs a second time.
///
/// Returns notes for the summary: each file that passed only at the second attempt, with its first
/// failure. Such a failure is still a bug in the test or in the dashboard, but it does not block
/// the build.
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
    let tries = super::tries();
    let (mut failed, mut notes) = (Vec::new(), Vec::new());
    for file in files(workspace)? {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut errors = Vec::new();
        for _ in 0..tries {
            let step = step(workspace, &file, &chromium, pictures);
            match with_data(step, data).run() {
                Ok(()) => break,
                Err(error) => errors.push(format!("{name}: {error}\n{}", failed_tests(&failures(workspace)))),
            }
        }
        if errors.len() == tries {
            failed.append(&mut errors);
        } else {
            notes.extend(errors.into_iter().map(|attempt| format!("passed only at the second try: {attempt}")));
        }
    }
    if failed.is_empty() {
        return Ok(notes);
    }
    bail!("{}", notes.into_iter().chain(failed).collect::<Vec<_>>().join("\n"))
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

/// Runs a test file. The output goes to the terminal; a separate file receives a line per failed
/// test.
fn step(workspace: &Workspace, file: &Path, chromium: &Path, pictures: Pictures) -> Step {
    let mut step = node::node(workspace)
        .args(["--test", "--test-reporter=spec", "--test-reporter-destination=stdout"])
        .arg("--test-reporter=./tests/e2e/failures.mjs")
        .arg("--test-reporter-destination")
        .arg(failures(workspace))
        .arg(file)
        .env("CHROMIUM", chromium)
        .env("PLANSCOPE_PROGRAM", workspace.program("debug", "planscope"))
        .env("PLANSCOPE_WEB", workspace.web());
    if pictures == Pictures::Renew {
        step = step.env("PLANSCOPE_PICTURES", workspace.at("docs/images"));
    }
    step
}

/// Path of the list with failed tests from the last file.
fn failures(workspace: &Workspace) -> PathBuf {
    workspace.at("target/e2e-failures.txt")
}

/// Returns the failed tests, indented. Empty if the test process ended early.
fn failed_tests(file: &Path) -> String {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().flat_map(|line| ["      ", line, "\n"]).collect()
}
