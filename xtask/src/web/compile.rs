//! Rust to wasm to what a browser loads.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use wasm_bindgen_cli_support::Bindgen;

use super::Profile;
use crate::node;
use crate::step::Step;
use crate::workspace::Workspace;

const TARGET: &str = "wasm32-unknown-unknown";

/// The features that every browser in use has. `--all-features` would let the optimiser emit modules that
/// Chromium refuses.
const WASM_FEATURES: [&str; 6] = [
    "--enable-bulk-memory",
    "--enable-nontrapping-float-to-int",
    "--enable-reference-types",
    "--enable-multivalue",
    "--enable-sign-ext",
    "--enable-mutable-globals",
];

/// Compiles the frontend; cargo decides whether there is anything to do.
pub(super) fn frontend(workspace: &Workspace, profile: Profile) -> Result<Vec<u8>> {
    let profile = match profile {
        Profile::Dev => "wasm-dev",
        Profile::Release => "wasm-release",
    };
    Step::cargo(workspace)
        .args(["build", "--package", "planscope-frontend", "--lib", "--target", TARGET, "--profile", profile])
        .run()?;
    let compiled = workspace.target(&format!("{TARGET}/{profile}/frontend.wasm"));
    fs::read(&compiled).with_context(|| format!("cannot read {}", compiled.display()))
}

/// Makes the module's JavaScript side: planscope.js and planscope_bg.wasm.
pub(super) fn bind(compiled: &[u8], folder: &Path) -> Result<()> {
    super::remove(folder)?;
    Bindgen::new()
        .input_bytes("planscope", compiled.to_vec())
        .web(true)?
        .typescript(false)
        // The module then finds its wasm beside itself; the reference is rewritten with the hashed name.
        .omit_default_module_path(false)
        .remove_name_section(true)
        .remove_producers_section(true)
        .generate(folder)
        .context("wasm-bindgen; its version in Cargo.toml must be that of the wasm-bindgen crate to the digit")
}

/// Makes the module smaller, in place.
pub(super) fn optimise(workspace: &Workspace, wasm: &Path) -> Result<()> {
    node::node(workspace)
        .arg(workspace.at("node_modules/binaryen/bin/wasm-opt"))
        .arg(wasm)
        .arg("-Oz")
        .args(WASM_FEATURES)
        .arg("--output")
        .arg(wasm)
        .run()
}
