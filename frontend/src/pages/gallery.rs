//! The first page: ready scenarios, a new one, what was opened last, pinned and kept.

pub(crate) mod glance;
pub(crate) mod ready_line;
mod rehearse;

use api::path;
use api::scenario::{ScenarioLine, ScenarioList};
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, Failure};
use crate::format;
use crate::notice::FailureNotice;
use crate::recent::OpenedLast;
use crate::results::short_title;
use crate::sketch;
use glance::{Facts, Glance, Glances};
use ready_line::ReadyLine;
use rehearse::RehearseReady;

/// Kept scenarios shown here; the rest is a page of its own.
const RECENT: usize = 8;
/// Set-ups of a paper that are shown unfolded.
const SHELF: usize = 8;

/// The gallery.
#[component]
pub(crate) fn GalleryPage() -> impl IntoView {
    document().set_title("Planscope");
    let gallery = RwSignal::new(None::<Result<Glances, Failure>>);
    let recent = RwSignal::new(Vec::<ScenarioLine>::new());
    let fetch = move || {
        gallery.set(None);
        spawn_local(async move { gallery.set(Some(client::get(path::GALLERY).await)) });
        spawn_local(async move {
            // Where the list cannot be had, the notice about the gallery says why.
            // Pinned ones come first.
            if let Ok(list) = client::get::<ScenarioList>(&format!("{}?limit={RECENT}", path::SCENARIOS)).await {
                recent.set(list.scenarios);
            }
        });
    };
    fetch();
    let cards = move || match gallery.get() {
        None => view! {
            <div class="skeleton card-skeleton" aria-hidden="true"></div>
            <div class="skeleton card-skeleton" aria-hidden="true"></div>
            <div class="skeleton card-skeleton" aria-hidden="true"></div>
        }
        .into_any(),
        Some(Err(failure)) => view! { <FailureNotice failure=failure on_retry=move |()| fetch() /> }.into_any(),
        Some(Ok(gallery)) => {
            let own = gallery.entries.into_iter().filter(|entry| entry.paper.is_none());
            own.map(|entry| view! { <ReadyCard entry=entry /> }).collect_view().into_any()
        }
    };
    let papers = move || match gallery.get() {
        Some(Ok(gallery)) => shelves(gallery.entries),
        _ => Vec::new(),
    };
    view! {
        <main id="main" class="page gallery" tabindex="-1">
            <h1>"Plans for training large models"</h1>
            <p class="lead">
                "Pick a model, a cluster and real sequence lengths; see static, interleaved and dynamic pipeline schedules side by side, and why each is what it is."
            </p>
            <h2 id="ready">"Ready scenarios"</h2>
            <div class="cards" aria-labelledby="ready" role="group">
                {cards}
                <a class="ready new" href="/new" data-testid="new-scenario">
                    <span class="plus" aria-hidden="true">"+"</span>
                    <b>"New scenario"</b>
                    <span class="summary">"Your model, your cluster, your lengths. Upload a file or draw from a distribution."</span>
                </a>
            </div>
            <OpenedLast heading="Opened last in this browser" />
            <Show when=move || !recent.with(Vec::is_empty)>
                <h2>"Pinned and kept last"</h2>
                <ul class="recent" data-testid="kept-last">
                    {move || recent.get().into_iter().map(|line| view! { <RecentLine line=line /> }).collect_view()}
                </ul>
                <p><a href="/scenarios">"All scenarios"</a>" · "<a href="/plans">"All plans"</a></p>
            </Show>
            {move || papers().into_iter().map(|(paper, entries)| view! { <PaperShelf paper=paper entries=entries /> }).collect_view()}
        </main>
    }
}

/// Entries by paper, in the order in which papers first appear.
fn shelves(entries: Vec<Glance>) -> Vec<(String, Vec<Glance>)> {
    let mut shelves: Vec<(String, Vec<Glance>)> = Vec::new();
    for entry in entries {
        let Some(title) = entry.paper.as_ref().map(|paper| paper.title.clone()) else { continue };
        match shelves.iter_mut().find(|(known, _)| *known == title) {
            Some((_, own)) => own.push(entry),
            None => shelves.push((title, vec![entry])),
        }
    }
    shelves
}

/// The set-ups of one paper, a line each.
#[component]
fn PaperShelf(paper: String, entries: Vec<Glance>) -> impl IntoView {
    let line = |entry| view! { <ReadyLine entry=entry /> };
    let mut entries = entries.into_iter();
    let lines = entries.by_ref().take(SHELF).map(line).collect_view();
    let more: Vec<_> = entries.map(line).collect();
    let more = (!more.is_empty()).then(|| {
        let words = format!("{} more", more.len());
        view! {
            <details class="advanced">
                <summary>{words}</summary>
                <ul class="shelf">{more}</ul>
            </details>
        }
    });
    view! {
        <h2>{paper}</h2>
        <p class="hint">"Set-ups of the paper. "<a href="/papers">"Published figures beside ours"</a></p>
        <ul class="shelf">{lines}</ul>
        {more}
    }
}

#[component]
fn ReadyCard(entry: Glance) -> impl IntoView {
    let Glance { slug, title, summary, scenario, .. } = entry;
    let Facts { model, cluster, workload, planners } = scenario;
    let pills = planners.into_iter().map(|planner| {
        view! { <span><span class="pill" data-planner-colour=planner.id()></span>{short_title(planner)}</span> }
    });
    let facts = [
        model.name,
        format!("{} × {} {}", cluster.nodes, cluster.per_node, cluster.name),
        format!("{} samples a batch", format::count(workload.global_batch.into())),
        format!("context {}", format::count(workload.context_length.into())),
    ];
    view! {
        <div class="ready-place">
            <a class="ready" href=format!("/new?ready={slug}") data-testid=format!("gallery-{slug}")>
                <span class="sketch" aria-hidden="true" inner_html=sketch::of(&slug)></span>
                <b>{title.clone()}</b>
                <span class="summary">{summary}</span>
                <span class="chips">{facts.map(|fact| view! { <span class="chip">{fact}</span> })}</span>
                <span class="pills">{pills.collect_view()}</span>
            </a>
            <RehearseReady slug=slug title=title />
        </div>
    }
}

#[component]
fn RecentLine(line: ScenarioLine) -> impl IntoView {
    let best = line.best.map(|best| format!("{}, {}", format::seconds(best.iteration_s), best.planner));
    view! {
        <li>
            <span>{line.pinned.then_some("★ ")}<a href=path::share(&line.short)>{line.title}</a></span>
            <span class="muted">{line.model}" · "{line.cluster}</span>
            <span>{best}</span>
            <span class="muted">{format::moment(&line.created_at)}</span>
        </li>
    }
}
