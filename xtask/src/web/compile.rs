//! Rust to wasm to what a browser loads.

use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use anyhow::{Context, Result, anyhow};
use wasm_bindgen_cli_support::Bindgen;

use super::Profile;
use super::parts::{self, Rooms};
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
        .args(["rustc", "--package", "planscope-frontend", "--lib", "--target", TARGET, "--profile", profile])
        // Only the module itself is linked, so only it needs the flag: relocations are what it is cut apart by.
        .args(["--crate-type", "cdylib", "--", "-Clink-arg=--emit-relocs"])
        .run()?;
    let compiled = workspace.target(&format!("{TARGET}/{profile}/frontend.wasm"));
    fs::read(&compiled).with_context(|| format!("cannot read {}", compiled.display()))
}

/// Cuts the compiled module into the part that every visitor loads and parts for rooms, and makes the JavaScript side:
/// planscope.js and planscope_bg.wasm, split.js, which fetches, and a wasm file for each other part. Returns which files
/// each room needs.
pub(super) fn bind(compiled: &[u8], folder: &Path) -> Result<Rooms> {
    super::remove(folder)?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let main = tempfile::NamedTempFile::new().context("cannot make a temporary file")?;
    let mut options = wasm_split_cli_support::Options::new(compiled);
    options.output_dir = folder;
    options.main_out_path = main.path();
    options.main_module = "./planscope.js";
    options.link_name = "./split.js";
    let cut = wasm_split_cli_support::transform(options).map_err(|error| anyhow!("splitting the module: {error:#}"))?;
    Bindgen::new()
        .input_bytes("planscope", fs::read(main.path()).context("cannot read the main part")?)
        .web(true)?
        .typescript(false)
        // The module then finds its wasm beside itself; the reference is rewritten with the hashed name.
        .omit_default_module_path(false)
        // Parts find each other's functions by the linker's names.
        .keep_lld_exports(true)
        .demangle(false)
        .remove_name_section(true)
        .remove_producers_section(true)
        .generate(folder)
        .context("wasm-bindgen; its version in Cargo.toml must be that of the wasm-bindgen crate to the digit")?;
    parts::gather(folder, &cut.prefetch_map.into_iter().collect())
}

/// Makes every part smaller, in place. It comes after the cut, which needs what the optimiser would throw away; parts keep
/// what they import and export. The optimiser takes seconds to start, so that several parts are in work at once.
pub(super) fn optimise(workspace: &Workspace, folder: &Path) -> Result<()> {
    let mut parts: Vec<PathBuf> = fs::read_dir(folder)
        .with_context(|| format!("cannot list {}", folder.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    parts.retain(|path| path.extension().is_some_and(|kind| kind == "wasm"));
    let waiting = Mutex::new(parts);
    let take = || waiting.lock().ok()?.pop();
    let work = || std::iter::from_fn(take).try_for_each(|part| optimise_part(workspace, &part));
    thread::scope(|scope| {
        let workers = thread::available_parallelism().map_or(1, NonZero::get);
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| anyhow!("an optimiser panicked"))?)
    })
}

fn optimise_part(workspace: &Workspace, wasm: &Path) -> Result<()> {
    node::node(workspace)
        .arg(workspace.at("node_modules/binaryen/bin/wasm-opt"))
        .arg(wasm)
        .arg("-Oz")
        .args(WASM_FEATURES)
        .arg("--output")
        .arg(wasm)
        .run()
}
