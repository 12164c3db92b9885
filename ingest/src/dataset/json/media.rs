//! Lists of media in rows: sizes of images and seconds of sound, of which more than their number is kept.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::super::media::{Entries, Entry};
use super::super::number::Number;
use super::Value;

/// Reads what stands under a key of media.
pub(super) struct MediaSeed;

impl<'de> DeserializeSeed<'de> for MediaSeed {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for MediaSeed {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or a list")
    }

    scalars!(std::convert::identity);

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut entries = Entries::default();
        while let Some(Thing(entry)) = seq.next_element()? {
            entries.push(entry);
        }
        Ok(Value::Media(entries))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Value, A::Error> {
        Ok(match edges(map)? {
            Entry::Other => Value::Other("an object"),
            entry => Value::Media(Entries { count: 1, first: vec![entry] }),
        })
    }
}

/// One thing in a list of media: a number, or `[width, height]`, or an object with both.
struct Thing(Entry);

impl<'de> Deserialize<'de> for Thing {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Things;
        impl<'de> Visitor<'de> for Things {
            type Value = Thing;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or a size")
            }
            scalars!(|value: Value| Thing(number_of(&value).map_or(Entry::Other, Entry::Number)));
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Thing, A::Error> {
                let mut first = [None; 2];
                let mut count = 0;
                while let Some(value) = seq.next_element::<Value>()? {
                    if let Some(place) = first.get_mut(count) {
                        *place = number_of(&value);
                    }
                    count += 1;
                }
                Ok(Thing(match (first, count) {
                    ([Some(width), Some(height)], 2) => Entry::Size(width, height),
                    _ => Entry::Other,
                }))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Thing, A::Error> {
                edges(map).map(Thing)
            }
        }
        deserializer.deserialize_any(Things)
    }
}

/// Width and height of an object.
fn edges<'de, A: MapAccess<'de>>(mut map: A) -> Result<Entry, A::Error> {
    let (mut width, mut height) = (None, None);
    while let Some(key) = map.next_key::<String>()? {
        match key.as_str() {
            "width" => width = number_of(&map.next_value()?),
            "height" => height = number_of(&map.next_value()?),
            _ => {
                map.next_value::<IgnoredAny>()?;
            }
        }
    }
    Ok(match (width, height) {
        (Some(width), Some(height)) => Entry::Size(width, height),
        _ => Entry::Other,
    })
}

fn number_of(value: &Value) -> Option<f64> {
    match value {
        Value::Number(Number::Whole(whole)) => Some(*whole as f64),
        Value::Number(Number::Repaired(number)) => Some(*number),
        _ => None,
    }
}
