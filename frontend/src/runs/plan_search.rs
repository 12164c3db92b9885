//! Search field for a scenario: stored scenarios, drafts, gallery, pasted links.

use api::contained;
use api::gallery::Gallery;
use api::path;
use api::scenario::{ScenarioLine, ScenarioList, StoredScenario};
use leptos::html;
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::plan_offers::{Offer, OfferGroup, PastedLink, groups, pasted_link};
use crate::client::{self, Body, RequestError};
use crate::format;

/// Debounce interval for the search in ms.
const TYPING_MS: i32 = 200;
/// Maximum number of stored scenarios without a search text and with it.
const FEW: u32 = 6;
const MANY: u32 = 20;

/// Search field with a result list.
#[component]
#[expect(clippy::too_many_lines, reason = "one field with its list, keys and states")]
pub(super) fn PlanSearch(
    /// Identifier of the selected scenario.
    scenario: RwSignal<Option<String>>,
    /// Called when the selection changes.
    #[prop(into)]
    on_select: Callback<()>,
) -> impl IntoView {
    let field = NodeRef::<html::Input>::new();
    let title = RwSignal::new(String::new());
    // Search text while the list is open. Before the user types, the field shows the title.
    let search = RwSignal::new(None::<String>);
    let is_typed = RwSignal::new(false);
    let found = RwSignal::new(Vec::<OfferGroup>::new());
    // Hide results for an older text. Otherwise Enter would select an outdated result.
    let is_searching = RwSignal::new(false);
    // `None` until an arrow key is pressed. Enter then selects the first result.
    let active = RwSignal::new(None::<usize>);
    let error_message = RwSignal::new(None::<String>);
    // Escape closes the list; the typed text stays.
    let is_closed = RwSignal::new(false);
    let is_open = Memo::new(move |_| search.with(Option::is_some) && !is_closed.get());
    let choose = move |id: Option<String>| {
        search.set(None);
        error_message.set(None);
        if scenario.get_untracked() != id {
            on_select.run(());
            scenario.set(id);
        }
    };
    // Show the title also if the selection changes outside this field.
    let wanted = Memo::new(move |_| scenario.get());
    Effect::new(move |_| {
        let Some(id) = wanted.get() else {
            title.set(String::new());
            return;
        };
        spawn_local(async move {
            let response = client::get::<StoredScenario>(&path::scenario(&id)).await;
            if wanted.try_get_untracked().flatten().as_deref() == Some(id.as_str()) {
                title.set(
                    response.map_or_else(|_| id.get(..10).unwrap_or(&id).to_owned(), |stored| scenario_title(&stored)),
                );
            }
        });
    });
    let gallery = StoredValue::new(None::<Gallery>);
    let look = move |text: String, pause_ms: i32| {
        spawn_local(async move {
            client::pause(pause_ms).await;
            let is_current = || search.try_get_untracked().flatten().as_deref() == Some(text.as_str());
            if !is_current() {
                return;
            }
            let limit = if text.trim().is_empty() { FEW } else { MANY };
            let query = format!("q={}&limit={limit}", client::encode(text.trim()));
            let drafts = client::get::<ScenarioList>(&format!("{}&{query}", path::DRAFTS)).await;
            let saved = client::get::<ScenarioList>(&format!("{}?{query}", path::SCENARIOS)).await;
            if gallery.try_with_value(Option::is_none) == Some(true) {
                let gallery_response = client::get::<Gallery>(path::GALLERY).await;
                gallery.try_set_value(gallery_response.ok());
            }
            if !is_current() {
                return;
            }
            let first_error =
                [&drafts, &saved].into_iter().find_map(|result| result.as_ref().err()).map(RequestError::title);
            error_message.set(first_error);
            let lines = |list_response: Result<ScenarioList, RequestError>| -> Vec<ScenarioLine> {
                list_response.map(|list| list.scenarios).unwrap_or_default()
            };
            let (drafts, saved) = (lines(drafts), lines(saved));
            found.set(gallery.with_value(|gallery| groups(drafts, saved, gallery.as_ref(), &text)));
            active.set(None);
            is_searching.set(false);
        });
    };
    let open = move |()| {
        if is_closed.get_untracked() && search.with_untracked(Option::is_some) {
            is_closed.set(false);
        } else if !is_open.get_untracked() {
            is_closed.set(false);
            is_typed.set(false);
            search.set(Some(String::new()));
            look(String::new(), 0);
            if let Some(field) = field.get_untracked() {
                field.select();
            }
        }
    };
    let store = move |body: String, progress_text: &'static str| {
        title.set(progress_text.to_owned());
        spawn_local(async move {
            match client::send::<StoredScenario>("PUT", path::SCENARIOS, Body::Json(body)).await {
                Ok(stored) => {
                    title.try_set(scenario_title(&stored));
                    choose(Some(stored.id));
                }
                Err(error) => {
                    title.try_set(String::new());
                    error_message.try_set(Some(format!("{}. {}", error.title(), error.detail())));
                }
            }
        });
    };
    let take = move |offer: Offer| {
        search.set(None);
        match offer {
            Offer::Stored(line) => choose(Some(line.id)),
            Offer::Ready(entry) => {
                if let Ok(body) = serde_json::to_string(&entry.scenario) {
                    store(body, "Storing…");
                }
            }
        }
    };
    let follow = move |link: PastedLink| {
        search.set(None);
        match link {
            PastedLink::Contained(fragment) => match contained::read(&fragment) {
                Ok(scenario) => store(scenario.to_string(), "Opening the link…"),
                Err(error) => error_message.set(Some(format::sentence(&error.to_string()))),
            },
            PastedLink::Stored(id) => spawn_local(async move {
                match client::get::<StoredScenario>(&path::scenario(&id)).await {
                    Ok(stored) => choose(Some(stored.id)),
                    Err(link_error) => {
                        error_message.try_set(Some(format!("The link opens no scenario. {}", link_error.detail())));
                    }
                }
            }),
        }
    };
    let typed = move |event| {
        let text = event_target_value(&event);
        error_message.set(None);
        if let Some(link) = pasted_link(&text) {
            follow(link);
        } else {
            is_closed.set(false);
            is_typed.set(true);
            is_searching.set(true);
            search.set(Some(text.clone()));
            look(text, TYPING_MS);
        }
    };
    let count = move || found.with(|groups| groups.iter().map(|group| group.offers.len()).sum::<usize>());
    let at = move |offer_index: usize| {
        found.with_untracked(|groups| groups.iter().flat_map(|group| &group.offers).nth(offer_index).cloned())
    };
    let key = move |event: web_sys::KeyboardEvent| {
        let last = untrack(count).saturating_sub(1);
        match event.key().as_str() {
            "ArrowDown" if is_open.get_untracked() => active.update(|active| *active = Some(below(*active, last))),
            "ArrowDown" => open(()),
            "ArrowUp" => active.update(|active| *active = Some(above(*active, last))),
            "Enter" if is_open.get_untracked() => {
                if !is_searching.get_untracked()
                    && let Some(offer) = at(active.get_untracked().unwrap_or(0))
                {
                    take(offer);
                }
            }
            "Escape" if is_open.get_untracked() && is_typed.get_untracked() => is_closed.set(true),
            "Escape" if search.with_untracked(Option::is_some) => search.set(None),
            _ => return,
        }
        event.prevent_default();
    };
    let list = move || {
        if is_searching.get() {
            return view! { <li role="presentation" class="offer-group">"Searching…"</li> }.into_any();
        }
        let mut index = 0;
        let groups = found.get().into_iter().map(|group| {
            let options = group.offers.into_iter().map(|offer| {
                let here = index;
                index += 1;
                view! { <OfferLine offer=offer index=here active=active take=take /> }
            });
            let options = options.collect_view();
            view! { <li role="presentation" class="offer-group">{group.title}</li> {options} }
        });
        let groups = groups.collect_view();
        let nothing =
            (index == 0).then(|| view! { <li role="presentation" class="offer-group">"No scenario matches."</li> });
        view! { {groups} {nothing} }.into_any()
    };
    view! {
        <div class="plan-search">
            <label for="choose-scenario">"Compare with scenario"</label>
            <div class="plan-search-field">
                <input
                    node_ref=field
                    id="choose-scenario"
                    type="text"
                    role="combobox"
                    data-testid="choose-scenario"
                    data-scenario=move || scenario.get()
                    aria-autocomplete="list"
                    aria-controls="scenario-offers"
                    aria-expanded=move || is_open.get().to_string()
                    aria-activedescendant=move || active.get().filter(|_| is_open.get()).map(|active| format!("offer-{active}"))
                    autocomplete="off"
                    spellcheck="false"
                    placeholder="Search scenarios, drafts and the gallery, or paste a link"
                    prop:value=move || search.get().filter(|_| is_typed.get()).unwrap_or_else(|| title.get())
                    on:focus=move |_| open(())
                    on:click=move |_| open(())
                    on:blur=move |_| search.set(None)
                    on:input=typed
                    on:keydown=key
                />
                <button
                    type="button"
                    class="quiet"
                    data-testid="choose-none"
                    disabled=move || scenario.with(Option::is_none)
                    on:click=move |_| choose(None)
                >
                    "None"
                </button>
            </div>
            <Show when=move || is_open.get()>
                <ul id="scenario-offers" class="offers" role="listbox" aria-label="Scenarios" data-testid="scenario-offers">{list}</ul>
            </Show>
            {move || error_message.get().map(|message| view! { <p class="field-error" role="alert" data-testid="choose-failure">{message}</p> })}
        </div>
    }
}

