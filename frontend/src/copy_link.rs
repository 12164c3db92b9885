//! Button that copies a link to the current view. If the link refers to a scenario, the button also
//! saves the scenario, so that the link never expires.

use api::path;
use api::scenario::{Keep, SavedSource, StoredScenario};
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::hooks::use_location;

use crate::client::{self, Body, RequestError};
use crate::clipboard;
use crate::explore::use_explore;
use crate::pointer;
use crate::resource_page::MissingObject;

/// Display time of the "Copied" label.
const LABEL_DURATION: std::time::Duration = std::time::Duration::from_secs(4);

/// Pages of stored objects. Their address is the link, and the objects stay until a user deletes
/// them.
const STORED_PAGES: [&str; 5] = ["/runs/", "/traces/", "/sweeps/", "/profiles/", "/papers/"];

/// Result of the last copy.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Copied {
    url: String,
    is_on_clipboard: bool,
}

/// Button that copies a link to the page. On the explore page it saves the open scenario and the
/// compared scenario.
#[component]
#[expect(clippy::too_many_lines, reason = "one button with its states")]
pub(crate) fn CopyLink() -> impl IntoView {
    let explore = use_explore();
    let pathname = use_location().pathname;
    let copied = RwSignal::new(None::<Copied>);
    // Scenarios that could not be saved, and the error.
    let unsaved = RwSignal::new(None::<(Vec<SavedScenario>, RequestError)>);
    // True if the scenario of the last copied link is saved.
    let is_saved = RwSignal::new(false);
    let on_stored_page = move || pathname.with(|path| STORED_PAGES.iter().any(|page| path.starts_with(page)));
    let missing = expect_context::<MissingObject>();
    let is_visible = move || explore.on_page() || (on_stored_page() && !missing.is_shown());
    let is_ready = move || {
        on_stored_page()
            || explore.unsaved.with(Option::is_some)
            || (explore.stored.with(Option::is_some) && !explore.is_unstored())
    };
    let save = move |scenarios: Vec<SavedScenario>| {
        unsaved.set(None);
        spawn_local(async move {
            let mut rejected = Vec::new();
            let mut reason = None;
            for scenario in scenarios {
                match scenario.send().await {
                    Ok(()) => scenario.note_in(explore),
                    Err(error) => {
                        rejected.push(scenario);
                        reason = Some(error);
                    }
                }
            }
            is_saved.try_set(reason.is_none());
            unsaved.try_set(reason.map(|reason| (rejected, reason)));
        });
    };
    let press = move |_| {
        let origin = window().location().origin().unwrap_or_default();
        let url = if untrack(on_stored_page) {
            window().location().href().ok()
        } else {
            let contained = || explore.unsaved.get_untracked().map(|fragment| format!("/c/#{fragment}"));
            untrack(|| explore.link()).or_else(contained).map(|link| format!("{origin}{link}"))
        };
        let Some(url) = url else { return };
        is_saved.set(false);
        // Copies before saving: the browser permits clipboard access only for a short time after
        // the click.
        spawn_local(async move {
            let is_on_clipboard = clipboard::copy(&url).await;
            let now = Copied { url, is_on_clipboard };
            copied.set(Some(now.clone()));
            set_timeout(
                move || {
                    copied.update(|copied| {
                        if copied.as_ref() == Some(&now) && now.is_on_clipboard {
                            *copied = None;
                        }
                    });
                },
                LABEL_DURATION,
            );
        });
        if !untrack(on_stored_page) {
            explore.leave_job();
            let scenarios = scenarios_to_save(explore);
            if !scenarios.is_empty() {
                save(scenarios);
            }
        }
    };
    let label = move || match copied.get() {
        // The notice says that the link may not open.
        Some(_) if unsaved.with(Option::is_some) => "Not saved",
        Some(Copied { is_on_clipboard: true, .. }) => "Copied",
        Some(_) => "Copy by hand",
        None => "Copy link",
    };
    // Tests and users without a clipboard can read the link from the page.
    let last = RwSignal::new(None::<String>);
    Effect::new(move |_| {
        if let Some(copied) = copied.get() {
            last.set(Some(copied.url));
        }
    });
    let status = move || copied.get().map(|copied| status_text(copied.is_on_clipboard, is_saved.get()));
    view! {
        <Show when=is_visible>
            <div class="copy-link">
                <button
                    class="primary"
                    data-testid="copy-link"
                    data-url=move || last.get()
                    disabled=move || !is_ready()
                    title=move || if is_ready() { "Copies a link to this view and saves what it shows" } else { "The server does not have the edited scenario yet" }
                    on:click=press
                >
                    {label}
                </button>
                {move || copied.get().filter(|copied| !copied.is_on_clipboard).map(|copied| view! {
                    <input class="copy-by-hand" readonly=true prop:value=copied.url aria-label="Link to this view" />
                })}
                {move || unsaved.get().map(|(scenarios, error)| view! {
                    <div class="copy-failure notice bad" role="alert" data-testid="copy-failure">
                        <b>"The scenario of the copied link could not be saved"</b>
                        <p>{error.title()}". "{error.detail()}" Until it is saved, the link opens only as long as the draft exists."</p>
                        <button on:click=move |_| save(scenarios.clone())>"Try again"</button>
                        <button class="quiet" on:click=move |_| unsaved.set(None)>"Close"</button>
                    </div>
                })}
                <p class="copy-status" role="status" data-testid="copy-status">{status}</p>
            </div>
        </Show>
    }
}

