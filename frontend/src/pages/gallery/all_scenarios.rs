//! All prepared scenarios with a text search. The list is fetched when the user expands the
//! section.

use api::path;
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::scenario_line::ScenarioLine;
use super::summary::{ScenarioSummaries, ScenarioSummary};
use crate::client::{self, RequestError};
use crate::notice::ErrorNotice;

/// Expandable list with all prepared scenarios, grouped by paper.
#[component]
pub(super) fn AllScenarios(
    /// Total number of prepared scenarios.
    count: Signal<Option<u32>>,
) -> impl IntoView {
    let entries = RwSignal::new(None::<Result<ScenarioSummaries, RequestError>>);
    let is_open = RwSignal::new(false);
    let search_text = RwSignal::new(String::new());
    let fetch = move || {
        spawn_local(async move {
            entries.try_set(Some(client::get(path::GALLERY).await));
        });
    };
    let toggle = move |event| {
        let open = event_target::<web_sys::Element>(&event).has_attribute("open");
        is_open.set(open);
        if open && entries.with_untracked(Option::is_none) {
            fetch();
        }
    };
    let body = move || match entries.get() {
        None => view! { <p class="muted" role="status">"Loading…"</p> }.into_any(),
        Some(Err(error)) => view! { <ErrorNotice error=error on_retry=move |()| fetch() /> }.into_any(),
        Some(Ok(all)) => {
            let found = group_by_paper(all.entries, &search_text.get());
            if found.is_empty() {
                return view! { <p class="muted" role="status">"No scenario matches."</p> }.into_any();
            }
            found
                .into_iter()
                .map(|(title, entries)| view! { <PaperSection title=title entries=entries /> })
                .collect_view()
                .into_any()
        }
    };
    view! {
        <details class="all-scenarios" data-testid="all-scenarios" on:toggle=toggle>
            <summary>
                {move || count.get().map_or_else(|| "Scenarios of all papers".to_owned(), |count| format!("Scenarios of all papers: {count}"))}
            </summary>
            <Show when=move || is_open.get()>
                <p class="all-scenarios-search">
                    <input
                        type="search"
                        data-testid="all-scenarios-search"
                        aria-label="Search ready scenarios"
                        placeholder="Search: model, paper, table"
                        prop:value=search_text
                        on:input=move |event| search_text.set(event_target_value(&event))
                    />
                    <a href="/papers">"Published results compared"</a>
                </p>
                {body}
            </Show>
        </details>
    }
}

/// Returns the entries that contain every search word in title, summary, paper or model. They are
/// grouped by paper in gallery order; entries without a paper come first.
fn group_by_paper(entries: Vec<ScenarioSummary>, search_text: &str) -> Vec<(String, Vec<ScenarioSummary>)> {
    let terms: Vec<String> = search_text.split_whitespace().map(str::to_lowercase).collect();
    let mut group_by_paper: Vec<(String, Vec<ScenarioSummary>)> = Vec::new();
    for entry in entries {
        let paper = entry.paper.as_ref().map(|paper| format!("{} {}", paper.title, paper.place)).unwrap_or_default();
        let text = format!("{} {} {paper} {}", entry.title, entry.summary, entry.scenario.model.name).to_lowercase();
        if !terms.iter().all(|word| text.contains(word.as_str())) {
            continue;
        }
        let title = entry.paper.as_ref().map_or_else(|| "Of no paper".to_owned(), |paper| paper.title.clone());
        match group_by_paper.iter_mut().find(|(known, _)| *known == title) {
            Some((_, group)) => group.push(entry),
            None => group_by_paper.push((title, vec![entry])),
        }
    }
    group_by_paper
}

/// Setups from a single paper.
#[component]
fn PaperSection(title: String, entries: Vec<ScenarioSummary>) -> impl IntoView {
    view! {
        <h3>{title}</h3>
        <ul class="scenario-list">{entries.into_iter().map(|entry| view! { <ScenarioLine entry=entry /> }).collect_view()}</ul>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<ScenarioSummary> {
        let entry = |slug: &str, title: &str, paper: Option<(&str, &str)>| {
            let paper = paper.map(|(title, location)| serde_json::json!({"title": title, "place": location}));
            serde_json::json!({"slug": slug, "title": title, "summary": "S.", "paper": paper, "scenario": {
                "model": {"name": "Qwen2 7B"}, "cluster": {"name": "C", "nodes": 2, "devices_per_node": 8},
                "workload": {"global_batch": 16, "context_length": 8192}, "planners": []}})
        };
        let all = serde_json::json!({"entries": [
            entry("a", "Long documents", None),
            entry("b", "Steps", Some(("DHP", "Table 2"))),
            entry("c", "Ablation", Some(("DHP", "Figure 9"))),
        ]});
        serde_json::from_value::<ScenarioSummaries>(all).unwrap().entries
    }

    #[test]
    fn search_matches_title_paper_and_model() {
        let found = |search_text: &str| -> Vec<(String, Vec<String>)> {
            let group_by_paper = group_by_paper(entries(), search_text).into_iter();
            group_by_paper
                .map(|(title, entries)| (title, entries.into_iter().map(|entry| entry.slug).collect()))
                .collect()
        };
        assert_eq!(found("").len(), 2);
        assert_eq!(found("dhp table"), [("DHP".to_owned(), vec!["b".to_owned()])]);
        assert_eq!(found("QWEN2 documents"), [("Of no paper".to_owned(), vec!["a".to_owned()])]);
        assert!(found("nothing").is_empty());
    }
}
