//! Sections of the editor and the errors that belong to no field.

use leptos::html;
use leptos::prelude::*;

use crate::explore::use_explore;
use crate::field_errors::place_words;
use crate::format;

/// Where the sections of the editor stand; errors elsewhere are shown above all of them.
const SECTIONS: [&str; 7] = ["/model", "/cluster", "/workload", "/layout", "/planners", "/training", "/iterations"];

/// A section: its title, its errors that no field shows, its fields.
#[component]
pub(super) fn Section(
    title: &'static str,
    pointer: &'static str,
    note: &'static str,
    children: Children,
) -> impl IntoView {
    let explore = use_explore();
    let unplaced = move || explore.fields.with(|fields| explore.errors.with(|errors| errors.unplaced(pointer, fields)));
    view! {
        <section class="editor-section">
            <h3>{title}{(!note.is_empty()).then(|| view! { <small>{note}</small> })}</h3>
            {move || error_lines(unplaced())}
            {children()}
        </section>
    }
}

/// Errors of which neither a field nor a section speaks.
#[component]
pub(super) fn HomelessErrors() -> impl IntoView {
    let explore = use_explore();
    move || {
        let errors = explore.fields.with(|fields| explore.errors.with(|errors| errors.homeless(&SECTIONS, fields)));
        error_lines(errors)
    }
}

fn error_lines(errors: Vec<(String, String)>) -> impl IntoView {
    let lines = errors.into_iter().map(|(pointer, detail)| {
        let place = format::capitalised(&place_words(&pointer));
        view! {
            <p class="field-error" role="alert" data-error-for=pointer>
                {(!place.is_empty()).then(|| view! { <b>{place}</b>": " })}
                {detail}
            </p>
        }
    });
    lines.collect_view()
}

/// Fields that most people leave alone; opens by itself when one of them is wrong.
#[component]
pub(super) fn Advanced(
    #[prop(into)] title: String,
    /// Where its fields stand.
    #[prop(into)]
    prefixes: Vec<String>,
    children: Children,
) -> impl IntoView {
    let explore = use_explore();
    let details = NodeRef::<html::Details>::new();
    Effect::new(move |_| {
        let wrong = prefixes.iter().any(|prefix| {
            explore.errors.with(|errors| errors.any_under(prefix))
                || explore.unreadable.with(|errors| errors.any_under(prefix))
        });
        if let Some(details) = details.get()
            && wrong
        {
            details.set_open(true);
        }
    });
    view! {
        <details class="advanced" node_ref=details>
            <summary>{title}</summary>
            {children()}
        </details>
    }
}
