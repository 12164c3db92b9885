//! Detects keys that occur twice in one JSON object. Readers disagree about the value of such a key.

use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::{Name, clip};

/// Returns the error for a key that occurs twice in one object of a JSON document; `None` if there is
/// none, or if the text is not JSON.
pub(in super::super) fn repeated_key(text: &str) -> Option<String> {
    let error = serde_json::from_str::<UniqueKeys>(text).err()?.to_string();
    error.contains(TWICE).then_some(error)
}

/// Part of the error text for a key that occurs twice.
const TWICE: &str = "occurs twice in one object";

/// Returns the error text for a key that occurs twice.
pub(super) fn twice(name: &str) -> String {
    format!("the key {:?} {TWICE}", clip(name))
}

/// A JSON document whose objects have unique keys.
struct UniqueKeys;

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Values;
        impl<'de> Visitor<'de> for Values {
            type Value = UniqueKeys;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_bool<E: Error>(self, _: bool) -> Result<UniqueKeys, E> {
                Ok(UniqueKeys)
            }

            fn visit_unit<E: Error>(self) -> Result<UniqueKeys, E> {
                Ok(UniqueKeys)
            }

            fn visit_i64<E: Error>(self, _: i64) -> Result<UniqueKeys, E> {
                Ok(UniqueKeys)
            }

            fn visit_u64<E: Error>(self, _: u64) -> Result<UniqueKeys, E> {
                Ok(UniqueKeys)
            }

            fn visit_f64<E: Error>(self, _: f64) -> Result<UniqueKeys, E> {
                Ok(UniqueKeys)
            }

            fn visit_str<E: Error>(self, _: &str) -> Result<UniqueKeys, E> {
                Ok(UniqueKeys)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<UniqueKeys, A::Error> {
                while seq.next_element::<UniqueKeys>()?.is_some() {}
                Ok(UniqueKeys)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<UniqueKeys, A::Error> {
                let mut names = HashSet::new();
                while let Some(Name(name)) = map.next_key()? {
                    if names.contains(&name) {
                        return Err(A::Error::custom(twice(&name)));
                    }
                    names.insert(name);
                    map.next_value::<UniqueKeys>()?;
                }
                Ok(UniqueKeys)
            }
        }
        deserializer.deserialize_any(Values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_occur_twice_are_found() {
        for (text, expected) in [
            (r#"{"a": 1, "a": 2}"#, Some("\"a\"")),
            (r#"[{"a": 1}, {"b": {"c": 1, "d": [], "c": 1}}]"#, Some("\"c\"")),
            (r#"{"a": {"b": 1}, "b": "a", "c": [{"a": true}, {"a": null}]}"#, None),
            (r#"{"a": 1, "a"#, None),
        ] {
            let found = repeated_key(text);
            assert_eq!(found.is_some(), expected.is_some(), "{text}: {found:?}");
            assert!(found.zip(expected).is_none_or(|(found, name)| found.contains(name)), "{text}");
        }
    }
}
