//! Every `ingest` function that parses external bytes is called by a reader in fuzz/readers. Every
//! reader has a target, seeds and a row in docs/fuzzing.md.

use std::collections::BTreeSet;

use super::known::{root, sources, text};

/// Calls in fuzz/readers by file in crates/ingest/src and function name.
const CALLS: [(&str, &str, &str); 30] = [
    ("configurations.rs", "read", "configurations::read("),
    ("dataset.rs", "import", "dataset::import("),
    ("dataset/arrow.rs", "import_from", "arrow::import_from("),
    ("dataset/arrow.rs", "is", "arrow::is("),
    ("dataset/parquet.rs", "is", "parquet::is("),
    ("dataset/parquet/footer.rs", "bytes", "Footer::bytes("),
    ("dataset/parquet/footer.rs", "read", "Footer::read("),
    ("dataset/stream.rs", "is_packed", "Stream::is_packed("),
    ("dataset/stream.rs", "push", "stream.push("),
    ("dataset/tokenizer.rs", "count", "tokenizer.count("),
    ("dataset/tokenizer.rs", "read", "Tokenizer::read("),
    ("execution_file.rs", "read", "execution_file::read("),
    ("job_config.rs", "format", "job_config::format("),
    ("job_config.rs", "read", "job_config::read("),
    ("job_config.rs", "read_files", "job_config::read_files("),
    ("job_config.rs", "read_on", "job_config::read_on("),
    ("job_config/places.rs", "places", "job_config::places("),
    ("log.rs", "import", "log::import("),
    ("log.rs", "import_with", "log::import_with("),
    ("log/parser.rs", "push", "parser.push("),
    ("log/setup.rs", "job_setup", "job_setup("),
    ("log/setup/parts.rs", "push", "setups.push("),
    ("log/table.rs", "parse", "LogTable::parse("),
    ("log/tensorboard.rs", "push", "EventParser::new().push("),
    ("profile.rs", "read", "profile::read("),
    ("profile/layers.rs", "read", "layers::read("),
    ("profile/schemes.rs", "is", "schemes::is("),
    ("profile/schemes.rs", "read", "schemes::read("),
    ("trace.rs", "read", "trace::read("),
    ("trace/action.rs", "actions", "trace::actions("),
];

/// True if the function parses file bytes, or text from a file.
fn takes_foreign_bytes(declaration: &str) -> bool {
    let takes_text = [
        "fn parse(text: &str",
        "fn places(text: &str",
        "fn actions(name: &str",
        "fn count(&self, text: &str",
        "fn read_files(files: &[",
    ];
    [": &[u8]", ": impl Read"].iter().any(|taken| declaration.contains(taken))
        || takes_text.iter().any(|taken| declaration.contains(taken))
}

#[test]
fn every_parser_is_fuzzed() {
    let source = root().join("crates/ingest/src");
    let mut files = Vec::new();
    sources(&source, ".rs", &mut files);
    let mut found = BTreeSet::new();
    for (path, text) in &files {
        let path = path.strip_prefix(&source).expect("a file of ingest").to_string_lossy().replace('\\', "/");
        let program = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let lines = program.lines().map(str::trim).filter(|line| line.starts_with("pub fn "));
        for line in lines.filter(|line| takes_foreign_bytes(line) && !path.contains("tests")) {
            let name = line.trim_start_matches("pub fn ").split(['(', '<']).next().unwrap_or_default();
            found.insert((path.clone(), name.to_owned()));
        }
    }
    let listed: BTreeSet<(String, String)> =
        CALLS.iter().map(|(file, name, _)| ((*file).to_owned(), (*name).to_owned())).collect();
    assert_eq!(found, listed, "a parser without a reader in fuzz/readers, or a row without a parser");
    let mut readers = Vec::new();
    sources(&root().join("fuzz/readers"), ".rs", &mut readers);
    for (file, name, call) in CALLS {
        assert!(readers.iter().any(|(_, text)| text.contains(call)), "{file}, {name}: nobody calls {call}");
    }
}

#[test]
fn every_reader_has_a_target_seeds_and_a_row() {
    let list = text("fuzz/readers/lib.rs");
    let (manifest, document) = (text("fuzz/Cargo.toml"), text("docs/fuzzing.md"));
    let mut files = Vec::new();
    sources(&root().join("fuzz/readers"), ".rs", &mut files);
    assert!(files.len() > 15, "{}", files.len());
    for (path, _) in files {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if name == "lib" {
            continue;
        }
        assert!(list.contains(&format!("(\"{name}\", {name}::read)")), "{name} is not in ALL");
        assert!(manifest.contains(&format!("path = \"targets/{name}.rs\"")), "{name} has no target");
        assert!(text(&format!("fuzz/targets/{name}.rs")).contains(&format!("readers::{name}::read")), "{name}");
        assert!(document.contains(&format!("| `{name}` |")), "{name} has no row in docs/fuzzing.md");
        let seeds = std::fs::read_dir(root().join("fuzz/seeds").join(&name)).map(Iterator::count);
        assert!(seeds.is_ok_and(|seeds| seeds > 0), "{name} has no seeds");
    }
}
