//! Details for a layout: timeline, comparison with the best layout, binding constraints, device
//! placement.

use std::sync::Arc;

use api::path;
use api::planner::analysis::LayoutPlan;
use api::planner::analysis::layouts::LayoutPoint;
use api::planner::timeline::Timeline;
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, RequestError};
use crate::explore::use_explore;
use crate::gantt::describe::Details;
use crate::gantt::{Gantt, Legend, Selection, TimeWindow};
use crate::notice::ErrorNotice;
use crate::results::placement;

/// Chart number, above the numbers for planners.
const CHART: usize = 10_000;

/// Data for the selected layout.
#[derive(Clone, Copy)]
struct LayoutData {
    plan: RwSignal<Option<Arc<LayoutPlan>>>,
    timeline: RwSignal<Option<Arc<Timeline>>>,
    last_error: RwSignal<Option<RequestError>>,
    window: RwSignal<TimeWindow>,
    selection: RwSignal<Option<Selection>>,
    /// Request number. Responses to older requests are discarded.
    request_number: StoredValue<u64>,
}

impl LayoutData {
    fn fetch(self, url: String) {
        let number = self.request_number.try_update_value(|latest| {
            *latest += 1;
            *latest
        });
        self.plan.set(None);
        self.timeline.set(None);
        self.last_error.set(None);
        self.selection.set(None);
        spawn_local(async move {
            let result = client::get::<LayoutPlan>(&url).await;
            if self.request_number.try_get_value() != number {
                return;
            }
            match result {
                Ok(mut plan) => {
                    let timeline = std::mem::take(&mut plan.timeline);
                    self.window.set(TimeWindow::fit(timeline.makespan_ns));
                    self.timeline.set(Some(Arc::new(timeline)));
                    self.plan.set(Some(Arc::new(plan)));
                }
                Err(error) => self.last_error.set(Some(error)),
            }
        });
    }
}

/// Details for the selected layout. Hidden without a selection.
#[component]
pub(super) fn SelectedLayout(point: Memo<Option<LayoutPoint>>) -> impl IntoView {
    let explore = use_explore();
    let layout_data = LayoutData {
        plan: RwSignal::new(None),
        timeline: RwSignal::new(None),
        last_error: RwSignal::new(None),
        window: RwSignal::new(TimeWindow { start_ns: 0.0, end_ns: 0.0 }),
        selection: RwSignal::new(None),
        request_number: StoredValue::new(0),
    };
    let url = Memo::new(move |_| {
        let name = point.get()?.name;
        let scenario = explore.stored_scenario_id()?;
        Some(path::layout_plan(&scenario, &name))
    });
    Effect::new(move |_| {
        if let Some(url) = url.get() {
            layout_data.fetch(url);
        }
    });
    let retry = Callback::new(move |()| {
        if let Some(url) = url.get_untracked() {
            layout_data.fetch(url);
        }
    });
    let title = Signal::derive(move || point.get().map(|point| point.title).unwrap_or_default());
    let lost = move || point.get().and_then(|point| point.against_best);
    let notes = move || {
        let plan = layout_data.plan.get()?;
        Some(plan.words.iter().map(|line| view! { <li>{line.clone()}</li> }).collect_view())
    };
    let placement_view = move || layout_data.plan.get().and_then(|plan| plan.placement.as_ref().map(placement::show));
    let extent = Signal::derive(move || {
        layout_data.timeline.with(|loaded| loaded.as_ref().map_or(0, |loaded_timeline| loaded_timeline.makespan_ns))
    });
    let drawn = Signal::derive(move || layout_data.timeline.get().into_iter().collect::<Vec<_>>());
    let hover = RwSignal::new(None);
    let close = move |_| explore.view.update(|view| view.layout = None);
    let spoken = move || match (layout_data.plan.with(Option::is_some), point.get()) {
        (true, Some(point)) => format!("Timeline of {}", point.title),
        _ => String::new(),
    };
    view! {
        <Show when=move || point.with(Option::is_some)>
            <section class="chosen-layout" data-testid="chosen-layout" aria-label="The chosen layout">
                <header class="card-title">
                    <h3>{title}</h3>
                    <span class="grow"></span>
                    <button class="quiet" on:click=close>"Close"</button>
                </header>
                <ul class="plain" data-testid="layout-description">
                    {move || lost().map(|lost| view! { <li>{lost}</li> })}
                    {notes}
                </ul>
                {move || layout_data.last_error.get().map(|error| view! { <ErrorNotice error=error on_retry=retry /> })}
                <Show when=move || layout_data.last_error.with(Option::is_none)>
                    <Legend timelines=drawn />
                    <Gantt
                        chart=CHART
                        id="layout"
                        title=title
                        timeline=layout_data.timeline
                        extent_ns=extent
                        window=layout_data.window
                        selection=layout_data.selection
                        hover=hover
                    />
                    <SelectedSpan layout_data=layout_data />
                </Show>
                {placement_view}
            </section>
        </Show>
        <p class="visually-hidden" role="status">{spoken}</p>
    }
}

/// Describes the selected span.
#[component]
fn SelectedSpan(layout_data: LayoutData) -> impl IntoView {
    let details = move || {
        let selection = layout_data.selection.get()?;
        let timeline = layout_data.timeline.get()?;
        (selection.span < timeline.len()).then(|| {
            let details = Details::new(&timeline, selection.span);
            let rows =
                details.rows.into_iter().map(|(name, value)| view! { <div><dt>{name}</dt><dd>{value}</dd></div> });
            view! {
                <p class="selection-title"><b>{details.title}</b></p>
                <dl class="details">{rows.collect_view()}</dl>
            }
        })
    };
    view! { {details} }
}
