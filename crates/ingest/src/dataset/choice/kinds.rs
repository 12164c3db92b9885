//! Detects several kinds of rows in one file, such as samples and batch summaries.

use super::super::profile::Profile;
use super::super::value::{Row, Value};
use super::super::{Kind, names};
use super::Part;

/// Names of columns that contain the row kind.
const NAMES: [&str; 9] =
    ["event", "type", "kind", "record", "record_type", "row_type", "entry_type", "event_type", "level"];

/// Returns a warning if a column names the row kind, another column has values for only one kind,
/// and rows of two kinds have a length.
pub(super) fn sentence(profiles: &[Profile], parts: &[Part], head: &[&Row<'_>]) -> Option<String> {
    /// Number of rows compared.
    const ROWS: usize = 1000;
    /// Maximum number of distinct kinds; more values do not denote kinds.
    const MAX_KINDS: usize = 6;
    let is_kind =
        |profile: &Profile| profile.has_values && NAMES.iter().any(|name| names::is_same(&profile.name, name));
    let has = |row: &Row<'_>, index: usize| !matches!(row.value(index, &profiles[index].name), Value::Missing);
    let length = parts.first()?.index;
    profiles.iter().enumerate().filter(|(_, profile)| is_kind(profile)).find_map(|(index, profile)| {
        let mut kinds: Vec<(&str, Vec<&Row<'_>>)> = Vec::new();
        for row in head.iter().take(ROWS).filter(|row| has(row, length)) {
            let Value::Text(kind) = row.value(index, &profile.name) else { continue };
            match kinds.iter_mut().find(|(known, _)| known == kind) {
                Some((_, rows)) => rows.push(row),
                None => kinds.push((kind, vec![row])),
            }
            if kinds.len() > MAX_KINDS {
                return None;
            }
        }
        let differs = |column: usize| {
            let is_all = |rows: &[&Row<'_>]| rows.iter().all(|row| has(row, column));
            let is_none = |rows: &[&Row<'_>]| !rows.iter().any(|row| has(row, column));
            kinds.iter().any(|(_, rows)| is_all(rows)) && kinds.iter().any(|(_, rows)| is_none(rows))
        };
        let is_mixed = kinds.len() > 1 && (0..profiles.len()).any(differs);
        is_mixed.then(|| {
            let counts: Vec<String> = kinds.iter().map(|(kind, rows)| format!("{} {kind}", rows.len())).collect();
            format!(
                "Rows are of several kinds by {}: {} of the first rows. All of them are read as samples. Remove those that are none.",
                profile.name,
                counts.join(", ")
            )
        })
    })
}

/// A sentence about a column that names the kind of a row, such as an event of a log.
pub(super) fn named(profiles: &[Profile]) -> Option<String> {
    const NAMES: [&str; 6] = ["event", "event_type", "record_type", "row_type", "line_type", "message_type"];
    let is_kind = |profile: &&Profile| {
        profile.kind == Kind::Text
            && profile.samples.len() > 1
            && NAMES.iter().any(|name| names::is_same(name, &profile.name))
    };
    let profile = profiles.iter().find(is_kind)?;
    Some(format!("All rows are read as samples, whatever their {} is: {}.", profile.name, profile.samples.join(", ")))
}
