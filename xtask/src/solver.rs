//! What the integer-programming solver is built with: HiGHS is C++, compiled once per profile.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::apt;
use crate::step::{Step, on_path};
use crate::workspace::Workspace;

const OTHERWISE: &str = "the HiGHS solver is built with cmake, a C++ compiler and libclang: install them (Debian, Ubuntu: \
                         apt-get install cmake g++ libclang-dev; Fedora: dnf install cmake gcc-c++ clang-devel; macOS: \
                         xcode-select --install, brew install cmake)";

/// Installs what is missing of cmake, a C++ compiler and libclang.
pub(crate) fn ensure(workspace: &Workspace) -> Result<()> {
    let missing = missing(workspace);
    if missing.is_empty() {
        println!("setup: cmake, a C++ compiler and libclang are there");
        return Ok(());
    }
    println!("setup: HiGHS is built with {}, which is missing", missing.join(" and "));
    apt::install(workspace, &missing, OTHERWISE)?;
    let still = self::missing(workspace);
    if !still.is_empty() {
        bail!("{} was installed, but is not found; {OTHERWISE}", still.join(" and "));
    }
    Ok(())
}

/// Debian's names of the packages that are missing.
fn missing(workspace: &Workspace) -> Vec<&'static str> {
    let compiler =
        std::env::var_os("CXX").is_some() || ["c++", "g++", "clang++"].iter().any(|name| on_path(name).is_some());
    [("cmake", on_path("cmake").is_some()), ("g++", compiler), ("libclang-dev", has_libclang(workspace))]
        .into_iter()
        .filter_map(|(package, there)| (!there).then_some(package))
        .collect()
}

/// Whether the bindings' generator will find a libclang: where it looks by itself, in its order.
fn has_libclang(workspace: &Workspace) -> bool {
    let named = std::env::var_os("LIBCLANG_PATH").map(PathBuf::from);
    let configured = std::env::var_os("LLVM_CONFIG_PATH").unwrap_or_else(|| "llvm-config".into());
    let told = Step::new(workspace, configured).arg("--libdir").answer().map(PathBuf::from);
    named.into_iter().chain(told).chain(usual_folders()).any(|folder| holds_libclang(&folder))
}

/// Folders that libclang is installed in.
fn usual_folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = [
        "/usr/lib",
        "/usr/lib64",
        "/usr/local/lib",
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/opt/homebrew/opt/llvm/lib",
        "/usr/local/opt/llvm/lib",
        "/Library/Developer/CommandLineTools/usr/lib",
        "/Applications/Xcode.app/Contents/Developer/Toolchains/XcodeDefault.xctoolchain/usr/lib",
    ]
    .map(PathBuf::from)
    .into();
    // Debian keeps one folder per version; a folder that cannot be listed holds nothing to find.
    let versions = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    folders.extend(
        versions
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("llvm"))
            .map(|entry| entry.path().join("lib")),
    );
    folders
}

/// Whether a folder, or a library named outright, is one that can be loaded.
fn holds_libclang(place: &Path) -> bool {
    if place.is_file() {
        return is_libclang(place);
    }
    std::fs::read_dir(place).into_iter().flatten().flatten().any(|entry| is_libclang(&entry.path()))
}

/// `libclang.so`, `libclang.so.14`, `libclang-14.so.1`, `libclang.dylib`, but not the C++ library `libclang-cpp.so.14`.
fn is_libclang(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let Some(rest) = name.strip_prefix("libclang") else { return name == "clang.dll" };
    let version = rest.trim_start_matches(|letter: char| letter == '-' || letter == '.' || letter.is_ascii_digit());
    version.starts_with("so") || version == "dylib" || version == "dll"
}

#[cfg(test)]
mod tests {
    use super::is_libclang;
    use std::path::Path;

    #[test]
    fn the_library_is_told_from_its_neighbours() {
        for name in ["libclang.so", "libclang.so.14", "libclang-14.so.1", "libclang.dylib", "libclang-14.so.14.0.6"] {
            assert!(is_libclang(Path::new(name)), "{name}");
        }
        for name in ["libclang-cpp.so.14", "libclangAST.a", "libc.so", "libclang_rt.asan.a"] {
            assert!(!is_libclang(Path::new(name)), "{name}");
        }
    }
}
