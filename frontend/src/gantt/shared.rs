//! What all charts of a page share beside their props: there is one pointer, and one taste.

use leptos::prelude::*;

thread_local! {
    static CURSOR_NS: ArcRwSignal<Option<f64>> = ArcRwSignal::new(None);
    static CRITICAL: ArcRwSignal<bool> = ArcRwSignal::new(true);
    static DIFFERENCES: ArcRwSignal<bool> = ArcRwSignal::new(false);
    static RELATIVE: ArcRwSignal<bool> = ArcRwSignal::new(false);
    static TOLD: ArcRwSignal<Option<String>> = ArcRwSignal::new(None);
}

/// How the selected span differs from the baseline's, in words; nothing while differences are not shown.
pub(crate) fn selection_told() -> ArcRwSignal<Option<String>> {
    TOLD.with(Clone::clone)
}

/// The time under the pointer on the axis that the charts share, whichever chart it is over.
pub(crate) fn cursor_ns() -> ArcRwSignal<Option<f64>> {
    CURSOR_NS.with(Clone::clone)
}

/// Whether the critical path is marked.
pub(crate) fn critical_is_marked() -> ArcRwSignal<bool> {
    CRITICAL.with(Clone::clone)
}

/// Whether bars are coloured by how they differ from the baseline's.
pub(crate) fn differences_are_shown() -> ArcRwSignal<bool> {
    DIFFERENCES.with(Clone::clone)
}

/// Whether every chart is stretched to the whole width, in shares of its own makespan.
pub(crate) fn axis_is_relative() -> ArcRwSignal<bool> {
    RELATIVE.with(Clone::clone)
}
