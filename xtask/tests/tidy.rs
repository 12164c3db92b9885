//! The repository obeys its own rules.
//!
//! Each rule lists every offence with file and line, so that one run shows all there is to mend.

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A source file by its path from the top of the checkout, with `/` between the parts.
struct Source {
    path: String,
    text: String,
}

impl Source {
    /// Lines with their numbers; comments are no code.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line))
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    /// Code up to the file's unit tests, which may do what the program may not.
    fn program(&self) -> impl Iterator<Item = (usize, &str)> {
        let tests = self.text.lines().position(|line| line.trim() == "#[cfg(test)]").unwrap_or(usize::MAX);
        self.code().filter(move |(number, _)| *number <= tests)
    }

    fn is_under(&self, folder: &str) -> bool {
        self.path.starts_with(folder)
    }

    /// Whether it is a test, a benchmark or a build script as a whole.
    fn is_support(&self) -> bool {
        ["/tests/", "/benches/"].iter().any(|part| self.path.contains(part))
            || self.is_under("tests/")
            || self.path.ends_with("build.rs")
    }
}

fn root() -> PathBuf {
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo names the package");
    Path::new(&xtask).parent().expect("xtask stands in the workspace").to_owned()
}

/// Every file of our own with that ending.
fn sources(ending: &str) -> Vec<Source> {
    const FOREIGN: [&str; 5] = ["target", "node_modules", ".git", ".tools", "e2e-results"];
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

fn none(offences: &[String], rule: &str) {
    let mut message = String::new();
    for offence in offences {
        write!(message, "\n  {offence}").expect("text grows");
    }
    assert!(offences.is_empty(), "{rule}:{message}");
}

/// Offending lines of the files that `applies` picks.
fn lines_with<'a>(
    sources: &'a [Source],
    applies: impl Fn(&Source) -> bool,
    lines: impl Fn(&'a Source) -> Vec<(usize, &'a str)>,
    words: &[&str],
) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| applies(source)) {
        for (number, line) in lines(source) {
            if let Some(word) = words.iter().find(|word| line.contains(*word)) {
                found.push(format!("{}:{number}: {word}", source.path));
            }
        }
    }
    found
}

fn code(source: &Source) -> Vec<(usize, &str)> {
    source.code().collect()
}

fn program(source: &Source) -> Vec<(usize, &str)> {
    source.program().collect()
}

/// This file names what it forbids.
fn is_not_this(source: &Source) -> bool {
    source.path != "xtask/tests/tidy.rs"
}

#[test]
fn files_are_small_and_named_after_what_they_hold() {
    const LARGEST: usize = 25_000;
    const NAMELESS: [&str; 9] = ["mod", "util", "utils", "common", "helper", "helpers", "manager", "managers", "misc"];
    let mut offences = Vec::new();
    for source in sources(".rs") {
        if source.text.len() > LARGEST {
            offences.push(format!("{} has {} bytes, {LARGEST} is the most", source.path, source.text.len()));
        }
        let parts = source.path.trim_end_matches(".rs").split('/');
        if let Some(part) = parts.into_iter().find(|part| NAMELESS.contains(part)) {
            offences.push(format!("{}: {part:?} says nothing about what it holds", source.path));
        }
    }
    none(&offences, "a file is one noun of the domain");
}

#[test]
fn nothing_is_left_for_later() {
    let words = ["todo!(", "unimplemented!(", "dbg!(", "#[ignore"];
    none(&lines_with(&sources(".rs"), is_not_this, code, &words), "unfinished work");
}

#[test]
fn every_lint_opt_out_has_a_reason() {
    let mut offences = Vec::new();
    for source in sources(".rs").iter().filter(|source| is_not_this(source)) {
        for (start, _) in source.text.match_indices("allow(") {
            let before = &source.text[..start];
            if !(before.ends_with("#[") || before.ends_with("#![")) {
                continue;
            }
            let attribute = source.text[start..].split(")]").next().unwrap_or_default();
            if !attribute.contains("reason = ") {
                offences.push(format!("{}:{}", source.path, before.lines().count()));
            }
        }
    }
    none(&offences, "#[allow] without `reason = \"...\"`");
}

