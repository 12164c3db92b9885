//! Controls for chart comparison: colours by kind or by difference, and a shared or an individual
//! time axis.

use leptos::prelude::*;

use super::shared;

/// Two switches for all charts on the page.
#[component]
pub(crate) fn CompareBar(
    /// Baseline name, if a baseline exists.
    #[prop(into)]
    baseline: Signal<Option<String>>,
    /// Message if differences are unavailable.
    #[prop(optional, into)]
    refusal: Signal<Option<String>>,
) -> impl IntoView {
    let differences = shared::differences_enabled();
    let relative = shared::axis_is_relative();
    let is_comparing = {
        let differences = differences.clone();
        Memo::new(move |_| differences.get())
    };
    let is_relative = {
        let relative = relative.clone();
        Memo::new(move |_| relative.get())
    };
    // Visible differences can always be turned off.
    let active_refusal = move || refusal.get().filter(|_| !is_comparing.get());
    let title = move || match (baseline.get(), active_refusal()) {
        (Some(_), Some(refusal)) => refusal,
        (Some(baseline), None) => {
            format!(
                "Colour every action by its difference to {baseline} for the same samples and layers, in device-seconds"
            )
        }
        (None, _) => "There is nothing to compare with".to_owned(),
    };
    view! {
        <div class="gantt-compare" role="group" aria-label="Compare charts">
            <button
                type="button"
                class="quiet"
                data-testid="gantt-differences-switch"
                aria-pressed=move || is_comparing.get().to_string()
                disabled=move || baseline.with(Option::is_none) || active_refusal().is_some()
                title=title
                on:click=move |_| differences.update(|is_enabled| *is_enabled = !*is_enabled)
            >
                {move || baseline.get().map_or_else(|| "Differences".to_owned(), |name| format!("Differences to {name}"))}
            </button>
            <button
                type="button"
                class="quiet"
                data-testid="gantt-relative-switch"
                aria-pressed=move || is_relative.get().to_string()
                disabled=move || baseline.with(Option::is_none)
                title="Stretch every chart to the whole width, so that the same place is the same share of its iteration"
                on:click=move |_| relative.update(|relative| *relative = !*relative)
            >
                "Relative axis"
            </button>
            {move || active_refusal().filter(|_| baseline.with(Option::is_some)).map(|refusal| view! {
                <span class="muted" role="status" data-testid="gantt-differences-refused">{refusal}</span>
            })}
        </div>
    }
}
