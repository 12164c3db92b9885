//! Grid view for a table. Keyboard commands select and move actions.

use std::collections::BTreeMap;

use api::planner::schedule::csv::CellAddress;
use api::planner::schedule_comparison::Refusal;
use leptos::html;
use leptos::prelude::*;

use super::deadlock::cell_position;
use super::grid::{CellPosition, Direction, Grid, action_letter};

/// Cell limit. Larger tables make the browser slow.
const MAX_CELLS: usize = 4_000;

/// Cell error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    class: &'static str,
    detail: String,
}

/// Cell errors by (row, column).
pub(super) type Marks = BTreeMap<(usize, usize), Mark>;

/// Returns the cells with errors.
pub(super) fn marks(refusal: &Refusal) -> Marks {
    let mut marks = Marks::new();
    let mut mark = |at: CellAddress, class: &'static str, detail: String| {
        let CellPosition { row, column } = cell_position(at);
        let mark = marks.entry((row, column)).or_insert(Mark { class, detail: String::new() });
        mark.detail.push_str(if mark.detail.is_empty() { "" } else { "; " });
        mark.detail.push_str(&detail);
    };
    for problem in &refusal.problems {
        if let Some(at) = problem.at {
            mark(at, "wrong", problem.detail.clone());
        }
    }
    for wait in &refusal.deadlock {
        mark(wait.at, "waits", format!("waits for {} in {}", wait.needs, wait.needs_cell));
        mark(wait.needs_at, "needed", format!("{} in {} waits for it", wait.action, wait.cell));
    }
    marks
}

/// Keyboard help for screen readers.
const KEYS: &str = "arrow keys select, Alt and an arrow moves the action, Delete leaves the cell idle";

