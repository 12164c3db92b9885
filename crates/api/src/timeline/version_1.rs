//! Version 1 of the compact encoding, for text and images only. It is read but no longer written.

use crate::planner::timeline::{self, MemoryCurve};
use serde::Deserialize;

/// First byte.
pub(super) const VERSION: u8 = 1;

/// Columns of [`timeline::Timeline`] in version 1 order.
#[derive(Deserialize)]
pub(super) struct Timeline {
    ranks: u32,
    makespan_ns: u64,
    lane_offsets: Vec<u32>,
    kind: Vec<u8>,
    stage: Vec<u32>,
    microbatch: Vec<u32>,
    start_ns: Vec<u64>,
    duration_ns: Vec<u64>,
    bound_by: Vec<u32>,
    critical_path: Vec<u32>,
    memory: Vec<MemoryCurve>,
    microbatches: Vec<MicrobatchShape>,
}

#[derive(Deserialize)]
struct MicrobatchShape {
    samples: u32,
    tokens: u32,
    images: u32,
}

impl From<Timeline> for timeline::Timeline {
    fn from(first: Timeline) -> Self {
        let Timeline { ranks, makespan_ns, lane_offsets, kind, stage, microbatch, start_ns, duration_ns, .. } = first;
        let Timeline { bound_by, critical_path, memory, microbatches, .. } = first;
        let microbatches = microbatches.into_iter().map(timeline::MicrobatchShape::from).collect();
        Self {
            ranks,
            makespan_ns,
            lane_offsets,
            kind,
            stage,
            microbatch,
            start_ns,
            duration_ns,
            bound_by,
            critical_path,
            memory,
            microbatches,
            ..Self::default()
        }
    }
}

impl From<MicrobatchShape> for timeline::MicrobatchShape {
    fn from(MicrobatchShape { samples, tokens, images }: MicrobatchShape) -> Self {
        Self { samples, tokens, images, ..Self::default() }
    }
}
