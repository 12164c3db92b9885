//! Sentences above the tables.

use planner::trace_comparison::{Cause, RankReport, TraceDifference, TraceTimes};

fn ms(ns: f64) -> String {
    format!("{:.3} ms", ns / 1e6)
}

/// States the length and the number of steps of each rank.
pub(super) fn times(ranks: &[TraceTimes]) -> String {
    let line = |rank: &TraceTimes| {
        let total = rank.phases.iter().find(|phase| phase.phase == "total").map_or(0, |phase| phase.time_ns);
        format!("{}, rank {}: {} on the device, {} steps\n", rank.name, rank.rank, ms(total as f64), rank.steps.len())
    };
    ranks.iter().map(line).collect()
}

/// States the difference of the total.
pub(super) fn difference(difference: &TraceDifference) -> String {
    let mut text = String::new();
    for (word, side) in [("before", &difference.before), ("after", &difference.after)] {
        text.push_str(&format!(
            "{word}: {}, rank {}, {} steps, {} kernels and copies",
            side.name, side.rank, side.steps, side.slices
        ));
        if side.left_out > 0 {
            text.push_str(&format!(", {} of them outside of the compared steps", side.left_out));
        }
        text.push('\n');
    }
    if let Some(total) = difference.phases.iter().find(|phase| phase.phase == "total") {
        let share = if total.before_ns == 0 { 0.0 } else { total.difference_ns as f64 / total.before_ns as f64 };
        let over = match difference.steps.len() {
            0 => "the complete traces".to_owned(),
            1 => "1 step".to_owned(),
            count => format!("{count} steps"),
        };
        text.push_str(&format!(
            "total over {over}: {} before, {} after, {:+.1} %\n",
            ms(total.before_ns as f64),
            ms(total.after_ns as f64),
            100.0 * share
        ));
    }
    notes(&mut text, &difference.notes);
    text
}

/// Names the straggler and the reason.
pub(super) fn straggler(report: &RankReport) -> String {
    let mut text = format!(
        "{} collectives on {} ranks, {} of waiting in sum\n",
        report.collectives,
        report.ranks.len(),
        ms(report.wait_ns as f64)
    );
    if let Some(straggler) = &report.straggler {
        text.push_str(&format!(
            "straggler: rank {} causes {:.1} % of the waiting and arrives last in {:.1} % of the collectives",
            straggler.rank,
            100.0 * straggler.caused_share,
            100.0 * straggler.last_share
        ));
        if let Some(share) = straggler.step_share {
            text.push_str(&format!(", and causes the longest wait in {:.1} % of the steps", 100.0 * share));
        }
        text.push_str(&format!("\nreason: {}\n", reason(straggler.cause)));
        text.push_str(&format!(
            "against the median of the other ranks: compute {:+.3} ms, idle {:+.3} ms, copies {:+.3} ms",
            straggler.excess_compute_ns as f64 / 1e6,
            straggler.excess_idle_ns as f64 / 1e6,
            straggler.excess_copy_ns as f64 / 1e6
        ));
        if let Some(ratio) = straggler.same_kernels_ratio {
            text.push_str(&format!("; the same kernels take {ratio:.3} times as long"));
        }
        text.push('\n');
    }
    notes(&mut text, &report.notes);
    text
}

const fn reason(cause: Cause) -> &'static str {
    match cause {
        Cause::SlowerKernels => "the same kernels take longer: the device is slower, or runs at a lower clock",
        Cause::MoreWork => "it runs more kernels, or other kernels: it has more work",
        Cause::Host => "its device is idle: the host launches late, for example because of data loading",
        Cause::Copies => "copies take longer",
        Cause::Unknown => "its device takes no longer than the others; a link or the start of the step may be late",
    }
}

fn notes(text: &mut String, notes: &[String]) {
    for note in notes {
        text.push_str(&format!("note: {note}\n"));
    }
}
