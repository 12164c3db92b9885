//! Text descriptions of spans for the selection panel, the tooltip and screen readers.

use api::planner::timeline::{NO_SPAN, SpanKind, Timeline};

use super::rows::RowNames;
use super::time_text::{duration, interval, memory, range};
use super::traversal::is_critical;

/// Span description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Details {
    /// For example "Rank 2 · backward · microbatch 7".
    pub(crate) title: String,
    /// Name and value pairs.
    pub(crate) rows: Vec<(String, String)>,
    /// For example "stage 3, backward of microbatch 7, 12.4 to 19.1 ms, waits 2.2 ms".
    pub(crate) spoken: String,
}

impl Details {
    /// Describes a span of the timeline. Returns an empty description for an invalid index.
    pub(crate) fn new(timeline: &Timeline, span: usize) -> Self {
        Self::named(timeline, span, &RowNames::from_timeline(timeline))
    }

    /// Same as [`Self::new`] with known row names. Computing the row names is linear in the span
    /// count.
    pub(super) fn named(timeline: &Timeline, span: usize, names: &RowNames) -> Self {
        let Some(kind) = timeline.kind.get(span).copied().and_then(SpanKind::from_index) else {
            return Self { title: String::new(), rows: Vec::new(), spoken: String::new() };
        };
        let rank = timeline.span_rank(span);
        let (start, end) = (timeline.start_ns[span] as f64, timeline.end_ns(span) as f64);
        let waited = waited_ns(timeline, span);
        let name = name(kind);
        let row = names.text(rank);

        let mut rows =
            vec![("Start – end".to_owned(), range(start, end)), ("Duration".to_owned(), duration(end - start))];
        if has_microbatch(kind) {
            if names.is_grouped() {
                rows.push(("Ranks of the group".to_owned(), ranks(&timeline.span_ranks(span))));
            } else {
                let stage_text = names.stage(rank).map(|(pipeline, stage)| format!("{stage} of pipeline {pipeline}"));
                rows.push(("Stage".to_owned(), stage_text.unwrap_or_else(|| stage(timeline, span))));
            }
        }
        let exposed = timeline.span_exposed_ns(span);
        if exposed > 0 {
            rows.push(("Exposed communication".to_owned(), time_share(exposed as f64, end - start)));
        }
        rows.push(("Waited".to_owned(), describe_wait(timeline, names, span, waited)));
        if has_microbatch(kind)
            && let Some(shape) = timeline.microbatches.get(timeline.microbatch[span] as usize)
            // A schedule without a model has no samples and tokens.
            && shape.tokens > 0
        {
            rows.push(("Samples".to_owned(), grouped(u64::from(shape.samples))));
            rows.push(("Tokens".to_owned(), grouped(u64::from(shape.tokens))));
            if shape.images > 0 {
                rows.push(("Images".to_owned(), grouped(u64::from(shape.images))));
            }
            if shape.audio_clips > 0 {
                rows.push(("Clips of sound".to_owned(), grouped(u64::from(shape.audio_clips))));
            }
            if shape.video_ms > 0 {
                rows.push(("Video".to_owned(), duration(shape.video_ms as f64 * 1e6)));
            }
        }
        if kind.is_compute_lane()
            && let Some(bytes) = memory_at(timeline, rank, timeline.end_ns(span))
        {
            rows.push(("Memory after".to_owned(), memory(bytes)));
        }
        let critical = if is_critical(timeline, span) { "yes" } else { "no" };
        rows.push(("On the critical path".to_owned(), critical.to_owned()));

        let (from, to, unit) = interval(start, end);
        let pause = if waited > 0 { format!(", waits {}", duration(waited as f64)) } else { String::new() };
        let (title, subject) = if has_microbatch(kind) {
            let microbatch = timeline.microbatch[span];
            if names.is_grouped() {
                (
                    format!("Rank {rank} · {name} · group {microbatch}"),
                    format!("rank {rank}, {name} of group {microbatch}"),
                )
            } else {
                let subject = match names.stage(rank) {
                    Some(_) => format!("{row}, {name} of microbatch {microbatch}"),
                    None => format!("stage {}, {name} of microbatch {microbatch}", timeline.stage[span]),
                };
                (format!("{} · {name} · microbatch {microbatch}", capital(&row)), subject)
            }
        } else {
            (format!("{} · {name}", capital(&row)), format!("{row}, {name}"))
        };
        Self { title, rows, spoken: format!("{subject}, {from} to {to} {unit}{pause}") }
    }
}

