//! Paths in this checkout.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Checkout that xtask works on.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    root: PathBuf,
    target: PathBuf,
}

impl Workspace {
    /// Finds the checkout at run time. A compile-time path is not valid, because several clones may
    /// share a target folder.
    pub(crate) fn find() -> Result<Self> {
        let root = match std::env::var_os("CARGO_MANIFEST_DIR") {
            Some(xtask) => Path::new(&xtask).parent().context("xtask is in no workspace")?.to_owned(),
            None => above(&std::env::current_dir().context("the current folder is gone")?)?,
        };
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |folder| root.join(folder));
        Ok(Self { root, target })
    }

    /// Root folder of the checkout.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Path in the checkout.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Path in the cargo target folder.
    pub(crate) fn target(&self, path: &str) -> PathBuf {
        self.target.join(path)
    }

    /// Folder with the built web files. The server uses it by default.
    pub(crate) fn web(&self) -> PathBuf {
        self.at("target/web")
    }

    /// Path of an executable built by cargo.
    pub(crate) fn program(&self, profile_folder: &str, name: &str) -> PathBuf {
        self.target(profile_folder).join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
    }
}

/// Returns the nearest ancestor folder with both the workspace manifest and xtask.
fn above(start: &Path) -> Result<PathBuf> {
    start
        .ancestors()
        .find(|folder| folder.join("Cargo.toml").is_file() && folder.join("xtask").is_dir())
        .map(Path::to_owned)
        .context("not inside a checkout of Planscope")
}
