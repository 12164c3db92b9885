//! Values and rows from JSON. Lists of numbers are stored up to a limit; every element is counted.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::super::media::Field;
use super::super::names;
use super::super::number::Number;
use super::{List, MAX_ITEMS, Row, Value};

/// Most values of a row, nested ones included.
const MAX_VALUES: usize = 4_000_000;
/// Most keys of a row; further ones are skipped.
const MAX_KEYS: usize = 200;
/// Numbers of a list that are stored where only their count is needed.
const SHOWN_NUMBERS: usize = 16;

/// Reads a value.
#[derive(Clone, Copy)]
pub(in super::super) struct ValueSeed<'b> {
    /// Values that may still be stored.
    budget: &'b Cell<usize>,
    /// Most numbers of a list that are stored.
    numbers: usize,
    /// Most elements of a list.
    items: usize,
}

impl<'b> ValueSeed<'b> {
    /// Stores all elements of the outermost list, up to `items`; more are an error.
    pub(in super::super) const fn whole(budget: &'b Cell<usize>, items: usize) -> Self {
        Self { budget, numbers: items, items }
    }

    /// The seed of the elements of a list or an object.
    fn nested(self) -> Self {
        Self { budget: self.budget, numbers: self.numbers.min(MAX_ITEMS), items: self.items.min(MAX_ITEMS) }
    }
}

/// Text of the error of a list that is too long.
pub(in super::super) const TOO_LONG: &str = "list too long";

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value<'de>, E> {
        Ok(Value::Boolean(value))
    }

    fn visit_unit<E: Error>(self) -> Result<Value<'de>, E> {
        Ok(Value::Missing)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value<'de>, E> {
        Ok(Value::Number(Number::Whole(value.into())))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value<'de>, E> {
        Ok(Value::Number(Number::Whole(value.into())))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value<'de>, E> {
        Ok(Value::Number(Number::Repaired(value)))
    }

    fn visit_borrowed_str<E: Error>(self, value: &'de str) -> Result<Value<'de>, E> {
        Ok(Value::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value<'de>, E> {
        Ok(Value::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value<'de>, E> {
        Ok(Value::Text(Cow::Owned(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value<'de>, A::Error> {
        let inner = self.nested();
        let is_whole = self.items > MAX_ITEMS;
        let mut list = List::default();
        while let Some(value) = seq.next_element_seed(inner)? {
            list.count += 1;
            if is_whole && list.count > self.items {
                return Err(A::Error::custom(TOO_LONG));
            }
            let most = if matches!(value, Value::Number(_)) { self.numbers } else { self.items };
            if list.items.len() < most {
                let left = self.budget.get().checked_sub(1).ok_or_else(|| A::Error::custom(TOO_LONG))?;
                self.budget.set(left);
                list.items.push(value);
            }
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value<'de>, A::Error> {
        let inner = self.nested();
        // A column of pandas has a key for every row.
        let is_whole = self.items > MAX_ITEMS;
        let most = if is_whole { self.items } else { MAX_KEYS };
        let mut members = Vec::new();
        while let Some(Name(name)) = map.next_key()? {
            let value = map.next_value_seed(inner)?;
            if is_whole && members.len() >= most {
                return Err(A::Error::custom(TOO_LONG));
            }
            if members.len() < most {
                let left = self.budget.get().checked_sub(1).ok_or_else(|| A::Error::custom(TOO_LONG))?;
                self.budget.set(left);
                members.push((name, value));
            }
        }
        Ok(Value::Object(members))
    }
}

/// A key, borrowed where it has no escapes.
pub(in super::super) struct Name<'de>(pub(in super::super) Cow<'de, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = Name<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_borrowed_str<E: Error>(self, value: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(value)))
            }
            fn visit_str<E: Error>(self, value: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(value.to_owned())))
            }
        }
        deserializer.deserialize_str(Names)
    }
}

impl<'de> Deserialize<'de> for Value<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let budget = Cell::new(MAX_VALUES);
        ValueSeed { budget: &budget, numbers: SHOWN_NUMBERS, items: MAX_ITEMS }.deserialize(deserializer)
    }
}

impl<'de> Deserialize<'de> for Row<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Rows;
        impl<'de> Visitor<'de> for Rows {
            type Value = Row<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a row")
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<Row<'de>, E> {
                Ok(Row::Single(Value::Boolean(value)))
            }

            fn visit_unit<E: Error>(self) -> Result<Row<'de>, E> {
                Ok(Row::Single(Value::Missing))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Row<'de>, E> {
                Ok(Row::Single(Value::Number(Number::Whole(value.into()))))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Row<'de>, E> {
                Ok(Row::Single(Value::Number(Number::Whole(value.into()))))
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Row<'de>, E> {
                Ok(Row::Single(Value::Number(Number::Repaired(value))))
            }

            fn visit_str<E: Error>(self, value: &str) -> Result<Row<'de>, E> {
                Ok(Row::Single(Value::Text(Cow::Owned(value.to_owned()))))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Row<'de>, A::Error> {
                let budget = Cell::new(MAX_VALUES);
                ValueSeed { budget: &budget, numbers: SHOWN_NUMBERS, items: MAX_ITEMS }.visit_seq(seq).map(Row::Single)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Row<'de>, A::Error> {
                let budget = Cell::new(MAX_VALUES);
                let mut fields = Vec::new();
                while let Some(Name(name)) = map.next_key()? {
                    // Sizes of images and seconds of sound are read number by number; of tokens only the count is needed.
                    let is_read = Field::of(&name).is_some() || names::tells_packing(&name);
                    let numbers = if is_read { MAX_ITEMS } else { SHOWN_NUMBERS };
                    let value = map.next_value_seed(ValueSeed { budget: &budget, numbers, items: MAX_ITEMS })?;
                    if fields.len() < MAX_KEYS {
                        fields.push((name, value));
                    }
                }
                Ok(Row::Object(fields))
            }
        }
        deserializer.deserialize_any(Rows)
    }
}
