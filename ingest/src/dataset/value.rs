//! Values of rows, as every file format gives them.

use std::borrow::Cow;
use std::fmt;

use super::number::Number;

mod json;

pub(super) use json::{Name, TOO_LONG, ValueSeed};

/// Most elements of a list that are stored; the others are counted.
pub(super) const MAX_ITEMS: usize = 20_000;

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value<'a> {
    /// No value.
    Missing,
    Boolean(bool),
    Number(Number),
    Text(Cow<'a, str>),
    List(List<'a>),
    Object(Members<'a>),
    /// A value that cannot be a length, and the words for it: "NaN", "a date".
    Other(&'static str),
}

/// A list, with its first elements.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct List<'a> {
    /// Elements of the list.
    pub(super) count: usize,
    /// The first elements; fewer than `count` where the others are not needed, or none.
    pub(super) items: Vec<Value<'a>>,
    /// Equal numbers at both ends.
    pub(super) ends: Ends,
}

/// Equal numbers at the two ends of a list of numbers. Padding repeats one number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Ends {
    /// The first number and how often the list starts with it.
    pub(super) first: (i128, usize),
    /// The last number and how often the list ends with it.
    pub(super) last: (i128, usize),
    is_changed: bool,
}

impl Ends {
    /// Takes the next number of a list.
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
    /// A list of numbers of which only the length counts.
    pub(super) const fn count(count: usize) -> Self {
        Self::List(List { count, items: Vec::new(), ends: Ends { first: (0, 0), last: (0, 0), is_changed: false } })
    }

    /// The value without borrowed parts.
    pub(super) fn into_owned(self) -> Value<'static> {
        match self {
            Self::Missing => Value::Missing,
            Self::Boolean(value) => Value::Boolean(value),
            Self::Number(number) => Value::Number(number),
            Self::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Self::List(List { count, items, ends }) => {
                Value::List(List { count, items: items.into_iter().map(Value::into_owned).collect(), ends })
            }
            Self::Object(members) => Value::Object(owned(members)),
            Self::Other(what) => Value::Other(what),
        }
    }

    /// Bytes that the value takes in memory, about.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Text(text) => text.len(),
                Self::List(list) => list.items.iter().map(Value::bytes).sum(),
                Self::Object(members) => members.iter().map(|(name, value)| name.len() + 24 + value.bytes()).sum(),
                Self::Missing | Self::Boolean(_) | Self::Number(_) | Self::Other(_) => 0,
            }
    }

    /// Whether the value is or contains a text of several words.
    pub(super) fn has_text(&self) -> bool {
        /// Shorter texts are titles and labels.
        const LONG: usize = 40;
        match self {
            Self::Text(text) => text.len() >= LONG && text.trim().contains(' '),
            Self::List(list) => list.items.iter().take(100).any(Value::has_text),
            Self::Object(members) => members.iter().any(|(_, value)| value.has_text()),
            Self::Missing | Self::Boolean(_) | Self::Number(_) | Self::Other(_) => false,
        }
    }

    /// The value as a file shows it, for a page; at most 40 characters.
    pub(super) fn shown(&self) -> String {
        let mut text = String::new();
        self.show(&mut text);
        clip(&text)
    }

    fn show(&self, text: &mut String) {
        // Enough for a clipped value.
        if text.len() > 200 {
            return;
        }
        match self {
            Self::Missing => text.push_str("null"),
            Self::Boolean(value) => text.push_str(if *value { "true" } else { "false" }),
            Self::Number(Number::Whole(whole)) => text.push_str(&whole.to_string()),
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
            Self::Other(what) => text.push_str(what),
        }
    }
}

/// A text short enough for a message.
pub(super) fn clip(text: &str) -> String {
    text.trim().chars().take(40).collect()
}

/// Values by name.
pub(super) type Members<'a> = Vec<(Cow<'a, str>, Value<'a>)>;

fn owned(members: Members<'_>) -> Members<'static> {
    members.into_iter().map(|(name, value)| (Cow::Owned(name.into_owned()), value.into_owned())).collect()
}

/// A row of a file.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Row<'a> {
    /// A value without a name.
    Single(Value<'a>),
    /// A value for every column.
    Cells(Vec<Value<'a>>),
    /// Values by name.
    Object(Members<'a>),
}

impl<'a> Row<'a> {
    /// The value of a column, by its place among the columns or by its name.
    pub(super) fn value(&self, index: usize, name: &str) -> &Value<'a> {
        match self {
            Self::Single(value) => value,
            Self::Cells(cells) => cells.get(index).unwrap_or(&Value::Missing),
            Self::Object(fields) => {
                fields.iter().find(|(own, _)| own == name).map_or(&Value::Missing, |(_, value)| value)
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

    /// Adds nested values as values of their own, named `usage.total_tokens`. `is_wanted` decides by path, name and value.
    pub(super) fn flatten(&mut self, is_wanted: &Wanted<'_>) {
        let Self::Object(fields) = self else { return };
        let mut nested = Vec::new();
        for (name, value) in fields.iter() {
            value.collect(name, is_wanted, &mut nested);
        }
        fields.append(&mut nested);
    }
}

/// Whether a nested value becomes a column, by its path, its name and the value.
pub(super) type Wanted<'f> = dyn Fn(&str, &str, &Value<'_>) -> bool + 'f;

impl<'a> Value<'a> {
    /// Wanted values inside an object under its name, at most three levels deep.
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

/// Place of a row in a file, for example "line 3".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// "line", "row", "element".
    pub(super) what: &'static str,
    /// Number of the line or row, from 1.
    pub(super) number: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.what, self.number)
    }
}
