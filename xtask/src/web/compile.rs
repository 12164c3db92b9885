//! Compiles Rust to wasm for the browser.

use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use anyhow::{Context, Result, anyhow};
use wasm_bindgen_cli_support::Bindgen;

use super::Profile;
use super::parts::{self, PageFiles};
use crate::node;
use crate::step::Step;
use crate::workspace::Workspace;

const TARGET: &str = "wasm32-unknown-unknown";

/// Features supported by all current browsers. With `--all-features` the optimiser can emit modules
/// that Chromium rejects.
const WASM_FEATURES: [&str; 6] = [
    "--enable-bulk-memory",
    "--enable-nontrapping-float-to-int",
    "--enable-reference-types",
    "--enable-multivalue",
    "--enable-sign-ext",
    "--enable-mutable-globals",
];

/// Compiles the frontend with cargo, which skips unchanged code.
pub(super) fn frontend(workspace: &Workspace, profile: Profile) -> Result<Vec<u8>> {
    let profile = match profile {
        Profile::Dev => "wasm-dev",
        Profile::Release => "wasm-release",
    };
    Step::cargo(workspace)
        .args(["rustc", "--package", "planscope-frontend", "--lib", "--target", TARGET, "--profile", profile])
        // Only the cdylib is linked, so only it needs the flag. The splitter uses the relocations.
        .args(["--crate-type", "cdylib", "--", "-Clink-arg=--emit-relocs"])
        .run()?;
    let compiled = workspace.target(&format!("{TARGET}/{profile}/frontend.wasm"));
    fs::read(&compiled).with_context(|| format!("cannot read {}", compiled.display()))
}

/// Splits the compiled module into an initial module and page modules, and generates the
/// JavaScript: planscope.js and planscope_bg.wasm, the loader split.js, and a wasm file per page
/// module. Returns the files needed by each page.
pub(super) fn bind(compiled: &[u8], folder: &Path) -> Result<PageFiles> {
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
        // The module then resolves its wasm file relative to itself. The reference is later
        // rewritten to the hashed name.
        .omit_default_module_path(false)
        // Modules find functions in other modules by linker name.
        .keep_lld_exports(true)
        .demangle(false)
        .remove_name_section(true)
        .remove_producers_section(true)
        .generate(folder)
        .context("wasm-bindgen; its version in Cargo.toml must be that of the wasm-bindgen crate to the digit")?;
    parts::gather(folder, &cut.prefetch_map.into_iter().collect())
}

/// Optimises all modules in place. It runs after the split, which needs data that the optimiser
/// removes. Imports and exports are preserved. Several modules run in parallel because the
/// optimiser takes seconds to start.
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
