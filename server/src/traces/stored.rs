//! Conversion of stored columns back to a trace, as far as comparisons need it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use ingest::trace::levels::Span;
use ingest::trace::{Collective, Flow, Format, Lane, Located, Process, Report, Slices, Step, Trace};

use super::import::{Detail, Named};
use super::overview::Overview;
use super::packed::{Damaged, unpack_json, unpack_spans};

/// Stored columns of a trace.
pub(crate) struct StoredColumns {
    pub(crate) overview: Overview,
    /// All name blocks in order.
    pub(crate) names: Vec<Vec<u8>>,
    /// Chunks of unmerged slices, with details.
    pub(crate) chunks: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

/// Returns slices, names, lanes, steps, arrows and collectives. Times are relative to the first
/// start. Totals, counters, actions and the report are empty.
pub(crate) fn unpack_trace(columns: StoredColumns) -> Result<Trace, Damaged> {
    let StoredColumns { overview, names, chunks } = columns;
    let mut spans: Vec<(Span, Option<Detail>)> = Vec::new();
    for (packed, details) in chunks {
        let details: Vec<Detail> = details.map(|packed| unpack_json(&packed)).transpose()?.unwrap_or_default();
        let mut details: BTreeMap<u32, Detail> = details.into_iter().map(|detail| (detail.span, detail)).collect();
        let own = unpack_spans(&packed)?;
        spans.extend(own.into_iter().zip(0..).map(|(span, place)| (span, details.remove(&place))));
    }
    spans.sort_by_key(|(span, _)| (span.lane, span.start_ns, Reverse(span.extent_ns), span.depth));
    let lanes = overview.lanes.len() as u32;
    if spans.iter().any(|(span, _)| span.lane >= lanes) {
        return Err(Damaged::new("a slice on a lane that does not exist"));
    }
    let mut all_names = Vec::new();
    for block in names {
        all_names.extend(unpack_json::<Vec<Named>>(&block)?.into_iter().map(|(name, ..)| name));
    }
    if spans.iter().any(|(span, _)| span.name as usize >= all_names.len()) {
        return Err(Damaged::new("a slice with a name that does not exist"));
    }
    let mut slices = Slices::default();
    let (mut flows, mut collectives) = (Vec::new(), Vec::new());
    let mut end_ns = 0;
    for (slice, (span, detail)) in (0..).zip(spans) {
        slices.lane.push(span.lane);
        slices.start_ns.push(span.start_ns);
        slices.duration_ns.push(span.extent_ns);
        slices.name.push(span.name);
        slices.kind.push(span.kind);
        slices.depth.push(span.depth);
        end_ns = end_ns.max(span.end_ns());
        let Some(detail) = detail else { continue };
        let incoming = detail.arrows.iter().filter(|arrow| arrow.3 && arrow.0 < lanes);
        flows.extend(incoming.map(|arrow| Flow {
            from_lane: arrow.0,
            from_ns: span.start_ns.saturating_add_signed(arrow.2),
            to_lane: span.lane,
            to_ns: span.start_ns,
        }));
        if !detail.message.is_empty() {
            collectives.push(Located { slice, value: collective(&detail.message) });
        }
    }
    let step = |step: &api::trace::TraceStep| {
        let first = slices.lane.partition_point(|&lane| lane < step.lane);
        let end = slices.lane.partition_point(|&lane| lane <= step.lane);
        let from = first + slices.start_ns[first..end].partition_point(|&start| start < step.start_ns);
        let slice = (from..end)
            .take_while(|&slice| slices.start_ns[slice] == step.start_ns)
            .find(|&slice| slices.duration_ns[slice] == step.duration_ns)?;
        Some(Step { number: step.number, slice: slice as u32, on_device: step.on_device })
    };
    let steps = overview.steps.iter().filter_map(step).collect();
    let process = |process: api::trace::TraceProcess| Process {
        id: process.id,
        name: process.name,
        labels: process.labels,
        sort_index: None,
        rank: process.rank,
    };
    let lane = |lane: api::trace::TraceLane| Lane {
        process: lane.process,
        thread: lane.thread,
        name: lane.name,
        overflow: lane.overflow,
    };
    Ok(Trace {
        format: Format::Chrome,
        origin_ns: 0,
        end_ns,
        base_ns: None,
        names: all_names,
        processes: overview.processes.into_iter().map(process).collect(),
        lanes: overview.lanes.into_iter().map(lane).collect(),
        slices,
        flows,
        counters: Vec::new(),
        steps,
        actions: Vec::new(),
        unplaced: Vec::new(),
        collectives,
        transfers: Vec::new(),
        distributed: None,
        totals: Vec::new(),
        report: Report::default(),
    })
}

/// Parses the stored names and values of a collective.
fn collective(message: &[(String, String)]) -> Collective {
    let mut collective = Collective::default();
    for (name, value) in message {
        let text = || Some(value.clone());
        match name.as_str() {
            "name" => collective.name = text(),
            "dtype" => collective.dtype = text(),
            "elements in" => collective.elements_in = value.parse().ok(),
            "elements out" => collective.elements_out = value.parse().ok(),
            "group size" => collective.group_size = value.parse().ok(),
            "group" => collective.group = text(),
            "description" => collective.description = text(),
            "ranks" => collective.ranks = text(),
            "source" => collective.source = value.parse().ok(),
            "destination" => collective.destination = value.parse().ok(),
            "sequence" => collective.sequence = value.parse().ok(),
            _ => {}
        }
    }
    collective
}

#[cfg(test)]
mod tests {
    use ingest::trace::{Limits, TimeUnit, read, recorded};
    use serde_json::json;

