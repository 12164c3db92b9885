//! Reads plain numbers separated by white space or commas.

use std::borrow::Cow;

use super::choice::Length;
use super::number::{self, Notation, Number, is_blank, is_grouped};
use super::profile::{Column, Profile};
use super::rows::{Rows, Samples};
use super::stated::{self, Stated};
use super::value::{Location, Row, Value, clip};
use super::{ImportError, Imported, Options, candidate, sniff};

/// Report sentence for files with plain numbers.
pub(super) const PLAIN: &str = "Plain numbers are read as lengths in tokens.";

/// Note for numbers that may be token IDs.
pub(super) const IDENTIFIERS: &str =
    "the numbers may be identifiers of tokens; if they are lengths, choose this column";

/// Note for numbers whose blanks may separate thousands.
const SPACED: &str = "blanks may separate thousands (1 024) or numbers; write numbers without blanks inside, or choose this column if \
                      they separate numbers";

/// Reads plain numbers. Lines of a YAML list start with a dash.
pub(super) fn import(text: &str, options: &Options<'_>) -> Result<Imported, ImportError> {
    options.check_columns(&["1"])?;
    let separators = separators(text)?;
    let terms = |line| split_terms(line, separators);
    let notation = Notation::detect(sniff::data_lines(text).flat_map(terms).take(10_000))
        .map_err(|ambiguous| ImportError::TwoReadings { column: "1".to_owned(), value: ambiguous.value })?;
    let head = head(text);
    let is_open = options.column.is_none() && options.unit.is_none();
    if is_open && head.is_fractional {
        return Err(unclear(text, head, None));
    }
    if is_open && is_ragged(text) {
        return Err(unclear(text, head, Some(IDENTIFIERS.to_owned())));
    }
    if is_open && has_spaced(text) {
        return Err(unclear(text, head, Some(SPACED.to_owned())));
    }
    let comments = if is_open { comments(text) } else { Vec::new() };
    if let Some((comment, _)) = comments.iter().find(|(_, stated)| *stated == Stated::Other) {
        return Err(unclear(text, head, Some(format!("the comment {comment:?} names another quantity than tokens"))));
    }
    let comment_unit = comments.iter().find_map(|(_, stated)| match stated {
        Stated::Unit(unit) => Some(*unit),
        _ => None,
    });
    let unit = options.unit.or(comment_unit).unwrap_or_default();
    let is_tokens = unit == super::Unit::Tokens;
    let per_token = options.characters_per_token;
    let mut rows = Rows::new(options);
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with('#') {
            continue;
        }
        for word in terms(line) {
            let length = match notation.read(word) {
                Some(value) if head.is_integer && value.value().fract() != 0.0 => {
                    Length::Unreadable(format!("{} has decimals, unlike the first values", clip(word)))
                }
                Some(value) if is_tokens => Length::Tokens(value),
                Some(value) => Length::Tokens(Number::Repaired((value.value() / per_token).ceil())),
                None => Length::Unreadable(format!("{:?} is not a number", clip(word))),
            };
            rows.add(Location { item: "line", number }, length, None, Samples::Single)?;
        }
    }
    let mut warnings = Vec::new();
    if !is_tokens {
        let unit = unit.id();
        warnings.push(format!("The numbers count {unit}. They are divided by {per_token} characters per token."));
    } else if head.is_fractional {
        warnings.push("Most numbers have decimals. They are rounded.".to_owned());
    } else if is_open {
        warnings.push(PLAIN.to_owned());
    }
    if separators == Separators::Blanks {
        warnings.push("Commas inside numbers are read as thousands separators.".to_owned());
    }
    let unknown = comments.iter().filter(|(_, stated)| *stated == Stated::Unknown);
    let unknown: Vec<String> = unknown.map(|(comment, _)| format!("{comment:?}")).take(3).collect();
    if !unknown.is_empty() {
        warnings.push(format!("Comments of the file are not read: {}.", unknown.join(", ")));
    }
    if options.column.is_none() {
        warnings.extend(order_warning(text, notation, separators));
    }
    rows.finish("plain numbers", "every number of the file".to_owned(), Vec::new(), warnings)
}

/// Checks the start of a large file. Returns an error if the numbers may not be lengths in tokens.
pub(super) fn check_start(text: &str, options: &Options<'_>) -> Result<(), ImportError> {
    if options.column.is_some() || options.unit.is_some() {
        return Ok(());
    }
    let is_other = |stated: Stated| matches!(stated, Stated::Other | Stated::Unit(_));
    let note = comments(text).into_iter().find(|(_, stated)| is_other(*stated)).map_or_else(
        || {
            let note = is_ragged(text).then_some(IDENTIFIERS).or_else(|| has_spaced(text).then_some(SPACED));
            note.map(str::to_owned)
        },
        |(comment, _)| Some(format!("the comment {comment:?} names another quantity or unit than tokens")),
    );
    note.map_or(Ok(()), |note| Err(unclear(text, head(text), Some(note))))
}

/// Returns the comments with their statements about the numbers.
fn comments(text: &str) -> Vec<(String, Stated)> {
    const MAX_COMMENTS: usize = 20;
    let comments = text.lines().filter_map(|line| line.trim_start().strip_prefix('#'));
    let comments = comments.map(|comment| comment.trim_matches(|c: char| c == '#' || c.is_whitespace()));
    let comments = comments.filter(|comment| comment.contains(char::is_alphabetic));
    comments.take(MAX_COMMENTS).map(|comment| (comment.chars().take(80).collect(), stated::parse(comment))).collect()
}

