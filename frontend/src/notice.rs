//! Error messages with a retry button.

use leptos::prelude::*;

use crate::client::RequestError;
use crate::field_errors::pointer_label;
use crate::format;

/// Error message with title, detail, all invalid fields, and an optional retry button.
#[component]
pub(crate) fn ErrorNotice(
    error: RequestError,
    #[prop(optional, into)] on_retry: Option<Callback<()>>,
) -> impl IntoView {
    let (title, detail) = (error.title(), error.detail());
    let fields = match error {
        RequestError::Problem(problem) => problem.errors,
        RequestError::Offline | RequestError::Unreadable(_) => Vec::new(),
    };
    let lines = fields.into_iter().map(|field| {
        let label = format::capitalised(&pointer_label(&field.pointer));
        view! { <li>{(!label.is_empty()).then(|| view! { <b>{label}</b>": " })}{field.detail}</li> }
    });
    let lines = lines.collect::<Vec<_>>();
    view! {
        <div class="notice bad" role="alert">
            <b>{title}</b>
            {if lines.is_empty() { view! { <p>{detail}</p> }.into_any() } else { view! { <ul>{lines}</ul> }.into_any() }}
            {on_retry.map(|retry| view! { <button on:click=move |_| retry.run(())>"Try again"</button> })}
        </div>
    }
}

/// List of lines below a title, or `None` without lines.
pub(crate) fn titled_list(title: impl IntoView, class: &'static str, lines: Vec<String>) -> Option<impl IntoView> {
    let items = lines.into_iter().map(|line| view! { <li>{line}</li> }).collect::<Vec<_>>();
    (!items.is_empty()).then(|| view! { <div class=class>{title}<ul>{items}</ul></div> })
}
