//! What each rank runs, one character for a slice of time.

use planner::schedule_comparison::ScheduleReport;
use planner::timeline::{SpanKind, Timeline};

/// Characters of a row at most.
const WIDTH: u64 = 100;

/// A row for each rank: F, B, I, W of the first chunk, small letters for the others, a dot for waiting. Each character
/// stands for what runs in the middle of its slice.
pub(super) fn drawing(report: &ScheduleReport) -> String {
    let timeline = &report.timeline;
    let slices = slices(timeline);
    let digits = report.ranks.saturating_sub(1).to_string().len();
    let row = |rank: usize| {
        let middle = |slice: u64| (2 * slice + 1) * timeline.makespan_ns / (2 * slices);
        let letters: String = (0..slices).map(|slice| letter(report, rank, middle(slice))).collect();
        format!("{rank:>digits$} {}\n", letters.trim_end_matches('.'))
    };
    (0..report.ranks as usize).map(row).collect::<Vec<_>>().concat()
}

/// As many as make the shortest action a character, if that is not too many.
fn slices(timeline: &Timeline) -> u64 {
    let shortest = timeline.duration_ns.iter().copied().filter(|&duration| duration > 0).min().unwrap_or(1);
    (timeline.makespan_ns / shortest).clamp(1, WIDTH)
}

fn letter(report: &ScheduleReport, rank: usize, at: u64) -> char {
    let timeline = &report.timeline;
    let lane = timeline.compute_lane(rank);
    let begun = lane.start + timeline.start_ns[lane.clone()].partition_point(|&start| start <= at);
    let Some(span) = begun.checked_sub(1).filter(|&span| span >= lane.start && timeline.end_ns(span) > at) else {
        return '.';
    };
    let letter = SpanKind::from_index(timeline.kind[span]).and_then(|kind| kind.letter().chars().next()).unwrap_or('?');
    if timeline.stage[span] < report.ranks { letter } else { letter.to_ascii_lowercase() }
}
