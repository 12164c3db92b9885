//! Row values, common to all file formats.

use std::borrow::Cow;
use std::fmt;

use super::number::Number;

mod json;
mod keys;

pub(super) use json::{Name, TOO_LONG, ValueSeed};
pub(super) use keys::repeated_key;

/// Maximum number of list elements that are stored; further elements are counted.
pub(super) const MAX_ITEMS: usize = 20_000;

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value<'a> {
    Missing,
    Boolean(bool),
    Number(Number),
    Text(Cow<'a, str>),
    List(List<'a>),
    Object(Members<'a>),
    /// A value that cannot be a length, and its description: "NaN", "a date".
    Other(&'static str),
}

/// A list with its first elements.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct List<'a> {
    pub(super) count: usize,
    /// The first elements. There may be fewer than `count`, or none, if the others are not needed.
    pub(super) items: Vec<Value<'a>>,
    /// Runs of equal numbers at both ends.
    pub(super) ends: Ends,
    /// Token IDs, for a list under such a name; empty or incomplete if they are not needed.
    pub(super) ids: Vec<u32>,
}

/// Runs of equal numbers at both ends of a number list. Padding appears as such a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Ends {
    /// First number, and the length of its run at the start.
    pub(super) first: (i128, usize),
    /// Last number, and the length of its run at the end.
    pub(super) last: (i128, usize),
    is_changed: bool,
}

impl Ends {
    /// Adds the next number of a list.
    pub(super) fn see(&mut self, number: i128) {
        let is_repeated = self.last.1 > 0 && self.last.0 == number;
        self.last = (number, if is_repeated { self.last.1 + 1 } else { 1 });
        self.is_changed |= !is_repeated && self.first.1 > 0;
        if !self.is_changed {
            self.first = self.last;
        }
    }
}

impl Value<'_> {
    /// Creates a number list of which only the element count is known.
    pub(super) const fn count(count: usize) -> Self {
        let ends = Ends { first: (0, 0), last: (0, 0), is_changed: false };
        Self::List(List { count, items: Vec::new(), ends, ids: Vec::new() })
    }

    pub(super) fn into_owned(self) -> Value<'static> {
        match self {
            Self::Missing => Value::Missing,
            Self::Boolean(value) => Value::Boolean(value),
            Self::Number(number) => Value::Number(number),
            Self::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Self::List(List { count, items, ends, ids }) => {
                Value::List(List { count, items: items.into_iter().map(Value::into_owned).collect(), ends, ids })
            }
            Self::Object(members) => Value::Object(owned(members)),
            Self::Other(description) => Value::Other(description),
        }
    }

    /// Returns the approximate memory size of the value, in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Text(text) => text.len(),
                Self::List(list) => list.items.iter().map(Value::bytes).sum::<usize>() + size_of_val(&list.ids[..]),
                Self::Object(members) => members.iter().map(|(name, value)| name.len() + 24 + value.bytes()).sum(),
                Self::Missing | Self::Boolean(_) | Self::Number(_) | Self::Other(_) => 0,
            }
    }

    /// Returns whether the value is or contains a text with several words.
    pub(super) fn has_text(&self) -> bool {
        /// Minimum text length; shorter texts are titles and labels.
        const LONG: usize = 40;
        match self {
            Self::Text(text) => text.len() >= LONG && text.trim().contains(' '),
            Self::List(list) => list.items.iter().take(100).any(Value::has_text),
            Self::Object(members) => members.iter().any(|(_, value)| value.has_text()),
            Self::Missing | Self::Boolean(_) | Self::Number(_) | Self::Other(_) => false,
        }
    }

    /// Formats the value for display; at most 40 characters.
    pub(super) fn display_text(&self) -> String {
        let mut text = String::new();
        self.show(&mut text);
        clip(&text)
    }

    fn show(&self, text: &mut String) {
        // Sufficient for a clipped value.
        if text.len() > 200 {
            return;
        }
        match self {
            Self::Missing => text.push_str("null"),
            Self::Boolean(value) => text.push_str(if *value { "true" } else { "false" }),
            Self::Number(Number::Integer(integer)) => text.push_str(&integer.to_string()),
            Self::Number(Number::Repaired(value)) => text.push_str(&value.to_string()),
            Self::Text(value) => text.extend(value.chars().take(60)),
            Self::List(List { count, items, .. }) if items.is_empty() => {
                text.extend(["[", &count.to_string(), " elements]"]);
            }
            Self::List(list) => {
                text.push('[');
                for (index, item) in list.items.iter().take(8).enumerate() {
                    text.push_str(if index > 0 { ", " } else { "" });
                    item.show(text);
                }
                text.push_str(if list.count > 8 { ", ...]" } else { "]" });
            }
            Self::Object(members) => {
                text.push('{');
                for (index, (name, value)) in members.iter().take(8).enumerate() {
                    text.push_str(if index > 0 { ", " } else { "" });
                    text.push_str(name);
                    text.push_str(": ");
                    value.show(text);
                }
                text.push('}');
            }
            Self::Other(description) => text.push_str(description),
        }
    }
}

