//! Context-parallel groups by microbatch, in DHP notation.

use api::planner::outcome::{DegreeGroups, IterationGroups, MicrobatchGroups};
use leptos::prelude::*;

use super::range;
use crate::format;

/// Number of microbatches before "show all".
const FIRST: usize = 12;

/// Text above the table.
fn caption(of: &IterationGroups) -> String {
    let asked = of.pool_hits + of.pool_misses;
    let pool = match asked {
        0 => "no group of more than one rank".to_owned(),
        _ => format!(
            "{} of {} communication groups were in the pool, making the others costs {} beside the batch before",
            of.pool_hits,
            asked,
            format::seconds(of.creation_s)
        ),
    };
    format!(
        "{} microbatches, estimated {}; in the simulation the busiest rank works {}, the mean {}; {pool}.",
        of.microbatches.len(),
        format::seconds(of.estimated_s),
        format::seconds(of.busiest_s),
        format::seconds(of.mean_s)
    )
}

/// Returns the maximum sequence length in tokens over all groups.
fn longest(of: &IterationGroups) -> u32 {
    let degrees = of.microbatches.iter().flat_map(|microbatch| &microbatch.degrees);
    degrees.map(|degree| degree.longest).max().unwrap_or(1)
}

pub(super) fn show(of: IterationGroups) -> impl IntoView {
    let all = RwSignal::new(false);
    let caption = caption(&of);
    let most = longest(&of);
    let count = of.microbatches.len();
    let rows = move || {
        let shown = if all.get() { count } else { count.min(FIRST) };
        let numbered = of.microbatches.iter().take(shown).enumerate();
        numbered.map(|(number, microbatch)| lines(number, microbatch, most)).collect_view()
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
fn lines(number: usize, microbatch: &MicrobatchGroups, most: u32) -> impl IntoView + use<> {
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
    let head = degrees.next().map(|degree| cells(degree, most));
    let others = degrees.map(|degree| view! { <tr>{cells(degree, most)}</tr> }).collect_view();
    view! {
        <tr class="first-of-group">{first}{head}{last}</tr>
        {others}
    }
}

fn cells(of: &DegreeGroups, most: u32) -> impl IntoView + use<> {
    let lengths = if of.shortest == of.longest {
        format::count(of.longest.into())
    } else {
        format!("{} – {}", format::count(of.shortest.into()), format::count(of.longest.into()))
    };
    view! {
        <td>{of.degree}</td>
        <td>{of.groups}</td>
        <td>{format::count(of.sequences.into())}</td>
        <td>{format::count(of.tokens)}</td>
        <td>{lengths}</td>
        <td class="lengths">{range(of.shortest, None, of.longest, most)}</td>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caption_tells_estimate_balance_and_pool() {
        let of = IterationGroups {
            estimated_s: 2.0,
            busiest_s: 2.1,
            mean_s: 1.9,
            pool_hits: 3,
            pool_misses: 1,
            creation_s: 0.1,
            microbatches: Vec::new(),
        };
        assert_eq!(
            caption(&of).replace('\u{202f}', " "),
            "0 microbatches, estimated 2.00 s; in the simulation the busiest rank works 2.10 s, the mean 1.90 s; 3 of 4 communication groups were in the pool, making the others costs 100 ms beside the batch before."
        );
        let alone = IterationGroups { pool_hits: 0, pool_misses: 0, ..of };
        assert!(caption(&alone).ends_with("no group of more than one rank."));
    }
}
