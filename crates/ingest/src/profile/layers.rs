//! Parses module and layer measurements used by DFLOP, DynaPipe and Galvatron. Rates of single
//! operators cannot be derived from them.
//!
//! | format | detected by | value |
//! |---|---|---|
//! | DFLOP, throughput | columns `fwd_times`, `bwd_times` | a row |
//! | DFLOP, memory | columns `fwd_peak`, `model_state_peak` | a memory cell |
//! | DynaPipe | lines such as `forward_encoder 12.3` | a line |
//! | Galvatron, computation | keys such as `layernum[2]_bsz1_seq2048` | a key |
//! | Galvatron, memory | those keys below `1_2_4_sp` | a key |
//!
//! If a file omits units, they are taken from the source code of its program or derived from the
//! magnitudes. [`Report::assumptions`] lists these decisions.

mod dflop;
mod dynapipe;
mod galvatron;
mod tables;

pub(super) use tables::seconds_per_layer;
pub use tables::{LayerTable, LayerTables, tables};

use serde::{Deserialize, Serialize};

use super::refused::Rejection;
use super::table::Table;
use super::{Hints, MAX_VALUES, ProfileError, Refusal, text};

const MEBIBYTE: f64 = 1_048_576.0;

/// Format of a layer profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// DFLOP module times.
    DflopTimes,
    /// DFLOP module memory.
    DflopMemory,
    /// DynaPipe times for a single configuration.
    DynaPipe,
    /// Galvatron layer times.
    GalvatronTimes,
    /// Galvatron layer memory.
    GalvatronMemory,
}

impl Format {
    /// Returns the display name.
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

/// Measured model part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// A vision encoder.
    Vision,
    /// A language model.
    Language,
    /// Encoder layers of an encoder-decoder model, or layers of a decoder-only model.
    Encoder,
    /// Decoder layers of an encoder-decoder model.
    Decoder,
    /// Embeddings.
    Embedding,
    /// Output head and loss.
    Postprocess,
}

/// Measured shape. `None` means that the file does not contain the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Model part.
    pub part: Part,
    /// Samples per microbatch.
    pub batch: Option<u32>,
    /// Sequence length in tokens.
    pub tokens: Option<u32>,
    /// Decoder sequence length in tokens, for encoder-decoder models.
    pub decoder_tokens: Option<u32>,
    /// Layer count.
    pub layers: Option<u32>,
    /// Tensor-parallel degree.
    pub tensor_parallel: Option<u32>,
}

/// A measured time in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Measured shape.
    pub shape: Shape,
    /// Forward time over all layers.
    pub forward_s: Option<f64>,
    /// Backward time over all layers.
    pub backward_s: Option<f64>,
    /// True if attention is included. DFLOP also measures without attention.
    pub with_attention: bool,
}

/// Memory category.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Weights, gradients and optimizer states.
    State,
    /// Peak weights, gradients and optimizer states.
    PeakState,
    /// Activations stored for the backward pass.
    Activations,
    /// Peak memory in a forward or backward pass.
    Peak,
}

/// Measured memory per device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footprint {
    /// Measured shape.
    pub shape: Shape,
    /// Memory category.
    pub purpose: Purpose,
    /// Size in bytes.
    pub bytes: u64,
    /// Measured rank.
    pub rank: Option<u32>,
    /// Parallel layout as named in the file.
    pub layout: Option<String>,
}

/// Parsed layer measurements with a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LayerProfile {
    /// Detected format.
    pub format: Format,
    /// Times in file order.
    pub timings: Vec<Timing>,
    /// Memory in file order.
    pub footprints: Vec<Footprint>,
    /// Counts of used and rejected values.
    pub report: Report,
}

/// Counts of used and rejected values.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Report {
    /// Values in the file, each either used or rejected.
    pub values: u64,
    /// Used values.
    pub used: u64,
    /// Rejected values by reason.
    pub refused: Vec<Refusal>,
    /// Assumptions about information missing in the file.
    pub assumptions: Vec<String>,
}

/// Parses a layer profile. The format is detected from content.
///
/// # Errors
/// The file has a different format, or contains no usable value.
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

struct Ledger {
    profile: LayerProfile,
}

impl Ledger {
    fn new(format: Format) -> Self {
        let (timings, footprints) = (Vec::new(), Vec::new());
        Self { profile: LayerProfile { format, timings, footprints, report: Report::default() } }
    }

    fn assume(&mut self, assumption: impl Into<String>) {
        let (assumption, assumptions) = (assumption.into(), &mut self.profile.report.assumptions);
        if !assumptions.contains(&assumption) {
            assumptions.push(assumption);
        }
    }

    fn timing(&mut self, timing: Result<Timing, Rejection>) -> Result<(), ProfileError> {
        let timing = self.count(timing)?;
        self.profile.timings.extend(timing);
        Ok(())
    }

    fn footprint(&mut self, footprint: Result<Footprint, Rejection>) -> Result<(), ProfileError> {
        let footprint = self.count(footprint)?;
        self.profile.footprints.extend(footprint);
        Ok(())
    }

    fn refuse(&mut self, rejection: Rejection) -> Result<(), ProfileError> {
        self.count::<()>(Err(rejection)).map(drop)
    }

    fn count<T>(&mut self, value: Result<T, Rejection>) -> Result<Option<T>, ProfileError> {
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
            Err(Rejection { reason, first }) => {
                match report.refused.iter_mut().find(|refusal| refusal.reason == reason) {
                    Some(refusal) => refusal.count += 1,
                    None => report.refused.push(Refusal { reason: reason.to_owned(), count: 1, first }),
                }
                Ok(None)
            }
        }
    }

    fn finish(self) -> Result<LayerProfile, ProfileError> {
        let Report { values, used, refused: ref rejections, ref assumptions } = self.profile.report;
        let format = self.profile.format.name();
        if values == 0 {
            return Err(ProfileError::NoValues { format });
        }
        if used == 0 {
            let (rejections, assumptions) = (rejections.clone(), assumptions.clone());
            let report = super::Report { rows: values, refused: rejections, assumptions, ..super::Report::default() };
            return Err(ProfileError::NothingUsable { format, report: Box::new(report) });
        }
        Ok(self.profile)
    }
}

/// Converts a value to bytes. Returns an error if it is not a valid memory size.
fn bytes(value: f64, unit: f64, location: impl Into<String>) -> Result<u64, Rejection> {
    let bytes = value * unit;
    // 2^60 exceeds the memory of any machine.
    if bytes.is_finite() && (0.0..=1.2e18).contains(&bytes) {
        Ok(bytes.round() as u64)
    } else {
        Err(Rejection::new("memory that is negative, not finite or beyond every device", location))
    }
}

/// Converts milliseconds to seconds. Returns an error if the value is not a valid time.
fn seconds(milliseconds: f64, location: impl Into<String>) -> Result<f64, Rejection> {
    // 1e9 ms are about eleven days.
    if milliseconds > 0.0 && milliseconds < 1e9 {
        Ok(milliseconds / 1e3)
    } else {
        Err(Rejection::new("a time that is zero, negative, not finite or beyond a million seconds", location))
    }
}

#[cfg(test)]
mod tests;
