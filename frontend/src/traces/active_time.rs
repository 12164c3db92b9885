//! Time breakdown by rank, as a table with bars.

use api::path;
use api::trace::{BreakdownSource, TimeBreakdown, TimeBreakdownList};
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, RequestError};
use crate::format;
use crate::gantt::time_text;
use crate::notice::ErrorNotice;

/// Busy, communication and idle time for the ranks in the trace, and for other traces of the same
/// run.
#[component]
pub(crate) fn ActiveTimeCard(
    /// Trace identifier.
    id: String,
) -> impl IntoView {
    let list = RwSignal::new(None::<Result<TimeBreakdownList, RequestError>>);
    let url = path::trace_time_breakdown(&id);
    spawn_local(async move { list.set(Some(client::get::<TimeBreakdownList>(&url).await)) });
    let body = move || match list.get() {
        None => view! { <div class="skeleton active-time-skeleton" aria-hidden="true"></div> }.into_any(),
        Some(Err(error)) => view! { <ErrorNotice error=error /> }.into_any(),
        Some(Ok(list)) if list.ranks.is_empty() => {
            view! { <p class="muted">"The trace has neither kernels of a device nor actions of a schedule."</p> }
                .into_any()
        }
        Some(Ok(list)) => view! { <ActiveTimeTable ranks=list.ranks /> }.into_any(),
    };
    view! {
        <section class="card" data-testid="trace-active-time">
            <header class="card-title"><h2>"Busy, communicating, idle"</h2></header>
            {body}
        </section>
    }
}

#[component]
fn ActiveTimeTable(ranks: Vec<TimeBreakdown>) -> impl IntoView {
    let from_actions = ranks.iter().any(|rank| rank.source == BreakdownSource::Actions);
    let rows = ranks.into_iter().map(|active_time| view! { <ActiveTimeRow active_time=active_time /> }).collect_view();
    let source = if from_actions {
        "Sum of the annotated actions of the schedule; exposed is communication while nothing computes. The span is from the first action to the last end: the trace itself can be longer."
    } else {
        "Sum of the kernels of each device; exposed is communication while no kernel computes. The span is from the first kernel to the last end: the trace itself can be longer."
    };
    view! {
        <p class="hint">{source}</p>
        <div class="table-scroll" role="region" aria-label="Busy, communicating and idle time" tabindex="0">
            <table class="list">
                <thead>
                    <tr>
                        <th scope="col">"Rank"</th>
                        <th scope="col">"Device"</th>
                        <th scope="col" class="number">"Span"</th>
                        <th scope="col" class="number">"Compute"</th>
                        <th scope="col" class="number">"Communication"</th>
                        <th scope="col" class="number">"of it exposed"</th>
                        <th scope="col" class="number">"Copies"</th>
                        <th scope="col" class="number">"Idle"</th>
                        <th scope="col">"Share of the span"</th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
}

#[component]
fn ActiveTimeRow(active_time: TimeBreakdown) -> impl IntoView {
    let share = move |ns: u64| if active_time.span_ns == 0 { 0.0 } else { ns as f64 / active_time.span_ns as f64 };
    let cell = move |ns: u64| format!("{} · {}", time_text::duration(ns as f64), format::percent(share(ns)));
    let part = move |ns: u64, class: &'static str| {
        view! { <i class=class style=format!("width:{:.2}%", share(ns) * 100.0)></i> }
    };
    view! {
        <tr>
            <th scope="row">{active_time.rank.map_or_else(|| "–".to_owned(), |rank| rank.to_string())}</th>
            <td class="trace-name trace-device">{active_time.device.clone()}</td>
            <td class="number">{time_text::duration(active_time.span_ns as f64)}</td>
            <td class="number">{cell(active_time.compute_ns)}</td>
            <td class="number">{cell(active_time.communication_ns)}</td>
            <td class="number">{cell(active_time.exposed_ns)}</td>
            <td class="number">{cell(active_time.copy_ns)}</td>
            <td class="number">{cell(active_time.idle_ns)}</td>
            <td>
                <span class="trace-bar" aria-hidden="true">
                    {part(active_time.compute_ns, "compute")}{part(active_time.exposed_ns, "exposed")}
                </span>
            </td>
        </tr>
    }
}
