//! Node.js and npm packages: chart library, wasm optimiser, browser test tools.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::step::Step;
use crate::workspace::Workspace;

const OLDEST: u32 = 20;
/// Installs exactly the versions in package-lock.json, or fails.
const NPM_CI: [&str; 4] = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];

/// Creates a step that runs Node.js.
pub(crate) fn node(workspace: &Workspace) -> Step {
    Step::new(workspace, "node")
}

/// Installs the npm packages if they are missing or older than the lock file.
pub(crate) fn ensure_packages(workspace: &Workspace) -> Result<()> {
    let lock =
        fs::read_to_string(workspace.at("package-lock.json")).context("package-lock.json is part of the source")?;
    let mark = workspace.at("node_modules/.planscope");
    // A missing or unreadable marker also triggers an installation.
    if fs::read_to_string(&mark).is_ok_and(|fetched| fetched == lock) {
        println!("setup: npm packages are there");
        return Ok(());
    }
    check_version(workspace)?;
    println!("setup: fetching the npm packages named in package-lock.json");
    let npm = if cfg!(windows) { "npm.cmd" } else { "npm" };
    // The lock file alone determines the packages. Install scripts are disabled because no package
    // needs them.
    Step::new(workspace, npm).args(NPM_CI).run()?;
    fs::write(&mark, lock).with_context(|| format!("cannot write {}", mark.display()))
}

fn check_version(workspace: &Workspace) -> Result<()> {
    let Some(version) = node(workspace).arg("--version").output() else {
        bail!(
            "Node.js {OLDEST} or newer is needed (Debian, Ubuntu: apt-get install nodejs npm): it fetches the chart library and runs the browser tests"
        );
    };
    let major = version.trim_start_matches('v').split('.').next().and_then(|digits| digits.parse::<u32>().ok());
    match major {
        Some(major) if major >= OLDEST => Ok(()),
        _ => bail!("Node.js {OLDEST} or newer is needed, this is {version}"),
    }
}
