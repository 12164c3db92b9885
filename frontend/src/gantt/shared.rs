//! State shared by all charts of a page.

use leptos::prelude::*;

thread_local! {
    static CURSOR_NS: ArcRwSignal<Option<f64>> = ArcRwSignal::new(None);
    static CRITICAL: ArcRwSignal<bool> = ArcRwSignal::new(true);
    static DIFFERENCES: ArcRwSignal<bool> = ArcRwSignal::new(false);
    static RELATIVE: ArcRwSignal<bool> = ArcRwSignal::new(false);
    static SELECTION_DIFFERENCE: ArcRwSignal<Option<String>> = ArcRwSignal::new(None);
}

/// Describes the difference between the selected span and its baseline counterpart. `None` if
/// differences are hidden.
pub(crate) fn selection_difference() -> ArcRwSignal<Option<String>> {
    SELECTION_DIFFERENCE.with(Clone::clone)
}

/// Time under the pointer on the shared axis.
pub(crate) fn cursor_ns() -> ArcRwSignal<Option<f64>> {
    CURSOR_NS.with(Clone::clone)
}

/// True if the critical path is shown.
pub(crate) fn critical_is_marked() -> ArcRwSignal<bool> {
    CRITICAL.with(Clone::clone)
}

/// True if bar colours show differences from the baseline.
pub(crate) fn differences_enabled() -> ArcRwSignal<bool> {
    DIFFERENCES.with(Clone::clone)
}

/// True if charts are stretched to full width, with times relative to their makespan.
pub(crate) fn axis_is_relative() -> ArcRwSignal<bool> {
    RELATIVE.with(Clone::clone)
}
