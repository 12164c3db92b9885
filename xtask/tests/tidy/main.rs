//! Repository rules.
//!
//! Each rule lists all violations with file and line, so that a single run shows them all.

mod boundaries;
mod citations;
mod cycles;
mod documents;
mod source;
mod uses;

use std::fmt::Write;

use source::{Line, Source, sources};

fn none(offences: &[String], rule: &str) {
    let mut message = String::new();
    for offence in offences {
        write!(message, "\n  {offence}").expect("text grows");
    }
    assert!(offences.is_empty(), "{rule}:{message}");
}

/// Returns the lines that contain a forbidden word, in the files selected by `applies`.
fn lines_with(
    sources: &[Source],
    applies: impl Fn(&Source) -> bool,
    lines: impl Fn(&Source) -> Vec<Line>,
    terms: &[&str],
) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| applies(source)) {
        for (number, line) in lines(source) {
            if let Some(word) = terms.iter().find(|word| line.contains(*word)) {
                found.push(format!("{}:{number}: {word}", source.path));
            }
        }
    }
    found
}

/// Excludes these files, because they contain the forbidden words.
fn is_not_this(source: &Source) -> bool {
    !source.is_under("xtask/tests/tidy/")
}

/// True for files that define error responses.
fn is_error_definition(source: &Source) -> bool {
    source.path == "server/src/error.rs" || source.is_under("server/src/error/")
}

#[test]
fn files_are_small_with_descriptive_names() {
    const MAX: usize = 25_000;
    const NAMELESS: [&str; 9] = ["mod", "util", "utils", "common", "helper", "helpers", "manager", "managers", "misc"];
    let mut offences = Vec::new();
    for source in sources(".rs") {
        if source.text.len() > MAX {
            offences.push(format!("{} has {} bytes, {MAX} is the most", source.path, source.text.len()));
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
    let terms = ["todo!(", "unimplemented!(", "dbg!(", "#[ignore"];
    none(&lines_with(&sources(".rs"), is_not_this, Source::code, &terms), "unfinished work");
}

/// Fields and variants need no text if their name and type are enough, so `missing_docs` is off.
#[test]
fn every_public_item_has_a_doc_comment() {
    const ITEMS: [&str; 4] = ["fn ", "struct ", "enum ", "trait "];
    let mut offences = Vec::new();
    for source in sources(".rs").iter().filter(|source| source.path.contains("/src/") && !source.is_tests()) {
        let lines: Vec<&str> = source.text.lines().map(str::trim).collect();
        for (index, line) in lines.iter().enumerate() {
            let Some(item) = line.strip_prefix("pub ") else { continue };
            let item = item.trim_start_matches("const ").trim_start_matches("async ");
            if !ITEMS.iter().any(|kind| item.starts_with(kind)) {
                continue;
            }
            // Attributes are between the comment and the item.
            let is_end = |line: &&&str| line.is_empty() || line.ends_with(['}', ';', '{']);
            let mut before = lines[..index].iter().rev().take_while(|line| !is_end(line));
            if !before.any(|line| line.starts_with("///") || line.starts_with("#[doc")) {
                offences.push(format!("{}:{}: {line}", source.path, index + 1));
            }
        }
    }
    none(&offences, "a public item has no doc comment");
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
fn sql_is_in_the_store_only() {
    let applies = |source: &Source| {
        is_not_this(source)
            && !source.is_support()
            && !source.is_under("server/src/store/")
            && source.path != "server/src/store.rs"
            // Error statuses are assigned in a single place, also for database errors.
            && !is_error_definition(source)
    };
    none(&lines_with(&sources(".rs"), applies, Source::code, &["sqlx::", "sqlx;"]), "SQL outside server/src/store");
}

#[test]
fn environment_is_read_in_a_single_module() {
    let applies = |source: &Source| {
        is_not_this(source)
            && !source.is_support()
            && !source.is_under("xtask/")
            && !source.path.contains("/examples/")
            && source.path != "server/src/config.rs"
    };
    let terms = ["env::var", "env::args", "env::set_var", "env::remove_var"];
    none(&lines_with(&sources(".rs"), applies, Source::program, &terms), "environment read outside config.rs");
}

#[test]
fn statuses_are_defined_in_a_single_module() {
    let applies = |source: &Source| source.is_under("server/src/") && !is_error_definition(source);
    let offences = lines_with(&sources(".rs"), applies, Source::program, &["StatusCode"]);
    none(&offences, "HTTP status outside server/src/error.rs and the folder beside it");
}

#[test]
fn the_planner_is_pure() {
    let programs = ["crates/accuracy/", "crates/api/", "crates/ingest/"];
    let applies = |source: &Source| {
        source.is_under("crates/")
            && source.path.contains("/src/")
            && !programs.iter().any(|folder| source.is_under(folder))
    };
    let terms = [
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
        &lines_with(&sources(".rs"), applies, Source::program, &terms),
        "the planner has no clock, files, network, threads, or order by chance",
    );
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

/// Types with the same name would share one schema in the OpenAPI document, that of the last.
#[test]
fn schemas_have_distinct_names() {
    let mut seen: std::collections::BTreeMap<String, String> = std::collections::BTreeMap::new();
    let mut offences = Vec::new();
    for source in sources(".rs").iter().filter(|source| is_not_this(source)) {
        let mut stated: Option<Option<String>> = None;
        for (number, line) in source.text.lines().enumerate() {
            let line = line.trim_start();
            if line.starts_with("#[") && line.contains("utoipa::ToSchema") {
                let name = line.split("schema(as = ").nth(1).and_then(|rest| rest.split([')', ',']).next());
                stated = Some(name.map(str::to_owned));
            } else if let Some(name) = type_name(line) {
                let Some(own) = stated.take() else { continue };
                let name = own.unwrap_or_else(|| name.to_owned());
                let place = format!("{}:{}", source.path, number + 1);
                if let Some(other) = seen.insert(name.clone(), place.clone()) {
                    offences.push(format!("{place}: {name} is also in {other}"));
                }
            }
        }
    }
    assert!(seen.len() > 100, "{} types with a schema", seen.len());
    none(&offences, "schemas have distinct names; state one with schema(as = ..)");
}

/// Returns the name of the type that a line defines.
fn type_name(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub")?;
    let rest = rest.strip_prefix("(crate)").or_else(|| rest.strip_prefix("(super)")).unwrap_or(rest).trim_start();
    let rest = rest.strip_prefix("struct ").or_else(|| rest.strip_prefix("enum "))?;
    Some(&rest[..rest.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(rest.len())])
}
