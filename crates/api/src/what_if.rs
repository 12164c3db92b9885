//! What-if result: an outcome and the timelines for an iteration.

use crate::planner::scenario::PlannerKind;
use crate::planner::timeline::Timeline;
use serde::{Deserialize, Serialize};

use crate::job::StoredOutcome;
use crate::timeline::{self, DecodeError};

const VERSION: u8 = 1;

/// A what-if result.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanPreview {
    /// The outcome. It is not stored.
    pub outcome: StoredOutcome,
    /// Iteration of the timelines: the requested one, or the last.
    pub iteration: u32,
    /// Timelines of planners with a plan, in result order.
    pub timelines: Vec<(PlannerKind, Timeline)>,
}

/// A decoded what-if result. Timelines are decoded at once for the charts, the outcome on request,
/// because its decoding is slower.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrived {
    /// Iteration of the timelines.
    pub iteration: u32,
    /// Timelines of planners with a plan, in result order.
    pub timelines: Vec<(PlannerKind, Timeline)>,
    /// The outcome.
    pub outcome: Unread,
}

/// An outcome as JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread(String);

impl Unread {
    /// Parses the outcome.
    ///
    /// # Errors
    /// Returns [`DecodeError::Damaged`] if the text is not an outcome.
    pub fn read(&self) -> Result<StoredOutcome, DecodeError> {
        serde_json::from_str(&self.0).map_err(|_| DecodeError::Damaged)
    }
}

#[derive(Serialize, Deserialize)]
struct Wire {
    outcome: String,
    iteration: u32,
    timelines: Vec<(String, Vec<u8>)>,
}

/// Encodes a result.
pub fn encode(preview: &PlanPreview) -> Vec<u8> {
    let outcome = serde_json::to_string(&preview.outcome).expect("an outcome is made of names and numbers");
    let timelines = preview.timelines.iter();
    let timelines = timelines.map(|(planner, columns)| (planner.id().to_owned(), timeline::encode(columns))).collect();
    let wire = Wire { outcome, iteration: preview.iteration, timelines };
    let body = postcard::to_allocvec(&wire).expect("it holds only text and bytes");
    let mut bytes = Vec::with_capacity(body.len() + 1);
    bytes.push(VERSION);
    bytes.extend_from_slice(&body);
    bytes
}

/// Decodes a result without parsing its outcome.
///
/// # Errors
/// Returns [`DecodeError`] if the version is unknown or the data is damaged.
pub fn decode(bytes: &[u8]) -> Result<Arrived, DecodeError> {
    let (&version, body) = bytes.split_first().ok_or(DecodeError::Damaged)?;
    if version != VERSION {
        return Err(DecodeError::Version(version));
    }
    let wire: Wire = postcard::from_bytes(body).map_err(|_| DecodeError::Damaged)?;
    let timelines = wire.timelines.iter().map(|(planner, bytes)| {
        let planner = PlannerKind::from_id(planner).ok_or(DecodeError::Damaged)?;
        Ok((planner, timeline::decode(bytes)?))
    });
    let timelines = timelines.collect::<Result<_, _>>()?;
    Ok(Arrived { iteration: wire.iteration, timelines, outcome: Unread(wire.outcome) })
}
