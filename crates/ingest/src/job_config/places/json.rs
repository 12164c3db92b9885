//! Places of the keys of a JSON document.

use super::{Place, path};

/// Maximum nesting, as in `serde_json`.
const MAX_DEPTH: usize = 128;

/// Returns the places of a document that is an object; `None` if it is malformed.
pub(super) fn places(text: &str) -> Option<Vec<Place>> {
    serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
    let mut places = Vec::new();
    object(text, 0, "", &mut places, 0)?;
    Some(places)
}

/// Reads the object at `at` and returns its end.
fn object(text: &str, at: usize, section: &str, places: &mut Vec<Place>, depth: usize) -> Option<usize> {
    let mut at = skip(text, at + 1);
    while !text[at..].starts_with('}') {
        let end = string_end(text, at)?;
        let name: String = serde_json::from_str(&text[at..end]).ok()?;
        let value = skip(text, skip(text, end) + 1);
        let key = path(section, &name);
        let is_object = text[value..].starts_with('{') && depth < MAX_DEPTH;
        let value_end = if is_object { object(text, value, &key, places, depth + 1)? } else { value_end(text, value)? };
        let range = (!is_object).then_some(value..value_end);
        let is_null = &text[value..value_end] == "null";
        places.push(Place { key, start: at, value: range, is_null, is_flow: false });
        at = skip(text, value_end);
        if text[at..].starts_with(',') {
            at = skip(text, at + 1);
        }
    }
    Some(at + 1)
}

/// Returns the end of a value that is not an object with places.
fn value_end(text: &str, start: usize) -> Option<usize> {
    let (mut at, mut depth) = (start, 0_usize);
    loop {
        match text[at..].chars().next()? {
            '"' => at = string_end(text, at)?,
            '{' | '[' => (depth, at) = (depth + 1, at + 1),
            '}' | ']' if depth > 0 => (depth, at) = (depth - 1, at + 1),
            '}' | ']' | ',' if depth == 0 => return Some(start + text[start..at].trim_end().len()),
            letter => at += letter.len_utf8(),
        }
    }
}

/// Returns the end of the string at `start`, after its quote.
fn string_end(text: &str, start: usize) -> Option<usize> {
    let mut is_escaped = false;
    let inner = text.get(start + 1..)?;
    let end = inner.find(|letter| {
        let is_end = letter == '"' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        is_end
    })?;
    Some(start + 1 + end + 1)
}

/// Skips blanks.
fn skip(text: &str, at: usize) -> usize {
    text.len() - text[at..].trim_start().len()
}
