//! Measured modules and layers, from which no rate of a single operator follows: what DFLOP, DynaPipe and Galvatron plan
//! with.
//!
//! | format | recognised by | a value is |
//! |---|---|---|
//! | DFLOP, throughput | columns `fwd_times`, `bwd_times` | a row |
//! | DFLOP, memory | columns `fwd_peak`, `model_state_peak` | a cell of memory |
//! | DynaPipe | lines such as `forward_encoder 12.3` | a line |
//! | Galvatron, computation | keys such as `layernum[2]_bsz1_seq2048` | a key |
//! | Galvatron, memory | those keys below `1_2_4_sp` | a key |
//!
//! Units that a file leaves out are taken from what its program does, or from the size of the numbers; either is told in
//! [`Report::assumptions`].

mod dflop;
mod dynapipe;
mod galvatron;
mod tables;

pub(super) use tables::of_a_layer;
pub use tables::{LayerTable, LayerTables, tables};

use serde::{Deserialize, Serialize};

use super::refused::Refused;
use super::table::Table;
use super::{Hints, MAX_VALUES, ProfileError, Refusal, text};

/// Bytes of a MiB.
const MEBIBYTE: f64 = 1_048_576.0;

/// A format of profiles of whole layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Times of a module of DFLOP.
    DflopTimes,
    /// Memory of a module of DFLOP.
    DflopMemory,
    /// One configuration of DynaPipe.
    DynaPipe,
    /// Times of Galvatron.
    GalvatronTimes,
    /// Memory of Galvatron.
    GalvatronMemory,
}

impl Format {
    /// What people call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DflopTimes => "DFLOP throughput profile",
            Self::DflopMemory => "DFLOP memory profile",
            Self::DynaPipe => "DynaPipe profile",
            Self::GalvatronTimes => "Galvatron computation profile",
            Self::GalvatronMemory => "Galvatron memory profile",
        }
    }
}

/// The part of a model that was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// A vision encoder.
    Vision,
    /// A language model.
    Language,
    /// Encoder layers of an encoder-decoder, or the layers of a decoder-only model.
    Encoder,
    /// Decoder layers of an encoder-decoder.
    Decoder,
    /// Embeddings.
    Embedding,
    /// Head and loss.
    Postprocess,
}

/// What was measured; missing is what the file does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// The part.
    pub part: Part,
    /// Samples of a microbatch.
    pub batch: Option<u32>,
    /// Tokens of a sequence.
    pub tokens: Option<u32>,
    /// Tokens of the sequence that is decoded, of an encoder-decoder.
    pub decoder_tokens: Option<u32>,
    /// Layers.
    pub layers: Option<u32>,
    /// Tensor-parallel degree.
    pub tensor_parallel: Option<u32>,
}

/// A measured time, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Of what.
    pub shape: Shape,
    /// Forward pass of all the layers.
    pub forward_s: Option<f64>,
    /// Backward pass of all the layers.
    pub backward_s: Option<f64>,
    /// Whether attention took part; DFLOP measures without it too.
    pub with_attention: bool,
}

/// What memory is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Weights, gradients and optimizer states.
    State,
    /// The same at their peak.
    PeakState,
    /// Activations that wait for the backward pass.
    Activations,
    /// The peak of a pass.
    Peak,
}

/// Measured memory of one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footprint {
    /// Of what.
    pub shape: Shape,
    /// For what.
    pub purpose: Purpose,
    /// Bytes.
    pub bytes: u64,
    /// The rank that was looked at.
    pub rank: Option<u32>,
    /// How the model was laid out, as the file names it.
    pub layout: Option<String>,
}

/// Measured layers and how they were read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LayerProfile {
    /// Format that was recognised.
    pub format: Format,
    /// Times, in the order of the file.
    pub timings: Vec<Timing>,
    /// Memory, in the order of the file.
    pub footprints: Vec<Footprint>,
    /// What was read and what was not.
    pub report: Report,
}

/// What was read of a profile of layers and what was not.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Report {
    /// Values of the file; each is either used or refused.
    pub values: u64,
    /// Values that were used.
    pub used: u64,
    /// Values that were not, by reason.
    pub refused: Vec<Refusal>,
    /// What the file does not say and was taken so.
    pub assumptions: Vec<String>,
}

