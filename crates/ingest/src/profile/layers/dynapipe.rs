//! DynaPipe profiler (cost_models.py): a text file per configuration with a key and a number per
//! line.
//!
//! The file name contains the configuration: tensor-parallel degree, hidden size, heads, head size,
//! MLP width, tokens, decoder tokens (encoder-decoder only), samples per microbatch.

use super::super::{Hints, ProfileError, refused::Rejection};
use super::{Footprint, Ledger, MEBIBYTE, Part, Purpose, Shape, Timing, bytes, seconds};

/// Parsed key.
#[derive(Debug, Clone, Copy)]
enum Key {
    Forward(Part),
    Backward(Part),
    Memory(Part, Purpose),
}

impl Key {
    fn read(key: &str) -> Option<Self> {
        let part = |name: &str| match name {
            "encoder" => Some(Part::Encoder),
            "decoder" => Some(Part::Decoder),
            "embedding" => Some(Part::Embedding),
            "postprocess" => Some(Part::Postprocess),
            _ => None,
        };
        if let Some(name) = key.strip_prefix("forward_") {
            return part(name).map(Self::Forward);
        }
        if let Some(name) = key.strip_prefix("backward_") {
            return part(name).map(Self::Backward);
        }
        if let Some(name) = key.strip_prefix("model_") {
            return part(name).map(|part| Self::Memory(part, Purpose::State));
        }
        let name = key.strip_suffix("_activation")?;
        match name.strip_prefix("peak_") {
            Some(name) => part(name).map(|part| Self::Memory(part, Purpose::Peak)),
            None => part(name).map(|part| Self::Memory(part, Purpose::Activations)),
        }
    }
}

/// True if the first non-empty line matches the format.
pub(super) fn is(text: &str) -> bool {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    first.split_once(' ').is_some_and(|(key, value)| Key::read(key).is_some() && value.trim().parse::<f64>().is_ok())
}

pub(super) fn read(text: &str, hints: &Hints, ledger: &mut Ledger) -> Result<(), ProfileError> {
    ledger.assume("times are in milliseconds and memory in MiB");
    let shape = configuration(&hints.name, ledger);
    if hints.name.contains("rc_full_uniform") || hints.name.contains("rc_selective") {
        ledger.assume("activations are recomputed, by the file's name");
    }
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let location = || format!("line {}: {}", index + 1, line.chars().take(60).collect::<String>());
        let parts = line.split_once(' ').map(|(key, value)| (Key::read(key), value.trim().parse::<f64>()));
        let (Some(key), Ok(value)) = (match parts {
            Some(parts) => parts,
            None => (None, Ok(0.0)),
        }) else {
            ledger.refuse(Rejection::new("a line that is not a known key and a number", location()))?;
            continue;
        };
        let part_shape = |part| Shape { part, ..shape };
        match key {
            Key::Forward(part) => {
                let timing = seconds(value, location()).map(|forward| timing(part_shape(part), Some(forward), None));
                ledger.timing(timing)?;
            }
            Key::Backward(part) => {
                let timing = seconds(value, location()).map(|backward| timing(part_shape(part), None, Some(backward)));
                ledger.timing(timing)?;
            }
            Key::Memory(part, purpose) => {
                let footprint = bytes(value, MEBIBYTE, location()).map(|bytes| {
                    let shape = part_shape(part);
                    Footprint { shape, purpose, bytes, rank: None, layout: None }
                });
                ledger.footprint(footprint)?;
            }
        }
    }
    Ok(())
}

fn timing(shape: Shape, forward_s: Option<f64>, backward_s: Option<f64>) -> Timing {
    Timing { shape, forward_s, backward_s, with_attention: true }
}

/// Parses the configuration from the last part of the file name with seven or eight integers.
fn configuration(name: &str, ledger: &mut Ledger) -> Shape {
    let file = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let numbers: Vec<u32> =
        file.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).take(9).collect();
    let unknown = Shape {
        part: Part::Encoder,
        batch: None,
        tokens: None,
        decoder_tokens: None,
        layers: None,
        tensor_parallel: None,
    };
    let (tensor_parallel, tokens, decoder_tokens, batch) = match numbers[..] {
        [tensor_parallel, _, _, _, _, tokens, batch] => (tensor_parallel, tokens, None, batch),
        [tensor_parallel, _, _, _, _, tokens, decoder, batch] => (tensor_parallel, tokens, Some(decoder), batch),
        _ => {
            ledger.assume("the file's name does not say what was measured: it has neither seven nor eight numbers");
            return unknown;
        }
    };
    ledger.assume("what was measured is read from the file's name; a time is that of one layer");
    Shape {
        tensor_parallel: Some(tensor_parallel),
        tokens: Some(tokens),
        decoder_tokens,
        batch: Some(batch),
        layers: Some(1),
        ..unknown
    }
}
