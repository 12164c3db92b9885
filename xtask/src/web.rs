//! Web files: builds target/web from static/ and the compiled frontend, with hashed names and
//! compressed variants.

mod compile;
mod compress;
mod parts;
mod site;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::workspace::Workspace;
use site::Site;

/// Part of the stamp. Increase it when the build changes its output format.
const BUILD_FORM: &str = "web build 2";
const PLOTLY: &str = "node_modules/plotly.js-cartesian-dist-min/plotly-cartesian.min.js";

/// Trade-off between build time and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// Fast build.
    Dev,
    /// Small output.
    Release,
}

/// Builds target/web if an input changed.
pub(crate) fn build(workspace: &Workspace, profile: Profile) -> Result<()> {
    let start = Instant::now();
    let compiled = compile::frontend(workspace, profile)?;
    let static_files = files_under(&workspace.at("static"))?;
    let plotly = fs::read(workspace.at(PLOTLY)).with_context(|| format!("cannot read {PLOTLY}"))?;

    // Allow a single build at a time. The lock is released with the file handle.
    // With CARGO_TARGET_DIR, cargo does not create this folder.
    fs::create_dir_all(workspace.at("target")).context("cannot make the folder target")?;
    let lock = fs::File::create(workspace.at("target/web.lock")).context("cannot make target/web.lock")?;
    lock.lock().context("cannot lock target/web.lock")?;
    let stamp = stamp(profile, &compiled, &static_files, &plotly);
    let stamp_file = workspace.at("target/web.stamp");
    let web = workspace.web();
    // An unreadable stamp triggers a build, which writes a new stamp.
    if web.join("index.html").is_file() && fs::read_to_string(&stamp_file).is_ok_and(|old| old == stamp) {
        println!("build: target/web is up to date");
        return Ok(());
    }

    let generated = workspace.at("target/web-bindgen");
    let page_files = compile::bind(&compiled, &generated)?;
    if profile == Profile::Release {
        compile::optimise(workspace, &generated)?;
    }

    let mut site = Site::new(static_files)?;
    site.add_plotly(plotly);
    site.add_program(&generated, &page_files)?;
    // Write to a temporary folder and swap, so that a running server never reads a partial build.
    let fresh = workspace.at("target/web.new");
    remove(&fresh)?;
    site.write(&fresh)?;
    compress::siblings(workspace, &fresh, profile)?;
    remove(&web)?;
    fs::rename(&fresh, &web).with_context(|| format!("cannot move the build to {}", web.display()))?;
    fs::write(&stamp_file, stamp).with_context(|| format!("cannot write {}", stamp_file.display()))?;

    report(&web)?;
    println!("build: target/web in {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// File in static/, with its relative path and `/` as separator.
#[derive(Debug, Clone)]
struct StaticFile {
    path: String,
    content: Vec<u8>,
}

/// Returns all files in a folder, sorted by path.
fn files_under(folder: &Path) -> Result<Vec<StaticFile>> {
    fn walk(top: &Path, folder: &Path, found: &mut Vec<StaticFile>) -> Result<()> {
        for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                walk(top, &path, found)?;
            } else {
                let below = path.strip_prefix(top)?.to_string_lossy().replace('\\', "/");
                let content = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
                found.push(StaticFile { path: below, content });
            }
        }
        Ok(())
    }
    let mut found = Vec::new();
    walk(folder, folder, &mut found)?;
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// First 16 hexadecimal digits (64 bits) of the SHA-256. This is sufficient for the few files in a
/// build.
fn content_hash(content: &[u8]) -> String {
    let digest = Sha256::digest(content);
    let first = digest.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    format!("{first:016x}")
}

fn stamp(profile: Profile, compiled: &[u8], static_files: &[StaticFile], plotly: &[u8]) -> String {
    let mut lines = vec![
        format!("{BUILD_FORM}, {profile:?}"),
        format!("{} frontend", content_hash(compiled)),
        format!("{} plotly", content_hash(plotly)),
    ];
    lines.extend(static_files.iter().map(|file| format!("{} {}", content_hash(&file.content), file.path)));
    lines.join("\n")
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot remove {}", folder.display())),
    }
}

/// Prints the download size for a visitor.
fn report(web: &Path) -> Result<()> {
    let size =
        |path: &Path| fs::metadata(path).map(|data| data.len()).with_context(|| format!("no {}", path.display()));
    let mut assets: Vec<PathBuf> =
        fs::read_dir(web.join("assets"))?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    assets.retain(|path| path.extension().is_some_and(|kind| kind == "wasm" || kind == "js" || kind == "css"));
    assets.sort();
    for path in assets {
        let with = |suffix: &str| PathBuf::from(format!("{}{suffix}", path.display()));
        println!(
            "build: {:<34} {:>8.1} kB, gzip {:>7.1} kB, brotli {:>7.1} kB",
            path.file_name().unwrap_or_default().to_string_lossy(),
            size(&path)? as f64 / 1e3,
            size(&with(".gz"))? as f64 / 1e3,
            size(&with(".br"))? as f64 / 1e3,
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_has_sixteen_sha256_digits() {
        // The SHA-256 of the empty string begins with e3b0c44298fc1c14.
        assert_eq!(content_hash(b""), "e3b0c44298fc1c14");
    }

    #[test]
    fn the_stamp_changes_with_everything_that_is_built_from() {
        let file = |content: &str| vec![StaticFile { path: "index.html".to_owned(), content: content.into() }];
        let first = stamp(Profile::Dev, b"wasm", &file("page"), b"plotly");
        assert_eq!(first, stamp(Profile::Dev, b"wasm", &file("page"), b"plotly"));
        for other in [
            stamp(Profile::Release, b"wasm", &file("page"), b"plotly"),
            stamp(Profile::Dev, b"wasm 2", &file("page"), b"plotly"),
            stamp(Profile::Dev, b"wasm", &file("page 2"), b"plotly"),
            stamp(Profile::Dev, b"wasm", &file("page"), b"plotly 2"),
        ] {
            assert_ne!(first, other);
        }
    }
}
