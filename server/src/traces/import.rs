//! Conversion of a trace file to the stored form.

use std::fs::File;
use std::io::{Seek, SeekFrom};

use api::trace::TraceReport;
use ingest::trace::levels::{Levels, Span};
use ingest::trace::{Limits, TimeUnit, Trace, TraceError, read};
use serde::{Deserialize, Serialize};

use super::arrows::{Arrow, joined};
use super::counters::Counters;
use super::observed::{Actions, letters};
use super::overview::{self, Overview};
use super::packed::{pack, pack_json, pack_spans};
use super::{BLOCK_NAMES, CHUNK_SPANS};

/// A packed trace, ready to be stored.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// Detected format.
    pub(crate) format: &'static str,
    /// Traced rank, if the file specifies a single rank for all devices.
    pub(crate) rank: Option<u32>,
    /// Number of slices.
    pub(crate) slices: u64,
    /// Time from the earliest start to the latest end.
    pub(crate) span_ns: u64,
    /// Number of annotated actions.
    pub(crate) actions: u64,
    /// Report on parsed and skipped events.
    pub(crate) report: TraceReport,
    /// Packed [`Overview`].
    pub(crate) overview: Vec<u8>,
    /// Packed [`Actions`].
    pub(crate) action_columns: Option<Vec<u8>>,
    /// Packed [`Counters`].
    pub(crate) counter_columns: Option<Vec<u8>>,
    /// Packed name blocks.
    pub(crate) names: Vec<Vec<u8>>,
    /// Slices by level, lanes and time.
    pub(crate) chunks: Vec<Chunk>,
}

impl Prepared {
    /// Returns the size in the database in bytes.
    pub(crate) fn stored_bytes(&self) -> u64 {
        let chunk = |chunk: &Chunk| chunk.columns.len() + chunk.details.as_ref().map_or(0, Vec::len);
        let rest = [Some(&self.overview), self.action_columns.as_ref(), self.counter_columns.as_ref()];
        let bytes = self.chunks.iter().map(chunk).sum::<usize>()
            + self.names.iter().chain(rest.into_iter().flatten()).map(Vec::len).sum::<usize>();
        bytes as u64
    }
}

/// Slices in a tier that are close in lane and time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Two times the level, plus one for merged spans.
    pub(crate) tier: u32,
    /// First and last lane.
    pub(crate) lanes: (u32, u32),
    /// Earliest start.
    pub(crate) start_ns: u64,
    /// Latest end.
    pub(crate) end_ns: u64,
    /// Number of spans.
    pub(crate) spans: u32,
    /// Number of slices that the spans represent.
    pub(crate) slices: u64,
    /// Packed spans, sorted by position.
    pub(crate) columns: Vec<u8>,
    /// Packed [`Detail`]s.
    pub(crate) details: Option<Vec<u8>>,
}

/// Slice attributes in addition to the name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Detail {
    /// Index in the chunk.
    pub(crate) span: u32,
    /// Bytes transferred.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<u64>,
    /// Annotated actions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) actions: Vec<String>,
    /// Collective message, as names and values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) message: Vec<(String, String)>,
    /// Arrows to and from other slices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) arrows: Vec<Arrow>,
    /// Number of arrows that are not stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) further_arrows: Option<u32>,
}

impl Detail {
    /// Returns a detail with no attributes.
    pub(crate) const fn nothing(span: u32) -> Self {
        Self { span, bytes: None, actions: Vec::new(), message: Vec::new(), arrows: Vec::new(), further_arrows: None }
    }
}

/// Parses and packs a trace file. A million events require seconds and hundreds of megabytes.
pub(crate) fn prepare(
    mut file: File,
    unit: TimeUnit,
    stage: Option<u32>,
    limits: &Limits,
) -> Result<Prepared, TraceError> {
    let unreadable = |error: &std::io::Error| TraceError::Unreadable { offset: 0, detail: error.to_string() };
    file.seek(SeekFrom::Start(0)).map_err(|error| unreadable(&error))?;
    let mut trace = read(file, unit, limits)?;
    if let Some(stage) = stage {
        trace.set_missing_stages(stage);
    }
    let prepared = pack_trace(trace);
    // In these schedules each rank has a single stage, so the stage number is the default rank.
    Ok(Prepared { rank: prepared.rank.or(stage), ..prepared })
}

pub(crate) fn pack_trace(mut trace: Trace) -> Prepared {
    let levels = Levels::from_trace(&trace);
    let details = Details::from_trace(&mut trace);
    let actions = Actions::from_trace(&trace);
    let counters = Counters::from_trace(&trace);
    let overview = Overview::new(&trace, levels.widths(), &actions);
    let jobs_rank = trace.distributed.as_ref().and_then(|job| job.rank);
    Prepared {
        format: trace.format.name(),
        rank: jobs_rank,
        slices: trace.slices.len() as u64,
        span_ns: trace.end_ns.saturating_sub(trace.origin_ns),
        actions: actions.rows.len() as u64,
        report: overview::report(std::mem::take(&mut trace.report)),
        overview: pack_json(&overview),
        action_columns: (!actions.rows.is_empty()).then(|| pack(&actions)),
        counter_columns: (!counters.is_empty()).then(|| pack(&counters)),
        names: named(&trace).chunks(BLOCK_NAMES as usize).map(pack_json).collect(),
        chunks: chunks(levels, &groups(&trace), &details),
    }
}

