//! Draws the actions per rank, with a character per time interval.

use planner::schedule_comparison::ScheduleReport;
use planner::timeline::{SpanKind, Timeline};

/// Maximum row width in characters.
const WIDTH: u64 = 100;

/// Draws a row per rank: F, B, I, W for actions in the first chunk, lower case for other chunks,
/// and a dot for idle time. Each character represents the action at the midpoint of its interval.
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

/// Number of intervals. The shortest action occupies a character, unless the width limit is
/// exceeded.
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
