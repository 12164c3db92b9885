//! Compact encoding for timeline overviews.

use crate::planner::outcome::Planned;
use crate::planner::timeline::levels::Overview;

use super::DecodeError;

const VERSION: u8 = 1;

/// Minimum number of spans for an overview.
const LARGE: u64 = 150_000;

/// Returns whether pages request an overview before the timeline.
pub fn is_looked_at_first(planned: &Planned, iteration: u32) -> bool {
    about_spans(planned, iteration) >= LARGE
}

/// Estimates the number of spans: forward, backward and a send after each.
fn about_spans(planned: &Planned, iteration: u32) -> u64 {
    let microbatches = planned.iterations.get(iteration as usize).map_or(0, |iteration| iteration.microbatches);
    let layout = &planned.layout;
    4 * u64::from(microbatches) * u64::from(layout.pipeline) * u64::from(layout.chunks.max(1))
}

/// Encodes an overview.
pub fn encode(overview: &Overview) -> Vec<u8> {
    let body = postcard::to_allocvec(overview).expect("an overview holds only integers and columns of them");
    let mut bytes = Vec::with_capacity(body.len() + 1);
    bytes.push(VERSION);
    bytes.extend_from_slice(&body);
    bytes
}

/// Decodes an overview.
///
/// # Errors
/// Returns [`DecodeError`] if the version is unknown or the data is damaged.
pub fn decode(bytes: &[u8]) -> Result<Overview, DecodeError> {
    let (&version, body) = bytes.split_first().ok_or(DecodeError::Damaged)?;
    if version != VERSION {
        return Err(DecodeError::Version(version));
    }
    let overview: Overview = postcard::from_bytes(body).map_err(|_| DecodeError::Damaged)?;
    let cells = 2 * overview.ranks as usize * overview.level.stretches as usize;
    let columns = [overview.level.starts.len(), overview.level.ink.len(), overview.level.busy.len()];
    if columns == [cells; 3] { Ok(overview) } else { Err(DecodeError::Damaged) }
}

#[cfg(test)]
mod tests {
    use crate::planner::timeline::Timeline;

    use super::*;

    #[test]
    fn overview_round_trip() {
        let timeline = Timeline {
            ranks: 1,
            makespan_ns: 30,
            lane_offsets: vec![0, 2, 2],
            kind: vec![0, 1],
            start_ns: vec![0, 10],
            duration_ns: vec![10, 20],
            ..Timeline::default()
        };
        let overview = Overview::new(&timeline);
        let bytes = encode(&overview);
        assert_eq!(decode(&bytes).as_ref(), Ok(&overview));
        assert_eq!(decode(&bytes[..bytes.len() - 1]), Err(DecodeError::Damaged));
        assert_eq!(decode(&[7]), Err(DecodeError::Version(7)));
        assert_eq!(decode(&[]), Err(DecodeError::Damaged));
        let fewer = Overview { ranks: 2, ..overview };
        assert_eq!(decode(&encode(&fewer)), Err(DecodeError::Damaged), "columns of another number of lanes");
    }
}
