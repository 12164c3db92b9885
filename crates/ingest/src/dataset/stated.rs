//! Interprets texts that describe the numbers of a file: values of JSON keys, and comments above
//! plain numbers.

use super::names::{self, Quantity};
use super::{Meaning, Unit};

/// Statement of a text about numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stated {
    /// Lengths in tokens.
    Lengths,
    /// Lengths in another unit.
    Unit(Unit),
    /// A quantity that is not a text length.
    Other,
    /// The text names no known quantity.
    Unknown,
}

/// Key words whose value names the quantity or unit of the numbers.
const DESCRIPTORS: [&str; 18] = [
    "labels",
    "unit",
    "units",
    "name",
    "title",
    "column",
    "feature",
    "field",
    "metric",
    "variable",
    "quantity",
    "key",
    "label",
    "xlabel",
    "xaxis",
    "axis",
    "description",
    "measure",
];
/// Keys whose values describe the file and not the numbers.
const FILE_KEYS: [&str; 19] = [
    "type",
    "schema",
    "version",
    "created",
    "createdat",
    "date",
    "timestamp",
    "author",
    "generator",
    "tokenizer",
    "tokenizername",
    "model",
    "dataset",
    "datasetname",
    "split",
    "path",
    "file",
    "filename",
    "license",
];

/// Interprets a text.
pub(super) fn parse(text: &str) -> Stated {
    if text.trim().is_empty() || names::is_tokens(text) {
        return Stated::Lengths;
    }
    let by_unit = |quantity: Quantity| match quantity {
        Quantity::Length(Unit::Tokens) => Some(Stated::Lengths),
        Quantity::Length(unit) => Some(Stated::Unit(unit)),
        Quantity::Duration | Quantity::Media => Some(Stated::Other),
        Quantity::Share | Quantity::Other => None,
    };
    let by_name = |name: &str| match names::meaning(name).0 {
        Meaning::Length(Unit::Tokens) | Meaning::Prompt | Meaning::Completion => Some(Stated::Lengths),
        Meaning::Length(unit) => Some(Stated::Unit(unit)),
        Meaning::Duration | Meaning::Media | Meaning::Images | Meaning::Score => Some(Stated::Other),
        _ => None,
    };
    if let Some(stated) = names::unit_quantity(text).and_then(by_unit).or_else(|| by_name(text)) {
        return stated;
    }
    let lower = text.to_lowercase();
    let terms: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let has = |known: &[&str]| terms.iter().any(|word| known.contains(word));
    let has_tokens = terms.iter().any(|word| names::is_tokens(word));
    // Short words such as "in" and "us" are not units in a sentence.
    let is_long = |word: &&&str| word.len() > 2 || ["ms", "px"].contains(*word);
    let units = terms.iter().filter(is_long).filter_map(|word| names::unit_quantity(word).and_then(by_unit));
    let is_other = |stated: &Stated| *stated != Stated::Lengths;
    let has_length = has(&["length", "lengths", "len", "lens", "seqlen", "seqlens"]);
    let unit = units.clone().find(is_other).or_else(|| has(&["word", "words"]).then_some(Stated::Other));
    let name = terms.iter().filter(is_long).filter_map(|word| by_name(word)).find(is_other);
    match (unit.or(name), has_tokens, has_length) {
        (Some(stated), false, _) => stated,
        // "4 characters per token" has two units.
        (Some(_), true, _) | (None, false, false) => Stated::Unknown,
        (None, ..) => Stated::Lengths,
    }
}

/// Returns whether a text under a key says that the numbers of the file count characters: `"unit":
/// "characters"`, `"column": "n_chars"`.
pub(super) fn names_characters(key: &str, text: &str) -> bool {
    let lower = key.to_lowercase();
    let mut terms = lower.split(|c: char| !c.is_alphanumeric());
    terms.any(|word| DESCRIPTORS.contains(&word)) && parse(text) == Stated::Unit(Unit::Characters)
}

