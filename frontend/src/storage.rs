//! What the browser remembers. A browser that refuses to remember is no error: the page works without.

use leptos::prelude::window;

/// Key of the chosen theme; `start.js` reads it too, before the first paint.
pub(crate) const THEME: &str = "planscope.theme";
/// Key of the scenario that is being edited.
pub(crate) const DRAFT: &str = "planscope.draft";
/// Key of the question of the page of schedules, as its link writes it.
pub(crate) const SCHEDULES: &str = "planscope.schedules";

/// Key of the figures of a run's budget.
pub(crate) const BUDGET: &str = "planscope.budget";

/// Key of the scenarios that were opened last.
pub(crate) const RECENT: &str = "planscope.recent";

/// Key of the scenario that others are held against.
pub(crate) const PINNED: &str = "planscope.pinned";

/// What stands under a key.
pub(crate) fn read(key: &str) -> Option<String> {
    window().local_storage().ok().flatten()?.get_item(key).ok().flatten()
}

/// Remembers a value.
pub(crate) fn write(key: &str, value: &str) {
    if let Some(storage) = window().local_storage().ok().flatten() {
        // Private windows and full disks refuse; the value then lasts as long as the page.
        drop(storage.set_item(key, value));
    }
}

/// Forgets a value.
pub(crate) fn forget(key: &str) {
    if let Some(storage) = window().local_storage().ok().flatten() {
        // As above: what cannot be stored need not be forgotten.
        drop(storage.remove_item(key));
    }
}
