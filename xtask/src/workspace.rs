//! Where things stand in this checkout.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The checkout that xtask works on.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    root: PathBuf,
    target: PathBuf,
}

impl Workspace {
    /// Finds the checkout. Asked at run time, not baked in at compile time: a target folder may be shared by clones.
    pub(crate) fn find() -> Result<Self> {
        let root = match std::env::var_os("CARGO_MANIFEST_DIR") {
            Some(xtask) => Path::new(&xtask).parent().context("xtask stands in no workspace")?.to_owned(),
            None => above(&std::env::current_dir().context("the current folder is gone")?)?,
        };
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |folder| root.join(folder));
        Ok(Self { root, target })
    }

    /// Top of the checkout.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// A path inside the checkout.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// A path inside cargo's target folder.
    pub(crate) fn target(&self, path: &str) -> PathBuf {
        self.target.join(path)
    }

    /// Where the built web files stand; the server looks there by default.
    pub(crate) fn web(&self) -> PathBuf {
        self.at("target/web")
    }

    /// A program that cargo built.
    pub(crate) fn program(&self, profile_folder: &str, name: &str) -> PathBuf {
        self.target(profile_folder).join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
    }
}

/// The nearest folder upwards that holds both the workspace manifest and xtask.
fn above(start: &Path) -> Result<PathBuf> {
    start
        .ancestors()
        .find(|folder| folder.join("Cargo.toml").is_file() && folder.join("xtask").is_dir())
        .map(Path::to_owned)
        .context("not inside a checkout of Planscope")
}
