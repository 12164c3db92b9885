//! Units in names: `Length (s)`, `length_ms`, `tokens [%]`, `size (tokens)`.

use super::super::{Meaning, Unit};

/// Quantity of the values, by the unit of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Quantity {
    /// Tokens, characters or bytes.
    Length(Unit),
    /// A time.
    Duration,
    /// A share in percent.
    Share,
    /// Pixels or frames.
    Media,
    /// A unit that is not converted to tokens: megabytes, metres, words, a rate.
    Other,
}

/// Units by quantity.
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

/// The name without its unit, and the quantity of the unit. The unit is in brackets, after a slash, or the last word.
pub(super) fn split(name: &str) -> Option<(&str, Quantity)> {
    let name = name.trim();
    if let Some(base) = name.strip_suffix('%').or_else(|| name.strip_prefix('%')) {
        return Some((base, Quantity::Share));
    }
    // A slash makes a rate or a ratio.
    if let Some((base, _)) = name.split_once('/') {
        return Some((base, Quantity::Other));
    }
    let brackets = [('(', ')'), ('[', ']')];
    let inside = brackets.iter().find_map(|&(open, close)| name.strip_suffix(close)?.rsplit_once(open));
    let (base, unit) = inside.or_else(|| name.rsplit_once(['_', ' ', '-', '.']))?;
    Some((base, quantity(unit)?))
}

/// The quantity of a unit.
pub(super) fn quantity(unit: &str) -> Option<Quantity> {
    let unit = unit.trim().to_lowercase();
    UNITS.iter().find(|(_, units)| units.contains(&unit.as_str())).map(|(quantity, _)| *quantity)
}

/// Meaning of a name whose part without the unit has a meaning; `None` if the unit decides nothing.
pub(super) fn meaning(base: Meaning, quantity: Quantity) -> Option<Meaning> {
    let is_length = matches!(base, Meaning::Length(_) | Meaning::Prompt | Meaning::Completion);
    match quantity {
        Quantity::Length(Unit::Tokens) => match base {
            Meaning::Length(_) | Meaning::Text => Some(Meaning::Length(Unit::Tokens)),
            Meaning::Prompt | Meaning::PromptText => Some(Meaning::Prompt),
            Meaning::Completion | Meaning::AnswerText => Some(Meaning::Completion),
            _ => None,
        },
        Quantity::Length(unit) => match base {
            Meaning::Length(_) | Meaning::Text => Some(Meaning::Length(unit)),
            // Prompts and completions have no unit of their own.
            Meaning::Prompt | Meaning::Completion => Some(Meaning::Unknown),
            _ => None,
        },
        Quantity::Duration => is_length.then_some(Meaning::Duration),
        Quantity::Share => is_length.then_some(Meaning::Score),
        Quantity::Media => is_length.then_some(Meaning::Media),
        Quantity::Other => is_length.then_some(Meaning::Unknown),
    }
}
