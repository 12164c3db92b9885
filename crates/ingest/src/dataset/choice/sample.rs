//! Computes length and images of a row.

use super::super::Kind;
use super::super::Unit;
use super::super::media::listed;
use super::super::names;
use super::super::number::Number;
use super::super::profile;
use super::super::text::{self, Extent, Meter};
use super::super::token_ids;
use super::super::value::{Row, Value};
use super::{Measure, Selection, TextPart};

/// Skip reason for a row without text.
pub(in super::super) const NO_TEXT: &str = "there is no text";

/// Length and images of a row.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Sample {
    pub(in super::super) length: Length,
    /// Images; `None` if the row names no images.
    pub(in super::super) images: Option<Images>,
}

/// Image count of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in super::super) enum Images {
    /// A number from a number column.
    Counted(Number),
    /// Number of list entries, paths or placeholders in texts.
    Listed(u32),
    /// The number column has no number in this row.
    Unreadable,
}

#[derive(Debug, Clone, PartialEq)]
pub(in super::super) enum Length {
    Tokens(Number),
    /// The row has no value.
    Missing,
    /// Reason why the row has no length.
    Unreadable(String),
}

impl Selection {
    pub(in super::super) fn sample(&self, row: &Row<'_>, meter: &Meter<'_>) -> Sample {
        let mut extent = Extent::default();
        let length = self.length(row, meter, &mut extent);
        let images = match &self.images {
            Some((index, name, kind, notation)) => match (row.value(*index, name), kind) {
                (value, Kind::Number) => {
                    Some(profile::number(value, *notation).map_or(Images::Unreadable, Images::Counted))
                }
                (value, _) if text::is_void(value) || profile::is_missing(value) => Some(Images::Listed(0)),
                (Value::Number(number), _) => Some(Images::Counted(*number)),
                (value, _) => Some(Images::Listed(listed::images(value, names::holds_any_media(name)))),
            },
            None if extent.images > 0 && self.has_placeholders => Some(Images::Listed(extent.images)),
            None => None,
        };
        Sample { length, images }
    }

    fn length(&self, row: &Row<'_>, meter: &Meter<'_>, extent: &mut Extent) -> Length {
        let (mut total, mut exact, mut found) = (0.0, None, 0);
        for part in &self.parts {
            let value = row.value(part.index, &part.name);
            match part.measure {
                Measure::Text => {
                    found += usize::from(!matches!(value, Value::Missing));
                    match part.rule.text {
                        TextPart::Full => meter.add(value, extent),
                        TextPart::First => meter.add_first(value, extent),
                        TextPart::Json => meter.add_document(value, extent),
                        TextPart::Inside => meter.add_inside(value, extent),
                    }
                }
                Measure::Elements => match value {
                    Value::List(list) => {
                        found += 1;
                        exact = Some(Number::Integer(list.count as i128));
                        total += list.count as f64;
                    }
                    Value::Missing => {}
                    Value::Text(text) if text.trim().is_empty() => {}
                    Value::Text(text) => match profile::elements(text).or_else(|| profile::bare_elements(text)) {
                        Some(count) => {
                            found += 1;
                            exact = Some(Number::Integer(count as i128));
                            total += count as f64;
                        }
                        None => return Length::Unreadable(format!("{:?} is not a list", value.display_text())),
                    },
                    other => return Length::Unreadable(format!("{:?} is not a list", other.display_text())),
                },
                Measure::Number(notation, unit) => match value {
                    Value::Missing => {}
                    Value::Text(text) if text.trim().is_empty() => {}
                    // The first rows had no value, and the lists contain token IDs.
                    Value::List(list) if token_ids::are_listed(&part.name) => {
                        found += 1;
                        exact = Some(Number::Integer(list.count as i128));
                        total += list.count as f64;
                    }
                    value => {
                        let number = match part.rule.number(value, notation) {
                            Ok(number) => number,
                            Err(why) => return Length::Unreadable(why),
                        };
                        found += 1;
                        let per_token = if unit == Unit::Tokens { 1.0 } else { meter.characters_per_token };
                        total += number.value() / per_token;
                        exact = match (unit, number) {
                            (Unit::Tokens, number) => Some(number),
                            (_, number) => Some(Number::Repaired((number.value() / per_token).ceil())),
                        };
                    }
                },
            }
        }
        if found == 0 {
            return Length::Missing;
        }
        if self.parts.iter().any(|part| part.measure == Measure::Text) {
            if extent.is_unreadable {
                return Length::Unreadable("the tokenizer cannot encode the text".to_owned());
            }
            let tokens = meter.tokens(extent);
            return if tokens > 0.0 {
                Length::Tokens(Number::Integer(tokens as i128))
            } else {
                Length::Unreadable(NO_TEXT.to_owned())
            };
        }
        match exact {
            Some(number) if self.parts.len() == 1 => Length::Tokens(number),
            _ if found < self.parts.len() => Length::Tokens(Number::Repaired(total)),
            _ if total.fract() == 0.0 => Length::Tokens(Number::Integer(total as i128)),
            _ => Length::Tokens(Number::Repaired(total)),
        }
    }
}
