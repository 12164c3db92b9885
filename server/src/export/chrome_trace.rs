//! Exports a timeline as Chrome trace events, for the Perfetto viewer.
//!
//! Actions have the same names as in torch pipelines (`PP:0F3`), so a plan uploaded as a trace
//! yields the same actions.

use std::fmt::Write;

use planner::timeline::{SpanKind, Timeline};

/// Approximate size of an event in bytes.
const EVENT: usize = 96;

/// Formats the trace as JSON. Times are in microseconds with three decimals, which is exact to the
/// nanosecond.
pub(crate) fn chrome_trace(timeline: &Timeline) -> String {
    let mut out = String::with_capacity(timeline.len() * EVENT + timeline.ranks as usize * EVENT * 3 + EVENT);
    out.push_str("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    let mut comma = "\n";
    for rank in 0..timeline.ranks as usize {
        for (label, thread, value) in [
            ("process_name", 0, format!("{{\"name\":\"rank {rank}\"}}")),
            ("process_sort_index", 0, format!("{{\"sort_index\":{rank}}}")),
            ("thread_name", 0, "{\"name\":\"compute\"}".to_owned()),
            ("thread_name", 1, "{\"name\":\"send\"}".to_owned()),
        ] {
            push(
                &mut out,
                format_args!(
                    "{comma}{{\"name\":\"{label}\",\"ph\":\"M\",\"pid\":{rank},\"tid\":{thread},\"args\":{value}}}"
                ),
            );
            comma = ",\n";
        }
        for lane in [0, 1] {
            let offset = |at: usize| timeline.lane_offsets.get(rank * 2 + at).map_or(0, |offset| *offset as usize);
            for span in offset(lane)..offset(lane + 1) {
                let name = name(timeline, span);
                let (start, long) = (timeline.start_ns[span], timeline.duration_ns[span]);
                push(
                    &mut out,
                    format_args!(
                        ",\n{{\"name\":\"{name}\",\"ph\":\"X\",\"pid\":{rank},\"tid\":{lane},\"ts\":{}.{:03},\"dur\":{}.{:03}}}",
                        start / 1000,
                        start % 1000,
                        long / 1000,
                        long % 1000
                    ),
                );
            }
        }
    }
    out.push_str("\n]}\n");
    out
}

fn name(timeline: &Timeline, span: usize) -> String {
    let (stage, microbatch) = (timeline.stage[span], timeline.microbatch[span]);
    match SpanKind::from_index(timeline.kind[span]) {
        Some(SpanKind::GradientSync) => "gradient synchronisation".to_owned(),
        Some(SpanKind::Optimizer) => "Optimizer.step".to_owned(),
        Some(kind) => format!("PP:{stage}{}{microbatch}", kind.letter()),
        None => "unknown".to_owned(),
    }
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a String takes any text");
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn every_span_is_an_event_to_the_nanosecond() {
        // Rank 0 runs F3 of stage 0 from 1 ns to 2.0005 us, with a send of 7 ns. Rank 1 runs the
        // optimizer.
        let timeline = Timeline {
            ranks: 2,
            makespan_ns: 9_000,
            lane_offsets: vec![0, 1, 2, 3, 3],
            kind: vec![SpanKind::Forward as u8, SpanKind::SendForward as u8, SpanKind::Optimizer as u8],
            stage: vec![0, 0, 0],
            microbatch: vec![3, 3, 0],
            start_ns: vec![1, 2_001, 5_000],
            duration_ns: vec![1_999, 7, 4_000],
            ..Timeline::default()
        };
        let trace: Value = serde_json::from_str(&chrome_trace(&timeline)).expect("JSON");
        let events = trace["traceEvents"].as_array().expect("events");
        let slices: Vec<&Value> = events.iter().filter(|event| event["ph"] == "X").collect();
        let expected = [
            json!({"name": "PP:0F3", "ph": "X", "pid": 0, "tid": 0, "ts": 0.001, "dur": 1.999}),
            json!({"name": "PP:0SEND_F3", "ph": "X", "pid": 0, "tid": 1, "ts": 2.001, "dur": 0.007}),
            json!({"name": "Optimizer.step", "ph": "X", "pid": 1, "tid": 0, "ts": 5.0, "dur": 4.0}),
        ];
        assert_eq!(slices, expected.iter().collect::<Vec<_>>());
        assert_eq!(events.len(), 3 + 2 * 4);
    }
}
