//! Explore page: scenario editor, results, explanations.

mod open_error;

use std::time::Duration;

use leptos::prelude::*;
use leptos_router::hooks::{use_location, use_params_map, use_query_map};

use crate::editor::Editor;
use crate::explore::creation::Start;
use crate::explore::{Explore, use_explore};
use crate::gantt::{Measure, set_measure};
use crate::help::takes_text;
use crate::mixture::read_query;
use crate::plan_reasons::ReasonsPanel;
use crate::pointer;
use crate::results::Results;
use open_error::{OpenErrorPage, is_open_error};

/// Explore page for a new or a stored scenario.
#[component]
pub(crate) fn ExplorePage() -> impl IntoView {
    let explore = use_explore();
    let params = use_params_map();
    let query = use_query_map();
    let wanted = Memo::new(move |_| {
        let id = params.with(|params| params.get("id"));
        let mixture =
            query.with(|query| query.get("mix")).map(|mix| read_query(&mix)).filter(|parts| !parts.is_empty());
        let start = query.with(|query| match (query.get("ready"), query.get("dataset"), mixture) {
            (Some(slug), ..) => Start::Ready { slug, free_layout: query.get("layout").as_deref() == Some("free") },
            (None, Some(dataset), _) => Start::Dataset(dataset),
            (None, None, Some(parts)) => Start::Mixture(parts),
            (None, None, None) => match (query.get("model"), query.get("cluster")) {
                (Some(model), Some(cluster)) => {
                    let nodes = query.get("nodes").and_then(|nodes| nodes.parse().ok());
                    Start::Presets { model, cluster, nodes }
                }
                _ => Start::Draft,
            },
        });
        id.ok_or(start)
    });
    let location = use_location();
    Effect::new(move |_| {
        let wanted = wanted.get();
        explore.arrived.set_value(Some(location.hash.get_untracked()));
        match wanted {
            Ok(id) => explore.open(id),
            Err(start) => explore.start(start),
        }
    });
    let stepped = window_event_listener(leptos::ev::popstate, move |_| {
        // Runs after the effect above, which opens the scenario if the router reports a new
        // address.
        set_timeout(move || explore.open_stepped(), Duration::ZERO);
    });
    on_cleanup(move || stepped.remove());
    view! {
        <Show when=move || !is_open_error(&explore) fallback=|| view! { <OpenErrorPage /> }>
            <Workbench />
        </Show>
    }
}

/// Editor, results and explanations for the open scenario.
#[component]
pub(crate) fn Workbench() -> impl IntoView {
    let explore = use_explore();
    explore.mount();
    set_measure(Measure::Physical);
    Effect::new(move |_| {
        let title = explore.scenario.with(|scenario| pointer::text(scenario, "/title"));
        document().set_title(&format!("{} · Planscope", title.as_deref().unwrap_or("Untitled scenario")));
    });
    Effect::new(move |before: Option<()>| {
        explore.view_now();
        if before.is_some() {
            explore.write_address_soon();
        }
    });
    let listener = window_event_listener(leptos::ev::hashchange, move |_| {
        explore.read_address();
        let iteration = explore.view.with_untracked(|view| view.iteration.unwrap_or(0));
        if explore.displayed.with_untracked(|content| content.iteration != iteration) {
            explore.show_iteration(iteration);
        } else {
            explore.select_named();
        }
    });
    let keys = window_event_listener(leptos::ev::keydown, move |event| undo_key(&explore, &event));
    on_cleanup(move || {
        listener.remove();
        keys.remove();
    });
    view! {
        <main id="main" class="explore" tabindex="-1">
            <Side class_name="editor" label="Scenario">
                <Editor />
            </Side>
            <div class="middle">
                <LinkNotice />
                <UnsavedNotice />
                <Results />
            </div>
            <Side class_name="reasons" label="Reasons">
                <ReasonsPanel />
            </Side>
        </main>
    }
}

/// Handles the keys for undo and redo.
fn undo_key(explore: &Explore, event: &web_sys::KeyboardEvent) {
    let command = event.ctrl_key() || event.meta_key();
    if !command || event.default_prevented() || takes_text(event) {
        return;
    }
    match event.key().to_ascii_lowercase().as_str() {
        "z" if event.shift_key() => explore.redo(),
        "z" => explore.undo(),
        "y" => explore.redo(),
        _ => return,
    }
    event.prevent_default();
}

/// Notice about unreadable parts of the link. It stays until the user closes it.
#[component]
fn LinkNotice() -> impl IntoView {
    let explore = use_explore();
    view! {
        <div role="status" data-testid="link-status">
            {move || explore.link_error.get().map(|message| view! {
                <p class="notice quiet-word">
                    <span>{message}</span>
                    <button class="quiet" on:click=move |_| explore.link_error.set(None)>"Close"</button>
                </p>
            })}
        </div>
    }
}

/// Notice for a scenario that exists only in the link.
#[component]
fn UnsavedNotice() -> impl IntoView {
    let explore = use_explore();
    view! {
        <Show when=move || explore.unsaved.with(Option::is_some)>
            <div class="notice" data-testid="unsaved">
                <p>"This scenario is contained in the link and not stored on this server. You can change it on the left. It is stored when you plan it."</p>
                <button class="primary" data-testid="plan-unsaved" on:click=move |_| explore.retry()>"Plan it"</button>
            </div>
        </Show>
    }
}

/// Side column. On narrow screens it is a collapsible section.
#[component]
fn Side(class_name: &'static str, label: &'static str, children: Children) -> impl IntoView {
    let open = RwSignal::new(false);
    let body = format!("side-{class_name}");
    // A scrollable column without focusable content must be focusable. Otherwise keyboard users
    // cannot scroll it.
    let tabindex = (class_name == "reasons").then_some("0");
    view! {
        <aside class=format!("side {class_name}") class:open=move || open.get() aria-label=label tabindex=tabindex>
            <button class="side-toggle" aria-expanded=move || open.get().to_string() aria-controls=body.clone() on:click=move |_| open.update(|open| *open = !*open)>
                {label}
            </button>
            <div class="side-body" id=body>{children()}</div>
        </aside>
    }
}
