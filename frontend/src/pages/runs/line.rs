//! One run in the list.

use api::path;
use api::run::{RunChange, RunSummary};
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, Body, Failure};
use crate::deletion::Deletions;
use crate::format;
use crate::notice::FailureNotice;
use crate::runs::{StateBadge, origin_words, progress_words, size};

/// One run in the list, and a form below it while it is edited.
#[component]
pub(super) fn Line(
    id: String,
    #[prop(into)] runs: Signal<Vec<RunSummary>>,
    deletions: Deletions,
    gone: Callback<String>,
    changed: Callback<()>,
) -> impl IntoView {
    let edits = RwSignal::new(false);
    let key = id.clone();
    let run = Memo::new(move |_| runs.with(|runs| runs.iter().find(|run| run.id == key).cloned()));
    let of = move |read: fn(&RunSummary) -> String| {
        Memo::new(move |_| run.with(|run| run.as_ref().map(read).unwrap_or_default()))
    };
    let name = of(|run| run.name.clone());
    let tags = move || {
        let tags = run.with(|run| run.as_ref().map(|run| run.tags.clone())).unwrap_or_default();
        tags.into_iter().map(|tag| view! { <span class="chip">{tag}</span> }).collect_view()
    };
    let note = move || run.with(|run| run.as_ref()?.note.clone()).map(|note| view! { <p class="hint note">{note}</p> });
    let badge = Memo::new(move |_| run.with(|run| run.as_ref().map(|run| (run.state, run.exit_code))));
    let page = path::run_page(&id);
    let delete = {
        let id = id.clone();
        move |_| {
            let urls = (path::run(&id), path::run_restore(&id));
            deletions.delete_restorable(id.clone(), name.get_untracked(), urls, gone);
        }
    };
    let form = move || {
        edits.get().then(|| run.get_untracked()).flatten().map(|run| {
            view! { <tr class="edit-row"><td colspan="7"><EditRun run=run edits=edits changed=changed /></td></tr> }
        })
    };
    view! {
        <tr data-run=id>
            <th scope="row">
                <a href=page>{name}</a>
                {note}
                <span class="chips">{tags}</span>
            </th>
            <td>
                {move || badge.get().map(|(state, exit_code)| view! { <StateBadge state=Signal::stored(state) exit_code=exit_code /> })}
                <small class="under">{of(progress_words)}</small>
            </td>
            <td>{of(|run| format!("{}, {}", origin_words(run.origin), size(run.bytes)))}</td>
            <td class="number">{of(|run| format::count(run.points))}</td>
            <td class="number">{of(|run| run.median_step_s.map_or_else(|| "–".to_owned(), format::seconds))}</td>
            <td class="muted">{of(|run| format::moment(&run.created_at))}</td>
            <td class="number">
                <button
                    class="quiet"
                    aria-label=move || format!("Edit {}", name.get())
                    aria-expanded=move || edits.get().to_string()
                    on:click=move |_| edits.update(|edits| *edits = !*edits)
                >
                    "Edit"
                </button>
                <button class="quiet" aria-label=move || format!("Delete {}", name.get()) on:click=delete>"Delete"</button>
            </td>
        </tr>
        {form}
    }
}

/// Tags as they are typed: by commas, each once.
pub(crate) fn tags_of(text: &str) -> Vec<String> {
    let mut tags: Vec<String> =
        text.split(',').map(str::trim).filter(|tag| !tag.is_empty()).map(str::to_owned).collect();
    tags.sort();
    tags.dedup();
    tags
}

#[component]
fn EditRun(run: RunSummary, edits: RwSignal<bool>, changed: Callback<()>) -> impl IntoView {
    let name = RwSignal::new(run.name);
    let note = RwSignal::new(run.note.unwrap_or_default());
    let tags = RwSignal::new(run.tags.join(", "));
    let failure = RwSignal::new(None::<Failure>);
    let url = path::run(&run.id);
    let save = move |event: web_sys::SubmitEvent| {
        event.prevent_default();
        let change = RunChange {
            name: Some(name.get_untracked().trim().to_owned()).filter(|name| !name.is_empty()),
            note: Some(note.get_untracked().trim().to_owned()),
            tags: Some(tags_of(&tags.get_untracked())),
            ..RunChange::default()
        };
        let (url, Ok(body)) = (url.clone(), serde_json::to_string(&change)) else { return };
        spawn_local(async move {
            match client::tell("PATCH", &url, Body::Json(body)).await {
                Ok(()) => {
                    edits.try_set(false);
                    changed.run(());
                }
                Err(problem) => drop(failure.try_set(Some(problem))),
            }
        });
    };
    view! {
        <form class="edit-run" on:submit=save>
            <label>"Name"<input maxlength="200" prop:value=move || name.get() on:input=move |event| name.set(event_target_value(&event)) /></label>
            <label>"Note"<input maxlength="2000" prop:value=move || note.get() on:input=move |event| note.set(event_target_value(&event)) /></label>
            <label>"Tags, by commas"<input prop:value=move || tags.get() on:input=move |event| tags.set(event_target_value(&event)) /></label>
            <span class="actions">
                <button type="submit" class="primary">"Save"</button>
                <button type="button" on:click=move |_| edits.set(false)>"Cancel"</button>
            </span>
        </form>
        {move || failure.get().map(|failure| view! { <FailureNotice failure=failure /> })}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_typed_by_commas() {
        assert_eq!(tags_of(" b200, nightly ,b200,, "), ["b200", "nightly"]);
        assert_eq!(tags_of(""), Vec::<String>::new());
    }
}
