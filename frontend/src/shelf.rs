//! A list of stored things, the same for every kind: search, tags, orders, pages, pins, words, deletion with a way back.
//!
//! What is asked for stands in the address, so that links and the back button work.

mod controls;
mod line;
mod question;
mod words_form;

use api::shelf::ListPage;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_location, use_navigate, use_query_map};
use serde::de::DeserializeOwned;

use crate::client::{self, Body, Failure, pause};
use crate::deletion::{DeletionToasts, Deletions};
use crate::format;
use crate::notice::FailureNotice;
use crate::recent;
use crate::runs::size;
use controls::{Controls, Head, Pager};
use line::Line;
pub(crate) use question::Question;
pub(crate) use words_form::tags_of;

/// Words that are typed closer together than this are asked for once.
const TYPING_MS: i32 = 250;
/// Things that change by themselves are looked at again so often.
const AGAIN_MS: i32 = 5_000;

/// A column behind the name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    /// Its heading.
    pub(crate) title: &'static str,
    /// Name of its order, where the list can be sorted by it.
    pub(crate) sort: Option<&'static str>,
    /// Whether it holds numbers.
    pub(crate) is_number: bool,
}

impl Column {
    /// A column of words.
    pub(crate) const fn words(title: &'static str, sort: Option<&'static str>) -> Self {
        Self { title, sort, is_number: false }
    }

    /// A column of numbers.
    pub(crate) const fn number(title: &'static str, sort: Option<&'static str>) -> Self {
        Self { title, sort, is_number: true }
    }
}

/// One more choice above the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    /// Its key in the address and in the API.
    pub(crate) key: &'static str,
    /// What it chooses, for those who cannot see it.
    pub(crate) label: &'static str,
    /// Shown where nothing is chosen.
    pub(crate) any: &'static str,
    /// Values and their words.
    pub(crate) options: Vec<(String, String)>,
}

/// What lists show of anything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct About {
    /// Identifier.
    pub(crate) id: String,
    /// Name to show.
    pub(crate) name: String,
    /// Note beside it.
    pub(crate) note: Option<String>,
    /// Tags.
    pub(crate) tags: Vec<String>,
    /// Whether it stands in front.
    pub(crate) pinned: bool,
    /// Whether it is deleted and can come back.
    pub(crate) deleted: bool,
    /// Its page.
    pub(crate) href: String,
    /// Where it is changed and deleted.
    pub(crate) url: String,
    /// Where it is brought back; empty where it is never deleted by itself.
    pub(crate) restore: String,
}

/// A thing that stands in the list without being saved by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Undo {
    /// Reason, as a mark behind its name.
    pub(crate) reason: &'static str,
    /// Tooltip of the button.
    pub(crate) hint: &'static str,
    /// URL whose DELETE takes it out of the list.
    pub(crate) url: String,
}

/// A kind of stored things.
pub(crate) trait Kept: Clone + PartialEq + Send + Sync + 'static {
    /// What the API answers.
    type List: DeserializeOwned + 'static;
    /// Names the list in tests.
    const KIND: &'static str;
    /// One of them, and several, in words.
    const NOUN: (&'static str, &'static str);
    /// Where they are listed.
    const URL: &'static str;
    /// What the search looks at, in words.
    const SEARCHED: &'static str;
    /// Columns behind the name.
    const COLUMNS: &'static [Column];

    /// Whether they are deleted, and come back, by themselves.
    const CAN_BE_DELETED: bool = true;

    /// The things of an answer, and what it says of all of them.
    fn unpack(list: Self::List) -> (Vec<Self>, ListPage);
    /// What lists show of anything.
    fn about(&self) -> About;
    /// What stands in the columns.
    fn cells(&self) -> Vec<AnyView>;
    /// Reason why it stands in the list without being saved by hand, and the way to take it out again.
    fn undo(&self) -> Option<Undo> {
        None
    }
    /// Whether it changes by itself.
    fn moves(&self) -> bool {
        false
    }
    /// One more choice above the list.
    fn choice() -> Option<Choice> {
        None
    }
}

/// What is known of a list.
type Known<T> = Option<Result<(Vec<T>, ListPage), Failure>>;

/// The state of a list.
pub(crate) struct Shelf<T: Kept> {
    pub(crate) known: RwSignal<Known<T>>,
    pub(crate) question: Memo<Question>,
    pub(crate) deletions: Deletions,
    pub(crate) failure: RwSignal<Option<Failure>>,
    go: StoredValue<Box<dyn Fn(Question, bool) + Send + Sync>>,
}

