//! Reads values and rows from JSON. The number of stored list elements is limited; all elements are
//! counted.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::super::number::Number;
use super::super::{names, token_ids};
use super::keys::twice;
use super::{List, MAX_ITEMS, Row, Value};

/// Maximum number of values in a row, including nested values.
const MAX_VALUES: usize = 4_000_000;
/// Maximum number of keys in a row; further keys are skipped.
const MAX_KEYS: usize = 200;
/// Stored numbers per list if only the count is needed.
const PREVIEW_NUMBERS: usize = 16;
/// Maximum stored numbers per list if all numbers are needed.
const MAX_NUMBERS: usize = 1 << 20;

/// Deserialization seed for a value.
#[derive(Clone, Copy)]
pub(in super::super) struct ValueSeed<'b> {
    /// Number of values that may still be stored.
    budget: &'b Cell<usize>,
    /// Maximum stored numbers per list.
    numbers: usize,
    /// Maximum number of list elements.
    items: usize,
    /// Key of the value; empty if it has no key.
    name: &'b str,
}

impl<'b> ValueSeed<'b> {
    /// Creates a seed that stores all elements of the outermost list under `name`, up to `items`;
    /// further elements cause an error.
    pub(in super::super) const fn whole(budget: &'b Cell<usize>, items: usize, name: &'b str) -> Self {
        Self { budget, numbers: items, items, name }
    }

    /// Creates the seed of a row.
    const fn row(budget: &'b Cell<usize>) -> Self {
        Self { budget, numbers: PREVIEW_NUMBERS, items: MAX_ITEMS, name: "" }
    }

    /// Creates the seed for the elements of a list or object.
    fn nested(self) -> Self {
        Self { numbers: self.numbers.min(MAX_ITEMS), items: self.items.min(MAX_ITEMS), name: "", ..self }
    }
}

/// Error text for a list that is too long.
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
        Ok(Value::Number(Number::Integer(value.into())))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value<'de>, E> {
        Ok(Value::Number(Number::Integer(value.into())))
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
        let is_full = self.items > MAX_ITEMS;
        // The lists of a column have the column's name.
        let inner = ValueSeed { name: if is_full { self.name } else { "" }, ..self.nested() };
        let has_ids = token_ids::are_listed(self.name);
        let mut list = List::default();
        let mut numbers = self.numbers;
        while let Some(value) = seq.next_element_seed(inner)? {
            list.count += 1;
            if is_full && list.count > self.items {
                return Err(A::Error::custom(TOO_LONG));
            }
            if let Value::Number(Number::Integer(number)) = value {
                list.ends.see(number);
                if has_ids && list.ids.len() < MAX_NUMBERS {
                    list.ids.extend(u32::try_from(number));
                }
            }
            if list.count == PREVIEW_NUMBERS + 1 && numbers < MAX_NUMBERS && names::reads_numbers(self.name) {
                numbers = MAX_NUMBERS;
            }
            let max_items = if matches!(value, Value::Number(_)) { numbers } else { self.items };
            if list.items.len() < max_items {
                let left = self.budget.get().checked_sub(1).ok_or_else(|| A::Error::custom(TOO_LONG))?;
                self.budget.set(left);
                list.items.push(value);
            }
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value<'de>, A::Error> {
        let inner = self.nested();
        // A pandas column has a key per row.
        let is_full = self.items > MAX_ITEMS;
        let max_members = if is_full { self.items } else { MAX_KEYS };
        let mut members = Vec::new();
        while let Some(Name(name)) = map.next_key()? {
            let value = map.next_value_seed(ValueSeed { name: &name, ..inner })?;
            if is_full && members.len() >= max_members {
                return Err(A::Error::custom(TOO_LONG));
            }
            if !is_full && members.iter().any(|(known, _)| *known == name) {
                return Err(A::Error::custom(twice(&name)));
            }
            if members.len() < max_members {
                let left = self.budget.get().checked_sub(1).ok_or_else(|| A::Error::custom(TOO_LONG))?;
                self.budget.set(left);
                members.push((name, value));
            }
        }
        Ok(extended_number(&members).unwrap_or(Value::Object(members)))
    }
}

/// Parses a number in MongoDB's extended JSON: `{"$numberInt": "512"}`.
fn extended_number<'v>(members: &[(Cow<'_, str>, Value<'_>)]) -> Option<Value<'v>> {
    let [(name, Value::Text(digits))] = members else { return None };
    match &**name {
        "$numberInt" | "$numberLong" => digits.parse().ok().map(|number| Value::Number(Number::Integer(number))),
        "$numberDouble" | "$numberDecimal" => {
            digits.parse().ok().filter(|number: &f64| number.is_finite()).map(|number| {
                let is_integer = number.fract() == 0.0 && number.abs() < 1e15;
                Value::Number(if is_integer { Number::Integer(number as i128) } else { Number::Repaired(number) })
            })
        }
        _ => None,
    }
}

/// An object key; borrowed if it contains no escapes.
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
        ValueSeed::row(&budget).deserialize(deserializer)
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
                Ok(Row::Single(Value::Number(Number::Integer(value.into()))))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Row<'de>, E> {
                Ok(Row::Single(Value::Number(Number::Integer(value.into()))))
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Row<'de>, E> {
                Ok(Row::Single(Value::Number(Number::Repaired(value))))
            }

            fn visit_str<E: Error>(self, value: &str) -> Result<Row<'de>, E> {
                Ok(Row::Single(Value::Text(Cow::Owned(value.to_owned()))))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Row<'de>, A::Error> {
                let budget = Cell::new(MAX_VALUES);
                ValueSeed::row(&budget).visit_seq(seq).map(Row::Single)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Row<'de>, A::Error> {
                let budget = Cell::new(MAX_VALUES);
                let mut fields = Vec::new();
                while let Some(Name(name)) = map.next_key()? {
                    let value = map.next_value_seed(ValueSeed { name: &name, ..ValueSeed::row(&budget) })?;
                    if fields.iter().any(|(known, _)| *known == name) {
                        return Err(A::Error::custom(twice(&name)));
                    }
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
