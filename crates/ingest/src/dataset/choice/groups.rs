//! Detects tables with a row per group of samples, such as the tokens of each split, language or user.

use std::collections::BTreeSet;

use super::super::profile::{self, Profile};
use super::super::value::{Row, Value};
use super::super::{Kind, Meaning, names};
use super::Part;

/// Returns whether each row has another name of a group, and no column describes single samples. In
/// a table of two rows, the names precede the numbers.
pub(super) fn are_totals(profiles: &[Profile], parts: &[Part], head: &[&Row<'_>]) -> bool {
    /// Maximum number of groups; a file with more rows has a row per sample.
    const GROUPS: usize = 1000;
    if !(2..=GROUPS).contains(&head.len()) {
        return false;
    }
    let others = || {
        let is_part = |index: usize| parts.iter().any(|part| part.index == index);
        profiles.iter().enumerate().filter(move |(index, profile)| profile.has_values && !is_part(*index))
    };
    let is_group = |profile: &Profile| {
        names::names_rows(&profile.name)
            && matches!(profile.kind, Kind::Text | Kind::Number | Kind::Date)
            && !profile.has_text
    };
    // pandas writes a column of row numbers.
    let is_index = |profile: &Profile| profile.name.is_empty() || profile.name.starts_with("Unnamed: ");
    let describes_samples = |profile: &Profile| {
        let is_sample = profile.meaning == Meaning::Identifier && !is_index(profile);
        !is_group(profile) && (is_sample || !matches!(profile.kind, Kind::Number | Kind::Date | Kind::Boolean))
    };
    !others().any(|(_, profile)| describes_samples(profile))
        && others().any(|(index, profile)| {
            let is_first = parts.iter().all(|part| index < part.index);
            (is_first || head.len() > 2) && is_group(profile) && are_unique(index, &profile.name, head)
        })
}

/// Returns whether the values are distinct names, and not names of documents.
fn are_unique(index: usize, name: &str, head: &[&Row<'_>]) -> bool {
    let mut seen = BTreeSet::new();
    head.iter().map(|row| row.value(index, name)).all(|value| {
        let is_document = matches!(value, Value::Text(text) if is_document(text));
        !is_document && !profile::is_missing(value) && seen.insert(value.display_text())
    })
}

/// Returns whether a text is an address, or the name of a file that holds one document.
fn is_document(text: &str) -> bool {
    const ENDS: [&str; 18] = [
        ".txt", ".md", ".html", ".htm", ".pdf", ".py", ".rs", ".c", ".cpp", ".h", ".js", ".ts", ".java", ".go", ".wav",
        ".mp3", ".flac", ".mp4",
    ];
    let lower = text.trim().to_ascii_lowercase();
    lower.contains("://") || ENDS.iter().any(|end| lower.ends_with(end))
}
