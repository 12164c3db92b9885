//! Small timelines for unit tests.

use api::planner::timeline::{MemoryCurve, MicrobatchShape, NO_SPAN, Timeline};

/// Timeline with one rank and the given compute spans (kind, start, end), without sends.
pub(crate) fn lane(spans: &[(u8, u64, u64)]) -> Timeline {
    let count = spans.len();
    Timeline {
        ranks: 1,
        makespan_ns: spans.last().map_or(0, |span| span.2),
        lane_offsets: vec![0, count as u32, count as u32],
        kind: spans.iter().map(|span| span.0).collect(),
        stage: vec![0; count],
        microbatch: (0..count as u32).collect(),
        start_ns: spans.iter().map(|span| span.1).collect(),
        duration_ns: spans.iter().map(|span| span.2 - span.1).collect(),
        bound_by: (0..count).map(|span| span.checked_sub(1).map_or(NO_SPAN, |before| before as u32)).collect(),
        critical_path: Vec::new(),
        memory: vec![MemoryCurve { static_bytes: 0, peak_bytes: 0, time_ns: vec![0], bytes: vec![0] }],
        microbatches: vec![
            MicrobatchShape { samples: 2, tokens: 4_096, images: 3, ..MicrobatchShape::default() };
            count
        ],
        ..Timeline::default()
    }
}

/// Uniform 1F1B: forward 1,000 ns, backward 2,000 ns, sends 100 ns.
pub(crate) fn one_f_one_b(ranks: usize, microbatches: usize) -> Timeline {
    const FORWARD: u64 = 1_000;
    const BACKWARD: u64 = 2_000;
    const SEND: u64 = 100;
    struct Span {
        kind: u8,
        microbatch: usize,
        start: u64,
        duration: u64,
        bound: Option<(usize, usize)>,
    }
    let orders: Vec<Vec<(u8, usize)>> = (0..ranks)
        .map(|rank| {
            let warm_up = (ranks - rank).min(microbatches);
            let mut order: Vec<(u8, usize)> = (0..warm_up).map(|microbatch| (0, microbatch)).collect();
            for microbatch in 0..microbatches {
                order.push((1, microbatch));
                if warm_up + microbatch < microbatches {
                    order.push((0, warm_up + microbatch));
                }
            }
            order
        })
        .collect();
    let mut lanes: Vec<Vec<Span>> = (0..2 * ranks).map(|_| Vec::new()).collect();
    let mut next = vec![0; ranks];
    loop {
        let mut moved = false;
        for rank in 0..ranks {
            let Some(&(kind, microbatch)) = orders[rank].get(next[rank]) else { continue };
            let source = match kind {
                0 => rank.checked_sub(1),
                _ => (rank + 1 < ranks).then_some(rank + 1),
            };
            let arrival = match source {
                None => (0, None),
                Some(sender) => {
                    let lane = 2 * sender + 1;
                    let sent = lanes[lane].iter().position(|s| s.kind == kind + 4 && s.microbatch == microbatch);
                    let Some(sent) = sent else { continue };
                    (lanes[lane][sent].start + SEND, Some((lane, sent)))
                }
            };
            let free = lanes[2 * rank]
                .last()
                .map_or((0, None), |last| (last.start + last.duration, Some((2 * rank, lanes[2 * rank].len() - 1))));
            let (start, bound) = if arrival.0 > free.0 { arrival } else { free };
            let duration = if kind == 0 { FORWARD } else { BACKWARD };
            lanes[2 * rank].push(Span { kind, microbatch, start, duration, bound });
            let sends = if kind == 0 { rank + 1 < ranks } else { rank > 0 };
            if sends {
                let predecessor = Some((2 * rank, lanes[2 * rank].len() - 1));
                lanes[2 * rank + 1].push(Span {
                    kind: kind + 4,
                    microbatch,
                    start: start + duration,
                    duration: SEND,
                    bound: predecessor,
                });
            }
            next[rank] += 1;
            moved = true;
        }
        if !moved {
            break;
        }
    }
    let mut timeline = Timeline { ranks: ranks as u32, ..Timeline::default() };
    let mut offsets = vec![0];
    for lane in &lanes {
        offsets.push(offsets.last().copied().unwrap_or(0) + lane.len() as u32);
    }
    for (number, lane) in lanes.iter().enumerate() {
        for span in lane {
            timeline.kind.push(span.kind);
            timeline.stage.push((number / 2) as u32);
            timeline.microbatch.push(span.microbatch as u32);
            timeline.start_ns.push(span.start);
            timeline.duration_ns.push(span.duration);
            timeline.bound_by.push(span.bound.map_or(NO_SPAN, |(lane, at)| offsets[lane] + at as u32));
            timeline.makespan_ns = timeline.makespan_ns.max(span.start + span.duration);
        }
    }
    timeline.lane_offsets = offsets;
    timeline.microbatches =
        vec![MicrobatchShape { samples: 2, tokens: 4_096, images: 3, ..MicrobatchShape::default() }; microbatches];
    timeline.memory =
        vec![MemoryCurve { static_bytes: 0, peak_bytes: 1 << 30, time_ns: vec![0], bytes: vec![1 << 30] }; ranks];
    let mut at = (0..timeline.len()).find(|&span| timeline.end_ns(span) == timeline.makespan_ns);
    while let Some(span) = at {
        timeline.critical_path.insert(0, span as u32);
        at = Some(timeline.bound_by[span]).filter(|&bound| bound != NO_SPAN).map(|bound| bound as usize);
    }
    timeline
}
