//! Installs missing tools. Each step first checks whether the tool is present.

use anyhow::{Context, Result};

use crate::step::Step;
use crate::workspace::Workspace;
use crate::{chromium, node};

const WASM: &str = "wasm32-unknown-unknown";

/// Installs all dependencies for build, serve and test.
pub(crate) fn everything(workspace: &Workspace) -> Result<()> {
    web(workspace)?;
    println!("setup: Chromium {}", chromium::ensure(workspace)?.display());
    Ok(())
}

/// Installs the dependencies for the web files: the wasm target and the npm packages.
pub(crate) fn web(workspace: &Workspace) -> Result<()> {
    wasm_target(workspace)?;
    node::ensure_packages(workspace)
}

/// Installs the wasm standard library for the current compiler. Without rustup it must be part of
/// the compiler. The check queries the compiler itself, because rustup does not know about
/// distribution packages.
fn wasm_target(workspace: &Workspace) -> Result<()> {
    let library = Step::new(workspace, "rustc").args(["--print", "target-libdir", "--target", WASM]).output();
    if library.is_some_and(|folder| std::path::Path::new(&folder).is_dir()) {
        println!("setup: {WASM} is there");
        return Ok(());
    }
    println!("setup: the browser's part is compiled for {WASM}, which is missing");
    Step::new(workspace, "rustup")
        .args(["target", "add", WASM])
        .run()
        .context("without rustup, install the wasm standard library of your compiler (Debian: libstd-rust-dev-wasm32)")
}
