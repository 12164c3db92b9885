//! Form for name, note and tags.

use api::listing::Annotations;
use leptos::html;
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::About;
use crate::client::{self, Body, RequestError};
use crate::notice::ErrorNotice;

/// Parses comma-separated tags and removes duplicates.
pub(crate) fn parse_tags(text: &str) -> Vec<String> {
    let mut tags: Vec<String> =
        text.split(',').map(str::trim).filter(|tag| !tag.is_empty()).map(str::to_owned).collect();
    tags.sort();
    tags.dedup();
    tags
}

#[component]
pub(super) fn LabelsForm(about: About, saved: Callback<()>, #[prop(into)] cancelled: Callback<()>) -> impl IntoView {
    let name = RwSignal::new(about.name);
    let note = RwSignal::new(about.note.unwrap_or_default());
    let tags = RwSignal::new(about.tags.join(", "));
    let last_error = RwSignal::new(None::<RequestError>);
    let first = NodeRef::<html::Input>::new();
    Effect::new(move |_| {
        if let Some(first) = first.get() {
            // If the browser refuses the focus, the form is still reachable by keyboard.
            drop(first.focus());
        }
    });
    let url = about.url;
    let save = move |event: web_sys::SubmitEvent| {
        event.prevent_default();
        let labels = Annotations {
            name: Some(name.get_untracked().trim().to_owned()),
            note: Some(note.get_untracked().trim().to_owned()),
            tags: Some(parse_tags(&tags.get_untracked())),
            pinned: None,
        };
        let (url, Ok(body)) = (url.clone(), serde_json::to_string(&labels)) else { return };
        spawn_local(async move {
            match client::submit("PATCH", &url, Body::Json(body)).await {
                Ok(()) => drop(saved.try_run(())),
                Err(problem) => drop(last_error.try_set(Some(problem))),
            }
        });
    };
    let on_key = move |event: web_sys::KeyboardEvent| {
        if event.key() == "Escape" {
            cancelled.run(());
        }
    };
    view! {
        <form class="edit-run" on:submit=save on:keydown=on_key>
            <label>"Name"<input node_ref=first maxlength="120" prop:value=move || name.get() on:input=move |event| name.set(event_target_value(&event)) /></label>
            <label>"Note"<input maxlength="4000" prop:value=move || note.get() on:input=move |event| note.set(event_target_value(&event)) /></label>
            <label>"Tags, by commas"<input prop:value=move || tags.get() on:input=move |event| tags.set(event_target_value(&event)) /></label>
            <span class="actions">
                <button type="submit" class="primary">"Save"</button>
                <button type="button" on:click=move |_| cancelled.run(())>"Cancel"</button>
            </span>
        </form>
        {move || last_error.get().map(|error| view! { <ErrorNotice error=error /> })}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_typed_by_commas() {
        assert_eq!(parse_tags(" b200, nightly ,b200,, "), ["b200", "nightly"]);
        assert_eq!(parse_tags(""), Vec::<String>::new());
    }
}
