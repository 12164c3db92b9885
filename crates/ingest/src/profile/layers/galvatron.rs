//! Galvatron model profiles: times for several layers together, and memory under several layouts.
//!
//! Keys are `layernum[2]_bsz1_seq2048` with a time, or, below a layout such as `1_2_4_sp`
//! (pipeline, tensor and data parallel degrees), `layernum[2]_bsz8_seq2048_rank0_ms`, `_act` and
//! `_act_peak` with memory. Derived values under `layertype_` and `other_memory_` are counted but
//! not used.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::super::json::{Leaf, Pairs};
use super::super::{ProfileError, refused::Rejection};
use super::{Footprint, Format, Ledger, MEBIBYTE, Part, Purpose, Shape, Timing, bytes, seconds};

/// A number, or an object for a layout.
enum Node {
    Leaf(Leaf),
    Layout(Vec<(String, Leaf)>),
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Anything;
        impl<'de> Visitor<'de> for Anything {
            type Value = Node;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a number or an object of numbers")
            }
            fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
                Ok(Node::Leaf(Leaf::Number(number)))
            }
            fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
                Ok(Node::Leaf(Leaf::Number(number as f64)))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
                Ok(Node::Leaf(Leaf::Number(number as f64)))
            }
            fn visit_str<E>(self, _: &str) -> Result<Node, E> {
                Ok(Node::Leaf(Leaf::Other("text")))
            }
            fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
                Ok(Node::Leaf(Leaf::Other("true or false")))
            }
            fn visit_unit<E>(self) -> Result<Node, E> {
                Ok(Node::Leaf(Leaf::Other("null")))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Node::Leaf(Leaf::Other("a list")))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
                let mut leaves = Vec::new();
                while let Some(leaf) = map.next_entry()? {
                    leaves.push(leaf);
                }
                Ok(Node::Layout(leaves))
            }
        }
        deserializer.deserialize_any(Anything)
    }
}

pub(super) fn read(text: &str, ledger: &mut Ledger) -> Result<(), ProfileError> {
    let json = |error: serde_json::Error| ProfileError::Json { detail: error.to_string() };
    let Pairs(pairs): Pairs<Node> = serde_json::from_str(text).map_err(json)?;
    let known = |key: &str| key.starts_with("layernum[") || key.starts_with("layertype_") || layout(key).is_some();
    if !pairs.iter().any(|(key, _)| known(key)) {
        let keys: Vec<String> = pairs.iter().take(6).map(|(key, _)| key.chars().take(40).collect()).collect();
        return Err(ProfileError::Unknown {
            found: format!("JSON without profiles of layers; keys {}", keys.join(", ")),
        });
    }
    for (key, node) in pairs {
        match node {
            Node::Leaf(leaf) => time(&key, leaf, ledger)?,
            Node::Layout(leaves) => {
                for (inner, leaf) in leaves {
                    memory(&key, &inner, leaf, ledger)?;
                }
            }
        }
    }
    Ok(())
}

fn time(key: &str, value: Leaf, ledger: &mut Ledger) -> Result<(), ProfileError> {
    let location = || key.chars().take(80).collect::<String>();
    let Some((shape, "")) = numbers(key) else {
        return ledger.refuse(derived(key, location()));
    };
    ledger.assume("times are in milliseconds, of the forward pass of all the layers and what surrounds them");
    let timing = value.positive(location).and_then(|time| {
        let forward_s = Some(seconds(time, location())?);
        Ok(Timing { shape, forward_s, backward_s: None, with_attention: true })
    });
    ledger.timing(timing)
}

fn memory(outer: &str, key: &str, value: Leaf, ledger: &mut Ledger) -> Result<(), ProfileError> {
    let location = || format!("{outer}, {key}").chars().take(80).collect::<String>();
    let parts = layout(outer).zip(numbers(key)).and_then(|(tensor_parallel, (shape, rest))| {
        let (rank, purpose) = rest.strip_prefix("_rank")?.split_once('_')?;
        let purpose = match purpose {
            "ms" => Purpose::State,
            "act" => Purpose::Activations,
            "act_peak" => Purpose::Peak,
            _ => return None,
        };
        Some((Shape { tensor_parallel: Some(tensor_parallel), ..shape }, rank.parse().ok()?, purpose))
    });
    let Some((shape, rank, purpose)) = parts else {
        return ledger.refuse(derived(outer, location()));
    };
    ledger.profile.format = Format::GalvatronMemory;
    ledger.assume("memory is in MiB; layouts are pipeline, tensor and data parallel degrees");
    let footprint = value.positive(location).and_then(|value| {
        let bytes = bytes(value, MEBIBYTE, location())?;
        Ok(Footprint { shape, purpose, bytes, rank: Some(rank), layout: Some(outer.chars().take(80).collect()) })
    });
    ledger.footprint(footprint)
}

fn derived(key: &str, location: String) -> Rejection {
    if key.starts_with("layertype_") || key.starts_with("other_memory_") {
        Rejection::new("derived from other values of the file", location)
    } else {
        Rejection::new("a key that is not understood", location)
    }
}

/// Returns the tensor-parallel degree in a layout such as `1_2_4_sp`.
fn layout(key: &str) -> Option<u32> {
    let mut degrees = key.split('_').map_while(|part| part.parse::<u32>().ok());
    let (_, tensor_parallel, _) = (degrees.next()?, degrees.next()?, degrees.next()?);
    Some(tensor_parallel)
}

/// Returns layers, samples and tokens in a key, and the remaining text.
fn numbers(key: &str) -> Option<(Shape, &str)> {
    let (layers, rest) = key.strip_prefix("layernum[")?.split_once("]_bsz")?;
    let (batch, rest) = rest.split_once("_seq")?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (tokens, rest) = rest.split_at(end);
    let shape = Shape {
        part: Part::Language,
        batch: Some(batch.parse().ok()?),
        tokens: Some(tokens.parse().ok()?),
        decoder_tokens: None,
        layers: Some(layers.parse().ok()?),
        tensor_parallel: None,
    };
    Some((shape, rest))
}
