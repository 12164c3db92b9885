//! Plain numbers between white space or commas.

use std::borrow::Cow;

use super::choice::Length;
use super::number::{Notation, Number};
use super::profile::{Column, Profile};
use super::rows::{Rows, Samples};
use super::value::{Place, Row, Value, clip};
use super::{ImportError, Imported, Options, candidate, sniff};

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
    let head = head(text);
    if options.column.is_none() && options.unit.is_none() && head.is_fractional {
        return Err(unclear(text, head));
    }
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
                Some(value) if head.is_whole && value.value().fract() != 0.0 => {
                    Length::Unreadable(format!("{} has decimals, unlike the first values", clip(word)))
                }
                Some(value) if is_tokens => Length::Tokens(value),
                Some(value) => Length::Tokens(Number::Repaired((value.value() / per_token).ceil())),
                None => Length::Unreadable(format!("{:?} is not a number", clip(word))),
            };
            rows.add(Place { what: "line", number }, length, None, Samples::One)?;
        }
    }
    let mut warnings = Vec::new();
    if !is_tokens {
        let unit = unit.id();
        warnings.push(format!("The numbers count {unit}. They are divided by {per_token} characters per token."));
    } else if head.is_fractional {
        warnings.push("Most numbers have decimals. They are rounded.".to_owned());
    }
    if options.column.is_none() {
        warnings.extend(of_order(text, notation));
    }
    rows.finish("plain numbers", "every number of the file".to_owned(), Vec::new(), warnings)
}

/// Numbers that may be sums: the last one of the others, or each one of those before it.
fn of_order(text: &str, notation: Notation) -> Option<String> {
    const FEW: usize = 10_000;
    let all = sniff::data_lines(text).flat_map(words).take(FEW + 1);
    let numbers: Vec<f64> = all.map(|word| notation.read(word).map(Number::value)).collect::<Option<_>>()?;
    let (last, others) = numbers.split_last()?;
    if others.len() < 2 || numbers.len() > FEW {
        return None;
    }
    if others.iter().sum::<f64>().total_cmp(last).is_eq() {
        return Some("The last number is the sum of the others. If it is a total, remove it.".to_owned());
    }
    let rises = numbers.len() > 4 && numbers.array_windows().all(|[before, after]| before < after);
    rises.then(|| {
        "Each number is larger than the one before. If they are running sums or offsets, upload their differences."
            .to_owned()
    })
}

/// The first numbers.
fn first(text: &str) -> Vec<Value<'_>> {
    let words = sniff::data_lines(text).flat_map(words);
    words.take(10_000).map(|word| Value::Text(Cow::Borrowed(word))).collect()
}

/// What the first numbers show.
fn head(text: &str) -> Profile {
    Profile::new(&Column { name: "1".to_owned(), kind: None }, first(text).iter())
}

/// The error of numbers most of which have decimals. They are seconds, shares or scores rather than tokens, and the user decides.
fn unclear(text: &str, head: Profile) -> ImportError {
    let rows: Vec<Row<'_>> = first(text).into_iter().map(Row::Single).collect();
    let rows: Vec<&Row<'_>> = rows.iter().collect();
    ImportError::Unclear { candidates: candidate::candidates(&[head], &rows, &Options::default(), &[]) }
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    let line = line.trim();
    let line = line.strip_prefix("- ").unwrap_or(line);
    line.split(|c: char| c == ',' || c == ';' || c == '[' || c == ']' || c.is_whitespace())
        .filter(|word| !word.is_empty())
}