impl<T: Kept> Copy for Shelf<T> {}

#[expect(
    clippy::expl_impl_clone_on_copy,
    reason = "derived it would ask for things that can be copied; a shelf only names them"
)]
impl<T: Kept> Clone for Shelf<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Kept> Shelf<T> {
    /// The list that the address asks for.
    pub(crate) fn new() -> Self {
        let (query, location, navigate) = (use_query_map(), use_location(), use_navigate());
        let choice = T::choice().map(|choice| choice.key);
        let here = location.pathname.get_untracked();
        let question = Memo::new(move |before: Option<&Question>| {
            // While another page is on its way its query is none of ours.
            if location.pathname.get() != here
                && let Some(before) = before
            {
                return before.clone();
            }
            query.with(|query| Question::read(|key| query.get(key), choice))
        });
        let path = location.pathname;
        let go = move |question: Question, is_replaced: bool| {
            let to = format!("{}{}", path.get_untracked(), question.address(choice, client::encode));
            navigate(&to, NavigateOptions { replace: is_replaced, scroll: false, ..NavigateOptions::default() });
        };
        let shelf = Self {
            known: RwSignal::new(None),
            question,
            deletions: Deletions::new(),
            failure: RwSignal::new(None),
            go: StoredValue::new(Box::new(go)),
        };
        Effect::new(move |_| {
            question.track();
            shelf.reload();
        });
        shelf.keep_fresh();
        shelf
    }

    /// Asks for another part of the list; a step in the browser's history unless it replaces this one.
    pub(super) fn ask(self, change: impl FnOnce(&mut Question), is_replaced: bool) {
        let mut question = self.question.get_untracked();
        change(&mut question);
        if question != self.question.get_untracked() {
            self.go.with_value(|go| go(question, is_replaced));
        }
    }

    /// Asks the server again.
    pub(crate) fn reload(self) {
        let Some(asked) = self.question.try_get_untracked() else { return };
        let url = format!("{}{}", T::URL, asked.query(T::choice().map(|choice| choice.key), client::encode));
        spawn_local(async move {
            let answer = client::get::<T::List>(&url).await.map(T::unpack);
            let is_current = self.question.try_get_untracked().as_ref() == Some(&asked);
            if is_current && self.known.with_untracked(|known| known.as_ref() != Some(&answer)) {
                self.known.set(Some(answer));
            }
        });
    }

    /// Asks again while things change by themselves.
    fn keep_fresh(self) {
        spawn_local(async move {
            loop {
                pause(AGAIN_MS).await;
                let Some(known) = self.known.try_get_untracked() else { return };
                if matches!(known, Some(Ok((things, _))) if things.iter().any(T::moves)) {
                    self.reload();
                }
            }
        });
    }

    /// Tells the server something, then shows the list as it is now.
    pub(super) fn tell(self, method: &'static str, url: String, body: Body) {
        spawn_local(async move {
            let answer = client::tell(method, &url, body).await;
            if self.failure.try_set(answer.err()).is_none() {
                self.reload();
            }
        });
    }

    /// Deletes a thing; a toast offers the way back.
    pub(super) fn delete(self, about: &About) {
        let gone = Callback::new(move |id: String| {
            self.known.try_update(|known| {
                if let Some(Ok((things, page))) = known {
                    let before = things.len();
                    things.retain(|thing| thing.about().id != id);
                    page.total = page.total.saturating_sub((before - things.len()) as u64);
                }
            });
            self.reload();
        });
        // At once, as it leaves the list; what is brought back is opened again soon enough.
        if T::KIND == "scenarios" {
            recent::forget(&about.id);
        }
        let urls = (about.url.clone(), about.restore.clone());
        self.deletions.delete_restorable(about.id.clone(), about.name.clone(), urls, gone);
    }

    /// The things that are shown.
    fn shown(self) -> Vec<T> {
        self.known.with(|known| match known {
            Some(Ok((things, _))) => things.clone(),
            _ => Vec::new(),
        })
    }

    /// Number of the shown things that are deleted and can still be brought back with the toast.
    pub(super) fn leaving(self) -> usize {
        self.known.with(|known| match known {
            Some(Ok((things, _))) => things.iter().filter(|thing| self.deletions.is_waiting(&thing.about().id)).count(),
            _ => 0,
        })
    }

    /// What is said of all of them.
    pub(super) fn page(self) -> ListPage {
        let leaving = self.leaving() as u64;
        self.known.with(|known| match known {
            Some(Ok((_, page))) => ListPage { total: page.total.saturating_sub(leaving), ..page.clone() },
            _ => ListPage::default(),
        })
    }
}

