//! Computes the byte ranges of a local file that are sufficient for its lengths.

use std::ops::Range;

use parquet::basic::Type;

use super::super::choice::{Measure, Part, Selection};
use super::super::profile::{Column, Profile};
use super::super::{Kind, Meaning, Options, names, token_ids};
use super::Footer;

/// Maximum size of the columns whose values are measured or counted, in bytes. Their values are
/// decompressed as a whole, and a part of them is a sufficient sample.
const CONTENT: u64 = 64 << 20;
/// Maximum number of list elements that are read.
const ELEMENTS: u64 = 16 << 20;
/// Size of the column start that contains the first values, in bytes.
const HEAD: u64 = 128 << 10;
/// Maximum total size of all column starts, in bytes.
const ALL_HEADS: u64 = 8 << 20;

/// Maximum number of nested number columns considered.
const MAX_NESTED: usize = 200;

/// Parts of a file to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Byte ranges, sorted and without overlap.
    pub ranges: Vec<Range<u64>>,
    /// Columns read from all row groups of the plan.
    pub columns: Vec<String>,
    /// Number of row groups to read.
    pub groups: usize,
    /// Number of row groups in the file.
    pub all_groups: usize,
}

impl Footer {
    /// Returns the parts to read with the given options: the columns that names and kinds select
    /// within a byte budget, and the first values of the other columns, so that the user can choose
    /// among them. A large column is sampled at evenly spaced row groups, of texts and lists at most
    /// [`CONTENT`].
    pub fn plan(&self, options: &Options<'_>, limit: u64) -> Plan {
        let columns = self.columns();
        let nested = self.nested();
        let all = columns
            .iter()
            .map(|column| Column { name: column.name.clone(), kind: Some(column.kind) })
            .chain(nested.iter().map(|(_, name)| Column { name: name.clone(), kind: Some(Kind::Number) }));
        let profiles: Vec<Profile> = all.map(|column| Profile::new(&column, [].iter())).collect();
        let parts = Selection::new(&profiles, &[], options).map(|selection| selection.parts).unwrap_or_default();
        let is_preference =
            profiles.iter().any(|profile| profile.kind == Kind::Chat && names::is_same(&profile.name, "chosen"));
        let has_lists = parts.iter().any(|part| token_ids::are_listed(&part.name));
        let has_texts = parts.is_empty() || parts.iter().any(|part| part.measure == Measure::Text);
        let is_other = |profile: &Profile| match profile.meaning {
            // Lengths of packed samples, or padding.
            _ if has_lists && names::packing(&profile.name).is_some() => {
                matches!(profile.kind, Kind::NumberList | Kind::NestedList | Kind::ObjectList)
            }
            Meaning::Weight | Meaning::Images => true,
            Meaning::Media => options.preprocessing.is_some(),
            // The rows show whether the preferred conversation repeats the prompt.
            Meaning::PromptText if is_preference => true,
            // The rows show whether an object contains text.
            Meaning::Text | Meaning::PromptText | Meaning::CompletionText if has_texts => {
                matches!(profile.kind, Kind::Object | Kind::ObjectList | Kind::NestedList)
            }
            _ => options.weight.is_some_and(|weight| weight == profile.name),
        };
        let is_part = |index: usize| parts.iter().any(|part| part.index == index);
        let is_around =
            |column: usize| (columns.len()..).zip(&nested).any(|(index, (root, _))| *root == column && is_part(index));
        let is_needed = |index: usize| is_part(index) || is_around(index) || is_other(&profiles[index]);
        let needed: Vec<usize> = (0..columns.len()).filter(|&index| is_needed(index)).collect();
        let (groups, mut ranges) = self.select(&needed, budget(&parts, limit, self.bytes_per_value(&needed)));
        let mut left = ALL_HEADS;
        if let Some(first) = groups.first().and_then(|&group| self.groups().get(group)) {
            for leaf in self.leaves(&(0..columns.len()).filter(|&index| !is_needed(index)).collect::<Vec<_>>()) {
                let (start, length) = first.column(leaf).byte_range();
                let length = length.min(HEAD).min(left);
                left -= length;
                ranges.push(start..start + length);
            }
        }
        Plan {
            ranges: join(ranges),
            columns: needed.into_iter().map(|index| columns[index].name.clone()).collect(),
            groups: groups.len(),
            all_groups: self.groups().len(),
        }
    }
}

impl Footer {
    /// Returns the compressed bytes per value of columns.
    fn bytes_per_value(&self, columns: &[usize]) -> f64 {
        let leaves = self.leaves(columns);
        let chunks = || self.groups().iter().flat_map(|group| leaves.iter().map(|&leaf| group.column(leaf)));
        let bytes: u64 = chunks().map(|chunk| chunk.byte_range().1).sum();
        let values: u64 = chunks().map(|chunk| chunk.num_values().unsigned_abs()).sum();
        bytes as f64 / values.max(1) as f64
    }

    /// Returns names of nested numbers with their column index.
    fn nested(&self) -> Vec<(usize, String)> {
        let descriptor = self.metadata.parquet_schema();
        (0..descriptor.num_columns())
            .filter_map(|leaf| {
                let column = descriptor.column(leaf);
                let is_number = !matches!(column.physical_type(), Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY);
                let path = column.path().parts();
                (is_number && path.len() > 1 && column.max_rep_level() == 0)
                    .then(|| (descriptor.get_column_root_idx(leaf), path.join(".")))
            })
            .take(MAX_NESTED)
            .collect()
    }
}

/// Returns the byte budget of the columns.
fn budget(parts: &[Part], limit: u64, bytes_per_value: f64) -> u64 {
    let has = |is: fn(Measure) -> bool| parts.iter().any(|part| is(part.measure));
    if has(|measure| matches!(measure, Measure::Elements)) {
        return limit.min(CONTENT).min((ELEMENTS as f64 * bytes_per_value).ceil() as u64);
    }
    if has(|measure| matches!(measure, Measure::Text)) { limit.min(CONTENT) } else { limit }
}

/// Sorts and merges ranges; removes empty ranges.
fn join(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::super::super::Unit;
    use super::super::super::number::Notation;
    use super::*;

    /// Row groups of texts are sampled earlier than row groups of numbers.
    #[test]
    fn texts_are_sampled_earlier() {
        let all = 256 << 20;
        assert_eq!(budget(&[], all, 1.0), all);
        let profile = Profile::new(&Column { name: "x".to_owned(), kind: None }, [].iter());
        let part = |measure| Part::new(0, &profile, measure);
        let number = part(Measure::Number(Notation::Point, Unit::Tokens));
        let text = part(Measure::Text);
        assert_eq!(budget(std::slice::from_ref(&number), all, 1.0), all);
        assert_eq!(budget(&[number, text.clone()], all, 1.0), CONTENT);
        assert_eq!(budget(&[text], 100, 1.0), 100);
        for (bytes_per_value, expected) in [(8.0, CONTENT), (0.5, ELEMENTS / 2)] {
            assert_eq!(budget(&[part(Measure::Elements)], all, bytes_per_value), expected);
        }
    }

    #[test]
    fn ranges_are_joined() {
        assert_eq!(join(vec![10..20, 0..5, 5..7, 15..18, 30..30]), [0..7, 10..20]);
        assert!(join(vec![]).is_empty());
    }
}
