//! Plain numbers between white space or commas.

use super::choice::Length;
use super::number::Notation;
use super::rows::{Rows, Samples};
use super::value::Place;
use super::{ImportError, Imported, Options, sniff};

/// Reads plain numbers. Lines of a YAML list start with a dash.
pub(super) fn import(text: &str, options: &Options<'_>) -> Result<Imported, ImportError> {
    if let Some(name) = options.column.filter(|name| *name != "1") {
        return Err(ImportError::NoSuchColumn {
            asked: name.chars().take(80).collect(),
            available: vec!["1".to_owned()],
        });
    }
    let notation = Notation::of(sniff::data_lines(text).flat_map(words).take(10_000))
        .map_err(|ambiguous| ImportError::TwoReadings { column: "1".to_owned(), value: ambiguous.value })?;
    let unit = options.unit.unwrap_or_default();
    let is_tokens = unit == super::Unit::Tokens;
    let per_token = options.characters_per_token;
    let mut rows = Rows::new(options);
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with('#') {
            continue;
        }
        for word in words(line) {
            let length = match notation.read(word) {
                Some(value) if is_tokens => Length::Tokens(value),
                Some(value) => Length::Tokens(super::number::Number::Repaired((value.value() / per_token).ceil())),
                None => Length::Unreadable(format!("{:?} is not a number", super::value::clip(word))),
            };
            rows.add(Place { what: "line", number }, length, None, Samples::One)?;
        }
    }
    let warnings = if is_tokens {
        Vec::new()
    } else {
        vec![format!("The numbers count {}. They are divided by {per_token} characters per token.", unit.id())]
    };
    rows.finish("plain numbers", "every number of the file".to_owned(), Vec::new(), warnings)
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    let line = line.trim();
    let line = line.strip_prefix("- ").unwrap_or(line);
    line.split(|c: char| c == ',' || c == ';' || c == '[' || c == ']' || c.is_whitespace())
        .filter(|word| !word.is_empty())
}