/// Formats a duration and its percentage of the action: "1.20 ms, 8.0 %".
fn time_share(ns: f64, total_ns: f64) -> String {
    let share = if total_ns > 0.0 { ns / total_ns } else { 0.0 };
    format!("{}, {}", duration(ns), crate::format::percent(share))
}

/// Capitalizes the first letter.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Formats rank count and ranks: "4: 0–2, 7".
fn ranks(ranks: &[usize]) -> String {
    let runs = ranks.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [single] => single.to_string(),
        [first, .., last] => format!("{first}–{last}"),
        [] => String::new(),
    });
    format!("{}: {}", ranks.len(), runs.collect::<Vec<_>>().join(", "))
}

/// Display name.
pub(crate) const fn name(kind: SpanKind) -> &'static str {
    match kind {
        SpanKind::Forward => "forward",
        SpanKind::Backward => "backward",
        SpanKind::InputGrad => "input gradient",
        SpanKind::WeightGrad => "weight gradient",
        SpanKind::SendForward => "send activations",
        SpanKind::SendBackward => "send gradients",
        SpanKind::GradientSync => "gradient sync",
        SpanKind::Optimizer => "optimizer",
    }
}

/// Returns true if spans of this kind belong to a microbatch.
pub(crate) const fn has_microbatch(kind: SpanKind) -> bool {
    !matches!(kind, SpanKind::GradientSync | SpanKind::Optimizer)
}

/// Idle time of the lane before a span, in ns.
pub(crate) fn waited_ns(timeline: &Timeline, span: usize) -> u64 {
    let follows = !timeline.lane_offsets.iter().any(|&offset| offset as usize == span);
    let free = if follows { timeline.end_ns(span - 1) } else { 0 };
    timeline.start_ns[span].saturating_sub(free)
}

fn describe_wait(timeline: &Timeline, names: &RowNames, span: usize, waited: u64) -> String {
    if waited == 0 {
        return "not at all".to_owned();
    }
    let waited = duration(waited as f64);
    let bound = timeline.bound_by[span];
    let Some(kind) =
        timeline.kind.get(bound as usize).copied().filter(|_| bound != NO_SPAN).and_then(SpanKind::from_index)
    else {
        return waited;
    };
    let bound = bound as usize;
    // Same name as in the row header.
    let row = names.header(timeline.span_rank(bound));
    if has_microbatch(kind) {
        format!("{waited} for {} of microbatch {} on {row}", name(kind), timeline.microbatch[bound])
    } else {
        format!("{waited} for {} on {row}", name(kind))
    }
}

fn stage(timeline: &Timeline, span: usize) -> String {
    let stage = timeline.stage[span];
    match stage.checked_div(timeline.ranks) {
        Some(chunk) if timeline.stage.iter().any(|&other| other >= timeline.ranks) => {
            format!("{stage} (chunk {chunk})")
        }
        _ => stage.to_string(),
    }
}

/// The rank's memory in bytes after all events at time `ns`.
fn memory_at(timeline: &Timeline, rank: usize, ns: u64) -> Option<u64> {
    let curve = timeline.memory.get(rank)?;
    let after = curve.time_ns.partition_point(|&time| time <= ns);
    curve.bytes.get(after.checked_sub(1)?).copied()
}

