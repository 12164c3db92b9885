//! List controls: search, tags, sortable headings, pagination.

use leptos::prelude::*;
use leptos::task::spawn_local;

use super::{Collection, Column, ListFilter, StoredItem, TYPING_MS};
use crate::client::pause;
use crate::format;

/// Fields above a list.
#[component]
pub(super) fn Controls<T: StoredItem>(collection: Collection<T>) -> impl IntoView {
    let parameters = collection.parameters;
    let typed = RwSignal::new(parameters.get_untracked().q);
    // The back button also changes the search text. Ignore the URL while the user types, because it
    // is outdated.
    let waits = RwSignal::new(false);
    Effect::new(move |_| {
        let requested_text = parameters.with(|current| current.q.clone());
        if !waits.get_untracked() {
            typed.set(requested_text);
        }
    });
    let type_in = move |event| {
        let text = event_target_value(&event);
        typed.set(text.clone());
        waits.set(true);
        spawn_local(async move {
            pause(TYPING_MS).await;
            if typed.try_get_untracked().as_ref() != Some(&text) {
                return;
            }
            collection.change(
                |new_parameters| {
                    new_parameters.q = text;
                    new_parameters.page.clear();
                },
                true,
            );
            waits.try_set(false);
        });
    };
    let tags = Memo::new(move |_| collection.page().tags);
    let chips = move || {
        let selected = parameters.with(|current| current.tag.clone());
        let mut tags = tags.get();
        // Keep the selected tag in the options after its last use disappears, so that the user can
        // deselect it.
        if !selected.is_empty() && !tags.contains(&selected) {
            tags.push(selected.clone());
        }
        let chip = |tag: String| {
            let is_selected = tag == selected;
            let key = tag.clone();
            let press = move |_| {
                let key = key.clone();
                collection.change(
                    |tag_parameters| {
                        tag_parameters.tag = if tag_parameters.tag == key { String::new() } else { key };
                        tag_parameters.page.clear();
                    },
                    false,
                );
            };
            view! { <button class="chip tag" aria-pressed=is_selected.to_string() on:click=press>{tag}</button> }
        };
        tags.into_iter().map(chip).collect_view()
    };
    let filter_select = T::filter().map(|filter| view! { <Choose collection=collection filter=filter /> });
    let toggle = move |event| {
        let deleted = event_target_checked(&event);
        collection.change(
            |deleted_parameters| {
                deleted_parameters.deleted = deleted;
                deleted_parameters.page.clear();
            },
            false,
        );
    };
    view! {
        <div class="filters" role="search">
            <input
                type="search"
                placeholder=T::SEARCHED
                aria-label=format!("Search {}", T::NOUN.1)
                data-testid=format!("{}-search", T::KIND)
                maxlength=api::listing::MAX_SEARCH.to_string()
                prop:value=move || typed.get()
                on:input=type_in
            />
            {filter_select}
            {T::CAN_BE_DELETED.then(|| view! {
                <label class="deleted-toggle">
                    <input
                        type="checkbox"
                        data-testid="show-deleted"
                        prop:checked=move || parameters.with(|deletion_parameters| deletion_parameters.deleted)
                        on:change=toggle
                    />
                    " Deleted"
                </label>
            })}
            <Show when=move || tags.with(|tags| !tags.is_empty()) || parameters.with(|tag_state| !tag_state.tag.is_empty())>
                <span class="tag-chips" role="group" aria-label="Tags" data-testid=format!("{}-tags", T::KIND)>{chips}</span>
            </Show>
        </div>
    }
}

/// Additional filter.
#[component]
fn Choose<T: StoredItem>(collection: Collection<T>, filter: ListFilter) -> impl IntoView {
    let parameters = collection.parameters;
    let selected_value = move || parameters.with(|current| current.filter.clone());
    let options = filter.options.into_iter().map(|(value, text)| {
        let key = value.clone();
        view! { <option value=value prop:selected=move || selected_value() == key>{text}</option> }
    });
    let choose = move |event| {
        let value = event_target_value(&event);
        collection.change(
            |new_parameters| {
                new_parameters.filter = value;
                new_parameters.page.clear();
            },
            false,
        );
    };
    view! {
        <select aria-label=filter.label data-testid=format!("{}-{}", T::KIND, filter.key) on:change=choose>
            <option value="" prop:selected=move || selected_value().is_empty()>{filter.any}</option>
            {options.collect_view()}
        </select>
    }
}

/// Table header. Sortable columns have buttons.
#[component]
pub(super) fn Head<T: StoredItem>(collection: Collection<T>) -> impl IntoView {
    let parameters = collection.parameters;
    let heading = move |column: Column| {
        let class = if column.is_number { "number" } else { "" };
        let Some(order) = column.sort else {
            return view! { <th scope="col" class=class>{column.title}</th> }.into_any();
        };
        let sorted = move || parameters.with(|current| current.sorted(order));
        let direction = move || match sorted() {
            None => "none",
            Some(false) => "ascending",
            Some(true) => "descending",
        };
        let mark = move || match sorted() {
            None => "",
            Some(false) => " ▲",
            Some(true) => " ▼",
        };
        view! {
            <th scope="col" class=class aria-sort=direction>
                <button class="sort" on:click=move |_| collection.change(|new_parameters| new_parameters.sort_by(order), false)>
                    {column.title}<span aria-hidden="true">{mark}</span>
                </button>
            </th>
        }
        .into_any()
    };
    let name = Column::text("Name", Some("name"));
    view! {
        <thead>
            <tr>
                {heading(name)}
                {T::COLUMNS.iter().copied().map(heading).collect_view()}
                <th scope="col"><span class="visually-hidden">"Actions"</span></th>
            </tr>
        </thead>
    }
}

/// Links to other pages. Hidden for a single page.
#[component]
pub(super) fn Pager<T: StoredItem>(collection: Collection<T>) -> impl IntoView {
    let turn = move |to: Option<String>| {
        if let Some(to) = to {
            collection.change(|parameters| parameters.page = to, false);
        }
    };
    let page = Memo::new(move |_| collection.page());
    let many = move || page.with(|page| page.next.is_some() || page.previous.is_some());
    // A page is empty if all objects after its start were removed.
    let is_lost =
        move || collection.items().is_empty() && collection.parameters.with(|current| !current.page.is_empty());
    let status_text = move || {
        let count = collection.items().len().saturating_sub(collection.leaving()) as u64;
        page.with(|page| {
            let (first, last) = (format::count(page.before + 1), format::count(page.before + count));
            format!("{first} to {last} of {}", format::count(page.total))
        })
    };
    view! {
        <Show when=many>
            <nav class="pager" aria-label="Pages of the list" data-testid=format!("{}-pager", T::KIND)>
                <button disabled=move || page.with(|page| page.previous.is_none()) on:click=move |_| turn(page.get_untracked().previous)>
                    "Previous"
                </button>
                <span role="status">{status_text}</span>
                <button disabled=move || page.with(|page| page.next.is_none()) on:click=move |_| turn(page.get_untracked().next)>
                    "Next"
                </button>
            </nav>
        </Show>
        <Show when=is_lost>
            <p class="actions"><button on:click=move |_| turn(Some(String::new()))>"First page"</button></p>
        </Show>
    }
}
