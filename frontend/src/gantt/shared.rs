//! What all charts of a page share beside their props: there is one pointer, and one taste.

use leptos::prelude::*;

thread_local! {
    static CURSOR_NS: ArcRwSignal<Option<f64>> = ArcRwSignal::new(None);
    static CRITICAL: ArcRwSignal<bool> = ArcRwSignal::new(true);
}

/// The time under the pointer, whichever chart it is over.
pub(crate) fn cursor_ns() -> ArcRwSignal<Option<f64>> {
    CURSOR_NS.with(Clone::clone)
}

/// Whether the critical path is marked.
pub(crate) fn critical_is_marked() -> ArcRwSignal<bool> {
    CRITICAL.with(Clone::clone)
}