/// Returns whether a column name says that the column describes the numbers of its rows.
pub(super) fn names_quantity(name: &str) -> bool {
    const NAMES: [&str; 6] = ["metric", "metric_name", "quantity", "variable", "measure", "feature"];
    NAMES.iter().any(|known| names::is_same(known, name))
}

/// Checks texts by key. Returns an error for a unit or quantity other than tokens, and a warning
/// sentence about texts that are not understood.
pub(super) fn check<'t>(texts: impl Iterator<Item = (&'t str, &'t str)>) -> Result<Option<String>, String> {
    const MAX_UNREAD: usize = 5;
    let mut unread = Vec::new();
    for (key, text) in texts {
        let lower = key.to_lowercase();
        let mut terms = lower.split(|c: char| !c.is_alphanumeric());
        let is_descriptor = terms.clone().any(|word| DESCRIPTORS.contains(&word));
        let is_unit = terms.any(|word| ["unit", "units"].contains(&word));
        let excerpt: String = text.trim().chars().take(80).collect();
        match parse(text) {
            Stated::Lengths if !is_unit || names::is_tokens(text) || text.trim().is_empty() => {}
            _ if is_unit => {
                return Err(format!("{key} must be \"tokens\", not {excerpt:?}; convert the lengths first"));
            }
            Stated::Other | Stated::Unit(_) if is_descriptor => {
                return Err(format!("{key} is {excerpt:?}, which is another quantity than lengths in tokens"));
            }
            _ if FILE_KEYS.iter().any(|known| names::is_same(known, key)) => {}
            // The text is only a unit, under any key.
            Stated::Other | Stated::Unit(_) if excerpt.len() > 1 && names::unit_quantity(&excerpt).is_some() => {
                return Err(format!("{key} is {excerpt:?}, which is not tokens; convert the lengths first"));
            }
            _ => unread.push(format!("{key} {excerpt:?}")),
        }
    }
    unread.truncate(MAX_UNREAD);
    Ok((!unread.is_empty())
        .then(|| format!("The numbers are read as lengths in tokens. The file also states: {}.", unread.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_quantities() {
        for (text, expected) in [
            ("num_tokens", Stated::Lengths),
            ("tokens", Stated::Lengths),
            ("lengths", Stated::Lengths),
            ("Sequence length distribution", Stated::Lengths),
            ("latency_ms", Stated::Other),
            ("image_width", Stated::Other),
            ("px", Stated::Other),
            ("s", Stated::Other),
            ("train/reward", Stated::Other),
            ("duration of every clip in seconds", Stated::Other),
            ("length in words", Stated::Other),
            ("characters", Stated::Unit(Unit::Characters)),
            ("lengths in characters", Stated::Unit(Unit::Characters)),
            ("num_chars", Stated::Unit(Unit::Characters)),
            ("4 characters per token", Stated::Unknown),
            ("web pages", Stated::Unknown),
            ("run 17", Stated::Unknown),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    #[test]
    fn texts_next_to_arrays_are_checked() {
        for (key, text) in [
            ("unit", "characters"),
            ("edge_units", "s"),
            ("x_unit", "px"),
            ("column", "image_width"),
            ("column_name", "latency_ms"),
            ("xlabel", "duration (s)"),
            ("description", "seconds of sound"),
        ] {
            assert!(check([(key, text)].into_iter()).is_err(), "{key}: {text}");
        }
        for (key, text) in [("unit", "tokens"), ("name", "num_tokens"), ("_type", "histogram"), ("model", "llama")] {
            assert_eq!(check([(key, text)].into_iter()), Ok(None), "{key}: {text}");
        }
        let unread = check([("name", "web pages"), ("note", "latency_ms")].into_iter());
        assert!(unread.is_ok_and(|sentence| sentence.is_some_and(|sentence| {
            sentence.contains("name \"web pages\"") && sentence.contains("note \"latency_ms\"")
        })));
    }
}
