//! Constraints that the first rows of a column impose on later values.

use super::super::number::{self, Notation, Number, Suffix};
use super::super::profile::Profile;
use super::super::value::Value;
use super::super::{Kind, Meaning, names};

/// Constraints from the first rows of a column.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Rule {
    /// Unit suffix of all numbers.
    suffix: Option<Suffix>,
    /// True if no number has decimals.
    is_integer: bool,
    pub(super) text: TextPart,
}

/// The part of a value that counts as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum TextPart {
    /// The complete value.
    #[default]
    Full,
    /// The first text; the others are variants.
    First,
    /// Names and values of objects, as chat templates print them.
    Json,
    /// All texts inside an object or a list.
    Inside,
}

impl Rule {
    /// Derives the rule from a column's profile.
    pub(super) fn from_profile(profile: &Profile) -> Self {
        Self { suffix: profile.suffix, is_integer: profile.is_integer, text: text_part(profile) }
    }

    /// Returns the number, or the reason why the value does not fit the column.
    pub(super) fn number(self, value: &Value<'_>, notation: Notation) -> Result<Number, String> {
        let number = match value {
            Value::Number(number) if self.suffix.is_none() => *number,
            Value::Number(_) => return Err(format!("{} has no unit, unlike the first values", value.display_text())),
            Value::Text(text) => {
                self.read(text, notation).map_err(|why| format!("{:?} {why}", value.display_text()))?
            }
            Value::List(_) | Value::Object(_) => return Err("a list is not a number".to_owned()),
            other => return Err(format!("{} is not a number", other.display_text())),
        };
        if self.is_integer && number.value().fract() != 0.0 {
            return Err(format!("{} has decimals, unlike the first values", value.display_text()));
        }
        Ok(number)
    }

    fn read(self, text: &str, notation: Notation) -> Result<Number, &'static str> {
        match (notation.read(text), self.suffix, number::quantity(text)) {
            (Some(number), None, _) => Ok(number),
            (None, Some(expected), Some((value, suffix))) if suffix == expected => Ok(Number::Repaired(value)),
            (Some(_), Some(_), _) => Err("has no unit, unlike the first values"),
            (None, None, Some(_)) => Err("has a unit, unlike the first values"),
            (None, Some(_), Some(_)) => Err("has another unit than the first values"),
            (None, _, None) => Err("is not a number"),
        }
    }
}

/// Returns which part of the column values counts as text.
pub(super) fn text_part(profile: &Profile) -> TextPart {
    let is = |known: &[&str]| known.iter().any(|name| names::is_same(&profile.name, name));
    match profile.kind {
        Kind::TextList | Kind::ObjectList | Kind::Object if is(&["answers"]) => TextPart::First,
        // Several completions for one prompt.
        Kind::TextList if profile.meaning == Meaning::CompletionText => TextPart::First,
        Kind::ObjectList | Kind::Object if is(&["tools", "functions"]) => TextPart::Json,
        Kind::ObjectList | Kind::NestedList | Kind::Object if profile.has_text => TextPart::Inside,
        _ => TextPart::Full,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_the_initial_unit() {
        let rule = |suffix: Option<Suffix>, is_integer: bool| Rule { suffix, is_integer, text: TextPart::Full };
        let bytes = rule(Some(Suffix::Bytes), false);
        for (rule, text, expected) in [
            (bytes, "12 KB", Ok(12_000.0)),
            (bytes, "512", Err("\"512\" has no unit, unlike the first values")),
            (bytes, "3 s", Err("\"3 s\" has another unit than the first values")),
            (rule(None, true), "1.5k", Ok(1500.0)),
            (rule(None, true), "12 KB", Err("\"12 KB\" has a unit, unlike the first values")),
            (rule(None, true), "1.261", Err("1.261 has decimals, unlike the first values")),
            (rule(None, false), "1.5", Ok(1.5)),
            (rule(None, false), "abc", Err("\"abc\" is not a number")),
        ] {
            let read = rule.number(&Value::Text(text.into()), Notation::Point).map(Number::value);
            assert_eq!(read, expected.map_err(str::to_owned), "{text}");
        }
        let number = Value::Number(Number::Integer(5));
        assert!(bytes.number(&number, Notation::Point).is_err());
    }
}
