//! Extracts the computations per rank and the messages between ranks from a timeline.

use std::collections::BTreeMap;
use std::ops::Range;

use super::{CompileError, Payload};
use planscope_core::timeline::{SpanKind, Timeline};

/// Computations per rank, and messages grouped by channel.
pub(super) struct Work {
    /// Units per rank, in execution order.
    pub ranks: Vec<Vec<Unit>>,
    /// All messages, grouped by channel, in channel order.
    pub messages: Vec<Message>,
    /// Index range into `messages`, per channel.
    pub channels: Vec<Range<usize>>,
}

/// An action, or two overlapped actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unit {
    /// First span index.
    pub first: usize,
    /// Last span index.
    pub last: usize,
    pub start_ns: u64,
    pub end_ns: u64,
}

/// A tensor sent between ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Message {
    pub payload: Payload,
    pub from: End,
    pub to: End,
    /// Arrival in the timeline, in ns.
    pub arrival_ns: u64,
    /// Occupied send-stream time, in ns. If a result has several receivers, this is the part for
    /// this message.
    pub duration_ns: u64,
}

/// Source or destination of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct End {
    pub rank: usize,
    /// Unit index on the rank.
    pub unit: usize,
    /// Span index.
    pub span: usize,
    pub stage: u32,
    pub microbatch: u32,
}

/// Actions for a microbatch on a stage.
#[derive(Default)]
struct Cell {
    forward: Option<End>,
    /// Full backward or input gradient.
    gradient: Option<End>,
    weights: Option<End>,
}

/// Microbatch, stage.
type Key = (u32, u32);

type Cells = BTreeMap<Key, Cell>;

impl Work {
    pub(super) fn from_timeline(timeline: &Timeline) -> Result<Self, CompileError> {
        columns(timeline)?;
        let ranks: Vec<Vec<Unit>> = (0..timeline.ranks as usize).map(|rank| units(timeline, rank)).collect();
        let cells = cells(timeline, &ranks)?;
        let mut messages = Vec::new();
        let arrivals = arrivals(timeline);
        let mut travel = |payload, from: End, to: End| {
            if from.rank != to.rank {
                let sent = arrivals.get(&(payload, from.microbatch, from.stage)).copied();
                let (arrival_ns, duration_ns) = sent.unwrap_or((ranks[from.rank][from.unit].end_ns, 0));
                messages.push(Message { payload, from, to, arrival_ns, duration_ns });
            }
        };
        for (before, behind) in edges(&cells, timeline)? {
            let ends = |cell: Key| {
                let cell = &cells[&cell];
                (cell.forward.expect("checked with the cells"), cell.gradient.expect("checked with the cells"))
            };
            let ((forward, gradient), (next_forward, next_gradient)) = (ends(before), ends(behind));
            travel(Payload::Activation, forward, next_forward);
            travel(Payload::Gradient, next_gradient, gradient);
        }
        let mut parts: BTreeMap<(Payload, usize), u64> = BTreeMap::new();
        for message in &messages {
            *parts.entry((message.payload, message.from.span)).or_default() += 1;
        }
        for message in &mut messages {
            message.duration_ns = message.duration_ns.div_ceil(parts[&(message.payload, message.from.span)]);
        }
        // Sort by computation order, then by consumption order for results from the same action.
        messages.sort_by_key(|message| (message.from.rank, message.to.rank, message.from.span, message.to.span));
        let mut channels: Vec<Range<usize>> = Vec::new();
        for index in 0..messages.len() {
            let pair = |index: usize| (messages[index].from.rank, messages[index].to.rank);
            match channels.last_mut() {
                Some(channel) if pair(channel.start) == pair(index) => channel.end = index + 1,
                _ => channels.push(index..index + 1),
            }
        }
        Ok(Self { ranks, messages, channels })
    }
}

fn columns(timeline: &Timeline) -> Result<(), CompileError> {
    let spans = timeline.len();
    let lengths = [
        timeline.stage.len(),
        timeline.microbatch.len(),
        timeline.start_ns.len(),
        timeline.duration_ns.len(),
        timeline.lane_offsets.last().map_or(spans + 1, |&end| end as usize),
    ];
    let lanes = timeline.lane_offsets.len() == 2 * timeline.ranks as usize + 1;
    let sorted = timeline.lane_offsets.is_sorted() && timeline.overlapped.is_sorted();
    if lanes && sorted && lengths.iter().all(|&length| length == spans) { Ok(()) } else { Err(CompileError::Columns) }
}

fn kind(timeline: &Timeline, span: usize) -> Option<SpanKind> {
    SpanKind::from_index(timeline.kind[span])
}

