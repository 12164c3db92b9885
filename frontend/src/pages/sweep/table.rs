//! Paginated table with all sweep points.

use api::path;
use api::planner::certainty::RISK;
use api::planner::sweep::{PlannerRow, PointOutcome, PointRow};
use api::sweep::{RowPage, StoredSweep};
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, RequestError};
use crate::field_errors::pointer_label;
use crate::format;
use crate::notice::ErrorNotice;
use crate::sweeps::risk_text;

/// Points per page.
const PAGE: u32 = 50;

/// Table cell with a planner's result.
fn planner_cell(row: &PlannerRow) -> AnyView {
    match row {
        PlannerRow::Planned { figures: metrics, .. } => {
            let text = format!("{}, {}", format::seconds(metrics.iteration_s), format::gib(metrics.peak_memory_gib));
            let interval = metrics
                .interval_s
                .map(|interval| view! { <small class="under">{format::seconds_interval(interval)}</small> });
            let risk = metrics.probability_out_of_memory.filter(|risk| *risk > RISK);
            let risk = risk.map(|risk| view! { <small class="under slower">{risk_text(risk)}</small> });
            view! { <td>{text}{interval}{risk}</td> }.into_any()
        }
        PlannerRow::Infeasible { reason, .. } => view! { <td class="muted">{reason.clone()}</td> }.into_any(),
    }
}

/// Returns the title of the axis of a field, or the words of another field.
fn field_name(sweep: &StoredSweep, pointer: &str) -> String {
    let axis = sweep.axes.iter().find(|axis| axis.pointer == pointer);
    axis.map_or_else(|| format::capitalised(&pointer_label(pointer)), |axis| axis.title.clone())
}

fn line(row: PointRow, sweep: &StoredSweep, on_open: Callback<u32>) -> impl IntoView + use<> {
    let index = row.index;
    let coordinate_label = |(axis, value): (usize, &serde_json::Value)| {
        let axis = &sweep.axes[axis];
        let spoken = sweep.sweep.pointer(&format!(
            "/axes/{}/values",
            sweep.axes.iter().position(|candidate| candidate == axis).unwrap_or(0)
        ));
        let at = spoken.and_then(|values| values.as_array()?.iter().position(|known| known == value));
        at.and_then(|at| axis.labels.get(at).cloned()).unwrap_or_else(|| value.to_string())
    };
    let values =
        row.coordinates.iter().enumerate().map(coordinate_label).map(|label| view! { <td>{label}</td> }).collect_view();
    let width = sweep.planners.len();
    let answers = match &row.answer {
        PointOutcome::Planned { planners, .. } => planners.iter().map(planner_cell).collect_view().into_any(),
        PointOutcome::Invalid { errors } => {
            let messages: Vec<String> =
                errors.iter().map(|error| format!("{}: {}", field_name(sweep, &error.pointer), error.detail)).collect();
            view! { <td class="muted" colspan=width.to_string()>{messages.join("; ")}</td> }.into_any()
        }
        PointOutcome::Failed { detail } => view! { <td colspan=width.to_string()>{detail.clone()}</td> }.into_any(),
    };
    let can_open = row.scenario.is_some();
    view! {
        <tr>
            <th scope="row">
                {index}
                {can_open.then(|| view! { " "<button class="link" aria-label=format!("Open point {index}") on:click=move |_| on_open.run(index)>"Open"</button> })}
            </th>
            {values}
            {answers}
        </tr>
    }
}

#[component]
pub(super) fn PointTable(
    id: String,
    sweep: RwSignal<StoredSweep>,
    done: Memo<u32>,
    on_open: Callback<u32>,
) -> impl IntoView {
    let from = RwSignal::new(0_u32);
    let page = RwSignal::new(None::<Result<RowPage, RequestError>>);
    Effect::new(move |_| {
        let requested = (from.get(), done.get());
        let url = format!("{}?from={}&limit={PAGE}", path::sweep_points(&id), requested.0);
        spawn_local(async move {
            let found = client::get::<RowPage>(&url).await;
            if from.try_get_untracked() == Some(requested.0) {
                page.try_set(Some(found));
            }
        });
    });
    let axes = sweep.with_untracked(|sweep| sweep.axes.clone());
    let planners = sweep.with_untracked(|sweep| sweep.planners.clone());
    let heads = axes.into_iter().map(|axis| view! { <th scope="col">{axis.title}</th> }).collect_view();
    let names = planners.into_iter().map(|entry| view! { <th scope="col">{entry.title}</th> }).collect_view();
    let rows = move || {
        page.with(|page| match page {
            Some(Ok(page)) => {
                let line = |row: &PointRow| sweep.with_untracked(|sweep| line(row.clone(), sweep, on_open));
                page.rows.iter().map(line).collect_view()
            }
            _ => Vec::new(),
        })
    };
    let error_notice = move || {
        page.with(|page| match page {
            Some(Err(error)) => Some(view! { <ErrorNotice error=error.clone() /> }),
            _ => None,
        })
    };
    let next = Memo::new(move |_| page.with(|page| page.as_ref()?.as_ref().ok()?.next));
    let is_empty = Memo::new(move |_| {
        page.with(|page| page.as_ref().is_some_and(|page| page.as_ref().is_ok_and(|page| page.rows.is_empty())))
    });
    view! {
        <section class="card" data-testid="sweep-points">
            <h2>"Points"</h2>
            {error_notice}
            <Show when=move || is_empty.get()>
                <p class="hint">"No point planned yet."</p>
            </Show>
            <div class="table-scroll tall" role="region" aria-label="Points with step time and peak memory by planner" tabindex="0">
                <table class="figures">
                    <thead><tr><th scope="col">"Point"</th>{heads}{names}</tr></thead>
                    <tbody>{rows}</tbody>
                </table>
            </div>
            <p class="actions" hidden=move || from.get() == 0 && next.get().is_none()>
                <button disabled=move || from.get() == 0 on:click=move |_| from.set(0)>"First points"</button>
                <button disabled=move || next.get().is_none() on:click=move |_| if let Some(next) = next.get_untracked() { from.set(next) }>"Next points"</button>
            </p>
        </section>
    }
}
