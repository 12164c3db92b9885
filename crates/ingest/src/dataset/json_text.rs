//! Handles `NaN`, `Infinity` and `-Infinity`, which Python's `json` writes although JSON does not
//! allow them.

use serde::de::IgnoredAny;

/// Words for non-finite numbers.
const LITERALS: [&str; 3] = ["NaN", "-Infinity", "Infinity"];

/// Returns whether a text is a JSON document, with or without these words.
pub(super) fn is_document(text: &str) -> bool {
    let is_json = |text: &str| serde_json::from_str::<IgnoredAny>(text).is_ok();
    is_json(text) || without_nan(text).is_some_and(|plain| is_json(&plain))
}

/// Removes a comma behind an object; returns `None` if there is none.
pub(super) fn without_comma(line: &str) -> Option<&str> {
    line.trim_end().strip_suffix(',').filter(|object| object.ends_with('}'))
}

/// Replaces non-finite numbers by `null`; returns `None` if the text has none.
pub(super) fn without_nan(text: &str) -> Option<String> {
    if !text.contains("NaN") && !text.contains("Infinity") {
        return None;
    }
    let (mut plain, mut rest, mut is_changed) = (String::with_capacity(text.len()), text, false);
    while let Some(start) = rest.find(['"', 'N', 'I', '-']) {
        let (before, from) = rest.split_at(start);
        plain.push_str(before);
        rest = if from.starts_with('"') {
            let (string, behind) = from.split_at(string_end(from));
            plain.push_str(string);
            behind
        } else if let Some(behind) = LITERALS.iter().find_map(|word| from.strip_prefix(word)) {
            plain.push_str("null");
            is_changed = true;
            behind
        } else {
            let (character, behind) = from.split_at(1);
            plain.push_str(character);
            behind
        };
    }
    plain.push_str(rest);
    is_changed.then_some(plain)
}

/// Returns the length of a string including quotes, in bytes.
fn string_end(text: &str) -> usize {
    let mut is_escaped = true;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' if !is_escaped => return at + 1,
            b'\\' if !is_escaped => is_escaped = true,
            _ => is_escaped = false,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_none_are_null() {
        for (text, plain) in [
            (r#"{"a": NaN, "b": -Infinity}"#, Some(r#"{"a": null, "b": null}"#)),
            (r#"{"a": "NaN \" NaN", "b": Infinity}"#, Some(r#"{"a": "NaN \" NaN", "b": null}"#)),
            (r#"{"a": "NaN\\", "b": [-1, NaN]}"#, Some(r#"{"a": "NaN\\", "b": [-1, null]}"#)),
            (r#"{"a": "Infinity"}"#, None),
            (r#"{"a": 5}"#, None),
            (r#"{"a": "NaN"#, None),
        ] {
            assert_eq!(without_nan(text).as_deref(), plain, "{text}");
        }
    }
}
