//! Every test of the repository, with one summary at the end.

use std::cell::Cell;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::step::Step;
use crate::web::{self, Profile};
use crate::workspace::Workspace;
use crate::{chromium, node, setup};

/// Which tests to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All.
    Everything,
    /// All that need no browser.
    WithoutBrowser,
    /// Those in the browser.
    OnlyBrowser,
}

/// What happens to the pictures in docs/images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pictures {
    /// They stay.
    Keep,
    /// They are taken anew.
    Renew,
}

/// Runs the tests. A failing part does not hide the others: all run, the summary names each, any failure fails.
pub(crate) fn run(workspace: &Workspace, scope: Scope, pictures: Pictures) -> Result<()> {
    setup::building(workspace)?;
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
        part("browser tests", &|| browser(workspace, data.as_deref(), pictures, server.get()));
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
    let failed = parts.iter().filter(|(_, result, _)| result.is_err()).count();
    if failed > 0 {
        bail!("test result: FAILED. {} passed; {failed} failed", parts.len() - failed);
    }
    println!("test result: ok. {} passed; 0 failed", parts.len());
    Ok(())
}

/// Whether the server's program is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Server {
    /// Its own tests have just built it, with the features of the whole workspace: building it alone would have other ones
    /// and compile half of it again, HiGHS included.
    Built,
    /// Nobody has.
    ToBuild,
}

/// The real server, the real pages, a real browser.
fn browser(workspace: &Workspace, data: Option<&str>, pictures: Pictures, server: Server) -> Result<()> {
    let chromium = chromium::ensure(workspace)?;
    web::build(workspace, Profile::Dev)?;
    if server == Server::ToBuild {
        Step::cargo(workspace).args(["build", "--package", "planscope-server", "--bin", "planscope"]).run()?;
    }
    let mut files: Vec<_> = std::fs::read_dir(workspace.at("tests/e2e"))
        .context("tests/e2e is part of the source")?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.to_string_lossy().ends_with(".test.mjs"))
        .collect();
    files.sort();
    // One file at a time: two cores would turn parallel browsers into timeouts.
    let mut step = node::node(workspace)
        .args(["--test", "--test-concurrency=1", "--test-reporter=spec"])
        .args(files)
        .env("CHROMIUM", chromium)
        .env("PLANSCOPE_PROGRAM", workspace.program("debug", "planscope"))
        .env("PLANSCOPE_WEB", workspace.web());
    if pictures == Pictures::Renew {
        step = step.env("PLANSCOPE_PICTURES", workspace.at("docs/images"));
    }
    with_data(step, data).run()
}

/// The folder of measured data, as an absolute path: tests run in other folders than this one.
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
