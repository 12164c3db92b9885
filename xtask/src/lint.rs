//! Formatting, clippy for both targets, repository rules, licences and sources of dependencies.

use anyhow::Result;

use crate::deny;
use crate::setup;
use crate::step::Step;
use crate::workspace::Workspace;

/// Runs the checks, fastest first.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    setup::web(workspace)?;
    Step::cargo(workspace).args(["fmt", "--all", "--check"]).run()?;
    Step::cargo(workspace).args(["test", "--quiet", "--package", "planscope-xtask", "--test", "tidy"]).run()?;
    deny::dependencies(workspace)?;
    Step::cargo(workspace).args(["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"]).run()?;
    Step::cargo(workspace)
        .args(["clippy", "--package", "planscope-frontend", "--target", "wasm32-unknown-unknown"])
        .args(["--profile", "wasm-dev", "--", "--deny", "warnings"])
        .run()
}