/// Formats a count with thousands separators.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn value<'a>(details: &'a Details, name: &str) -> &'a str {
        details.rows.iter().find(|row| row.0 == name).map_or("absent", |row| row.1.as_str())
    }

    #[test]
    fn backward_names_its_dependency() {
        let timeline = sample::one_f_one_b(2, 3);
        // Rank 0: F0 at 0-1000, F1 at 1000-2000. Rank 1: F0 at 1100-2100, B0 at 2100-4100, then a
        // send until 4200. So B0 on rank 0 starts at 4200 after 2200 ns of idle time.
        let span = timeline.compute_lane(0).start + 2;
        let details = Details::new(&timeline, span);
        assert_eq!(details.title, "Rank 0 · backward · microbatch 0");
        assert_eq!(details.spoken, "stage 0, backward of microbatch 0, 4.20 to 6.20 µs, waits 2.20 µs");
        assert_eq!(value(&details, "Start – end"), "4.20 – 6.20 µs");
        assert_eq!(value(&details, "Duration"), "2.00 µs");
        assert_eq!(value(&details, "Waited"), "2.20 µs for send gradients of microbatch 0 on rank 1");
        assert_eq!(value(&details, "Tokens"), "4,096");
        assert_eq!(value(&details, "Memory after"), "1.0 GiB");
        assert_eq!(value(&details, "On the critical path"), "yes");
    }

    #[test]
    fn first_span_in_lane_waits_from_start() {
        let timeline = sample::one_f_one_b(2, 3);
        assert_eq!(waited_ns(&timeline, timeline.compute_lane(1).start), 1_100);
        assert_eq!(waited_ns(&timeline, 0), 0);
        assert_eq!(value(&Details::new(&timeline, 0), "Waited"), "not at all");
    }

    #[test]
    fn communication_inside_an_action_has_a_row() {
        let mut timeline = sample::one_f_one_b(2, 3);
        assert_eq!(value(&Details::new(&timeline, 0), "Exposed communication"), "absent");
        timeline.exposed_ns = vec![0; timeline.len()];
        timeline.exposed_ns[0] = 250;
        let text = value(&Details::new(&timeline, 0), "Exposed communication").replace('\u{202f}', " ");
        assert_eq!(text, "250 ns, 25.0 %");
    }

    #[test]
    fn sound_and_video_are_named_where_there_are_any() {
        let mut timeline = sample::one_f_one_b(2, 3);
        assert_eq!(value(&Details::new(&timeline, 0), "Clips of sound"), "absent");
        assert_eq!(value(&Details::new(&timeline, 0), "Video"), "absent");
        (timeline.microbatches[0].audio_clips, timeline.microbatches[0].video_ms) = (1200, 15_500);
        assert_eq!(value(&Details::new(&timeline, 0), "Clips of sound"), "1,200");
        assert_eq!(value(&Details::new(&timeline, 0), "Video"), "15.5 s");
    }

    #[test]
    fn parallel_pipelines_are_named_by_stage() {
        let mut timeline = sample::one_f_one_b(2, 3);
        let second = timeline.compute_lane(1);
        for span in 0..timeline.len() {
            timeline.microbatch[span] = u32::from(second.contains(&span));
        }
        let details = Details::new(&timeline, second.start);
        assert_eq!(details.title, "Pipeline 1 stage 0 · forward · microbatch 1");
        assert_eq!(value(&details, "Stage"), "0 of pipeline 1");
        assert!(details.spoken.starts_with("pipeline 1 stage 0, forward of microbatch 1"), "{}", details.spoken);
    }

    #[test]
    fn group_is_named_by_its_ranks() {
        assert_eq!(ranks(&[0, 1, 2, 7]), "4: 0–2, 7");
        let mut timeline = sample::one_f_one_b(2, 3);
        assert!(!timeline.is_grouped());
        timeline.stage.fill(0);
        assert!(timeline.is_grouped());
        let details = Details::new(&timeline, timeline.compute_lane(1).start);
        assert!(details.title.starts_with("Rank 1 · forward · group "), "{}", details.title);
        assert_eq!(details.rows[2].0, "Ranks of the group");
    }

    #[test]
    fn an_optimizer_step_has_no_microbatch() {
        let details = Details::new(&sample::lane(&[(0, 0, 100), (7, 100, 300)]), 1);
        assert_eq!(details.title, "Rank 0 · optimizer");
        assert_eq!(details.spoken, "rank 0, optimizer, 100 to 300 ns");
        assert_eq!(value(&details, "Tokens"), "absent");
    }

    #[test]
    fn a_span_that_does_not_exist_is_empty() {
        assert!(Details::new(&sample::lane(&[]), 5).rows.is_empty());
    }

    #[test]
    fn thousands_are_separated() {
        for (count, expected) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(count), expected);
        }
    }
}
