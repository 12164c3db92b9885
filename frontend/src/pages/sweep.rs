//! Sweep page: progress, heat map or curves, time and memory, all points.

mod front;
mod map;
mod subject;
mod table;
mod view;

use std::sync::Arc;

use api::path;
use api::sweep::{Metric, Picture, StoredSweep};
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_navigate, use_query_map};

use crate::accuracy_link::AccuracyLink;
use crate::charts::CurveChart;
use crate::client::{self, Body, RequestError};
use crate::form::restore_text;
use crate::format;
use crate::notice::ErrorNotice;
use crate::resource_page::{Kind, ResourcePage};
use crate::sweeps::{Progress, curves, follow, page, reasons};
use front::FrontCard;
use map::{HeatMap, Pick};
use subject::Subject;
use table::PointTable;
use view::SweepView;

/// Maximum number of reasons below the curves. The table lists all.
const MAX_REASONS: usize = 8;

#[component]
pub(crate) fn SweepPage() -> impl IntoView {
    let show = |sweep: Arc<StoredSweep>| view! { <Detail sweep=Arc::unwrap_or_clone(sweep) /> }.into_any();
    view! {
        <main id="main" class="page" tabindex="-1">
            <ResourcePage kind=Kind { noun: "sweep", list: "/sweeps" } url=path::sweep show=show />
        </main>
    }
}

#[component]
fn Detail(sweep: StoredSweep) -> impl IntoView {
    document().set_title(&format!("{} · Planscope", sweep.title));
    let query = use_query_map();
    let looking = query.with_untracked(|query| SweepView::from_query(&sweep, |key| query.get(key)));
    let is_silent = RwSignal::new(false);
    let is_switching = RwSignal::new(false);
    let opened = RwSignal::new(None::<u32>);
    let picture = RwSignal::new(None::<Result<Picture, RequestError>>);
    let last_error = RwSignal::new(None::<RequestError>);
    let sweep = RwSignal::new(sweep);
    // Fetch the picture again when the selection or the number of planned points changes.
    let done = Memo::new(move |_| sweep.with(|sweep| sweep.progress.done));
    let id = sweep.with_untracked(|sweep| sweep.id.clone());
    let url = {
        let id = id.clone();
        Memo::new(move |_| (path::sweep_picture(&id, &looking.query()), done.get()))
    };
    Effect::new(move |_| {
        let requested = url.get();
        spawn_local(async move {
            let found = client::get::<Picture>(&requested.0).await;
            if url.try_get_untracked() == Some(requested) {
                picture.try_set(Some(found));
            }
        });
    });
    let follow_progress = move || {
        let begun = sweep.get_untracked();
        spawn_local(async move {
            let followed = follow(begun, is_silent, move |seen| sweep.try_set(seen.clone()).is_none()).await;
            if let Err(problem) = followed {
                last_error.try_set(Some(problem));
            }
        });
    };
    follow_progress();
    let switch = Callback::new(move |is_on: bool| {
        let id = sweep.with_untracked(|sweep| sweep.id.clone());
        last_error.set(None);
        spawn_local(async move {
            let url = if is_on { path::sweep_start(&id) } else { path::sweep_cancel(&id) };
            let refreshed = async {
                client::submit("POST", &url, Body::Empty).await?;
                client::get::<StoredSweep>(&path::sweep(&id)).await
            };
            match refreshed.await {
                Ok(seen) => {
                    if sweep.try_set(seen).is_none() && is_on {
                        follow_progress();
                    }
                }
                Err(problem) => {
                    is_switching.try_set(false);
                    last_error.try_set(Some(problem));
                }
            }
        });
    });
    Effect::new(move |before: Option<()>| {
        let address = looking.address();
        if before.is_some() {
            view::write_address(&page(&sweep.with_untracked(|sweep| sweep.id.clone())), &address);
        }
    });
    let open = opening(id.clone(), last_error, opened);
    let engine = move || {
        sweep.with(|sweep| {
            let other = sweep.engine != sweep.current_engine;
            other.then(|| {
                format!("Engine of these points: {}. Engine of this server: {}.", sweep.engine, sweep.current_engine)
            })
        })
    };
    let created = sweep.with_untracked(|sweep| format::moment(&sweep.created_at));
    view! {
        <TitleRow sweep=sweep last_error=last_error />
        <Subject sweep=sweep.get_untracked() last_error=last_error />
        <p class="muted">"Stored "{created}" UTC"</p>
        <Progress sweep=sweep.into() is_silent=is_silent is_switching=is_switching on_switch=switch />
        <div class="toasts" role="status">
            {move || opened.get().map(|point| view! { <p class="toast"><span>{format!("Opening point {point}…")}</span></p> })}
        </div>
        {move || engine().map(|text| view! { <p class="hint">{text}</p> })}
        <AccuracyLink subject="Times, utilisation and memory" />
        {move || last_error.get().map(|error| view! { <ErrorNotice error=error /> })}
        <section class="card" data-testid="sweep-picture">
            <h2>"Picture"</h2>
            <Controls sweep=sweep looking=looking />
            {move || match picture.get() {
                None => view! { <div class="skeleton results-skeleton" aria-hidden="true"></div> }.into_any(),
                Some(Err(picture_error)) => view! { <ErrorNotice error=picture_error /> }.into_any(),
                Some(Ok(picture)) if picture.y.is_some() => {
                    let axes = sweep.with_untracked(|sweep| sweep.axes.clone());
                    view! { <HeatMap picture=picture axes=axes on_pick=Pick(open) /> }.into_any()
                }
                Some(Ok(picture)) => view! { <Lines picture=picture sweep=sweep /> }.into_any(),
            }}
        </section>
        <FrontCard id=id.clone() done=done on_open=open />
        <PointTable id=id sweep=sweep done=done on_open=open />
    }
}

