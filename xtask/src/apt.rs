//! Non-interactive installation of distribution packages.

use anyhow::{Result, bail};

use crate::step::{Step, on_path};
use crate::workspace::Workspace;

/// Installs Debian or Ubuntu packages. On other systems, or without non-interactive root access,
/// returns the error `otherwise`.
pub(crate) fn install(workspace: &Workspace, packages: &[&str], otherwise: &str) -> Result<()> {
    let Some(become_root) = root(workspace) else { bail!("{otherwise}") };
    let apt = |arguments: &[&str]| {
        let command_line: Vec<&str> =
            become_root.iter().copied().chain(["apt-get"]).chain(arguments.iter().copied()).collect();
        Step::new(workspace, command_line[0]).args(&command_line[1..]).env("DEBIAN_FRONTEND", "noninteractive").run()
    };
    apt(&["update"])?;
    let install = ["install", "--yes", "--no-install-recommends"];
    apt(&install.iter().chain(packages).copied().collect::<Vec<_>>())
}

/// Returns the prefix for non-interactive root access: empty, `sudo -n`, or `None`.
fn root(workspace: &Workspace) -> Option<&'static [&'static str]> {
    on_path("apt-get")?;
    if Step::new(workspace, "id").arg("-u").output().as_deref() == Some("0") {
        return Some(&[]);
    }
    Step::new(workspace, "sudo").args(["-n", "true"]).output().map(|_| ["sudo", "-n"].as_slice())
}
