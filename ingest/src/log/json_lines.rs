//! JSON lines with a step: the history of Weights & Biases, and what others write in the same manner.

use std::borrow::Cow;

use serde_json::Value;

use super::Limits;
use super::point::{Point, Source};
use super::reading::{Draft, Reading};
use super::steps::Mark;
use super::text::number;

/// Names of the step, best first.
const STEPS: [&str; 5] = ["_step", "global_step", "step", "iteration", "iter"];

/// `{"_step":7,"_runtime":12.5,"_timestamp":1700000012.5,"train/loss":2.5,"grad_norm":NaN}`.
///
/// Weights & Biases counts `_step` from 0 and by calls of its own; it is kept as it is.
pub(super) fn step(text: &str, limits: &Limits) -> Option<Reading> {
    let text = text.trim();
    if !text.starts_with('{') || !STEPS.iter().any(|name| text.contains(name)) {
        return None;
    }
    let Ok(Value::Object(row)) = serde_json::from_str::<Value>(&finite(text)) else {
        // A line of braces need not be JSON; one with quoted names is meant to be.
        return text.starts_with("{\"").then_some(Reading::Torn);
    };
    let (name, step) = STEPS.iter().find_map(|name| Some((*name, row.get(*name)?.as_f64()?)))?;
    if !(0.0..9_007_199_254_740_992.0).contains(&step) {
        return Some(Reading::Skipped("the step is negative or beyond 2^53"));
    }
    let time_us = row.get("_timestamp").and_then(Value::as_f64).and_then(micros);
    let mut draft = Draft::new(Point { source: Source::JsonLines, step: step as u64, time_us, ..Point::default() });
    for (key, value) in &row {
        let known = key == name || key == "_timestamp";
        if let (false, Some(value)) = (known, float(value)) {
            draft.set(key, value, limits);
        }
    }
    Some(draft.step(Mark::Named))
}

/// Seconds since 1970 in microseconds.
pub(super) fn micros(seconds: f64) -> Option<i64> {
    let micros = seconds * 1e6;
    (micros.is_finite() && micros.abs() < 9e15).then_some(micros.round() as i64)
}

/// A number, also one that is written as a string, as [`finite`] leaves those that JSON has no word for.
pub(super) fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => number(text),
        _ => None,
    }
}

/// JSON in which bare `NaN`, `Infinity` and `-Infinity` stand in quotes, and control characters in strings are blanks.
pub(super) fn finite(text: &str) -> Cow<'_, str> {
    let bare = text.contains("NaN") || text.contains("Infinity");
    if !bare && !text.bytes().any(|byte| byte < 0x20) {
        return Cow::Borrowed(text);
    }
    let mut repaired = String::with_capacity(text.len() + 16);
    let (mut quoted, mut escaped) = (false, false);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let word = ["-Infinity", "Infinity", "NaN"].into_iter().find(|word| !quoted && rest.starts_with(word));
        if let Some(word) = word {
            repaired.push('"');
            repaired.push_str(word);
            repaired.push('"');
            rest = &rest[word.len()..];
            continue;
        }
        quoted ^= c == '"' && !escaped;
        escaped = quoted && c == '\\' && !escaped;
        repaired.push(if quoted && c.is_ascii_control() { ' ' } else { c });
        rest = &rest[c.len_utf8()..];
    }
    Cow::Owned(repaired)
}

#[cfg(test)]
mod tests {
    use super::finite;

    #[test]
    fn bare_words_are_quoted_and_strings_stay() {
        assert_eq!(finite(r#"{"a":NaN,"b":-Infinity}"#), r#"{"a":"NaN","b":"-Infinity"}"#);
        assert_eq!(finite(r#"{"NaN":[Infinity],"\"NaN":1}"#), r#"{"NaN":["Infinity"],"\"NaN":1}"#);
        assert_eq!(finite("{\"a\tNaN\": 1}"), "{\"a NaN\": 1}");
    }
}
