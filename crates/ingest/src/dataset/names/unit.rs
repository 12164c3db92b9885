//! Parses units in names: `Length (s)`, `length_ms`, `tokens [%]`, `size (tokens)`.

use super::super::{Meaning, Unit};

/// Quantity of the values, by the unit in the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Quantity {
    /// Tokens, characters or bytes.
    Length(Unit),
    Duration,
    /// A share in percent.
    Share,
    /// Pixels or frames.
    Media,
    /// A unit without a conversion to tokens: megabytes, metres, words, a rate.
    Other,
}

const UNITS: [(Quantity, &[&str]); 7] = [
    (Quantity::Length(Unit::Tokens), &["tokens", "token", "tok", "toks"]),
    (Quantity::Length(Unit::Characters), &["chars", "char", "characters", "character"]),
    (Quantity::Length(Unit::Bytes), &["bytes", "byte"]),
    (
        Quantity::Duration,
        &[
            "s",
            "sec",
            "secs",
            "second",
            "seconds",
            "ms",
            "msec",
            "msecs",
            "millis",
            "milliseconds",
            "us",
            "µs",
            "ns",
            "h",
            "hr",
            "hrs",
            "hour",
            "hours",
            "mins",
            "minute",
            "minutes",
        ],
    ),
    (Quantity::Share, &["%", "pct", "perc", "percent", "percentage"]),
    (Quantity::Media, &["px", "pixel", "pixels", "frame", "frames"]),
    (
        Quantity::Other,
        &[
            "b",
            "kb",
            "mb",
            "gb",
            "tb",
            "kib",
            "mib",
            "gib",
            "k",
            "m",
            "mm",
            "cm",
            "km",
            "in",
            "inch",
            "ft",
            "min",
            "word",
            "words",
            "line",
            "lines",
            "page",
            "pages",
            "turn",
            "turns",
            "sentences",
            "messages",
            "thousands",
            "millions",
        ],
    ),
];

/// Splits a name into the base name and the quantity of its unit. The unit is in brackets, after a
/// slash, or the last word.
pub(super) fn split(name: &str) -> Option<(&str, Quantity)> {
    let name = name.trim();
    if let Some(base) = name.strip_suffix('%').or_else(|| name.strip_prefix('%')) {
        return Some((base, Quantity::Share));
    }
    // A slash denotes a rate or a ratio.
    if let Some((base, _)) = name.split_once('/') {
        return Some((base, Quantity::Other));
    }
    let brackets = [('(', ')'), ('[', ']')];
    let inside = brackets.iter().find_map(|&(open, close)| name.strip_suffix(close)?.rsplit_once(open));
    let (base, unit) = inside.or_else(|| name.rsplit_once(['_', ' ', '-', '.']))?;
    Some((base, quantity(unit)?))
}

pub(super) fn quantity(unit: &str) -> Option<Quantity> {
    let unit = unit.trim().to_lowercase();
    UNITS.iter().find(|(_, units)| units.contains(&unit.as_str())).map(|(quantity, _)| *quantity)
}

/// Combines the meaning of the base name with the unit's quantity; returns `None` if the unit has
/// no effect.
pub(super) fn meaning(base: Meaning, quantity: Quantity) -> Option<Meaning> {
    let is_length = matches!(base, Meaning::Length(_) | Meaning::Prompt | Meaning::Completion);
    match quantity {
        Quantity::Length(Unit::Tokens) => match base {
            Meaning::Length(_) | Meaning::Text => Some(Meaning::Length(Unit::Tokens)),
            Meaning::Prompt | Meaning::PromptText => Some(Meaning::Prompt),
            Meaning::Completion | Meaning::CompletionText => Some(Meaning::Completion),
            _ => None,
        },
        Quantity::Length(unit) => match base {
            Meaning::Length(_) | Meaning::Text => Some(Meaning::Length(unit)),
            // Prompt and completion have no unit variants.
            Meaning::Prompt | Meaning::Completion => Some(Meaning::Unknown),
            _ => None,
        },
        Quantity::Duration => is_length.then_some(Meaning::Duration),
        Quantity::Share => is_length.then_some(Meaning::Score),
        Quantity::Media => is_length.then_some(Meaning::Media),
        Quantity::Other => is_length.then_some(Meaning::Unknown),
    }
}