    use super::*;
    use crate::traces::import::pack_trace;

    /// Kernels with launches in two steps, a collective, and a copy: the stored columns give the
    /// same device activity as the file.
    #[test]
    fn stored_traces_compare_like_files() {
        let slice = |cat: &str, name: &str, (pid, tid): (u32, u32), ts: u32, dur: u32| json!({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur});
        let mut events = vec![
            slice("user_annotation", "ProfilerStep#4", (9, 1), 100, 100),
            slice("user_annotation", "ProfilerStep#5", (9, 1), 200, 100),
            slice("cpu_op", "autograd::engine::evaluate_function: MmBackward0", (9, 2), 130, 40),
            json!({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 20, "ts": 150, "dur": 90,
                "args": {"Collective name": "allreduce", "In msg nelems": 8, "Process Group Name": "7", "Process Group Ranks": "[0, 1]", "Seq": 3}}),
            slice("gpu_memcpy", "Memcpy HtoD", (0, 7), 120, 5),
        ];
        for (id, thread, at, start) in [(0, 1, 110, 190), (1, 2, 140, 210), (2, 1, 205, 260)] {
            events.extend([
                slice("kernel", if id == 1 { "dgrad" } else { "gemm" }, (0, 7), start, 10),
                slice("cuda_runtime", "cudaLaunchKernel", (9, thread), at, 3),
                json!({"ph": "s", "id": id, "cat": "ac2g", "name": "ac2g", "pid": 9, "tid": thread, "ts": at}),
                json!({"ph": "f", "id": id, "cat": "ac2g", "name": "ac2g", "pid": 0, "tid": 7, "ts": start, "bp": "e"}),
            ]);
        }
        let text = json!({"traceEvents": events}).to_string();
        let trace = read(text.as_bytes(), TimeUnit::default(), &Limits::default()).expect("a trace");
        let mut expected = recorded(&trace, "a", Some(1));
        for slice in &mut expected[0].slices {
            slice.start_ns -= trace.origin_ns;
            slice.launched_ns = slice.launched_ns.map(|launched_ns| launched_ns - trace.origin_ns);
        }
        let prepared = pack_trace(trace);
        let chunks = prepared.chunks.into_iter().filter(|chunk| chunk.tier % 2 == 0);
        let columns = StoredColumns {
            overview: unpack_json(&prepared.overview).expect("ours"),
            names: prepared.names,
            chunks: chunks.map(|chunk| (chunk.columns, chunk.details)).collect(),
        };
        assert_eq!(recorded(&unpack_trace(columns).expect("ours"), "a", Some(1)), expected);
    }
}
