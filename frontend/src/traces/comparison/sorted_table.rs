//! Table whose rows the user sorts, with a link to the CSV.

use leptos::prelude::*;

use super::sorting::{Cell, order};
use crate::format;

/// Number of rows before the button for all rows.
const FIRST_ROWS: usize = 25;

/// Column title and true for numbers.
pub(super) type Heading = (&'static str, bool);

#[component]
pub(super) fn SortedTable(
    title: &'static str,
    test_id: &'static str,
    headings: Vec<Heading>,
    rows: Vec<Vec<Cell>>,
    /// URL of the CSV.
    csv: String,
) -> impl IntoView {
    let sorted = RwSignal::new(None::<(usize, bool)>);
    let all = RwSignal::new(rows.len() <= FIRST_ROWS);
    let count = rows.len();
    let heads = headings.clone().into_iter().enumerate().map(|(column, (name, is_number))| {
        let direction = move || match sorted.get() {
            Some((by, false)) if by == column => "ascending",
            Some((by, true)) if by == column => "descending",
            _ => "none",
        };
        let mark = move || match direction() {
            "ascending" => " ▲",
            "descending" => " ▼",
            _ => "",
        };
        // Numbers begin with the largest, names with the first.
        let turn = move |_| {
            sorted.update(|sorted| {
                let before = sorted.filter(|(by, _)| *by == column);
                *sorted = Some((column, before.map_or(is_number, |(_, descending)| !descending)));
            });
        };
        let class = match name {
            _ if is_number => "number",
            "Type" => "trace-type",
            _ => "",
        };
        view! {
            <th scope="col" class=class aria-sort=direction>
                <button class="sort" on:click=turn>{name}<span aria-hidden="true">{mark}</span></button>
            </th>
        }
    });
    let heads = heads.collect_view();
    let rows = StoredValue::new(rows);
    let body = move || {
        let (sorted, all) = (sorted.get(), all.get());
        rows.with_value(|rows| {
            let indices = sorted
                .map_or_else(|| (0..rows.len()).collect(), |(column, descending)| order(rows, column, descending));
            let shown = if all { indices.len() } else { FIRST_ROWS };
            let row = |index: usize| {
                let cells = rows[index].iter().zip(&headings).map(|(cell, (name, is_number))| {
                    let class = match *name {
                        _ if *is_number => "number",
                        // A word, which must not be broken.
                        "Type" => "trace-type",
                        _ => "trace-name",
                    };
                    view! { <td class=class>{cell.text.clone()}</td> }
                });
                view! { <tr>{cells.collect_view()}</tr> }
            };
            indices.into_iter().take(shown).map(row).collect_view()
        })
    };
    view! {
        <h3>{title}</h3>
        <div class="table-scroll" role="region" aria-label=title tabindex="0" data-testid=test_id>
            <table class="list sorted">
                <thead><tr>{heads}</tr></thead>
                <tbody>{body}</tbody>
            </table>
        </div>
        <p class="trace-below">
            <Show when=move || !all.get()>
                <button on:click=move |_| all.set(true)>{format!("Show all {} rows", format::count(count as u64))}</button>
            </Show>
            <a class="button" href=csv download="">"Download CSV"</a>
        </p>
    }
}
