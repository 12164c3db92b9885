//! Details of the selected span.

use api::path;
use api::trace::{SliceArrow, SliceDetail};
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::chart::TraceChart;
use super::layout::{lane_name, process_name};
use super::span_text::{times, title};
use crate::client::{self, RequestError};
use crate::format;
use crate::gantt::time_text;
use crate::notice::ErrorNotice;

/// Describes the selected span. For a single slice, shows all data from the trace.
#[component]
pub(super) fn SelectionPanel(chart: TraceChart) -> impl IntoView {
    let detail = RwSignal::new(None::<Result<SliceDetail, RequestError>>);
    Effect::new(move |_| {
        detail.set(None);
        chart.arrows.set(Vec::new());
        let Some(mark) = chart.selected.get().filter(|mark| mark.count == 1) else { return };
        let id = chart.detail.with_value(|detail| detail.trace.id.clone());
        spawn_local(async move {
            let url = path::trace_slice(&id, mark.lane, u32::from(mark.row), mark.start_ns);
            let response = client::get::<SliceDetail>(&url).await;
            if chart.selected.try_get_untracked().flatten().as_ref() == Some(&mark) {
                if let Ok(slice) = &response {
                    chart.arrows.set(slice.arrows.clone());
                }
                detail.set(Some(response));
            }
        });
    });
    let location = move |lane: u32| {
        chart.detail.with_value(|detail| {
            let lane = detail.lanes.get(lane as usize);
            let process = lane.and_then(|lane| detail.processes.get(lane.process as usize)).map(process_name);
            format!("{} · {}", process.unwrap_or_default(), lane.map(lane_name).unwrap_or_default())
        })
    };
    let body = move || {
        let mark = chart.selected.get()?;
        let more = detail.get().map(|detail| match detail {
            Ok(detail) => {
                let arrows = Arrows { chart, visible: detail.arrows.clone(), further: detail.further_arrows };
                view! { <Rows detail=detail />{arrows.links()} }.into_any()
            }
            Err(error) => view! { <ErrorNotice error=error /> }.into_any(),
        });
        Some(view! {
            <section class="card trace-selection" data-testid="trace-selection">
                <header class="card-title">
                    <h2 class="trace-name">{title(&mark)}</h2>
                    <button class="quiet" on:click=move |_| chart.zoom_to_selection()>"Zoom to it"</button>
                    <button class="quiet" aria-label="Select nothing" on:click=move |_| chart.selected.set(None)>"×"</button>
                </header>
                <p>{times(&mark)}</p>
                <p class="muted">{location(mark.lane)}</p>
                {more}
            </section>
        })
    };
    view! { {body} }
}

#[component]
fn Rows(detail: SliceDetail) -> impl IntoView {
    let mut rows = vec![
        ("Starts".to_owned(), time_text::duration(detail.start_ns as f64)),
        ("Duration".to_owned(), format!("{} ns", format::count(detail.duration_ns))),
    ];
    if let Some(bytes) = detail.bytes {
        rows.push(("Bytes".to_owned(), format::count(bytes)));
    }
    if !detail.actions.is_empty() {
        rows.push(("Action of the schedule".to_owned(), detail.actions.join(", ")));
    }
    rows.extend(detail.message);
    let rows = rows.into_iter().map(|(name, value)| view! { <div><dt>{name}</dt><dd>{value}</dd></div> });
    view! { <dl class="trace-facts">{rows.collect_view()}</dl> }
}

/// Slice arrows. Each selects the slice at the other end.
struct Arrows {
    chart: TraceChart,
    visible: Vec<SliceArrow>,
    further: u32,
}

impl Arrows {
    fn links(self) -> impl IntoView {
        let Self { chart, visible: arrows, further } = self;
        let link = move |arrow: SliceArrow| {
            let lane = chart.detail.with_value(|detail| detail.lanes.get(arrow.lane as usize).map(lane_name));
            let (sign, word) = if arrow.is_incoming { ("←", "from") } else { ("→", "to") };
            let label =
                format!("{word} {} at {}", lane.unwrap_or_default(), time_text::duration(arrow.start_ns as f64));
            let position = (arrow.lane, u16::try_from(arrow.row).unwrap_or(u16::MAX), arrow.start_ns);
            view! {
                <li>
                    <button type="button" class="quiet" on:click=move |_| chart.select_at(position, true)>
                        <span aria-hidden="true">{sign}" "</span>{label}
                    </button>
                </li>
            }
        };
        let more =
            (further > 0).then(|| view! { <li class="muted">{format!("{} more", format::count(further.into()))}</li> });
        (!arrows.is_empty()).then(|| {
            view! {
                <h3>"Arrows"</h3>
                <ul class="trace-arrows" data-testid="trace-arrows">{arrows.into_iter().map(link).collect_view()}{more}</ul>
            }
        })
    }
}
