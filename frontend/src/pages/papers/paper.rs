//! Page for one paper: its setups with links to charts, and published values next to the values
//! from this engine.

use api::papers::{Paper, Papers};
use api::path;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::hooks::use_params_map;

use super::set::Set;
use super::{LEAD, fetch, nothing, place_order};
use crate::client;
use crate::pages::gallery::scenario_line::ScenarioLine;
use crate::pages::gallery::summary::{ScenarioSummaries, ScenarioSummary};

#[component]
pub(crate) fn PaperPage() -> impl IntoView {
    let params = use_params_map();
    let id = Memo::new(move |_| params.with(|params| params.get("id")).unwrap_or_default());
    let response = RwSignal::new(None);
    fetch(response);
    let ready = RwSignal::new(Vec::<ScenarioSummary>::new());
    spawn_local(async move {
        // If the gallery request fails, the figures still link to their setups.
        if let Ok(gallery) = client::get::<ScenarioSummaries>(path::GALLERY).await {
            ready.set(gallery.entries);
        }
    });
    let body = move || match response.get() {
        Some(Ok(Papers { engine, papers })) if !papers.is_empty() => {
            match papers.into_iter().find(|paper| paper.id == id.get()) {
                Some(paper) => view! { <PaperContent paper=paper ready=ready engine=engine /> }.into_any(),
                None => view! {
                    <h1>"Unknown paper"</h1>
                    <p><a href="/papers">"All papers"</a></p>
                }
                .into_any(),
            }
        }
        _ => view! { <h1>"Paper"</h1>{nothing(response)} }.into_any(),
    };
    view! { <main id="main" class="page papers" tabindex="-1">{body}</main> }
}

#[component]
fn PaperContent(paper: Paper, ready: RwSignal<Vec<ScenarioSummary>>, engine: String) -> impl IntoView {
    let Paper { id, title, source, mut sets } = paper;
    sets.sort_by(|a, b| place_order(&a.place).cmp(&place_order(&b.place)));
    document().set_title(&format!("{title} · Planscope"));
    let contents = sets
        .iter()
        .map(|set| {
            let href = format!("#{id}-{}", set.id);
            view! { <li><a href=href rel="external">{set.place.clone()}</a>" "<small>{set.title.clone()}</small></li> }
        })
        .collect_view();
    let entries = {
        let title = title.clone();
        Memo::new(move |_| {
            let belongs_to_paper =
                |entry: &&ScenarioSummary| entry.paper.as_ref().is_some_and(|paper_ref| paper_ref.title == title);
            ready.with(|ready| ready.iter().filter(belongs_to_paper).cloned().collect::<Vec<_>>())
        })
    };
    let lines = move || entries.get().into_iter().map(|entry| view! { <ScenarioLine entry=entry /> }).collect_view();
    let sets = {
        let id = id.clone();
        sets.into_iter().map(|set| view! { <Set paper=id.clone() set=set /> }).collect_view()
    };
    // Scroll to the anchor now, because the element did not exist when the page loaded.
    Effect::new(move |_| {
        let hash = window().location().hash().unwrap_or_default();
        if let Some(element) = document().get_element_by_id(hash.trim_start_matches('#')).filter(|_| hash.len() > 1) {
            element.scroll_into_view();
        }
    });
    view! {
        <p><a href="/papers">"All papers"</a></p>
        <h1>{title}</h1>
        <p class="lead">{source}</p>
        <p class="hint">{LEAD}</p>
        <h2>"Tables and figures"</h2>
        <ul class="contents" aria-label="Tables and figures">{contents}</ul>
        <Show when=move || !entries.with(Vec::is_empty)>
            <details class="all-scenarios" open=move || entries.with(|current| current.len() <= 12)>
                <summary>{move || format!("{} scenarios to open", entries.with(Vec::len))}</summary>
                <ul class="scenario-list" data-testid="all-scenarios">{lines}</ul>
            </details>
        </Show>
        <section data-testid=format!("paper-{id}")>{sets}</section>
        <p class="hint">{format!("Planned by {engine}. ")}<a href="/accuracy">"Accuracy of the predictions"</a></p>
    }
}
