//! Browser for the browser tests.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::apt;
use crate::step::on_path;
use crate::workspace::Workspace;

const NAMES: [&str; 5] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];

/// Finds Chromium, or installs the distribution package if this is possible without interaction.
pub(crate) fn ensure(workspace: &Workspace) -> Result<PathBuf> {
    if let Some(found) = find()? {
        return Ok(found);
    }
    println!("setup: the browser tests drive Chromium, which is missing");
    apt::install(
        workspace,
        &["chromium"],
        "the browser tests need Chromium or Chrome: install it (Debian: apt-get install chromium; macOS: \
         brew install --cask chromium) or name one in CHROMIUM; `cargo xtask test --no-browser` does without",
    )?;
    match find()? {
        Some(found) => Ok(found),
        None => bail!("the package `chromium` is installed, but no program of that name is on the path"),
    }
}

/// Returns the browser from the variable CHROMIUM, or the first browser on the path.
fn find() -> Result<Option<PathBuf>> {
    if let Some(named) = std::env::var_os("CHROMIUM") {
        let named = PathBuf::from(named);
        if !named.is_file() {
            bail!("CHROMIUM names {}, which is not a file", named.display());
        }
        return Ok(Some(named));
    }
    Ok(NAMES.iter().find_map(|name| on_path(name)))
}
