//! Comparison of traces: two traces before and after a change, and the ranks of a run.
//!
//! The server computes all tables. [`sorting`] orders rows, and [`axis`] converts segments to
//! paths; both are pure and tested natively.

mod axis;
mod before_after;
mod ranks;
mod sorted_table;
mod sorting;

pub(crate) use before_after::DifferenceCard;
pub(crate) use ranks::RanksCard;

use api::trace::TraceSummary;

/// Returns the label of a trace in a list.
fn label(trace: &TraceSummary) -> String {
    let rank = trace.rank.map_or_else(String::new, |rank| format!(", rank {rank}"));
    let run = trace.run.as_deref().map_or_else(String::new, |run| format!(" · {run}"));
    format!("{}{rank}{run}", trace.name)
}