/// Returns a callback that opens the scenario for a point.
/// `opened` holds the point until the page changes.
fn opening(id: String, last_error: RwSignal<Option<RequestError>>, opened: RwSignal<Option<u32>>) -> Callback<u32> {
    let navigate = use_navigate();
    Callback::new(move |point: u32| {
        let (url, navigate) = (path::sweep_scenario(&id, point), navigate.clone());
        opened.set(Some(point));
        spawn_local(async move {
            let response = client::send::<api::scenario::StoredScenario>("POST", &url, Body::Empty).await;
            // If the user left the page, do not navigate.
            if last_error.try_set(None).is_some() {
                return;
            }
            opened.try_set(None);
            match response {
                Ok(stored) => navigate(&path::share(&stored.short), NavigateOptions::default()),
                Err(problem) => last_error.set(Some(problem)),
            }
        });
    })
}

/// Name, download link, back link.
#[component]
fn TitleRow(sweep: RwSignal<StoredSweep>, last_error: RwSignal<Option<RequestError>>) -> impl IntoView {
    let (id, title) = sweep.with_untracked(|sweep| (sweep.id.clone(), sweep.title.clone()));
    let known = StoredValue::new(title.clone());
    let rename = {
        let id = id.clone();
        move |event: web_sys::Event| {
            let name = event_target_value(&event).trim().to_owned();
            if name.is_empty() {
                restore_text(&event, &known.get_value());
                return;
            }
            known.set_value(name.clone());
            let (url, body) = (path::sweep(&id), serde_json::json!({ "name": name }).to_string());
            spawn_local(async move {
                let response = client::submit("PATCH", &url, Body::Json(body)).await;
                last_error.try_set(response.err());
            });
        }
    };
    view! {
        <div class="page-title">
            <h1 class="visually-hidden">{title.clone()}</h1>
            <input class="title" aria-label="Name" value=title on:change=rename />
            <span class="grow"></span>
            <a class="button" href=path::sweep_file(&id) download="" data-testid="sweep-file">"Rows as JSON lines"</a>
            <a class="button" href="/sweeps">"All sweeps"</a>
        </div>
    }
}

