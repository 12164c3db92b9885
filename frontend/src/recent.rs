//! Recently opened scenarios in this browser.

use api::path;
use api::scenario::StoredScenario;
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use crate::storage;

/// Maximum number of stored entries.
const MAX_ENTRIES: usize = 12;
/// Maximum number of displayed entries.
const MAX_VISIBLE: usize = 6;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Opened {
    pub(crate) id: String,
    /// Identifier prefix that was unique when the scenario was opened.
    pub(crate) short: String,
    /// Title, or model and cluster if the scenario has no title.
    pub(crate) title: String,
}

thread_local! {
    static CHANGES: ArcRwSignal<u32> = ArcRwSignal::new(0);
}

/// Returns recently opened scenarios, newest first.
pub(crate) fn opened() -> Vec<Opened> {
    CHANGES.with(|changes| changes.try_get());
    // Entries with an unknown format are discarded.
    storage::read(storage::RECENT).and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// Adds a scenario to the recent scenarios.
pub(crate) fn remember(stored: &StoredScenario) {
    let scenario = &stored.scenario;
    let devices = u64::from(scenario.cluster.nodes) * u64::from(scenario.cluster.devices_per_node);
    let default_title = || format!("{} on {devices} × {}", scenario.model.name, scenario.cluster.name);
    let now = Opened {
        id: stored.id.clone(),
        short: stored.short.clone(),
        title: scenario.title.clone().unwrap_or_else(default_title),
    };
    let list = in_front(now, untrack(opened));
    if let Ok(text) = serde_json::to_string(&list) {
        storage::write(storage::RECENT, &text);
    }
}

/// Removes a scenario that can no longer be opened.
pub(crate) fn forget(id: &str) {
    if untrack(pinned).is_some_and(|pinned| pinned.id.starts_with(id)) {
        pin(None);
    }
    let before = untrack(opened);
    let list: Vec<Opened> = before.iter().filter(|opened| !opened.id.starts_with(id)).cloned().collect();
    if list == before {
        return;
    }
    if let Ok(text) = serde_json::to_string(&list) {
        storage::write(storage::RECENT, &text);
        CHANGES.with(|changes| changes.update(|changes| *changes += 1));
    }
}

/// Returns the pinned scenario for comparison.
pub(crate) fn pinned() -> Option<Opened> {
    CHANGES.with(|changes| changes.try_get());
    storage::read(storage::PINNED).and_then(|text| serde_json::from_str(&text).ok())
}

/// Pins a scenario, or removes the pin.
pub(crate) fn pin(scenario: Option<&Opened>) {
    match scenario.map(serde_json::to_string) {
        Some(Ok(text)) => storage::write(storage::PINNED, &text),
        _ => storage::forget(storage::PINNED),
    }
    CHANGES.with(|changes| changes.update(|changes| *changes += 1));
}

/// Moves a scenario to the front and removes duplicates.
fn in_front(now: Opened, mut list: Vec<Opened>) -> Vec<Opened> {
    list.retain(|opened| opened.id != now.id);
    list.insert(0, now);
    list.truncate(MAX_ENTRIES);
    list
}

/// Links to recent scenarios. Hidden if the list is empty.
#[component]
pub(crate) fn OpenedLast(heading: &'static str) -> impl IntoView {
    move || {
        let list: Vec<Opened> = opened().into_iter().take(MAX_VISIBLE).collect();
        (!list.is_empty()).then(|| {
            let links = list.into_iter().map(|opened| {
                view! { <li><a href=path::share(&opened.short)>{opened.title}</a></li> }
            });
            view! {
                <section class="recent-scenario" aria-label=heading data-testid="recent-scenario">
                    <h2>{heading}</h2>
                    <ul>{links.collect_view()}</ul>
                </section>
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_opened_is_first_and_entries_are_unique() {
        let opened = |id: usize| Opened { id: id.to_string(), short: id.to_string(), title: String::new() };
        let list = (0..20).chain([15]).fold(Vec::new(), |list, id| in_front(opened(id), list));
        let ids: Vec<_> = list.iter().map(|opened| opened.id.as_str()).collect();
        assert_eq!(ids[..3], ["15", "19", "18"]);
        assert_eq!(ids.len(), MAX_ENTRIES);
        assert_eq!(ids.iter().filter(|id| **id == "15").count(), 1);
    }
}
