//! Context-parallel groups by microbatch, in DHP notation.

use api::planner::outcome::{DegreeGroups, IterationGroups, MicrobatchGroups};
use leptos::prelude::*;

use super::range;
use crate::format;

/// Number of microbatches before "show all".
const FIRST: usize = 12;

/// Text above the table.
fn caption(groups: &IterationGroups) -> String {
    let lookups = groups.pool_hits + groups.pool_misses;
    let pool = match lookups {
        0 => "no group of more than one rank".to_owned(),
        _ => format!(
            "{} of {} communication groups exist already, and creating the others takes {} during the previous batch",
            groups.pool_hits,
            lookups,
            format::seconds(groups.creation_s)
        ),
    };
    format!(
        "{}, estimated {}; in the simulation the busiest rank works {}, the mean {}; {pool}.",
        format::counted(groups.microbatches.len() as u64, "microbatch", "microbatches"),
        format::seconds(groups.estimated_s),
        format::seconds(groups.busiest_s),
        format::seconds(groups.mean_s)
    )
}

/// Returns the maximum sequence length in tokens over all groups.
fn max_length(groups: &IterationGroups) -> u32 {
    let degrees = groups.microbatches.iter().flat_map(|microbatch| &microbatch.degrees);
    degrees.map(|degree| degree.longest).max().unwrap_or(1)
}

pub(super) fn show(groups: IterationGroups) -> impl IntoView {
    let all = RwSignal::new(false);
    let caption = caption(&groups);
    let axis_max = max_length(&groups);
    let count = groups.microbatches.len();
    let rows = move || {
        let visible_count = if all.get() { count } else { count.min(FIRST) };
        let numbered = groups.microbatches.iter().take(visible_count).enumerate();
        numbered.map(|(number, microbatch)| lines(number, microbatch, axis_max)).collect_view()
    };
    let has_more = move || count > FIRST && !all.get();
    let headings =
        ["Microbatch", "Degrees", "Degree", "Groups", "Sequences", "Tokens", "Lengths", "Range", "Estimate", "Idle"]
            .map(|text| view! { <th scope="col">{text}</th> });
    view! {
        <p class="hint" data-testid="assignment-caption">{caption}</p>
        <div class="table-scroll" role="region" aria-label="Groups by microbatch" tabindex="0">
            <table class="figures assignment" data-testid="assignment-table">
                <thead><tr>{headings}</tr></thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
        <Show when=has_more>
            <button class="link" on:click=move |_| all.set(true)>{format!("Show all {count} microbatches")}</button>
        </Show>
    }
}

/// Returns a row per degree. Only the first row contains the microbatch number.
fn lines(number: usize, microbatch: &MicrobatchGroups, axis_max: u32) -> impl IntoView + use<> {
    let rows = microbatch.degrees.len().max(1).to_string();
    let estimate = format::seconds(microbatch.estimated_s);
    let idle = match microbatch.idle_ranks {
        0 => "–".to_owned(),
        ranks => ranks.to_string(),
    };
    let notation = microbatch.notation.clone();
    let first = view! {
        <th scope="rowgroup" rowspan=rows.clone()>{number.to_string()}</th>
        <td class="notation" rowspan=rows.clone()>{notation}</td>
    };
    let last = view! {
        <td rowspan=rows.clone()>{estimate}</td>
        <td rowspan=rows>{idle}</td>
    };
    let mut degrees = microbatch.degrees.iter();
    let head = degrees.next().map(|degree| cells(degree, axis_max));
    let others = degrees.map(|degree| view! { <tr>{cells(degree, axis_max)}</tr> }).collect_view();
    view! {
        <tr class="first-of-group">{first}{head}{last}</tr>
        {others}
    }
}

fn cells(degree: &DegreeGroups, axis_max: u32) -> impl IntoView + use<> {
    let lengths = if degree.shortest == degree.longest {
        format::count(degree.longest.into())
    } else {
        format!("{} – {}", format::count(degree.shortest.into()), format::count(degree.longest.into()))
    };
    view! {
        <td>{degree.degree}</td>
        <td>{degree.groups}</td>
        <td>{format::count(degree.sequences.into())}</td>
        <td>{format::count(degree.tokens)}</td>
        <td>{lengths}</td>
        <td class="lengths">{range(degree.shortest, None, degree.longest, axis_max)}</td>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caption_tells_estimate_balance_and_pool() {
        let groups = IterationGroups {
            estimated_s: 2.0,
            busiest_s: 2.1,
            mean_s: 1.9,
            pool_hits: 3,
            pool_misses: 1,
            creation_s: 0.1,
            microbatches: Vec::new(),
        };
        assert_eq!(
            caption(&groups).replace('\u{202f}', " "),
            "0 microbatches, estimated 2.00 s; in the simulation the busiest rank works 2.10 s, the mean 1.90 s; 3 of 4 communication groups exist already, and creating the others takes 100 ms during the previous batch."
        );
        let single_ranks = IterationGroups { pool_hits: 0, pool_misses: 0, ..groups };
        assert!(caption(&single_ranks).ends_with("no group of more than one rank."));
    }
}
