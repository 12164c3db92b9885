//! Precompressed files, so that the server does not compress at each request.

use std::path::Path;

use anyhow::Result;

use super::Profile;
use crate::node;
use crate::workspace::Workspace;

/// Writes .gz and .br variants of all text and wasm files. Node.js is already installed and
/// contains native encoders for both. The highest brotli level takes seconds per megabyte and is
/// used only for releases.
pub(super) fn siblings(workspace: &Workspace, folder: &Path, profile: Profile) -> Result<()> {
    let quality = match profile {
        Profile::Dev => "9",
        Profile::Release => "11",
    };
    node::node(workspace).arg(workspace.at("xtask/src/web/compress.mjs")).arg(folder).arg(quality).run()
}
