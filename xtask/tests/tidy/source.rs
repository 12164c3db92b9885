//! Source files in the checkout, split into program and test code.

use std::path::{Path, PathBuf};

use crate::uses;

/// Source file with its path from the root folder and `/` as separator.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Code line with its number. A `use` statement becomes a line per imported path, with the full
/// path.
pub(crate) type Line = (usize, String);

impl Source {
    /// Returns the lines without comments.
    pub(crate) fn code(&self) -> Vec<Line> {
        uses::split_uses(self.bare())
    }

    /// Returns the code without unit tests, which are exempt from some rules.
    pub(crate) fn program(&self) -> Vec<Line> {
        uses::split_uses(without_tests(self.bare()))
    }

    fn bare(&self) -> Vec<(usize, &str)> {
        let lines = self.text.lines().enumerate().map(|(index, line)| (index + 1, without_comment(line)));
        lines.filter(|(_, line)| !line.trim().is_empty()).collect()
    }

    pub(crate) fn is_under(&self, folder: &str) -> bool {
        self.path.starts_with(folder)
    }

    /// True if the complete file is a test, benchmark or build script.
    pub(crate) fn is_support(&self) -> bool {
        ["/tests/", "/benches/"].iter().any(|part| self.path.contains(part))
            || self.is_under("tests/")
            || self.path.ends_with("build.rs")
    }

    /// True if the file contains the unit tests of its parent module.
    pub(crate) fn is_tests(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/tests/")
    }
}

/// Root folder of the checkout.
pub(crate) fn root() -> PathBuf {
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo names the package");
    Path::new(&xtask).parent().expect("xtask stands in the workspace").to_owned()
}

/// Returns all repository files with this extension.
pub(crate) fn sources(ending: &str) -> Vec<Source> {
    const FOREIGN: [&str; 3] = ["target", "node_modules", ".git"];
    fn walk(root: &Path, folder: &Path, ending: &str, found: &mut Vec<Source>) {
        for entry in std::fs::read_dir(folder).expect("a folder of the checkout") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && !FOREIGN.contains(&name.as_str()) {
                walk(root, &path, ending, found);
            } else if path.is_file() && name.ends_with(ending) {
                let below = path.strip_prefix(root).expect("below the root").to_string_lossy().replace('\\', "/");
                let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{below}: {error}"));
                found.push(Source { path: below, text });
            }
        }
    }
    let root = root();
    let mut found = Vec::new();
    walk(&root, &root, ending, &mut found);
    assert!(!found.is_empty(), "no {ending} files below {}", root.display());
    found
}

/// Removes a trailing comment. A comment starts outside quotes.
fn without_comment(line: &str) -> &str {
    let begins = |at: &usize| line[..*at].replace("\\\"", "").matches('"').count().is_multiple_of(2);
    let end = line.match_indices("//").map(|(at, _)| at).find(begins).unwrap_or(line.len());
    line[..end].trim_end()
}

/// Removes items with `#[cfg(test)]`. A test module is the last item in a file, as enforced by
/// Clippy. After other test items, the following code is retained.
fn without_tests(lines: Vec<(usize, &str)>) -> Vec<(usize, &str)> {
    let mut retained = Vec::new();
    let mut lines = lines.into_iter();
    while let Some((number, line)) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            retained.push((number, line));
            continue;
        }
        let mut item = lines.by_ref().map(|(_, line)| line).skip_while(|line| line.trim().starts_with("#["));
        let Some(first) = item.next() else { break };
        if first.contains("mod ") && first.ends_with('{') {
            break;
        }
        let indent = indentation(first);
        let mut open = balance(first);
        let mut last = first;
        // Brackets in strings may be unbalanced. A brace at the indentation of the item always ends
        // it.
        let closes = |line: &str| line.trim_start().starts_with('}') && indentation(line) == indent;
        while !closes(last) && (open > 0 || !last.ends_with([';', ',', '}'])) {
            let Some(next) = item.next() else { break };
            open += balance(next);
            last = next;
        }
    }
    retained
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns opening minus closing brackets in a line.
fn balance(line: &str) -> isize {
    let count = |signs: [char; 3]| line.matches(signs).count().cast_signed();
    count(['{', '(', '[']) - count(['}', ')', ']'])
}

#[cfg(test)]
mod tests {
    use super::Source;

    fn program(text: &str) -> Vec<String> {
        let source = Source { path: "x.rs".to_owned(), text: text.to_owned() };
        source.program().into_iter().map(|(number, line)| format!("{number} {}", line.trim())).collect()
    }

    #[test]
    fn inline_tests_are_removed_and_external_tests_are_a_line() {
        assert_eq!(program("fn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n"), ["1 fn a() {}"]);
        assert_eq!(program("#[cfg(test)]\nmod tests;\n\nfn a() {}\n"), ["4 fn a() {}"]);
        assert_eq!(program("#[cfg(test)]\npub(crate) mod tests;\nfn a() {}\n"), ["3 fn a() {}"]);
    }

    #[test]
    fn test_items_are_removed_and_later_code_remains() {
        let text = "\
#[cfg(test)]
// Why it is there.
#[derive(Debug)]
struct Shown {
    inner: (u32, u32),
}
#[cfg(test)]
use a::{
    b, c,
};
#[cfg(test)]
const X: &str =
    \"x\";
impl A {
    #[cfg(test)]
    fn short(self) -> u32 { 1 }

    #[cfg(test)]
    fn long(
        self,
        other: u32,
    ) -> u32 {
        if other > 1 { 2 } else {
            3
        }
    }

    fn kept(self) {}
}
struct B {
    #[cfg(test)]
    seen: u32,
    all: u32,
}
";
        assert_eq!(
            program(text),
            ["14 impl A {", "28 fn kept(self) {}", "29 }", "30 struct B {", "33 all: u32,", "34 }"]
        );
    }

    #[test]
    fn comments_are_no_code() {
        let text = "//! a\nlet a = 1; // b\nlet b = \"https://c\"; // d\n    // e\nlet c = \"\\\"//f\";\n";
        assert_eq!(program(text), ["2 let a = 1;", "3 let b = \"https://c\";", "5 let c = \"\\\"//f\";"]);
    }
}
