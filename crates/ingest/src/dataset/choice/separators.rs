//! Detects token IDs that separate samples within a row: an ID that starts or ends the rows and also
//! occurs inside them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::super::profile;
use super::super::token_ids;
use super::super::value::{Row, Value};
use super::{Measure, Part};

/// IDs of separators in common tokenizers: the start or the end of a document, and not of a turn.
const KNOWN: [u32; 16] =
    [0, 1, 2, 3, 11, 50_256, 50_279, 100_000, 100_001, 100_257, 128_000, 128_001, 151_329, 151_643, 199_998, 199_999];

/// A token ID that separates samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Separator {
    id: u32,
    /// True if the ID starts each sample; else it ends each sample.
    is_start: bool,
    /// ID that fills rows at the end.
    padding: Option<u32>,
}

/// Separators of the first rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// The ID separates samples.
    Clear(Separator),
    /// The ID may separate samples, turns of a conversation, or sentences.
    Doubtful(Separator),
}

impl Separator {
    /// Returns the lengths of the samples in a row, with separators and without padding.
    pub(super) fn lengths(self, ids: &[u32]) -> Vec<i128> {
        let samples = ids.chunk_by(|before, after| if self.is_start { *after != self.id } else { *before != self.id });
        let is_token = |id: &u32| Some(*id) != self.padding;
        let count = |sample: &[u32]| {
            let (first, last) = (sample.iter().position(is_token), sample.iter().rposition(is_token));
            first.zip(last).map_or(0, |(first, last)| (last + 1 - first) as i128)
        };
        let is_empty = |sample: &[u32]| sample.iter().all(|&id| id == self.id || Some(id) == self.padding);
        samples.filter(|sample| !is_empty(sample)).map(count).collect()
    }

    /// Describes the evidence.
    pub(super) fn clause(self) -> String {
        format!(
            "the number {} {} most rows and occurs inside them",
            self.id,
            if self.is_start { "starts" } else { "ends" }
        )
    }
}

/// Returns the token IDs of a list or of a list written as text; `None` if any ID is missing.
pub(super) fn read<'v>(value: &'v Value<'_>) -> Option<Cow<'v, [u32]>> {
    match value {
        Value::List(list) => (list.ids.len() == list.count).then_some(Cow::Borrowed(&list.ids[..])),
        Value::Text(text) => {
            let inner = profile::inner(text).unwrap_or(text);
            let words = inner.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty());
            words.map(|word| word.parse().ok()).collect::<Option<Vec<u32>>>().map(Cow::Owned)
        }
        _ => None,
    }
}

/// Returns a warning about separators in lists that are counted by their elements.
pub(super) fn unread(parts: &[Part], head: &[&Row<'_>]) -> Option<String> {
    let mut lists = parts.iter().filter(|part| part.measure == Measure::Elements);
    lists.find_map(|part| sentence(&part.name, part.index, head))
}

/// Returns a warning about separators that are not used.
pub(super) fn sentence(name: &str, index: usize, head: &[&Row<'_>]) -> Option<String> {
    let (Found::Clear(separator) | Found::Doubtful(separator)) = find(name, index, head)?;
    Some(format!(
        "In {name}, {}. Each row is counted as one sample. If the number separates samples, upload the lengths of the samples.",
        separator.clause()
    ))
}

/// Returns the separator of the token ID lists of a column.
pub(super) fn find(name: &str, index: usize, head: &[&Row<'_>]) -> Option<Found> {
    /// Number of rows compared.
    const ROWS: usize = 1000;
    if !token_ids::are_listed(name) {
        return None;
    }
    let lists: Vec<_> =
        head.iter().take(ROWS).filter_map(|row| read(row.value(index, name))).filter(|ids| !ids.is_empty()).collect();
    // An ID that fills rows occurs several times at an end.
    let behind = common(lists.iter().filter_map(|ids| ids.last().filter(|_| run(ids.iter().rev()) > 1)), 1);
    let before = common(lists.iter().filter_map(|ids| ids.first().filter(|_| run(ids.iter()) > 1)), 1);
    let minimum = lists.len() * 9;
    let frequent = |ids: &dyn Fn(&Cow<'_, [u32]>) -> Vec<u32>, padding: Option<u32>| {
        let all: Vec<u32> = lists.iter().flat_map(ids).collect();
        common(all.iter().filter(|id| Some(**id) != padding), minimum).or_else(|| common(all.iter(), minimum))
    };
    let first = frequent(&|ids| ends(ids.iter()), before);
    let last = frequent(&|ids| ends(ids.iter().rev()), behind);
    let padding = behind.or(before);
    let inside = |id: Option<u32>| id.map_or(0, |id| lists.iter().filter(|ids| is_inside(ids, id, padding)).count());
    let (starts, stops) = (inside(first), inside(last));
    let is_frequent = |rows: usize| rows > 0 && rows * 4 >= lists.len();
    let separator =
        |id: u32, is_start: bool| Separator { id, is_start, padding: padding.filter(|&padding| padding != id) };
    let is_known = |id: u32| lists.len() > 1 && KNOWN.contains(&id);
    match (first, last) {
        (Some(first), Some(last)) if first != last && starts > 0 && stops > 0 => {
            // Each start inside a row follows an end. Turns may have a line break between them.
            let is_pair = |ids: &[u32]| ids.array_windows().all(|[before, after]| *after != first || *before == last);
            let are_pairs = is_frequent(starts) && lists.iter().all(|ids| is_pair(ids));
            let are_pairs = are_pairs && (is_known(first) || is_known(last));
            let separator = separator(first, true);
            Some(if are_pairs { Found::Clear(separator) } else { Found::Doubtful(separator) })
        }
        (first, Some(last)) if stops > 0 => {
            // A start that does not occur inside marks a row as one sample.
            let is_clear = is_known(last) && is_frequent(stops) && first.is_none_or(|first| first == last);
            let separator = separator(last, false);
            Some(if is_clear { Found::Clear(separator) } else { Found::Doubtful(separator) })
        }
        (Some(first), last) if starts > 0 => {
            let is_clear = is_known(first) && is_frequent(starts) && last.is_none();
            let separator = separator(first, true);
            Some(if is_clear { Found::Clear(separator) } else { Found::Doubtful(separator) })
        }
        _ => None,
    }
}

/// Returns the first number of a list, and the first number after a run of equal numbers.
fn ends<'i>(ids: impl Iterator<Item = &'i u32> + Clone) -> Vec<u32> {
    let run = run(ids.clone());
    let behind = ids.clone().nth(run).filter(|_| run > 1);
    ids.take(1).chain(behind).copied().collect()
}

/// Returns the length of the run of equal numbers at the start.
fn run<'i>(ids: impl Iterator<Item = &'i u32> + Clone) -> usize {
    let first = ids.clone().next();
    ids.take_while(|id| Some(*id) == first).count()
}

/// Returns the number with the maximum count, if ten times the count is at minimum `minimum`.
fn common<'i>(ids: impl Iterator<Item = &'i u32>, minimum: usize) -> Option<u32> {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    ids.for_each(|&id| *counts.entry(id).or_default() += 1);
    let (id, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    (count * 10 >= minimum).then_some(id)
}

/// Returns whether an ID occurs between other numbers of a list that are not padding.
fn is_inside(ids: &[u32], id: u32, padding: Option<u32>) -> bool {
    let is_content = |other: &u32| *other != id && Some(*other) != padding;
    let (Some(start), Some(end)) = (ids.iter().position(is_content), ids.iter().rposition(is_content)) else {
        return false;
    };
    ids[start..=end].contains(&id)
}