#[component]
#[expect(clippy::too_many_lines, reason = "one view and its handlers")]
pub(super) fn GridView(
    /// Table name.
    name: String,
    /// Unique number on the page.
    number: usize,
    #[prop(into)] grid: Signal<Grid>,
    /// Errors by cell.
    #[prop(into)]
    marks: Signal<Marks>,
    /// Selected cell.
    selected: RwSignal<CellPosition>,
    /// Table element that receives the focus.
    node: NodeRef<html::Table>,
    /// Called with the changed grid.
    on_change: Callback<Grid>,
) -> impl IntoView {
    let id = move |position: CellPosition| format!("grid-{number}-{}-{}", position.row, position.column);
    let go = move |target: CellPosition| {
        selected.set(target);
        if let Some(cell) = document().get_element_by_id(&id(target)) {
            let options = web_sys::ScrollIntoViewOptions::new();
            options.set_block(web_sys::ScrollLogicalPosition::Nearest);
            options.set_inline(web_sys::ScrollLogicalPosition::Nearest);
            cell.scroll_into_view_with_scroll_into_view_options(&options);
        }
    };
    let key = move |event: web_sys::KeyboardEvent| {
        let position = selected.get_untracked();
        let now = grid.get_untracked();
        let key = event.key();
        if let Some(direction) = Direction::from_key(&key).filter(|_| !event.ctrl_key() && !event.meta_key()) {
            event.prevent_default();
            if !event.alt_key() {
                go(now.neighbour(position, direction));
            } else if let Some((changed, to)) = now.moved(position, direction) {
                on_change.run(changed);
                go(to);
            }
        } else if key == "Home" || key == "End" {
            event.prevent_default();
            let last = now.rows.get(position.row).map_or(0, |row| row.len().saturating_sub(1));
            go(CellPosition { column: if key == "Home" { 0 } else { last }, ..position });
        } else if (key == "Delete" || key == "Backspace")
            && let Some(changed) = now.cleared(position)
        {
            event.prevent_default();
            on_change.run(changed);
        }
    };
    let spoken = move || {
        let current = selected.get();
        let cell = grid.with(|grid| grid.at(current).to_owned());
        let content = if cell.is_empty() { "idle" } else { cell.as_str() };
        let detail =
            marks.with(|marks| marks.get(&(current.row, current.column)).map(|mark| format!(", {}", mark.detail)));
        format!("{} {content}{}", address(current), detail.unwrap_or_default())
    };
    let columns = move || grid.with(visible_columns);
    let head = move || {
        let heading = |column| {
            let letters = address(CellPosition { row: 0, column });
            view! { <th scope="col">{letters.trim_end_matches('1').to_owned()}</th> }
        };
        (0..columns()).map(heading).collect_view()
    };
    let body = move || {
        let (grid, marks) = (grid.get(), marks.get());
        let columns = visible_columns(&grid);
        let cell = |cell_position: CellPosition| {
            let text = grid.at(cell_position).to_owned();
            let mark = marks.get(&(cell_position.row, cell_position.column)).cloned();
            let (class, detail) = mark.map_or((None, None), |mark| (Some(mark.class), Some(mark.detail)));
            let action = action_letter(&text);
            view! {
                <td
                    id=id(cell_position)
                    role="gridcell"
                    class=class
                    title=detail
                    data-action=action
                    data-cell=address(cell_position)
                    aria-selected=move || (selected.get() == cell_position).to_string()
                    on:click=move |_| selected.set(cell_position)
                >
                    {text}
                </td>
            }
        };
        let row = |row: usize| {
            let cells = (0..columns).map(|column| cell(CellPosition { row, column }));
            view! { <tr role="row"><th scope="row">{row + 1}</th>{cells.collect_view()}</tr> }
        };
        (0..grid.rows.len()).map(row).collect_view()
    };
    let hidden = move || {
        let hidden = grid.with(|grid| grid.columns().saturating_sub(visible_columns(grid)));
        (hidden > 0).then(|| view! { <p class="hint">{format!("{hidden} columns more, in the text only")}</p> })
    };
    view! {
        <div class="table-scroll csv-scroll">
            <table
                role="grid"
                class="csv-grid"
                tabindex="0"
                node_ref=node
                data-testid="csv-grid"
                aria-label=[name, KEYS.to_owned()].join(": ")
                aria-activedescendant=move || id(selected.get())
                on:keydown=key
            >
                <thead><tr role="row"><td></td>{head}</tr></thead>
                <tbody>{body}</tbody>
            </table>
        </div>
        {hidden}
        <p class="hint" aria-live="polite" data-testid="grid-cell">{spoken}</p>
    }
}

/// Returns the visible column count: one more than the grid has, within the cell limit.
fn visible_columns(grid: &Grid) -> usize {
    (grid.columns() + 1).min(MAX_CELLS / grid.rows.len().max(1)).max(1)
}

/// Returns the spreadsheet address of a cell.
fn address(position: CellPosition) -> String {
    let to_number = |number: usize| u32::try_from(number + 1).unwrap_or(u32::MAX);
    CellAddress::new(to_number(position.row), to_number(position.column)).name()
}

#[cfg(test)]
mod tests {
    use api::planner::schedule::csv::read;

    use super::*;

    #[test]
    fn every_cell_named_by_a_rejection_is_marked() {
        let rejection = |table: &str| {
            let error = read(table).expect_err("refused");
            let detail = error.to_string();
            let deadlock = error.deadlock;
            Refusal { detail, problems: error.problems, further_problems: 0, deadlock }
        };
        let wrong = marks(&rejection("0F0,nonsense\n1F0,1B0\n"));
        assert_eq!(wrong.get(&(0, 1)).map(|mark| mark.class), Some("wrong"));
        let circle = marks(&rejection("0F0,0B0\n1B0,1F0\n"));
        let classes: Vec<_> = circle.iter().map(|(&at, mark)| (at, mark.class)).collect();
        assert_eq!(classes, [((1, 0), "waits"), ((1, 1), "needed")]);
        assert_eq!(address(CellPosition { row: 1, column: 27 }), "AB2");
    }
}
