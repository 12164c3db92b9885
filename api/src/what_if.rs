//! The answer to a question that is only tried out: an outcome and the timelines of one iteration, in one piece.

use planner::scenario::PlannerKind;
use planner::timeline::Timeline;
use serde::{Deserialize, Serialize};

use crate::job::StoredOutcome;
use crate::timeline::{self, DecodeError};

const VERSION: u8 = 1;

/// What was planned while somebody waited.
#[derive(Debug, Clone, PartialEq)]
pub struct WhatIf {
    /// The outcome; it is stored nowhere.
    pub outcome: StoredOutcome,
    /// The iteration of the timelines: the one asked for, or the last.
    pub iteration: u32,
    /// Timelines of planners with a plan, in the order of the results.
    pub timelines: Vec<(PlannerKind, Timeline)>,
}

/// The same as it is read: what charts are drawn of is there, and the outcome is read when it is asked for, as that takes longer.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrived {
    /// The iteration of the timelines.
    pub iteration: u32,
    /// Timelines of planners with a plan, in the order of the results.
    pub timelines: Vec<(PlannerKind, Timeline)>,
    /// The outcome.
    pub outcome: Unread,
}

/// An outcome as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread(String);

impl Unread {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Damaged`] where it is no outcome.
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

/// Writes an answer.
pub fn encode(answer: &WhatIf) -> Vec<u8> {
    let outcome = serde_json::to_string(&answer.outcome).expect("an outcome is made of names and numbers");
    let timelines = answer.timelines.iter();
    let timelines = timelines.map(|(planner, columns)| (planner.id().to_owned(), timeline::encode(columns))).collect();
    let wire = Wire { outcome, iteration: answer.iteration, timelines };
    let body = postcard::to_allocvec(&wire).expect("it holds only text and bytes");
    let mut bytes = Vec::with_capacity(body.len() + 1);
    bytes.push(VERSION);
    bytes.extend_from_slice(&body);
    bytes
}

/// Reads an answer but for its outcome.
///
/// # Errors
///
/// [`DecodeError`] where it is of another version or damaged.
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
