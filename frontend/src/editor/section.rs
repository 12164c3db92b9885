//! Editor sections, and errors that belong to no field.

use leptos::html;
use leptos::prelude::*;

use crate::explore::use_explore;
use crate::field_errors::pointer_label;
use crate::format;

/// JSON pointers of the sections. Other errors are shown above all sections.
const SECTIONS: [&str; 7] = ["/model", "/cluster", "/workload", "/layout", "/planners", "/training", "/iterations"];

/// Section with a title, errors without a field, and the fields.
#[component]
pub(super) fn Section(
    title: &'static str,
    pointer: &'static str,
    note: &'static str,
    children: Children,
) -> impl IntoView {
    let explore = use_explore();
    let without_field =
        move || explore.fields.with(|fields| explore.errors.with(|errors| errors.without_field(pointer, fields)));
    view! {
        <section class="editor-section">
            <h3>{title}{(!note.is_empty()).then(|| view! { <small>{note}</small> })}</h3>
            {move || error_lines(without_field())}
            {children()}
        </section>
    }
}

/// Errors that belong to neither a field nor a section.
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
        let field_label = format::capitalised(&pointer_label(&pointer));
        view! {
            <p class="field-error" role="alert" data-error-for=pointer>
                {(!field_label.is_empty()).then(|| view! { <b>{field_label}</b>": " })}
                {detail}
            </p>
        }
    });
    lines.collect_view()
}

/// Collapsible group of advanced fields. It expands if one of the fields has an error.
#[component]
pub(super) fn Advanced(
    #[prop(into)] title: String,
    /// JSON pointers of the fields.
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