/// Reads a profile of layers, whose format is recognised by its content.
///
/// # Errors
/// What the file is instead, or that none of its values can be used.
pub fn read(bytes: &[u8], hints: &Hints) -> Result<LayerProfile, ProfileError> {
    let text = text::text(bytes)?;
    let mut ledger;
    if text.trim_start().starts_with('{') {
        ledger = Ledger::new(Format::GalvatronTimes);
        galvatron::read(text, &mut ledger)?;
    } else if dynapipe::is(text) {
        ledger = Ledger::new(Format::DynaPipe);
        dynapipe::read(text, hints, &mut ledger)?;
    } else {
        let mut table = Table::new(text)?;
        let format = if table.has("fwd_times") && table.has("bwd_times") {
            Format::DflopTimes
        } else if table.has("fwd_peak") && table.has("model_state_peak") {
            Format::DflopMemory
        } else {
            let found: Vec<String> =
                table.header().iter().take(6).map(|name| name.chars().take(40).collect()).collect();
            return Err(ProfileError::Unknown { found: format!("no profile of layers; columns {}", found.join(", ")) });
        };
        ledger = Ledger::new(format);
        dflop::read(&mut table, hints, &mut ledger)?;
    }
    ledger.finish()
}

/// Values read so far.
struct Ledger {
    profile: LayerProfile,
}

impl Ledger {
    fn new(format: Format) -> Self {
        let (timings, footprints) = (Vec::new(), Vec::new());
        Self { profile: LayerProfile { format, timings, footprints, report: Report::default() } }
    }

    fn assume(&mut self, assumption: impl Into<String>) {
        let (assumption, told) = (assumption.into(), &mut self.profile.report.assumptions);
        if !told.contains(&assumption) {
            told.push(assumption);
        }
    }

    fn timing(&mut self, timing: Result<Timing, Refused>) -> Result<(), ProfileError> {
        let timing = self.count(timing)?;
        self.profile.timings.extend(timing);
        Ok(())
    }

    fn footprint(&mut self, footprint: Result<Footprint, Refused>) -> Result<(), ProfileError> {
        let footprint = self.count(footprint)?;
        self.profile.footprints.extend(footprint);
        Ok(())
    }

    fn refuse(&mut self, refused: Refused) -> Result<(), ProfileError> {
        self.count::<()>(Err(refused)).map(drop)
    }

    fn count<T>(&mut self, value: Result<T, Refused>) -> Result<Option<T>, ProfileError> {
        let report = &mut self.profile.report;
        if report.values >= MAX_VALUES as u64 {
            return Err(ProfileError::TooManyValues);
        }
        report.values += 1;
        match value {
            Ok(value) => {
                report.used += 1;
                Ok(Some(value))
            }
            Err(Refused { reason, first }) => {
                match report.refused.iter_mut().find(|refusal| refusal.reason == reason) {
                    Some(refusal) => refusal.count += 1,
                    None => report.refused.push(Refusal { reason: reason.to_owned(), count: 1, first }),
                }
                Ok(None)
            }
        }
    }

    fn finish(self) -> Result<LayerProfile, ProfileError> {
        let Report { values, used, ref refused, ref assumptions } = self.profile.report;
        let format = self.profile.format.name();
        if values == 0 {
            return Err(ProfileError::NoValues { format });
        }
        if used == 0 {
            let (refused, assumptions) = (refused.clone(), assumptions.clone());
            let report = super::Report { rows: values, refused, assumptions, ..super::Report::default() };
            return Err(ProfileError::NothingUsable { format, report: Box::new(report) });
        }
        Ok(self.profile)
    }
}

/// Bytes of a number of units; none where they are no memory.
fn bytes(value: f64, unit: f64, place: impl Into<String>) -> Result<u64, Refused> {
    let bytes = value * unit;
    // 2^60: beyond every machine.
    if bytes.is_finite() && (0.0..=1.2e18).contains(&bytes) {
        Ok(bytes.round() as u64)
    } else {
        Err(Refused::new("memory that is negative, not finite or beyond every device", place))
    }
}

/// Seconds of milliseconds; none where they are no time.
fn seconds(milliseconds: f64, place: impl Into<String>) -> Result<f64, Refused> {
    // Eleven days.
    if milliseconds > 0.0 && milliseconds < 1e9 {
        Ok(milliseconds / 1e3)
    } else {
        Err(Refused::new("a time that is zero, negative, not finite or beyond a million seconds", place))
    }
}

#[cfg(test)]
mod tests;
