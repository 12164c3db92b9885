//! Existing tests by name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Root folder of the checkout.
pub(crate) fn root() -> PathBuf {
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo names the package");
    Path::new(&xtask).parent().expect("xtask stands in the workspace").to_owned()
}

/// Reads a text file from the checkout.
pub(crate) fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Collects repository files with this extension, with path and text.
pub(crate) fn sources(folder: &Path, ending: &str, found: &mut Vec<(PathBuf, String)>) {
    const FOREIGN: [&str; 3] = ["target", "node_modules", ".git"];
    for entry in std::fs::read_dir(folder).expect("a folder of the checkout") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !FOREIGN.contains(&name.as_str()) {
            sources(&path, ending, found);
        } else if path.is_file() && name.ends_with(ending) {
            let text = std::fs::read_to_string(&path).expect("a text");
            found.push((path, text));
        }
    }
}

/// Collects functions that follow a test attribute.
fn collect_tests(text: &str, names: &mut BTreeSet<String>) {
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if let Some((_, rest)) = line.split_once("fn ").filter(|_| !line.starts_with("//")) {
            let name = rest.split(['(', '<']).next().unwrap_or_default();
            if is_test {
                names.insert(name.to_owned());
            }
            is_test = false;
        }
    }
}

/// Returns Rust test function names and browser test titles.
pub(crate) fn tests() -> BTreeSet<String> {
    let (mut rust, mut browser) = (Vec::new(), Vec::new());
    sources(&root(), ".rs", &mut rust);
    sources(&root().join("tests/e2e"), ".mjs", &mut browser);
    let mut names = BTreeSet::new();
    for (_, text) in &rust {
        collect_tests(text, &mut names);
    }
    for (_, text) in &browser {
        let titles = text.lines().filter_map(|line| line.strip_prefix("test(\"")?.split('"').next());
        names.extend(titles.map(str::to_owned));
    }
    names
}
