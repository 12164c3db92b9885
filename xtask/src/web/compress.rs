//! Compressed siblings, made once here instead of at every request.

use std::path::Path;

use anyhow::Result;

use super::Profile;
use crate::node;
use crate::workspace::Workspace;

/// Writes a .gz and a .br beside every text and wasm file. Node.js is at hand and brings both encoders in native
/// code; brotli's strongest setting costs seconds per megabyte and is kept for releases.
pub(super) fn siblings(workspace: &Workspace, folder: &Path, profile: Profile) -> Result<()> {
    let quality = match profile {
        Profile::Dev => "6",
        Profile::Release => "11",
    };
    node::node(workspace).arg(workspace.at("xtask/src/web/compress.mjs")).arg(folder).arg(quality).run()
}