/// What there is to show.
#[derive(Debug, Clone, PartialEq)]
enum Phase {
    Loading,
    Failed(Failure),
    Empty,
    Listed,
}

/// A list with everything around it.
#[component]
pub(crate) fn ShelfView<T: Kept>(
    /// The list.
    shelf: Shelf<T>,
    /// What to do where nothing is stored at all.
    #[prop(into)]
    empty: ViewFn,
) -> impl IntoView {
    // Lists change while somebody types or reaches for a button: lines stay, only what they say changes.
    let shown = Memo::new(move |_| shelf.shown());
    let ids = Memo::new(move |_| {
        let ids = shown.with(|things| things.iter().map(|thing| thing.about().id).collect::<Vec<_>>());
        ids.into_iter().filter(|id| !shelf.deletions.is_waiting(id)).collect::<Vec<_>>()
    });
    let phase = Memo::new(move |_| {
        let is_open = shelf.question.with(Question::is_open);
        // The last thing leaves the list when it is deleted, not when the toast disappears.
        let is_all_gone = shelf.page().total == 0 && ids.with(Vec::is_empty);
        shelf.known.with(|known| match known {
            None => Phase::Loading,
            Some(Err(failure)) => Phase::Failed(failure.clone()),
            Some(Ok(_)) if is_all_gone && is_open => Phase::Empty,
            Some(Ok(_)) => Phase::Listed,
        })
    });
    let columns = T::COLUMNS.len() + 2;
    let nothing = move || {
        shelf.question.with(|question| {
            if question.deleted {
                format!("No deleted {} can be restored.", T::NOUN.1)
            } else if question.is_open() {
                format!("No {} on this page.", T::NOUN.1)
            } else {
                "Nothing matches.".to_owned()
            }
        })
    };
    let body = move || match phase.get() {
        Phase::Loading => view! { <div class="skeleton results-skeleton" aria-hidden="true"></div> }.into_any(),
        Phase::Failed(failure) => {
            view! { <FailureNotice failure=failure on_retry=move |()| shelf.reload() /> }.into_any()
        }
        Phase::Empty => view! {
            <div class="empty" data-testid=format!("{}-empty", T::KIND)>
                {empty.run()}
                <DeletedLink shelf=shelf />
            </div>
        }
        .into_any(),
        Phase::Listed => view! {
            <Controls shelf=shelf />
            <div class="table-scroll" role="region" aria-label=format!("Stored {}", T::NOUN.1) tabindex="0">
                <table class="list shelf-list" data-testid=T::KIND>
                    <Head shelf=shelf />
                    <tbody>
                        <For each=move || ids.get() key=Clone::clone let:id>
                            <Line id=id things=shown shelf=shelf />
                        </For>
                        <Show when=move || ids.with(Vec::is_empty)>
                            <tr><td colspan=columns.to_string() class="muted">{nothing}</td></tr>
                        </Show>
                    </tbody>
                </table>
            </div>
            <Pager shelf=shelf />
            <p class="hint" data-testid=format!("{}-total", T::KIND)>{move || total_words::<T>(&shelf.page())}</p>
        }
        .into_any(),
    };
    view! {
        {move || shelf.failure.get().map(|failure| view! { <FailureNotice failure=failure /> })}
        {body}
        <DeletionToasts deletions=shelf.deletions />
    }
}

/// From an empty list to what was deleted of it.
#[component]
fn DeletedLink<T: Kept>(shelf: Shelf<T>) -> impl IntoView {
    let words = move || (shelf.page().deleted_bytes > 0).then(|| format!("Deleted {} that can be restored", T::NOUN.1));
    move || {
        words().map(|words| {
            view! { <p><button class="quiet" on:click=move |_| shelf.ask(|question| question.deleted = true, false)>{words}</button></p> }
        })
    }
}

/// How many there are, and what they take.
fn total_words<T: Kept>(page: &ListPage) -> String {
    let noun = if page.total == 1 { T::NOUN.0 } else { T::NOUN.1 };
    let mut words = format!("{} {noun}. ", format::count(page.total));
    if page.stored_bytes > 0 {
        let deleted = match page.deleted_bytes {
            0 => String::new(),
            bytes => format!(" (deleted: {})", size(bytes)),
        };
        words += &["Database size: ", &size(page.stored_bytes), &deleted, ". "].concat();
    }
    if T::CAN_BE_DELETED {
        let days = page.retention_days.to_string();
        words += &["Deleted ", T::NOUN.1, " can be restored for ", &days, " days."].concat();
    }
    words
}