/// Truncates a text for a message.
pub(super) fn clip(text: &str) -> String {
    text.trim().chars().take(40).collect()
}

/// Named values.
pub(super) type Members<'a> = Vec<(Cow<'a, str>, Value<'a>)>;

fn owned(members: Members<'_>) -> Members<'static> {
    members.into_iter().map(|(name, value)| (Cow::Owned(name.into_owned()), value.into_owned())).collect()
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Row<'a> {
    /// An unnamed value.
    Single(Value<'a>),
    /// One value per column.
    Cells(Vec<Value<'a>>),
    /// Named values.
    Object(Members<'a>),
}

impl<'a> Row<'a> {
    /// Returns the value of a column, by column index or by name.
    pub(super) fn value(&self, index: usize, name: &str) -> &Value<'a> {
        match self {
            Self::Single(value) => value,
            Self::Cells(cells) => cells.get(index).unwrap_or(&Value::Missing),
            Self::Object(fields) => {
                fields.iter().find(|(key, _)| key == name).map_or(&Value::Missing, |(_, value)| value)
            }
        }
    }

    pub(super) fn into_owned(self) -> Row<'static> {
        match self {
            Self::Single(value) => Row::Single(value.into_owned()),
            Self::Cells(cells) => Row::Cells(cells.into_iter().map(Value::into_owned).collect()),
            Self::Object(fields) => Row::Object(owned(fields)),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Single(value) => value.bytes(),
            Self::Cells(cells) => cells.iter().map(Value::bytes).sum(),
            Self::Object(fields) => fields.iter().map(|(name, value)| name.len() + 24 + value.bytes()).sum(),
        }
    }

    /// Adds nested values as separate values with names such as `usage.total_tokens`. `is_wanted`
    /// decides by path, name and value.
    pub(super) fn flatten(&mut self, is_wanted: &Wanted<'_>) {
        let Self::Object(fields) = self else { return };
        let mut nested = Vec::new();
        for (name, value) in fields.iter() {
            value.collect(name, is_wanted, &mut nested);
        }
        fields.append(&mut nested);
    }
}

/// Decides whether a nested value becomes a column, by path, name and value.
pub(super) type Wanted<'f> = dyn Fn(&str, &str, &Value<'_>) -> bool + 'f;

impl<'a> Value<'a> {
    /// Collects wanted values inside an object under its name, to a depth of three levels.
    pub(super) fn collect(&self, name: &str, is_wanted: &Wanted<'_>, found: &mut Members<'a>) {
        if let Self::Object(members) = self {
            collect(name, members, 1, is_wanted, found);
        }
    }
}

fn collect<'a>(path: &str, members: &Members<'a>, depth: usize, is_wanted: &Wanted<'_>, found: &mut Members<'a>) {
    for (name, value) in members {
        let path = format!("{path}.{name}");
        match value {
            Value::Missing => {}
            Value::Object(members) if depth < 3 => collect(&path, members, depth + 1, is_wanted, found),
            value if is_wanted(&path, name, value) => found.push((Cow::Owned(path), value.clone())),
            _ => {}
        }
    }
}

/// Position of a row in a file, for example "line 3".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Location {
    /// "line", "row", "element".
    pub(super) item: &'static str,
    /// Line or row number, from 1.
    pub(super) number: u64,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.item, self.number)
    }
}