/// Name, slice count and total duration.
pub(crate) type Named = (String, u64, u64);

fn named(trace: &Trace) -> Vec<Named> {
    let mut named: Vec<Named> = trace.names.iter().map(|name| (name.clone(), 0, 0)).collect();
    for (name, duration) in trace.slices.name.iter().zip(&trace.slices.duration_ns) {
        if let Some((_, slices, total)) = named.get_mut(*name as usize) {
            *slices += 1;
            *total = total.saturating_add(*duration);
        }
    }
    named
}

/// Details, sorted by slice.
struct Details(Vec<Detail>);

impl Details {
    /// Moves the details out of the trace, where they are stored as columns per slice.
    fn from_trace(trace: &mut Trace) -> Self {
        let mut details: Vec<Detail> = Vec::new();
        for located in &trace.collectives {
            let value = serde_json::to_value(&located.value).unwrap_or_default();
            let fields = value.as_object().into_iter().flatten();
            let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let message = fields.map(|(name, value)| (name.replace('_', " "), text(value))).collect();
            details.push(Detail { message, ..Detail::nothing(located.slice) });
        }
        for transfer in &trace.transfers {
            details.push(Detail { bytes: Some(transfer.bytes), ..Detail::nothing(transfer.slice) });
        }
        for located in &trace.actions {
            let microbatch = located.value.microbatch.map_or_else(String::new, |number| number.to_string());
            let action = format!("{}{}{microbatch}", located.value.stage, letters(located.value.kind));
            details.push(Detail { actions: vec![action], ..Detail::nothing(located.slice) });
        }
        for (slice, joined) in joined(trace) {
            let further_arrows = (joined.further > 0).then_some(joined.further);
            details.push(Detail { arrows: joined.arrows, further_arrows, ..Detail::nothing(slice) });
        }
        details.sort_by_key(|detail| detail.span);
        details.dedup_by(|later, earlier| {
            let same = later.span == earlier.span;
            if same {
                earlier.bytes = earlier.bytes.or(later.bytes);
                earlier.actions.append(&mut later.actions);
                earlier.message.append(&mut later.message);
                earlier.arrows.append(&mut later.arrows);
                earlier.further_arrows = earlier.further_arrows.or(later.further_arrows);
            }
            same
        });
        trace.collectives = Vec::new();
        trace.transfers = Vec::new();
        Self(details)
    }

    fn find(&self, slice: u32) -> Option<&Detail> {
        let at = self.0.binary_search_by_key(&slice, |detail| detail.span).ok()?;
        self.0.get(at)
    }
}

/// Returns the group per lane. A group is a process, or several small processes in sequence.
fn groups(trace: &Trace) -> Vec<u32> {
    let mut slices = vec![0_usize; trace.lanes.len()];
    for &lane in &trace.slices.lane {
        slices[lane as usize] += 1;
    }
    let mut groups = Vec::with_capacity(slices.len());
    let (mut group, mut count, mut process) = (0, 0, None);
    for (lane, slices) in trace.lanes.iter().zip(slices) {
        if process != Some(lane.process) && count >= CHUNK_SPANS {
            (group, count) = (group + 1, 0);
        }
        process = Some(lane.process);
        count += slices;
        groups.push(group);
    }
    groups
}

fn chunks(levels: Levels, groups: &[u32], details: &Details) -> Vec<Chunk> {
    let exact = levels.exact.into_iter().enumerate().map(|(level, spans)| (2 * level as u32, spans));
    let merged = levels.further.into_iter().enumerate().map(|(level, further)| {
        (2 * level as u32 + 3, further.merged.into_iter().map(|span| (u32::MAX, span)).collect())
    });
    let mut chunks = Vec::new();
    for (tier, mut spans) in exact.chain(merged) {
        let spans: &mut Vec<(u32, Span)> = &mut spans;
        let group = |span: &Span| groups.get(span.lane as usize).copied().unwrap_or_default();
        spans.sort_by_key(|(_, span)| (group(span), span.start_ns));
        for group_spans in spans.chunk_by_mut(|(_, left), (_, other)| group(left) == group(other)) {
            chunks.extend(group_spans.chunks_mut(CHUNK_SPANS).map(|part| chunk(tier, part, details)));
        }
    }
    chunks
}

fn chunk(tier: u32, part: &mut [(u32, Span)], details: &Details) -> Chunk {
    part.sort_by_key(|(_, span)| span.sort_key());
    let spans: Vec<Span> = part.iter().map(|(_, span)| *span).collect();
    let lanes = spans.iter().map(|span| span.lane);
    let known: Vec<Detail> = part
        .iter()
        .enumerate()
        .filter_map(|(index, (slice, _))| Some(Detail { span: index as u32, ..details.find(*slice)?.clone() }))
        .collect();
    Chunk {
        tier,
        lanes: (lanes.clone().min().unwrap_or_default(), lanes.max().unwrap_or_default()),
        start_ns: spans.iter().map(|span| span.start_ns).min().unwrap_or_default(),
        end_ns: spans.iter().map(Span::end_ns).max().unwrap_or_default(),
        spans: spans.len() as u32,
        slices: spans.iter().map(|span| u64::from(span.count)).sum(),
        columns: pack_spans(&spans),
        details: (!known.is_empty()).then(|| pack_json(&known)),
    }
}
