//! What a bare machine lacks. Every part looks first and is silent work only when something is missing.

use anyhow::{Context, Result};

use crate::step::Step;
use crate::workspace::Workspace;
use crate::{chromium, node};

const WASM: &str = "wasm32-unknown-unknown";

/// Everything that building, serving and testing need.
pub(crate) fn everything(workspace: &Workspace) -> Result<()> {
    web(workspace)?;
    println!("setup: Chromium {}", chromium::ensure(workspace)?.display());
    Ok(())
}

/// What the pages are built with: the wasm target and the npm packages.
pub(crate) fn web(workspace: &Workspace) -> Result<()> {
    wasm_target(workspace)?;
    node::ensure_packages(workspace)
}

/// The wasm standard library of the compiler in use. Without rustup it must come with the compiler; asked of the
/// compiler itself, since a distribution's own packages know nothing of rustup.
fn wasm_target(workspace: &Workspace) -> Result<()> {
    let library = Step::new(workspace, "rustc").args(["--print", "target-libdir", "--target", WASM]).answer();
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
