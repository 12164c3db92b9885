//! Schedule table, sortable by any column.

use api::planner::schedule::ScheduleKind;
use leptos::prelude::*;

use super::editor::SchedulePill;
use super::figures::{self, Cell, Column, Order, Row};
use super::{input, use_schedules};

/// Schedule table. A heading sorts; a radio button selects the baseline.
#[component]
pub(super) fn ScheduleTable() -> impl IntoView {
    let schedules = use_schedules();
    let baseline = Memo::new(move |_| schedules.baseline());
    let order = Memo::new(move |_| schedules.view.with(|view| view.order));
    let rows = Memo::new(move |_| {
        let entries = schedules.entries();
        figures::rows(&entries, baseline.get().as_deref(), order.get())
    });
    let sort = move |column: Column| {
        schedules.view.update(|view| {
            view.order = match view.order {
                Some(Order { column: by, descending: false }) if by == column => {
                    Some(Order { column, descending: true })
                }
                Some(Order { column: by, descending: true }) if by == column => None,
                _ => Some(Order { column, descending: false }),
            };
        });
    };
    let heading = move |column: Column| {
        let (title, explanation) = column.heading_and_hint();
        let here = move || order.get().filter(|order| order.column == column);
        let state = move || here().map_or("none", |order| if order.descending { "descending" } else { "ascending" });
        let arrow = move || here().map_or("", |order| if order.descending { "▾" } else { "▴" });
        view! {
            <th scope="col" aria-sort=state data-heading=column.id()>
                <button class="heading" title=explanation on:click=move |_| sort(column)>{title}<span aria-hidden="true">{arrow}</span></button>
            </th>
        }
    };
    view! {
        <div class="table-scroll" role="region" aria-label="Schedules side by side" tabindex="0">
            <table class="ranking" data-testid="schedules">
                <thead><tr><th scope="col">"Schedule"</th>{Column::ALL.map(heading).collect_view()}</tr></thead>
                <tbody>
                    {move || rows.get().into_iter().map(|row| view! { <ScheduleRow row=row baseline=baseline /> }).collect_view()}
                </tbody>
            </table>
        </div>
    }
}

#[component]
fn ScheduleRow(row: Row, baseline: Memo<Option<String>>) -> impl IntoView {
    let schedules = use_schedules();
    let Row { key, name, source, cells, breaks_cap } = row;
    let kind = ScheduleKind::from_id(&key);
    let number = schedules
        .request
        .with_untracked(|json| input::tables(json).iter().position(|table| table.0 == name).unwrap_or(0));
    let row_key = StoredValue::new(key.clone());
    let is_baseline = move || row_key.with_value(|key| baseline.get().as_ref() == Some(key));
    let cells = match cells {
        Ok(cells) => cells.into_iter().map(|cell| cell_view(cell, row_key, &name, baseline)).collect_view().into_any(),
        Err(reason) => view! {
            <td class="binding" colspan=Column::ALL.len().to_string() data-metric="refusal"><div><b>"Not built: "</b>{reason}</div></td>
        }
        .into_any(),
    };
    view! {
        <tr data-schedule=key class:baseline=is_baseline>
            <th scope="row" title=source>
                <span class="plan-name"><SchedulePill kind=kind number=number />{name}</span>
                {breaks_cap.map(|message| view! { <span class="layout slower">"over the cap: "{message}</span> })}
            </th>
            {cells}
        </tr>
    }
}

fn cell_view(
    cell: Cell,
    row_key: StoredValue<String>,
    name: &str,
    baseline: Memo<Option<String>>,
) -> impl IntoView + use<> {
    let schedules = use_schedules();
    let radio = (cell.column == Column::Speedup).then(|| {
        let label = format!("Compare against {name}");
        view! {
            <input
                type="radio"
                name="schedule-baseline"
                title=label.clone()
                aria-label=label
                prop:checked=move || row_key.with_value(|key| baseline.get().as_ref() == Some(key))
                on:change=move |_| schedules.view.update(|view| view.baseline = Some(row_key.get_value()))
            />
        }
    });
    // Without a value of the formula there is nothing to compare.
    let expected = cell.expected.and_then(|mut expected| {
        let differs = expected.differs(cell.value, &cell.text);
        let text = expected.text.take()?;
        let name = if expected.is_bound { "at most " } else { "formula " };
        Some(view! { <small class="expected" class:differs=differs title=expected.formula>{name}{text}</small> })
    });
    let best = cell.best.then(|| view! { <span class="visually-hidden">" (best)"</span> });
    view! {
        <td data-metric=cell.column.id() data-value=cell.value.map(|value| value.to_string()) class:best=cell.best>
            {radio}{cell.text}{best}{expected}
        </td>
    }
}
