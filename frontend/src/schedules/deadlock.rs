//! Errors in a table: invalid cells, or a cycle of actions that wait for each other.

use api::planner::schedule::csv::{CellAddress, CellWait, TableProblem};
use api::planner::schedule_comparison::Refusal;
use leptos::prelude::*;

use super::grid::CellPosition;

/// Grid position of an address. An address without a column refers to the first cell in the row.
pub(super) fn cell_position(at: CellAddress) -> CellPosition {
    let from_zero = |number: u32| number.saturating_sub(1) as usize;
    CellPosition { row: from_zero(at.row), column: from_zero(at.column.unwrap_or(1)) }
}

/// Error list. Buttons select the cells.
#[component]
pub(super) fn RefusalView(
    refusal: Refusal,
    /// Called with the cell to select. `None` if there is no grid.
    on_cell: Option<Callback<CellPosition>>,
) -> impl IntoView {
    let Refusal { detail, problems, further_problems, deadlock } = refusal;
    if !deadlock.is_empty() {
        return view! { <WaitCycle waits=deadlock on_cell=on_cell /> }.into_any();
    }
    if problems.is_empty() {
        return view! { <p class="refusal" role="status">{detail}</p> }.into_any();
    }
    let count = problems.len() as u64 + further_problems;
    let line = move |TableProblem { at, cell: name, detail }: TableProblem| {
        let link = at.map(|at| cell_link(on_cell, at, name.unwrap_or_else(|| format!("row {}", at.row))));
        view! { <li>{link}" "{detail}</li> }
    };
    let title = if count == 1 { "1 problem".to_owned() } else { format!("{count} problems") };
    view! {
        <div class="refusal" data-testid="problems" role="status">
            <b>{title}</b>
            <ul>{problems.into_iter().map(line).collect_view()}</ul>
            {(further_problems > 0).then(|| view! { <p>{format!("and {further_problems} more")}</p> })}
        </div>
    }
    .into_any()
}

/// Wait cycle, action by action.
#[component]
fn WaitCycle(waits: Vec<CellWait>, on_cell: Option<Callback<CellPosition>>) -> impl IntoView {
    let behind: Vec<(CellAddress, String, String)> =
        waits.iter().map(|wait| (wait.at, wait.cell.clone(), wait.action.clone())).collect();
    let count = waits.len();
    let line = |(index, wait): (usize, CellWait)| {
        let (at, cell, action) = behind[(index + 1) % count].clone();
        view! {
            <li>
                {cell_link(on_cell, wait.at, wait.cell)}" "<code>{wait.action}</code>" waits for "
                {cell_link(on_cell, wait.needs_at, wait.needs_cell)}" "<code>{wait.needs}</code>", which comes after "
                {cell_link(on_cell, at, cell)}" "<code>{action}</code>
            </li>
        }
    };
    let lines = waits.into_iter().enumerate().map(line).collect_view();
    view! {
        <div class="refusal" data-testid="deadlock" role="status">
            <b>"Deadlock: these actions wait for each other in a circle"</b>
            <ol>{lines}</ol>
        </div>
    }
}

fn cell_link(on_cell: Option<Callback<CellPosition>>, at: CellAddress, name: String) -> AnyView {
    match on_cell {
        Some(go) => {
            view! { <button class="cell-link" on:click=move |_| go.run(cell_position(at))>{name}</button> }.into_any()
        }
        None => view! { <b>{name}</b> }.into_any(),
    }
}
