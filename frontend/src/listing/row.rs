//! List row, with an edit form below it.

use api::listing::Annotations;
use leptos::prelude::*;

use super::labels_form::LabelsForm;
use super::{About, Collection, StoredItem, Undo};
use crate::client::Body;

#[component]
#[expect(clippy::too_many_lines, reason = "one line with its commands")]
pub(super) fn ListRow<T: StoredItem>(
    id: String,
    #[prop(into)] things: Signal<Vec<T>>,
    collection: Collection<T>,
) -> impl IntoView {
    let edits = RwSignal::new(false);
    let key = id.clone();
    let thing = Memo::new(move |_| things.with(|things| things.iter().find(|thing| thing.about().id == key).cloned()));
    let about = Memo::new(move |_| thing.with(|thing| thing.as_ref().map(StoredItem::about).unwrap_or_default()));
    let name = Memo::new(move |_| about.with(|about| about.name.clone()));
    let title = move || {
        let About { name, href, deleted, pinned, .. } = about.get();
        let pin = pinned.then(|| view! { <span class="pin" title="Pinned" aria-hidden="true">"★ "</span> });
        if deleted {
            view! { {pin}<span class="name">{name}</span> }.into_any()
        } else {
            view! { {pin}<a class="name" href=href>{name}</a> }.into_any()
        }
    };
    let note = move || about.with(|about| about.note.clone()).map(|note| view! { <p class="hint note">{note}</p> });
    let tags = move || {
        let tags = about.with(|about| about.tags.clone());
        (!tags.is_empty()).then(|| {
            let chips = tags.into_iter().map(|tag| view! { <span class="chip">{tag}</span> }).collect_view();
            view! { <span class="chips">{chips}</span> }
        })
    };
    let undo = Memo::new(move |_| thing.with(|thing| thing.as_ref().and_then(StoredItem::undo)));
    let mark = move || {
        undo.get().map(|undo| view! { <span class="chips"><span class="chip source">{undo.reason}</span></span> })
    };
    let take_out = move || {
        undo.get().map(|Undo { hint, url, .. }| {
            let press = move |_| collection.submit("DELETE", url.clone(), Body::Empty);
            view! {
                <button class="quiet" data-testid="undo-link" title=hint aria-label=move || format!("Undo save of {}", name.get()) on:click=press>
                    "Undo save"
                </button>
            }
        })
    };
    let cells = move || {
        let cells = thing.with(|thing| thing.as_ref().map(StoredItem::cells).unwrap_or_default());
        let cells = cells.into_iter().zip(T::COLUMNS);
        cells.map(|(cell, column)| view! { <td class:number=column.is_number>{cell}</td> }).collect_view()
    };
    // A disabled button would lose the focus, so the buttons stay enabled and do nothing.
    let is_pending = move || {
        collection.pending.with(|pending| {
            about.with(|about| pending.as_ref().is_some_and(|url| *url == about.url || *url == about.restore))
        })
    };
    let pin = move |_| {
        if untrack(is_pending) {
            return;
        }
        let about = about.get_untracked();
        let labels = Annotations { pinned: Some(!about.pinned), ..Annotations::default() };
        collection.submit("PATCH", about.url, Body::Json(serde_json::to_string(&labels).unwrap_or_default()));
    };
    let restore = move |_| {
        if !untrack(is_pending) {
            collection.restore(&about.get_untracked());
        }
    };
    let kind = Memo::new(move |_| about.with(|about| (about.deleted, about.url.is_empty(), about.restore.is_empty())));
    let buttons = move || {
        match kind.get() {
        (true, ..) => view! {
            <button class="quiet" aria-label=move || format!("Restore {}", name.get()) aria-disabled=move || is_pending().to_string() on:click=restore>
                {move || if is_pending() { "Restoring…" } else { "Restore" }}
            </button>
        }
        .into_any(),
        (_, true, _) => ().into_any(),
        (_, _, cannot_go) => view! {
            <button
                class="quiet"
                aria-label=move || format!("{} {}", if about.with(|about| about.pinned) { "Unpin" } else { "Pin" }, name.get())
                title=move || if about.with(|about| about.pinned) { "Remove from the top of the list" } else { "Show at the top of the list" }
                aria-disabled=move || is_pending().to_string()
                on:click=pin
            >
                {move || match (is_pending(), about.with(|about| about.pinned)) {
                    (true, false) => "Pinning…",
                    (true, true) => "Unpinning…",
                    (false, true) => "Unpin",
                    (false, false) => "Pin",
                }}
            </button>
            <button
                class="quiet"
                aria-label=move || format!("Edit {}", name.get())
                aria-expanded=move || edits.get().to_string()
                on:click=move |_| edits.update(|edits| *edits = !*edits)
            >
                "Edit"
            </button>
            {(!cannot_go).then(|| view! {
                <button class="quiet" aria-label=move || format!("Delete {}", name.get()) on:click=move |_| collection.delete(&about.get_untracked())>
                    "Delete"
                </button>
            })}
        }
        .into_any(),
    }
    };
    let columns = (T::COLUMNS.len() + 2).to_string();
    let saved = Callback::new(move |()| {
        edits.try_set(false);
        collection.reload();
    });
    let form = move || {
        edits.get().then(|| {
            view! {
                <tr class="edit-row">
                    <td colspan=columns.clone()>
                        <LabelsForm about=about.get_untracked() saved=saved cancelled=move |()| edits.set(false) />
                    </td>
                </tr>
            }
        })
    };
    view! {
        <tr data-id=id class:pinned=move || about.with(|about| about.pinned)>
            <th scope="row">{title}{mark}{note}{tags}</th>
            {cells}
            <td class="number row-actions">{take_out}{buttons}</td>
        </tr>
        {form}
    }
}