/// Returns whether lines have different value counts and do not form a wrapped list. Then a line
/// may contain the token IDs of a text.
fn is_ragged(text: &str) -> bool {
    let lines: Vec<&str> = sniff::data_lines(text).take(10_000).map(str::trim).collect();
    let term_count = |line: &&str| line.split([',', ' ', '\t', ';']).filter(|word| !word.is_empty()).count();
    let Some((_, complete_lines)) = lines.split_last().filter(|(_, complete_lines)| complete_lines.len() > 1) else {
        return false;
    };
    let (min, max) = (
        complete_lines.iter().map(term_count).min().unwrap_or(0),
        complete_lines.iter().map(term_count).max().unwrap_or(0),
    );
    let widest = lines.iter().map(|line| line.len()).max().unwrap_or(0);
    // In a wrapped list, the first number of a line does not fit into the previous line.
    let is_full = |[line, next]: &[&str; 2]| {
        let first = next.split(|c: char| c == ',' || c.is_whitespace()).next().unwrap_or_default();
        line.len() + 1 + first.len() > widest
    };
    max > min && max > 2 && !lines.array_windows().all(is_full)
}

/// Returns whether each line is one number, and blanks separate the thousands of some, as in `1 024`.
fn has_spaced(text: &str) -> bool {
    let lines = || sniff::data_lines(text).take(10_000).map(str::trim);
    let is_plain = |line: &str| line.bytes().all(|byte| byte.is_ascii_digit());
    lines().any(|line| line.contains(" 0")) && lines().all(|line| is_plain(line) || number::is_spaced(line))
}

/// Separators between the numbers of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Separators {
    /// Commas, semicolons, brackets and blanks.
    All,
    /// Blanks only: commas inside numbers separate thousands.
    Blanks,
}

/// Detects the separators. In `512, 1,024, 2,048` commas separate both numbers and thousands.
/// Returns an error if the use is ambiguous.
fn separators(text: &str) -> Result<Separators, ImportError> {
    let two_readings = |value: &str| ImportError::TwoReadings { column: "1".to_owned(), value: clip(value) };
    let lines = || sniff::data_lines(text).take(10_000).filter(|line| line.contains(','));
    let is_padded =
        |word: &str| word.len() == 3 && word.starts_with('0') && word.bytes().all(|byte| byte.is_ascii_digit());
    let has_padded = lines().any(|line| line.split(',').skip(1).any(|word| is_padded(word.trim_end())));
    let blank = |line| str::split_whitespace(line).map(|word| word.trim_end_matches(','));
    let is_group = |word: &str| {
        word.contains(',') && is_grouped(word, ',') && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b',')
    };
    let grouped = lines().filter(|line| line.contains(", ")).flat_map(blank).find(|word| is_group(word));
    let are_separate =
        lines().all(|line| blank(line).all(|word| word.bytes().all(|byte| byte.is_ascii_digit()) || is_group(word)));
    match (grouped, has_padded) {
        (Some(_), true) if are_separate => Ok(Separators::Blanks),
        (Some(word), _) => Err(two_readings(word)),
        (None, true) => Err(two_readings(lines().flat_map(blank).find(|word| word.contains(",0")).unwrap_or_default())),
        (None, false) => Ok(Separators::All),
    }
}

/// Returns a warning if numbers may be sums: the last number is the sum of the others, or each
/// number is a cumulative sum.
fn order_warning(text: &str, notation: Notation, separators: Separators) -> Option<String> {
    const FEW: usize = 10_000;
    let all = sniff::data_lines(text).flat_map(|line| split_terms(line, separators)).take(FEW + 1);
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

/// Returns the first numbers.
fn first(text: &str) -> Vec<Value<'_>> {
    let terms = sniff::data_lines(text).flat_map(|line| split_terms(line, Separators::All));
    terms.take(10_000).map(|word| Value::Text(Cow::Borrowed(word))).collect()
}

/// Builds the profile of the first numbers.
fn head(text: &str) -> Profile {
    Profile::new(&Column { name: "1".to_owned(), kind: None }, first(text).iter())
}

/// Returns the error for numbers that may not be lengths in tokens; the user decides.
fn unclear(text: &str, head: Profile, note: Option<String>) -> ImportError {
    let rows: Vec<Row<'_>> = first(text).into_iter().map(Row::Single).collect();
    let rows: Vec<&Row<'_>> = rows.iter().collect();
    let mut candidates = candidate::candidates(&[head], &rows, &Options::default(), &[]);
    if let (Some(candidate), Some(_)) = (candidates.first_mut(), &note) {
        candidate.note = note;
    }
    ImportError::Unclear { candidates }
}

fn split_terms(line: &str, separators: Separators) -> impl Iterator<Item = &str> {
    let line = line.trim();
    let line = line.strip_prefix("- ").unwrap_or(line);
    let is_separator = move |c: char| match separators {
        Separators::All => matches!(c, ',' | ';' | '[' | ']') || is_blank(c),
        Separators::Blanks => is_blank(c),
    };
    line.split(is_separator).map(|word| word.trim_end_matches(',')).filter(|word| !word.is_empty())
}
