//! Distribution: a single executable with embedded web files, and its SHA-256.

use std::fmt::Write;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use crate::step::Step;
use crate::web::{self, Profile};
use crate::workspace::Workspace;

/// Builds the release into target/dist.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    web::build(workspace, Profile::Release)?;
    Step::cargo(workspace)
        .args(["build", "--release", "--locked", "--package", "planscope-server", "--bin", "planscope"])
        .args(["--features", "embedded-web"])
        .run()?;
    let folder = workspace.at("target/dist");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let name = name(&host()?);
    let path = folder.join(&name);
    // Copy to a temporary name and rename, so that the file is complete and has its permissions.
    let passing = folder.join(format!(".{name}"));
    fs::copy(workspace.at("target/release/planscope"), &passing).context("cannot copy the program")?;
    without_debug_tables(&passing)?;
    let program = fs::read(&passing).context("cannot read the program")?;
    fs::rename(&passing, &path).with_context(|| format!("cannot write {}", path.display()))?;
    let sums = folder.join(format!("{name}.sha256"));
    fs::write(&sums, checksum_line(&program, &name)).with_context(|| format!("cannot write {}", sums.display()))?;
    let said = Command::new(&path).arg("--version").output().context("the program does not run")?;
    ensure!(said.status.success(), "the program does not say its version");
    println!("dist: {} ({:.1} MB) and {name}.sha256", path.display(), program.len() as f64 / 1e6);
    Ok(())
}

/// Removes debug information, two thirds of the file. Function names remain for crash reports.
fn without_debug_tables(program: &Path) -> Result<()> {
    match Command::new("strip").arg("--strip-debug").arg(program).status() {
        Ok(status) => ensure!(status.success(), "strip cannot read the program"),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            println!(
                "dist: without strip (binutils) the program keeps its tables for debuggers, and is three times as large"
            );
        }
        Err(error) => return Err(error).context("cannot run strip"),
    }
    Ok(())
}

/// Returns the target triple of this machine.
fn host() -> Result<String> {
    let said = Command::new("rustc").arg("-vV").output().context("cannot run rustc")?;
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc does not say what it builds for")
}

fn name(target: &str) -> String {
    format!("planscope-{}-{target}", env!("CARGO_PKG_VERSION"))
}

/// Formats a line for `sha256sum --check`.
fn checksum_line(content: &[u8], name: &str) -> String {
    let mut line = String::new();
    for byte in Sha256::digest(content) {
        write!(line, "{byte:02x}").expect("text grows");
    }
    line + "  " + name + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_says_version_and_target_and_its_sum_can_be_checked() {
        let name = name("x86_64-unknown-linux-gnu");
        assert_eq!(name, format!("planscope-{}-x86_64-unknown-linux-gnu", env!("CARGO_PKG_VERSION")));
        // SHA-256 of "abc", from FIPS 180-2.
        assert_eq!(checksum_line(b"abc", "a"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n");
    }
}
