//! JSON objects in file order, including duplicate keys. A map would silently drop duplicates.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::refused::Rejection;

/// Keys and values of an object in file order.
#[derive(Debug)]
pub(super) struct Pairs<T>(pub(super) Vec<(String, T)>);

impl<T> Default for Pairs<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
            type Value = Pairs<T>;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Object(PhantomData))
    }
}

/// Maximum number of keys used for format detection.
const MAX_KEYS: usize = 10_000;

/// First keys of a document; empty if the document is not an object.
#[derive(Debug)]
pub(super) struct Keys(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Document;
        impl<'de> Visitor<'de> for Document {
            type Value = Keys;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object or a list")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut keys = Vec::new();
                while let Some((key, IgnoredAny)) = map.next_entry::<String, IgnoredAny>()? {
                    if keys.len() < MAX_KEYS {
                        keys.push(key);
                    }
                }
                Ok(Keys(keys))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Keys(Vec::new()))
            }
        }
        deserializer.deserialize_any(Document)
    }
}

/// A value that is expected to be a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Leaf {
    Number(f64),
    /// Another JSON type.
    Other(&'static str),
}

impl Leaf {
    /// Value for objects.
    pub(super) const OBJECT: Self = Self::Other("an object");

    /// Returns the number, which must be positive. `place` describes the position for error
    /// messages.
    pub(super) fn positive(self, location: impl Fn() -> String) -> Result<f64, Rejection> {
        match self {
            Self::Number(number) if !number.is_finite() => {
                Err(Rejection::new("the value is not finite", format!("{}: {number}", location())))
            }
            Self::Number(number) if number <= 0.0 => {
                Err(Rejection::new("the value is zero or negative", format!("{}: {number}", location())))
            }
            Self::Number(number) => Ok(number),
            Self::Other(description) => {
                Err(Rejection::new("the value is no number", format!("{}: {description}", location())))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Leaf {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Anything;
        impl<'de> Visitor<'de> for Anything {
            type Value = Leaf;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a value")
            }
            fn visit_f64<E>(self, number: f64) -> Result<Leaf, E> {
                Ok(Leaf::Number(number))
            }
            fn visit_u64<E>(self, number: u64) -> Result<Leaf, E> {
                Ok(Leaf::Number(number as f64))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Leaf, E> {
                Ok(Leaf::Number(number as f64))
            }
            fn visit_str<E>(self, _: &str) -> Result<Leaf, E> {
                Ok(Leaf::Other("text"))
            }
            fn visit_bool<E>(self, _: bool) -> Result<Leaf, E> {
                Ok(Leaf::Other("true or false"))
            }
            fn visit_unit<E>(self) -> Result<Leaf, E> {
                Ok(Leaf::Other("null"))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Leaf, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Leaf::Other("a list"))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Leaf, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Leaf::OBJECT)
            }
        }
        deserializer.deserialize_any(Anything)
    }
}