/// Scenario in the result list.
#[component]
fn OfferLine(
    offer: Offer,
    /// Index over all groups, starting at 0.
    index: usize,
    active: RwSignal<Option<usize>>,
    #[prop(into)] take: Callback<Offer>,
) -> impl IntoView {
    let (title, detail) = (offer.title().to_owned(), offer.detail());
    let figure = offer.figure().map(|(planner, seconds)| format!("{}, {planner}", format::seconds(seconds)));
    let id = match &offer {
        Offer::Stored(line) => line.id.clone(),
        Offer::Ready(entry) => entry.slug.clone(),
    };
    let is_active = move || active.get() == Some(index);
    // Use mousedown: it fires before the field loses focus, which closes the list.
    let press = move |event: web_sys::MouseEvent| {
        event.prevent_default();
        take.run(offer.clone());
    };
    view! {
        <li
            id=format!("offer-{index}")
            class="offer"
            role="option"
            data-offer=id
            class:active=is_active
            aria-selected=move || is_active().to_string()
            on:mousedown=press
        >
            <span class="offer-title">{title}</span>
            <span class="offer-figure">{figure}</span>
            <span class="offer-detail">{detail}</span>
        </li>
    }
}

/// Returns the next index, or the first index without a current one.
fn below(active: Option<usize>, last: usize) -> usize {
    active.map_or(0, |active| (active + 1).min(last))
}

/// Returns the previous index, or the last index without a current one.
fn above(active: Option<usize>, last: usize) -> usize {
    active.map_or(last, |active| active.saturating_sub(1))
}

/// Returns the title, or model and cluster if the scenario has no title.
fn scenario_title(stored: &StoredScenario) -> String {
    let scenario = &stored.scenario;
    scenario.title.clone().unwrap_or_else(|| format!("{} on {}", scenario.model.name, scenario.cluster.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_arrow_key_selects_a_list_end() {
        assert_eq!([below(None, 3), below(Some(0), 3), below(Some(3), 3)], [0, 1, 3]);
        assert_eq!([above(None, 3), above(Some(3), 3), above(Some(0), 3)], [3, 2, 0]);
    }
}
