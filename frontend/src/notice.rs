//! Error messages with a retry button.

use leptos::prelude::*;

use crate::client::Failure;
use crate::field_errors::place_words;
use crate::format;

/// Error message with title, detail, all invalid fields, and an optional retry button.
#[component]
pub(crate) fn FailureNotice(failure: Failure, #[prop(optional, into)] on_retry: Option<Callback<()>>) -> impl IntoView {
    let (title, detail) = (failure.title(), failure.detail());
    let fields = match failure {
        Failure::Problem(problem) => problem.errors,
        Failure::Offline | Failure::Unreadable(_) => Vec::new(),
    };
    let lines = fields.into_iter().map(|field| {
        let place = format::capitalised(&place_words(&field.pointer));
        view! { <li>{(!place.is_empty()).then(|| view! { <b>{place}</b>": " })}{field.detail}</li> }
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
