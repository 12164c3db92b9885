//! Details for a layout: timeline, comparison with the best layout, binding constraints, device
//! placement.

use std::sync::Arc;

use api::path;
use api::planner::analysis::LayoutPlan;
use api::planner::analysis::layouts::LayoutPoint;
use api::planner::timeline::Timeline;
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, Failure};
use crate::explore::use_explore;
use crate::gantt::describe::Details;
use crate::gantt::{Gantt, Legend, Selection, TimeWindow};
use crate::notice::FailureNotice;
use crate::results::placement;

/// Chart number, above the numbers for planners.
const CHART: usize = 10_000;

/// Data for the selected layout.
#[derive(Clone, Copy)]
struct Shown {
    plan: RwSignal<Option<Arc<LayoutPlan>>>,
    timeline: RwSignal<Option<Arc<Timeline>>>,
    failure: RwSignal<Option<Failure>>,
    window: RwSignal<TimeWindow>,
    selection: RwSignal<Option<Selection>>,
    /// Request number. Responses to older requests are discarded.
    asked: StoredValue<u64>,
}

impl Shown {
    fn fetch(self, url: String) {
        let number = self.asked.try_update_value(|asked| {
            *asked += 1;
            *asked
        });
        self.plan.set(None);
        self.timeline.set(None);
        self.failure.set(None);
        self.selection.set(None);
        spawn_local(async move {
            let answer = client::get::<LayoutPlan>(&url).await;
            if self.asked.try_get_value() != number {
                return;
            }
            match answer {
                Ok(mut plan) => {
                    let timeline = std::mem::take(&mut plan.timeline);
                    self.window.set(TimeWindow::fit(timeline.makespan_ns));
                    self.timeline.set(Some(Arc::new(timeline)));
                    self.plan.set(Some(Arc::new(plan)));
                }
                Err(failure) => self.failure.set(Some(failure)),
            }
        });
    }
}

/// Details for the selected layout. Hidden without a selection.
#[component]
pub(super) fn ChosenLayout(point: Memo<Option<LayoutPoint>>) -> impl IntoView {
    let explore = use_explore();
    let shown = Shown {
        plan: RwSignal::new(None),
        timeline: RwSignal::new(None),
        failure: RwSignal::new(None),
        window: RwSignal::new(TimeWindow { start_ns: 0.0, end_ns: 0.0 }),
        selection: RwSignal::new(None),
        asked: StoredValue::new(0),
    };
    let url = Memo::new(move |_| {
        let name = point.get()?.name;
        let scenario = explore.kept_scenario()?;
        Some(path::layout_plan(&scenario, &name))
    });
    Effect::new(move |_| {
        if let Some(url) = url.get() {
            shown.fetch(url);
        }
    });
    let retry = Callback::new(move |()| {
        if let Some(url) = url.get_untracked() {
            shown.fetch(url);
        }
    });
    let title = Signal::derive(move || point.get().map(|point| point.title).unwrap_or_default());
    let lost = move || point.get().and_then(|point| point.against_best);
    let words = move || {
        let plan = shown.plan.get()?;
        Some(plan.words.iter().map(|line| view! { <li>{line.clone()}</li> }).collect_view())
    };
    let stands = move || shown.plan.get().and_then(|plan| plan.placement.as_ref().map(placement::show));
    let extent = Signal::derive(move || shown.timeline.with(|one| one.as_ref().map_or(0, |one| one.makespan_ns)));
    let drawn = Signal::derive(move || shown.timeline.get().into_iter().collect::<Vec<_>>());
    let hover = RwSignal::new(None);
    let close = move |_| explore.view.update(|view| view.layout = None);
    let spoken = move || match (shown.plan.with(Option::is_some), point.get()) {
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
                <ul class="plain" data-testid="chosen-words">
                    {move || lost().map(|lost| view! { <li>{lost}</li> })}
                    {words}
                </ul>
                {move || shown.failure.get().map(|failure| view! { <FailureNotice failure=failure on_retry=retry /> })}
                <Show when=move || shown.failure.with(Option::is_none)>
                    <Legend timelines=drawn />
                    <Gantt
                        chart=CHART
                        id="layout"
                        title=title
                        timeline=shown.timeline
                        extent_ns=extent
                        window=shown.window
                        selection=shown.selection
                        hover=hover
                    />
                    <SelectedSpan shown=shown />
                </Show>
                {stands}
            </section>
        </Show>
        <p class="visually-hidden" role="status">{spoken}</p>
    }
}

/// Describes the selected span.
#[component]
fn SelectedSpan(shown: Shown) -> impl IntoView {
    let details = move || {
        let selection = shown.selection.get()?;
        let timeline = shown.timeline.get()?;
        (selection.span < timeline.len()).then(|| {
            let details = Details::of(&timeline, selection.span);
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
