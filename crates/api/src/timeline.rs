//! Compact timeline encoding: the planner's columns in postcard format.
//!
//! Integers have variable length, so a span needs about 15 bytes before compression instead of 150
//! bytes in JSON. The first byte is the format version.

pub mod overview;
mod version_1;

use crate::planner::timeline::Timeline;

/// Current version. [`version_1`] contains no sound, video, joins or overlapped spans.
const VERSION: u8 = 3;

/// Version without the last three columns: exposed communication, contents and stage layers.
const VERSION_2: u8 = 2;
/// Three empty columns.
const ADDED_SINCE_2: [u8; 3] = [0; 3];

/// Decoding error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeError {
    /// The version is unknown, or the bytes are not a timeline.
    Version(u8),
    /// The data is truncated or damaged.
    Damaged,
}

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Version(version) => write!(f, "timeline form {version} is not known here; reload the page"),
            Self::Damaged => write!(f, "the timeline arrived damaged"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// Encodes a timeline.
pub fn encode(timeline: &Timeline) -> Vec<u8> {
    let body = postcard::to_allocvec(timeline).expect("a timeline holds only integers and columns of them");
    let mut bytes = Vec::with_capacity(body.len() + 1);
    bytes.push(VERSION);
    bytes.extend_from_slice(&body);
    bytes
}

/// Decodes a timeline.
pub fn decode(bytes: &[u8]) -> Result<Timeline, DecodeError> {
    let (&version, body) = bytes.split_first().ok_or(DecodeError::Damaged)?;
    let timeline = match version {
        version_1::VERSION => postcard::from_bytes::<version_1::Timeline>(body).map(Timeline::from),
        VERSION_2 => postcard::from_bytes(&[body, &ADDED_SINCE_2].concat()),
        VERSION => postcard::from_bytes(body),
        newer => return Err(DecodeError::Version(newer)),
    };
    timeline.map_err(|_| DecodeError::Damaged)
}

#[cfg(test)]
mod tests {
    use crate::planner::timeline::{
        Join, MemoryCurve, MicrobatchSamples, MicrobatchShape, NO_SPAN, SamplePart, StageLayers,
    };

    use super::*;

    fn timeline(microbatch: MicrobatchShape) -> Timeline {
        Timeline {
            ranks: 1,
            makespan_ns: 30,
            lane_offsets: vec![0, 2, 2],
            kind: vec![0, 1],
            stage: vec![0, 0],
            microbatch: vec![0, 0],
            start_ns: vec![0, 10],
            duration_ns: vec![10, 20],
            bound_by: vec![NO_SPAN, 0],
            critical_path: vec![0, 1],
            memory: vec![MemoryCurve { static_bytes: 7, peak_bytes: 9, time_ns: vec![0], bytes: vec![9] }],
            microbatches: vec![microbatch],
            joins: vec![Join { from: 0, into: 1 }],
            overlapped: vec![0],
            exposed_ns: vec![0, 5],
            contents: vec![MicrobatchSamples {
                module: Some(1),
                samples: vec![SamplePart { sample: 3, tokens: 4096, from_ppm: 0, to_ppm: 500_000 }],
            }],
            stage_layers: vec![vec![StageLayers { module: 1, first: 4, end: 8 }]],
        }
    }

    fn without_added(timeline: Timeline) -> Timeline {
        Timeline { exposed_ns: Vec::new(), contents: Vec::new(), stage_layers: Vec::new(), ..timeline }
    }

    #[test]
    fn timeline_round_trip() {
        let timeline =
            timeline(MicrobatchShape { samples: 1, tokens: 4096, images: 0, audio_clips: 3, video_ms: 5_000_000_000 });
        let bytes = encode(&timeline);
        assert_eq!(decode(&bytes), Ok(timeline));
        assert_eq!(decode(&bytes[..bytes.len() - 1]), Err(DecodeError::Damaged));
        assert_eq!(decode(&[9, 0]), Err(DecodeError::Version(9)));
        assert_eq!(decode(&[]), Err(DecodeError::Damaged));
    }

    /// Stored timelines must stay readable. These bytes were written by version 1 and must not
    /// change.
    #[test]
    fn first_format_is_readable() {
        let bytes = [
            1, 1, 30, 3, 0, 2, 2, 2, 0, 1, 2, 0, 0, 2, 0, 0, 2, 0, 10, 2, 10, 20, 2, 255, 255, 255, 255, 15, 0, 2, 0,
            1, 1, 7, 9, 1, 0, 1, 9, 1, 1, 128, 32, 5,
        ];
        let shape = MicrobatchShape { samples: 1, tokens: 4096, images: 5, ..MicrobatchShape::default() };
        let first = Timeline { joins: Vec::new(), overlapped: Vec::new(), ..without_added(timeline(shape)) };
        assert_eq!(decode(&bytes), Ok(first));
    }

    /// Bytes written by version 2 for the same timeline. They must not change.
    #[test]
    fn second_format_is_readable() {
        let bytes = [
            2, 1, 30, 3, 0, 2, 2, 2, 0, 1, 2, 0, 0, 2, 0, 0, 2, 0, 10, 2, 10, 20, 2, 255, 255, 255, 255, 15, 0, 2, 0,
            1, 1, 7, 9, 1, 0, 1, 9, 1, 1, 128, 32, 5, 3, 220, 11, 1, 0, 1, 1, 0,
        ];
        let shape = MicrobatchShape { samples: 1, tokens: 4096, images: 5, audio_clips: 3, video_ms: 1500 };
        assert_eq!(decode(&bytes), Ok(without_added(timeline(shape))));
    }

    #[test]
    fn empty_microbatch_fields_are_omitted_from_json() {
        let shape = MicrobatchShape { samples: 1, tokens: 2, images: 0, audio_clips: 0, video_ms: 1500 };
        let json = serde_json::to_string(&shape).unwrap();
        assert_eq!(json, r#"{"samples":1,"tokens":2,"images":0,"video_ms":1500}"#);
        assert_eq!(serde_json::from_str::<MicrobatchShape>(&json).unwrap(), shape);
    }
}
