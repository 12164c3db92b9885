//! List controls: search, tags, sortable headings, pagination.

use leptos::prelude::*;
use leptos::task::spawn_local;

use super::{Choice, Column, Kept, Shelf, TYPING_MS};
use crate::client::pause;
use crate::format;

/// Fields above a list.
#[component]
pub(super) fn Controls<T: Kept>(shelf: Shelf<T>) -> impl IntoView {
    let question = shelf.question;
    let typed = RwSignal::new(question.get_untracked().q);
    // The back button also changes the search text. Ignore the URL while the user types, because it
    // is outdated.
    let waits = RwSignal::new(false);
    Effect::new(move |_| {
        let asked = question.with(|question| question.q.clone());
        if !waits.get_untracked() {
            typed.set(asked);
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
            shelf.ask(
                |question| {
                    question.q = text;
                    question.page.clear();
                },
                true,
            );
            waits.try_set(false);
        });
    };
    let tags = Memo::new(move |_| shelf.page().tags);
    let chips = move || {
        let chosen = question.with(|question| question.tag.clone());
        let mut tags = tags.get();
        // Keep the selected tag in the options after its last use disappears, so that the user can
        // deselect it.
        if !chosen.is_empty() && !tags.contains(&chosen) {
            tags.push(chosen.clone());
        }
        let chip = |tag: String| {
            let is_chosen = tag == chosen;
            let key = tag.clone();
            let press = move |_| {
                let key = key.clone();
                shelf.ask(
                    |question| {
                        question.tag = if question.tag == key { String::new() } else { key };
                        question.page.clear();
                    },
                    false,
                );
            };
            view! { <button class="chip tag" aria-pressed=is_chosen.to_string() on:click=press>{tag}</button> }
        };
        tags.into_iter().map(chip).collect_view()
    };
    let choice = T::choice().map(|choice| view! { <Choose shelf=shelf choice=choice /> });
    let toggle = move |event| {
        let deleted = event_target_checked(&event);
        shelf.ask(
            |question| {
                question.deleted = deleted;
                question.page.clear();
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
                maxlength=api::shelf::MAX_SEARCH.to_string()
                prop:value=move || typed.get()
                on:input=type_in
            />
            {choice}
            {T::CAN_BE_DELETED.then(|| view! {
                <label class="deleted-toggle">
                    <input
                        type="checkbox"
                        data-testid="show-deleted"
                        prop:checked=move || question.with(|question| question.deleted)
                        on:change=toggle
                    />
                    " Deleted"
                </label>
            })}
            <Show when=move || tags.with(|tags| !tags.is_empty()) || question.with(|question| !question.tag.is_empty())>
                <span class="tag-chips" role="group" aria-label="Tags" data-testid=format!("{}-tags", T::KIND)>{chips}</span>
            </Show>
        </div>
    }
}

/// Additional filter.
#[component]
fn Choose<T: Kept>(shelf: Shelf<T>, choice: Choice) -> impl IntoView {
    let question = shelf.question;
    let chosen = move || question.with(|question| question.choice.clone());
    let options = choice.options.into_iter().map(|(value, words)| {
        let key = value.clone();
        view! { <option value=value prop:selected=move || chosen() == key>{words}</option> }
    });
    let choose = move |event| {
        let value = event_target_value(&event);
        shelf.ask(
            |question| {
                question.choice = value;
                question.page.clear();
            },
            false,
        );
    };
    view! {
        <select aria-label=choice.label data-testid=format!("{}-{}", T::KIND, choice.key) on:change=choose>
            <option value="" prop:selected=move || chosen().is_empty()>{choice.any}</option>
            {options.collect_view()}
        </select>
    }
}

/// Table header. Sortable columns have buttons.
#[component]
pub(super) fn Head<T: Kept>(shelf: Shelf<T>) -> impl IntoView {
    let question = shelf.question;
    let heading = move |column: Column| {
        let class = if column.is_number { "number" } else { "" };
        let Some(order) = column.sort else {
            return view! { <th scope="col" class=class>{column.title}</th> }.into_any();
        };
        let sorted = move || question.with(|question| question.sorted(order));
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
                <button class="sort" on:click=move |_| shelf.ask(|question| question.sort_by(order), false)>
                    {column.title}<span aria-hidden="true">{mark}</span>
                </button>
            </th>
        }
        .into_any()
    };
    let name = Column::words("Name", Some("name"));
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
pub(super) fn Pager<T: Kept>(shelf: Shelf<T>) -> impl IntoView {
    let turn = move |to: Option<String>| {
        if let Some(to) = to {
            shelf.ask(|question| question.page = to, false);
        }
    };
    let page = Memo::new(move |_| shelf.page());
    let many = move || page.with(|page| page.next.is_some() || page.previous.is_some());
    // A page is empty if all objects after its start were removed.
    let is_lost = move || shelf.shown().is_empty() && shelf.question.with(|question| !question.page.is_empty());
    let words = move || {
        let count = shelf.shown().len().saturating_sub(shelf.leaving()) as u64;
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
                <span role="status">{words}</span>
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
