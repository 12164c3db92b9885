//! Selects the scenario or engine version for comparison.

use api::job::EngineOutcomeList;
use api::path;
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::scenario_title;
use crate::client;
use crate::explore::use_explore;
use crate::format;
use crate::fragment::ScenarioPrefix;
use crate::recent::{self, Opened};

/// Prefix that marks an engine version among the options.
const ENGINE_PREFIX: &str = "@";

/// Engine name as written in links.
pub(super) fn link_name(engine: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '_' };
    engine.chars().map(plain).collect()
}

/// Extracts a scenario identifier from pasted text: any kind of link, or an identifier.
fn scenario_in(text: &str) -> Option<ScenarioPrefix> {
    let text = text.trim();
    let behind = text.rsplit_once("/s/").map_or(text, |(_, behind)| behind);
    let end = behind.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(behind.len());
    ScenarioPrefix::parse(&behind[..end])
}

/// Options: the pinned scenario, recent scenarios, results from other engine versions, and a link
/// field.
#[component]
pub(super) fn TargetPicker() -> impl IntoView {
    let explore = use_explore();
    let engines = RwSignal::new(EngineOutcomeList { answers: Vec::new() });
    Effect::new(move |_| {
        let Some(id) = explore.stored_scenario_id() else { return };
        spawn_local(async move {
            // If the list request fails, only the engine options are missing.
            if let Ok(list) = client::get::<EngineOutcomeList>(&path::engine_answers(&id)).await
                && untrack(|| explore.stored_scenario_id()) == Some(id)
            {
                engines.try_set(list);
            }
        });
    });
    let pasted = RwSignal::new(String::new());
    let unread = Memo::new(move |_| pasted.with(|text| !text.trim().is_empty() && scenario_in(text).is_none()));
    let here = move || explore.stored.with(|stored| stored.as_ref().map(|stored| stored.id.clone()));
    let compare = move |scenario: Option<ScenarioPrefix>, engine: Option<String>| {
        explore.view.update(|view| (view.compared, view.compared_engine) = (scenario, engine));
    };
    let on_select = move |event| {
        let value = event_target_value(&event);
        match value.strip_prefix(ENGINE_PREFIX) {
            Some(engine) => compare(here().as_deref().and_then(ScenarioPrefix::parse), Some(engine.to_owned())),
            None => compare(ScenarioPrefix::parse(&value), None),
        }
    };
    let typed = move |event| {
        let text = event_target_value(&event);
        if let Some(scenario) = scenario_in(&text) {
            compare(Some(scenario), None);
        }
        pasted.set(text);
    };
    let pin = move |_| {
        let Some(pinned) = explore.stored.with_untracked(|stored| {
            let stored = stored.as_ref()?;
            Some(Opened { id: stored.id.clone(), short: stored.short.clone(), title: scenario_title(&stored.scenario) })
        }) else {
            return;
        };
        compare(ScenarioPrefix::parse(&pinned.id), None);
        recent::pin(Some(&pinned));
    };
    let stop = move |_| {
        recent::pin(None);
        pasted.set(String::new());
        compare(None, None);
    };
    let is_compared = Memo::new(move |_| explore.view.with(|view| view.compared.is_some()));
    view! {
        <div class="comparison-choice">
            <label>
                <span>"Compare with"</span>
                <select data-testid="comparison-choice" on:change=on_select><Choices engines=engines /></select>
            </label>
            <label>
                <span>"or paste a link"</span>
                <input
                    type="text"
                    data-testid="comparison-link-field"
                    placeholder="/s/\u{2026}"
                    autocomplete="off"
                    spellcheck="false"
                    aria-invalid=move || unread.get().to_string()
                    prop:value=move || pasted.get()
                    on:change=typed
                />
            </label>
            <button
                class="quiet"
                data-testid="comparison-pin"
                title="Compare scenarios that you open or edit next with the current state"
                disabled=move || explore.stored.with(Option::is_none)
                on:click=pin
            >
                "Pin this one"
            </button>
            <Show when=move || is_compared.get()>
                <button class="quiet" data-testid="comparison-stop" on:click=stop>"Stop comparing"</button>
            </Show>
        </div>
        <Show when=move || unread.get()>
            <p class="field-error" role="alert">"This is neither a link to a scenario nor an identifier of at least ten letters."</p>
        </Show>
    }
}

/// Options in the select element.
#[component]
fn Choices(engines: RwSignal<EngineOutcomeList>) -> impl IntoView {
    let explore = use_explore();
    move || {
        let now =
            explore.view.with(|view| (view.compared.map(|it| it.as_str().to_owned()), view.compared_engine.clone()));
        let open = explore.stored.with(|stored| stored.as_ref().map(|stored| stored.id.clone()));
        let line = |opened: Opened, mark: &str| {
            let selected = now.1.is_none() && now.0.as_ref().is_some_and(|id| opened.id.starts_with(id.as_str()));
            view! { <option value=opened.id selected=selected>{format!("{mark}{}", opened.title)}</option> }
        };
        let pinned = recent::pinned();
        let pinned_id = pinned.as_ref().map(|opened| opened.id.clone());
        let others: Vec<Opened> = recent::opened()
            .into_iter()
            .filter(|opened| Some(&opened.id) != open.as_ref() && Some(&opened.id) != pinned_id.as_ref())
            .collect();
        // A scenario from the link alone also needs an option.
        let is_listed = |id: &str| pinned.iter().chain(&others).any(|opened| opened.id.starts_with(id));
        let linked = now.0.clone().filter(|id| now.1.is_none() && !is_listed(id));
        let linked = linked.map(|id| {
            let label = format!("From the link: {}", id.get(..10).unwrap_or(&id));
            view! { <option value=id selected=true>{label}</option> }
        });
        let other_engines = engines.get().answers.into_iter().filter(|entry| {
            explore.result.with(|result| result.as_ref().is_none_or(|result| result.outcome.engine != entry.engine))
        });
        let engine_options = other_engines.map(|engine_entry| {
            let name = link_name(&engine_entry.engine);
            let selected = now.1.as_ref() == Some(&name);
            let text =
                format!("This one as {} had it, {}", engine_entry.engine, format::moment(&engine_entry.created_at));
            view! { <option value=format!("{ENGINE_PREFIX}{name}") selected=selected>{text}</option> }
        });
        view! {
            <option value="" selected=now.0.is_none()>"Choose\u{2026}"</option>
            {linked}
            {pinned.map(|opened| line(opened, "Pinned: "))}
            {engine_options.collect_view()}
            {others.into_iter().map(|opened| line(opened, "")).collect_view()}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_is_found_in_links_and_identifiers() {
        let found = |text| scenario_in(text).map(|prefix| prefix.as_str().to_owned());
        let wanted = Some("abcdefghij".to_owned());
        for text in
            ["abcdefghij", " ABCDEFGHIJ ", "/s/abcdefghij", "http://localhost:8080/s/abcdefghij#i=3&cmp=zzzzzzzzzz"]
        {
            assert_eq!(found(text), wanted, "{text}");
        }
        for text in ["", "abc", "/s/", "http://localhost/runs/abcdefghi1", "…"] {
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[test]
    fn an_engine_needs_no_escape_in_a_link() {
        assert_eq!(link_name("planscope 0.2.0"), "planscope_0.2.0");
    }
}
