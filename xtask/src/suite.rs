//! Runs all tests and prints a summary.

mod browser;

use std::cell::{Cell, RefCell};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use self::browser::Server;
use crate::setup;
use crate::step::Step;
use crate::workspace::Workspace;

/// Tests to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All tests.
    Everything,
    /// Tests that need no browser.
    WithoutBrowser,
    /// Browser tests.
    OnlyBrowser,
}

/// Handling of the screenshots in docs/images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pictures {
    /// Unchanged.
    Keep,
    /// Replaced.
    Renew,
}

/// Runs the tests. All parts run even if a part fails. The summary lists every part; any failure is
/// an error.
pub(crate) fn run(workspace: &Workspace, scope: Scope, pictures: Pictures) -> Result<()> {
    setup::web(workspace)?;
    let data = data(workspace)?;
    let mut parts: Vec<(&str, Result<()>, f64)> = Vec::new();
    let mut part = |name, work: &dyn Fn() -> Result<()>| {
        println!("\n== {name}");
        let start = Instant::now();
        let result = work();
        if let Err(error) = &result {
            println!("!! {error:#}");
        }
        parts.push((name, result, start.elapsed().as_secs_f64()));
    };

    let server = Cell::new(Server::ToBuild);
    let notes = RefCell::new(Vec::new());
    if scope != Scope::OnlyBrowser {
        part("Rust tests", &|| {
            let step = Step::cargo(workspace).args(["test", "--workspace", "--no-fail-fast"]);
            with_data(step, data.as_deref()).run()?;
            server.set(Server::Built);
            Ok(())
        });
        part("planner compiles for wasm", &|| {
            Step::cargo(workspace)
                .args(["check", "--package", "planscope-planner", "--target", "wasm32-unknown-unknown"])
                .args(["--profile", "wasm-dev"])
                .run()
        });
    }
    if scope != Scope::WithoutBrowser {
        part("browser tests", &|| {
            let test_notes = browser::run(workspace, data.as_deref(), pictures, server.get())?;
            notes.borrow_mut().extend(test_notes);
            Ok(())
        });
    }

    println!("\n== summary");
    for (name, result, seconds) in &parts {
        println!("{:>4}  {seconds:>6.1} s  {name}", if result.is_ok() { "ok" } else { "FAIL" });
    }
    if data.is_none() {
        println!(
            "note  PLANSCOPE_DATA is not set: tests against measured data used the repository's fixtures or were skipped"
        );
    }
    for note in notes.take() {
        println!("note  {note}");
    }
    // Print failures last, so that a truncated log still contains them.
    for (_, result, _) in &parts {
        if let Err(error) = result {
            println!("!!    {error:#}");
        }
    }
    let failed = parts.iter().filter(|(_, result, _)| result.is_err()).count();
    if failed > 0 {
        bail!("test result: FAILED. {} passed; {failed} failed", parts.len() - failed);
    }
    println!("test result: ok. {} passed; 0 failed", parts.len());
    Ok(())
}

/// Number of attempts for failing browser tests: one locally, two on CI. The summary lists tests that pass only at the
/// second attempt.
fn tries() -> usize {
    if std::env::var_os("CI").is_some() { 2 } else { 1 }
}

/// Returns the measurement data folder as an absolute path, because tests run in different folders.
fn data(workspace: &Workspace) -> Result<Option<String>> {
    let Some(named) = std::env::var_os("PLANSCOPE_DATA") else { return Ok(None) };
    let folder = workspace.root().join(&named);
    let folder = folder.canonicalize().with_context(|| format!("PLANSCOPE_DATA names {}", folder.display()))?;
    Ok(Some(folder.to_string_lossy().into_owned()))
}

fn with_data(step: Step, data: Option<&str>) -> Step {
    match data {
        Some(folder) => step.env("PLANSCOPE_DATA", folder),
        None => step,
    }
}
