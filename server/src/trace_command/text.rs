//! Sentences above the tables.

use planner::trace_comparison::{Cause, RankReport, Straggler, TraceDifference, TraceSide, TraceTimes};

fn ms(ns: u64) -> String {
    format!("{:.3} ms", ns as f64 / 1e6)
}

fn change(ns: i64) -> String {
    format!("{:+.3} ms", ns as f64 / 1e6)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// States the length and the number of steps of each rank.
pub(super) fn times(ranks: &[TraceTimes]) -> String {
    let line = |rank: &TraceTimes| {
        let total = rank.phases.iter().find(|phase| phase.phase == "total").map_or(0, |phase| phase.time_ns);
        let steps = match rank.steps.len() {
            0 => "no steps".to_owned(),
            count => {
                let sum_ns = rank.steps.iter().map(|step| step.time_ns).sum();
                format!("{count} steps, {} in sum with the idle time after their last kernel", ms(sum_ns))
            }
        };
        format!(
            "{}, rank {}: {} from the first kernel to the end of the last; {steps}",
            rank.name,
            rank.rank,
            ms(total)
        )
    };
    joined(ranks.iter().map(line).collect(), &[])
}

/// States the difference of the total.
pub(super) fn difference(difference: &TraceDifference) -> String {
    let mut lines = vec![side("before", &difference.before), side("after", &difference.after)];
    if let Some(total) = difference.phases.iter().find(|phase| phase.phase == "total") {
        let share = if total.before_ns == 0 { 0.0 } else { total.difference_ns as f64 / total.before_ns as f64 };
        let over = match difference.steps.len() {
            0 => "the complete traces".to_owned(),
            1 => "1 step".to_owned(),
            count => format!("{count} steps"),
        };
        let (before, after) = (ms(total.before_ns), ms(total.after_ns));
        lines.push(format!("total over {over}: {before} before, {after} after, {:+.1} %", 100.0 * share));
    }
    joined(lines, &difference.notes)
}

fn side(word: &str, side: &TraceSide) -> String {
    let TraceSide { name, rank, steps, slices, left_out } = side;
    let outside = match left_out {
        0 => String::new(),
        _ => format!(", {left_out} of them outside of the compared steps"),
    };
    format!("{word}: {name}, rank {rank}, {steps} steps, {slices} kernels and copies{outside}")
}

/// Names the straggler and the reason.
pub(super) fn straggler(report: &RankReport) -> String {
    let (collectives, ranks) = (report.collectives, report.ranks.len());
    let mut lines =
        vec![format!("{collectives} collectives on {ranks} ranks, {} of waiting in sum", ms(report.wait_ns))];
    let over = match report.steps.len() {
        0 => String::new(),
        1 => " in 1 step".to_owned(),
        count => format!(" in {count} steps"),
    };
    lines.extend(report.straggler.iter().flat_map(|straggler| described(straggler, &over)));
    joined(lines, &report.notes)
}

fn described(straggler: &Straggler, over: &str) -> [String; 4] {
    let is_one = straggler.slow_ranks.len() < 2;
    let (causes, arrives) = if is_one { ("causes", "arrives") } else { ("cause", "arrive") };
    let steps = straggler.step_share.map_or_else(String::new, |share| {
        format!(", and {causes} the longest wait in {} of the steps", percent(share))
    });
    let ratio = straggler
        .same_kernels_ratio
        .map_or_else(String::new, |ratio| format!("; the same kernels take {ratio:.3} times as long"));
    let (word, of) = if is_one {
        ("straggler", "against the median of the other ranks".to_owned())
    } else {
        ("stragglers", format!("rank {} against the median of the ranks that are not slow", straggler.rank))
    };
    [
        format!(
            "{word}: {} {causes} {} of the waiting and {arrives} last in {} of the collectives{steps}",
            straggler.named(),
            percent(straggler.caused_share),
            percent(straggler.last_share)
        ),
        format!("reason: {}", reason(straggler.cause)),
        format!("lost: about {} of each other rank{over}", ms(straggler.lost_ns)),
        format!(
            "{of}: compute {}, idle {}, copies {}{ratio}",
            change(straggler.excess_compute_ns),
            change(straggler.excess_idle_ns),
            change(straggler.excess_copy_ns)
        ),
    ]
}

const fn reason(cause: Cause) -> &'static str {
    match cause {
        Cause::SlowerKernels => "the same kernels take longer: the device is slower, or runs at a lower clock",
        Cause::MoreWork => "more kernels, or other kernels: more work",
        Cause::Host => "the device is idle: the host launches late, for example because of data loading",
        Cause::Copies => "copies take longer",
        Cause::Unknown => "the device takes no longer than the others; a link or the start of the step may be late",
    }
}

/// Joins lines and notes.
fn joined(mut lines: Vec<String>, notes: &[String]) -> String {
    lines.extend(notes.iter().map(|note| format!("note: {note}")));
    lines.join("\n") + "\n"
}