/// Status text for the last click.
const fn status_text(is_on_clipboard: bool, is_saved: bool) -> &'static str {
    match (is_on_clipboard, is_saved) {
        (true, true) => "Saved and copied",
        (true, false) => "Link copied",
        (false, true) => "Saved. The browser refuses to copy; copy the link from the field.",
        (false, false) => "The browser refuses to copy; copy the link from the field.",
    }
}

/// Scenario that a link refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SavedScenario {
    id: String,
    title: Option<String>,
}

impl SavedScenario {
    async fn send(&self) -> Result<(), RequestError> {
        let keep = Keep { title: self.title.clone(), source: Some(SavedSource::Link) };
        let body = serde_json::to_string(&keep).map_err(|error| RequestError::Unreadable(error.to_string()))?;
        client::submit("POST", &path::keep(&self.id), Body::Json(body)).await
    }

    /// Marks the open scenario as saved, so that the Save button shows it.
    fn note_in(&self, explore: crate::explore::Explore) {
        let is_open = |stored: &StoredScenario| stored.id == self.id;
        if explore.stored.try_with_untracked(|stored| stored.as_ref().is_some_and(is_open)) == Some(true) {
            explore.stored.update(|stored| {
                if let Some(stored) = stored {
                    if !stored.kept {
                        stored.kept = true;
                        stored.source = Some(SavedSource::Link);
                    }
                    stored.scenario.title.clone_from(&self.title);
                }
            });
        }
    }
}

/// Returns the open scenario and the compared scenario of the link.
fn scenarios_to_save(explore: crate::explore::Explore) -> Vec<SavedScenario> {
    let open_id = explore.stored.with_untracked(|stored| stored.as_ref().map(|stored| stored.id.clone()));
    let title = explore.scenario.with_untracked(|scenario| pointer::text(scenario, "/title"));
    let title = title.map(|title| title.trim().to_owned()).filter(|title| !title.is_empty());
    let compared = explore.view.with_untracked(|view| view.compared.map(|compared| compared.as_str().to_owned()));
    let other = compared.filter(|other| !open_id.as_ref().is_some_and(|id| id.starts_with(other)));
    let open_scenario = open_id.map(|id| SavedScenario { id, title });
    open_scenario.into_iter().chain(other.map(|id| SavedScenario { id, title: None })).collect()
}