/// Returns the computations on a rank and merges overlapped pairs. Synchronization and optimizer
/// are excluded.
fn units(timeline: &Timeline, rank: usize) -> Vec<Unit> {
    let computes = |span: &usize| {
        let kind = kind(timeline, *span);
        kind.is_some_and(|kind| {
            matches!(kind, SpanKind::Forward | SpanKind::Backward | SpanKind::InputGrad | SpanKind::WeightGrad)
        })
    };
    let mut units: Vec<Unit> = Vec::new();
    let mut joined = false;
    for span in timeline.compute_lane(rank).filter(computes) {
        let (start_ns, end_ns) = (timeline.start_ns[span], timeline.end_ns(span));
        match units.last_mut() {
            Some(unit) if joined => (unit.last, unit.end_ns) = (span, end_ns),
            _ => units.push(Unit { first: span, last: span, start_ns, end_ns }),
        }
        joined = timeline.overlapped.binary_search(&(span as u32)).is_ok();
    }
    units
}

fn cells(timeline: &Timeline, ranks: &[Vec<Unit>]) -> Result<Cells, CompileError> {
    let mut cells = Cells::new();
    let mut stage_rank: BTreeMap<u32, u32> = BTreeMap::new();
    for (rank, units) in ranks.iter().enumerate() {
        for (unit, spans) in units.iter().enumerate() {
            for span in spans.first..=spans.last {
                let (stage, microbatch) = (timeline.stage[span], timeline.microbatch[span]);
                let first = *stage_rank.entry(stage).or_insert(rank as u32);
                if first != rank as u32 {
                    return Err(CompileError::Stage { stage, first, second: rank as u32 });
                }
                let end = End { rank, unit, span, stage, microbatch };
                let cell = cells.entry((microbatch, stage)).or_default();
                let slots: &mut [&mut Option<End>] = match kind(timeline, span) {
                    Some(SpanKind::Forward) => &mut [&mut cell.forward],
                    Some(SpanKind::InputGrad) => &mut [&mut cell.gradient],
                    Some(SpanKind::WeightGrad) => &mut [&mut cell.weights],
                    _ => &mut [&mut cell.gradient, &mut cell.weights],
                };
                for slot in slots {
                    if slot.replace(end).is_some() {
                        return Err(CompileError::Repeated { stage, microbatch });
                    }
                }
            }
        }
    }
    for (&(microbatch, stage), cell) in &cells {
        if cell.forward.is_none() || cell.gradient.is_none() || cell.weights.is_none() {
            return Err(CompileError::Incomplete { stage, microbatch });
        }
    }
    Ok(cells)
}

/// Arrival and send duration, indexed by payload, microbatch and stage.
fn arrivals(timeline: &Timeline) -> BTreeMap<(Payload, u32, u32), (u64, u64)> {
    let mut arrivals = BTreeMap::new();
    for span in (0..timeline.ranks as usize).flat_map(|rank| timeline.communication_lane(rank)) {
        let payload = match kind(timeline, span) {
            Some(SpanKind::SendForward) => Payload::Activation,
            Some(SpanKind::SendBackward) => Payload::Gradient,
            _ => continue,
        };
        arrivals.insert(
            (payload, timeline.microbatch[span], timeline.stage[span]),
            (timeline.end_ns(span), timeline.duration_ns[span]),
        );
    }
    arrivals
}

/// Returns pairs of cells (producer, consumer) for the forward direction. Gradients flow in the
/// opposite direction.
fn edges(cells: &Cells, timeline: &Timeline) -> Result<Vec<(Key, Key)>, CompileError> {
    let mut edges = Vec::new();
    let mut keys = cells.keys().copied().peekable();
    while let Some((microbatch, stage)) = keys.next() {
        match keys.peek() {
            Some(&(same, next)) if same == microbatch => {
                if next != stage + 1 {
                    return Err(CompileError::Incomplete { stage: stage + 1, microbatch });
                }
                edges.push(((microbatch, stage), (microbatch, next)));
            }
            _ => {}
        }
    }
    for &join in &timeline.joins {
        let microbatch_cells =
            |microbatch: u32| cells.range((microbatch, 0)..=(microbatch, u32::MAX)).map(|(&cell, _)| cell);
        match (microbatch_cells(join.from).next_back(), microbatch_cells(join.into).next()) {
            (Some(last), Some(first)) if join.from != join.into => edges.push((last, first)),
            _ => return Err(CompileError::Join { from: join.from, into: join.into }),
        }
    }
    Ok(edges)
}
