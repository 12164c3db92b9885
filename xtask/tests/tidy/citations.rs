//! docs/papers-index.md lists the equations, algorithms and mechanisms of the papers with their files.

use std::fs;

use crate::none;
use crate::source::{root, sources};

/// Minimum number of entries in the index.
const MIN_ENTRIES: usize = 60;

/// Returns whether a text cites an entry, for example `DHP Eq. 1` but not `DHP Eq. 11` or `DHP Sec. 1.2`.
fn cites(text: &str, citation: &str) -> bool {
    text.match_indices(citation).any(|(start, _)| {
        let mut rest = text[start + citation.len()..].chars();
        let next = rest.next();
        let is_longer = |sign: Option<char>| sign.is_some_and(|sign| sign.is_ascii_digit());
        !is_longer(next) && !(next == Some('.') && is_longer(rest.next()))
    })
}

#[test]
fn every_entry_of_the_papers_index_is_cited_in_its_file() {
    let index = fs::read_to_string(root().join("docs/papers-index.md")).expect("the index");
    let sources = sources(".rs");
    let (mut entries, mut offences) = (0, Vec::new());
    for line in index.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let &[_, citation, _, file, _] = &cells[..] else { continue };
        let Some(file) = file.strip_prefix('`').and_then(|file| file.strip_suffix('`')) else { continue };
        entries += 1;
        let path = format!("planner/src/{file}");
        match sources.iter().find(|source| source.path == path) {
            None => offences.push(format!("{path} does not exist")),
            Some(source) if !cites(&source.text, citation) => offences.push(format!("{path}: no {citation}")),
            Some(_) => {}
        }
    }
    assert!(entries >= MIN_ENTRIES, "{entries} entries");
    none(&offences, "an entry of docs/papers-index.md is not cited in its file");
}

#[test]
fn longer_numbers_are_other_citations() {
    assert!(cites("as in DHP Eq. 1.", "DHP Eq. 1"));
    assert!(!cites("DHP Eq. 11, DHP Sec. 1.2", "DHP Eq. 1"));
    assert!(!cites("DHP Sec. 4.3", "DHP Sec. 4"));
}
