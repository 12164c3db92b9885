//! Writes docs/measurements.md from the measurements in the repository, and converts new ones.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Parser;

/// Compares measured devices with the simulator and writes docs/measurements.md.
#[derive(Debug, Parser)]
struct Arguments {
    /// Outputs of `planscope measure` to store first, each as FOLDER=FILE. A folder starts with the identifier of a device preset,
    /// for example h100-80gb=profile.json.
    #[arg(value_name = "FOLDER=FILE")]
    profiles: Vec<String>,
}

fn main() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .and_then(Path::parent)
        .context("the package is in a workspace")?;
    let folder = root.join("crates/accuracy/measurements");
    for named in Arguments::parse().profiles {
        let (name, file) = named.split_once('=').with_context(|| format!("{named:?} is not FOLDER=FILE"))?;
        accuracy::measurements::convert(&PathBuf::from(file), &folder.join(name))?;
    }
    let page = accuracy::measurements::page(&folder)?;
    let path = root.join("docs/measurements.md");
    std::fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
    println!("written to {}", path.display());
    Ok(())
}
