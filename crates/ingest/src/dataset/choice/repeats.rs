//! Detects texts that another text of the sample repeats, such as a prompt at the start of the
//! completion.

use std::borrow::Cow;

use super::super::text;
use super::super::value::{Row, Value};
use super::{Measure, Part};

/// Removes the columns whose text another column repeats in nearly all rows. The last column is the
/// completion; it may repeat a part of the prompt and is never removed. Returns the index of each
/// removed column and a sentence.
pub(super) fn remove(parts: &mut Vec<Part>, head: &[&Row<'_>]) -> Vec<(usize, String)> {
    let mut removed = Vec::new();
    let mut at = 0;
    while at + 1 < parts.len() {
        let first = &parts[at];
        // The turns of a history may contain the prompt.
        let mut others =
            parts.iter().enumerate().filter(|(other, part)| *other > at || (*other < at && is_plain(part, head)));
        let repeated = others.find(|(_, other)| is_repeated(first, other, head)).map(|(_, other)| other);
        match repeated.map(|other| format!("{} is not added: {} repeats it.", first.name, other.name)) {
            Some(sentence) => {
                removed.push((parts.remove(at).index, sentence));
            }
            None => at += 1,
        }
    }
    removed
}

/// Returns whether the column values are texts and not lists of texts.
fn is_plain(part: &Part, head: &[&Row<'_>]) -> bool {
    head.first().is_some_and(|row| matches!(row.value(part.index, &part.name), Value::Text(_)))
}

fn is_repeated(first: &Part, other: &Part, head: &[&Row<'_>]) -> bool {
    /// Number of rows compared.
    const ROWS: usize = 200;
    /// Minimum text length in bytes; a shorter text may occur in another text by chance.
    const MIN: usize = 8;
    if first.measure != Measure::Text || other.measure != Measure::Text {
        return false;
    }
    let text = |row: &&Row<'_>| match row.value(first.index, &first.name) {
        Value::Text(text) => Some(text.trim().to_owned()).filter(|text| text.len() >= MIN),
        _ => None,
    };
    let rows = head.iter().filter_map(|row| Some((text(row)?, row.value(other.index, &other.name))));
    let (mut all, mut repeated) = (0, 0);
    for (text, value) in rows.take(ROWS) {
        all += 1;
        let parsed = match value {
            Value::Text(chat) => text::messages(chat).map_or(Cow::Borrowed(value), Cow::Owned),
            value => Cow::Borrowed(value),
        };
        // A completion equal to the prompt is a different kind of sample.
        if matches!(&*parsed, Value::Text(other_text) if other_text.trim().len() == text.len()) {
            continue;
        }
        repeated += usize::from(contains(&parsed, &text));
    }
    all > 0 && repeated * 10 >= all * 9
}

/// Returns whether a text inside a value contains `text` exactly once. Texts with a common pattern
/// contain each other several times.
fn contains(value: &Value<'_>, text: &str) -> bool {
    match value {
        Value::Text(haystack) => haystack.find(text).is_some_and(|at| {
            let next = at + haystack.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
            !haystack.get(next..).is_some_and(|rest| rest.contains(text))
        }),
        Value::List(list) => list.items.iter().any(|item| contains(item, text)),
        Value::Object(members) => members.iter().any(|(_, value)| contains(value, text)),
        _ => false,
    }
}
