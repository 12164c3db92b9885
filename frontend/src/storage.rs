//! Storage of the browser, for all tabs or for one. The dashboard also works if the browser disables storage.

use leptos::prelude::window;

/// Key of the theme. `start.js` reads it before the first paint.
pub(crate) const THEME: &str = "planscope.theme";
/// Key of the edited scenario.
pub(crate) const DRAFT: &str = "planscope.draft";
/// Key of the schedules page input, in link format.
pub(crate) const SCHEDULES: &str = "planscope.schedules";

/// Key of the budget input.
pub(crate) const BUDGET: &str = "planscope.budget";

/// Key of the input of the check page, for one tab.
pub(crate) const CHECK: &str = "planscope.check";

/// Key of the recent scenarios.
pub(crate) const RECENT: &str = "planscope.recent";

/// Key of the pinned scenario.
pub(crate) const PINNED: &str = "planscope.pinned";

/// Returns the value of a key.
pub(crate) fn read(key: &str) -> Option<String> {
    window().local_storage().ok().flatten()?.get_item(key).ok().flatten()
}

/// Stores a value.
pub(crate) fn write(key: &str, value: &str) {
    if let Some(storage) = window().local_storage().ok().flatten() {
        // Storage fails in private windows and on full disks. The value is then lost when the page
        // closes.
        drop(storage.set_item(key, value));
    }
}

/// Returns the value of a key that this tab stored.
pub(crate) fn read_session(key: &str) -> Option<String> {
    window().session_storage().ok().flatten()?.get_item(key).ok().flatten()
}

/// Stores a value for this tab.
pub(crate) fn write_session(key: &str, value: &str) {
    if let Some(storage) = window().session_storage().ok().flatten() {
        drop(storage.set_item(key, value));
    }
}

/// Removes a value.
pub(crate) fn forget(key: &str) {
    if let Some(storage) = window().local_storage().ok().flatten() {
        // Ignore errors: a value that cannot be stored needs no removal.
        drop(storage.remove_item(key));
    }
}
