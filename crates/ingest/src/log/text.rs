//! Cleans lines from terminals and launchers: colors, rank prefixes, numbers.

use std::borrow::Cow;

use serde_json::Value;

/// Maximum length of a host name or rank before a line.
const MAX_WORD: usize = 40;

/// Removes colors and cursor movements: ESC, `[`, parameters, one letter.
fn without_colours(line: &str) -> Cow<'_, str> {
    if !line.contains('\u{1b}') {
        return Cow::Borrowed(line);
    }
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        rest = match after.strip_prefix('[') {
            Some(codes) => {
                let end = codes.find(|c: char| !c.is_ascii_digit() && !matches!(c, ';' | '?')).unwrap_or(codes.len());
                let last = codes[end..].chars().next().map_or(0, char::len_utf8);
                &codes[end + last..]
            }
            None => after,
        };
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// Removes colors and cursor movements, and replaces the blanks of web pages.
pub(super) fn plain(line: &str) -> Cow<'_, str> {
    let plain = without_colours(line);
    let is_blank = |c: char| matches!(c, '\u{a0}' | '\u{2007}' | '\u{202f}');
    if plain.contains(is_blank) { Cow::Owned(plain.replace(is_blank, " ")) } else { plain }
}

/// Removes launcher prefixes and returns the rank, if present: `[default7]:`, `[rank0]:`, `[0]:`,
/// `0:` (Slurm) and `worker-1:`.
pub(super) fn without_rank(line: &str) -> (Option<u32>, &str) {
    let mut rank = None;
    let mut rest = line;
    // A node launcher may wrap a rank launcher.
    for _ in 0..3 {
        let Some((found, after)) = rank_tag(rest) else { break };
        rank = found.or(rank);
        rest = after;
    }
    (rank, rest)
}

/// Parses one launcher prefix. Returns the rank, if present, and the text after the prefix.
pub(super) fn rank_tag(line: &str) -> Option<(Option<u32>, &str)> {
    let line_start = line.trim_start_matches(' ');
    if let Some(inside) = line_start.strip_prefix('[') {
        let (word, rest) = inside.get(..inside.len().min(24)).unwrap_or(inside).split_once("]:").map(|(word, _)| {
            let at = word.len() + 2;
            (word, &inside[at..])
        })?;
        let digits = word.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        return digits.parse().ok().map(|rank| (Some(rank), rest));
    }
    let end = line_start.bytes().take(MAX_WORD + 1).position(|byte| !byte.is_ascii_alphanumeric() && byte != b'-')?;
    let (word, rest) = line_start.split_at(end);
    let rest = rest.strip_prefix(": ").or_else(|| rest.strip_prefix(':').filter(|rest| rest.is_empty()))?;
    if let Ok(rank) = word.parse() {
        return Some((Some(rank), rest));
    }
    // A host name is a name, a dash and a number. Other words may be keys.
    let (name, number) = word.rsplit_once('-')?;
    (!name.is_empty() && number.parse::<u32>().is_ok()).then_some((None, rest))
}

/// Parses a number, including NaN and infinities.
pub(super) fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    (text.len() <= 64).then(|| text.parse().ok()).flatten()
}

/// Parses a number with optional commas between thousands.
pub(super) fn number_with_commas(text: &str) -> Option<f64> {
    if text.contains(',') { number(&text.replace(',', "")) } else { number(text) }
}

/// Truncates text to `chars` characters and removes control characters.
pub(super) fn clip(text: &str, chars: usize) -> String {
    let clean = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    text.trim().chars().take(chars).map(clean).collect()
}

/// Returns a JSON number, also if written as a string: values without a JSON representation are
/// strings.
pub(super) fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => number(text),
        _ => None,
    }
}

/// Returns the leading digits, after optional white space, and the remaining text.
pub(super) fn leading_digits(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_go_and_text_stays() {
        assert_eq!(without_colours("\u{1b}[38;2;180;60;0mloss\u{1b}[39m: 1\u{1b}[0"), "loss: 1");
        assert_eq!(without_colours("a\u{1b}b"), "ab");
    }

    #[test]
    fn rank_tags_are_removed() {
        for (line, rank, rest) in [
            ("[default7]: iteration", Some(7), " iteration"),
            ("[rank12]:[titan] x", Some(12), "[titan] x"),
            ("  3: time", Some(3), "time"),
            ("worker-1: [rank0]: x", Some(0), " x"),
            ("[2023-11-07 01:55:23,711] [INFO]", None, "[2023-11-07 01:55:23,711] [INFO]"),
            ("steps: 10 loss: 2", None, "steps: 10 loss: 2"),
            ("loss: 2", None, "loss: 2"),
        ] {
            assert_eq!(without_rank(line), (rank, rest), "{line}");
        }
    }

    #[test]
    fn numbers_as_they_are_printed() {
        assert_eq!(number(" 4.998e-05 "), Some(4.998e-5));
        assert!(number("nan").is_some_and(f64::is_nan));
        assert_eq!(number("-inf"), Some(f64::NEG_INFINITY));
        assert_eq!(number("1e400"), Some(f64::INFINITY));
        assert_eq!((number("1,234"), number("0x10"), number_with_commas("4,376")), (None, None, Some(4376.0)));
    }
}