/// Selection of metric and axes.
#[component]
fn Controls(sweep: RwSignal<StoredSweep>, looking: SweepView) -> impl IntoView {
    let axes = sweep.with_untracked(|sweep| sweep.axes.clone());
    let planners = sweep.with_untracked(|sweep| sweep.planners.clone());
    let several = axes.len() > 1;
    let is_map = Memo::new(move |_| looking.y.get().is_some_and(|y| y != looking.x.get()));
    let names: Vec<String> = axes.iter().map(|axis| axis.title.clone()).collect();
    // The options follow the view: a choice of one axis can change the other one.
    let options = move |selected: fn(SweepView) -> Option<usize>| {
        let option = |(index, name): (usize, &String)| {
            let is_selected = move || selected(looking) == Some(index);
            view! { <option value=index.to_string() prop:selected=is_selected>{name.clone()}</option> }
        };
        names.iter().enumerate().map(option).collect_view()
    };
    let metrics = Metric::ALL
        .into_iter()
        .map(|metric| {
            let is_selected = move || looking.metric.get() == metric;
            view! { <option value=metric.id() prop:selected=is_selected>{metric.title()}</option> }
        })
        .collect_view();
    let planners = planners
        .into_iter()
        .map(|entry| {
            let id = entry.planner.id();
            let is_selected = move || looking.planner.with(|planner| planner == id);
            view! { <option value=id prop:selected=is_selected>{entry.title}</option> }
        })
        .collect_view();
    let number = |event: &web_sys::Event| event_target_value(event).parse::<usize>().ok();
    let fixed_axes = axes
        .into_iter()
        .enumerate()
        .map(|(fixed_index, axis)| {
            let is_fixed = move || looking.x.get() != fixed_index && looking.y.get() != Some(fixed_index);
            let values: Vec<String> = axis.labels;
            let label = axis.title;
            let options = values
                .into_iter()
                .enumerate()
                .map(|(value, label)| {
                    let is_selected = move || looking.at.with(|at| at.get(fixed_index) == Some(&value));
                    view! { <option value=value.to_string() prop:selected=is_selected>{label}</option> }
                })
                .collect_view();
            view! {
                <label hidden=move || !is_fixed()>
                    {label}
                    <select on:change=move |event| if let Some(value) = number(&event) { looking.at.update(|at| at[fixed_index] = value) }>{options}</select>
                </label>
            }
        })
        .collect_view();
    let (over, up) = (options(|view| Some(view.x.get())), options(|view| view.y.get()));
    let two = several.then(|| {
        view! {
            <label>"Across"<select data-testid="sweep-x" on:change=move |event| if let Some(x) = number(&event) { looking.choose_across(x) }>{over}</select></label>
            <label>
                "Down"
                <select data-testid="sweep-y" on:change=move |event| looking.choose_down(number(&event))>
                    {up}
                    <option value="" prop:selected=move || looking.y.get().is_none()>"none: one line per planner"</option>
                </select>
            </label>
        }
    });
    view! {
        <div class="choices sweep-choices">
            <label>
                "Metric"
                <select data-testid="sweep-metric" on:change=move |event| {
                    let metric_id = event_target_value(&event);
                    if let Some(metric) = Metric::ALL.into_iter().find(|metric| metric.id() == metric_id) { looking.metric.set(metric) }
                }>{metrics}</select>
            </label>
            {two}
            <label hidden=move || !is_map.get()>
                "Planner"
                <select data-testid="sweep-planner" on:change=move |event| looking.planner.set(event_target_value(&event))>{planners}</select>
            </label>
            {fixed_axes}
        </div>
    }
}

#[component]
fn Lines(picture: Picture, sweep: RwSignal<StoredSweep>) -> impl IntoView {
    let axis = sweep.with_untracked(|sweep| sweep.axes.get(picture.x).cloned());
    let Some(axis) = axis else { return ().into_any() };
    let lines = curves(&picture, &axis);
    let all = reasons(&picture, &axis);
    let more = all.len().saturating_sub(MAX_REASONS);
    let listed = all.into_iter().take(MAX_REASONS).map(|line| view! { <li>{line}</li> }).collect_view();
    let more = (more > 0).then(|| view! { <li>{format!("and {more} more in the table below")}</li> });
    let label = format!("{} over {}, a line per planner", picture.title, axis.title);
    if lines.is_empty() {
        return view! { <p class="hint">"This line has no planned point yet."</p><ul class="reasons">{listed}{more}</ul> }.into_any();
    }
    view! {
        <CurveChart
            curves=Signal::stored(lines)
            over=Signal::stored(axis.title)
            up=picture.title
            label=Signal::stored(label)
            test_id="sweep-lines"
        />
        <ul class="reasons">{listed}{more}</ul>
    }
    .into_any()
}