#[test]
fn sql_stands_in_the_store_only() {
    let applies = |source: &Source| {
        is_not_this(source)
            && !source.is_support()
            && !source.is_under("server/src/store/")
            && source.path != "server/src/store.rs"
    };
    let mut offences = lines_with(&sources(".rs"), applies, code, &["sqlx::", "sqlx;"]);
    // Errors get their status in one place, those of the database too.
    offences.retain(|offence| !offence.starts_with("server/src/error.rs:"));
    none(&offences, "SQL outside server/src/store");
}

#[test]
fn the_environment_is_read_in_one_place() {
    let applies = |source: &Source| {
        is_not_this(source)
            && !source.is_support()
            && !source.is_under("xtask/")
            && source.path != "server/src/config.rs"
    };
    let words = ["std::env::var", "env::var(", "env::args", "env::vars"];
    none(&lines_with(&sources(".rs"), applies, program, &words), "environment read outside config.rs");
}

#[test]
fn statuses_stand_in_one_place() {
    let applies = |source: &Source| source.is_under("server/src/") && source.path != "server/src/error.rs";
    none(&lines_with(&sources(".rs"), applies, program, &["StatusCode"]), "HTTP status outside server/src/error.rs");
}

#[test]
fn the_planner_is_pure() {
    let applies = |source: &Source| source.is_under("planner/src/");
    let words = [
        "tokio",
        "axum",
        "sqlx",
        "std::fs",
        "std::net",
        "std::thread",
        "std::process",
        "std::env",
        "std::io",
        "Instant",
        "SystemTime",
        "thread_rng",
        "HashMap",
        "HashSet",
        "println!",
        "eprintln!",
    ];
    none(
        &lines_with(&sources(".rs"), applies, program, &words),
        "the planner has no clock, files, network, threads, or order by chance",
    );
}

#[test]
fn the_judge_shares_no_code_with_the_judged() {
    const JUDGED: [&str; 5] =
        ["crate::schedule::", "crate::plan::", "crate::simulate::", "crate::engine::", "crate::execution_plan::"];
    let mut offences = Vec::new();
    for source in sources(".rs") {
        let is_judge = source.is_under("planner/src/check/") || source.path == "planner/src/check.rs";
        // Tests of the judge need something to judge.
        if !is_judge || source.path.ends_with("/tests.rs") {
            continue;
        }
        for (number, line) in source.program() {
            let Some(after) = JUDGED.iter().find_map(|path| line.split_once(path)).map(|(_, after)| after) else {
                continue;
            };
            // It must know the types that it is handed; what it calls must be its own.
            let names = after.trim_matches(['{', '}', ';']).split(',').map(str::trim).filter(|name| !name.is_empty());
            for name in names.filter(|name| !name.starts_with(char::is_uppercase)) {
                offences.push(format!("{}:{number}: {name}", source.path));
            }
        }
    }
    none(&offences, "the checker uses more than the types of what it judges");
}

#[test]
fn every_table_is_strict() {
    let mut offences = Vec::new();
    for source in sources(".sql") {
        let text: String = source
            .text
            .lines()
            .map(|line| line.split("--").next().unwrap_or_default())
            .collect::<Vec<_>>()
            .join("\n")
            .to_uppercase();
        for statement in text.split(';').filter(|statement| statement.contains("CREATE TABLE")) {
            let after = statement.rsplit(')').next().unwrap_or_default();
            if !after.contains("STRICT") {
                let name = statement.split("CREATE TABLE").nth(1).unwrap_or_default();
                offences.push(format!("{}: {}", source.path, name.split('(').next().unwrap_or_default().trim()));
            }
        }
    }
    none(&offences, "CREATE TABLE without STRICT");
}

#[test]
fn no_page_asks_another_machine_for_anything() {
    let mut offences = Vec::new();
    for ending in [".html", ".css", ".js"] {
        for source in sources(ending).iter().filter(|source| source.is_under("static/")) {
            for (number, line) in source.text.lines().enumerate() {
                let namespace = line.contains("http://www.w3.org/");
                if (line.contains("http://") || line.contains("https://") || line.contains("src=\"//")) && !namespace {
                    offences.push(format!("{}:{}", source.path, number + 1));
                }
            }
        }
    }
    none(&offences, "an address of another machine in static/");
}
