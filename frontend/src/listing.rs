//! Generic list view for stored objects: search, tags, sorting, pagination, pins, annotations,
//! deletion with undo.
//!
//! The URL contains the list parameters, so links and the back button work.

mod controls;
mod labels_form;
mod parameters;
mod row;

use api::listing::ListPage;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_location, use_navigate, use_query_map};
use serde::de::DeserializeOwned;

use crate::client::{self, Body, RequestError, pause};
use crate::deletion::{DeletionToasts, Deletions};
use crate::format;
use crate::notice::ErrorNotice;
use crate::recent;
use crate::runs::size;
use controls::{Controls, Head, Pager};
pub(crate) use labels_form::parse_tags;
pub(crate) use parameters::ListParameters;
use row::ListRow;

/// Debounce interval for the search in ms.
const TYPING_MS: i32 = 250;
/// Refresh interval in ms for lists with objects that change on the server.
const AGAIN_MS: i32 = 5_000;

/// Column after the name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    /// Sort key, if the list is sortable by this column.
    pub(crate) sort: Option<&'static str>,
    pub(crate) is_number: bool,
}

impl Column {
    /// Creates a text column.
    pub(crate) const fn text(title: &'static str, sort: Option<&'static str>) -> Self {
        Self { title, sort, is_number: false }
    }

    /// Creates a numeric column.
    pub(crate) const fn number(title: &'static str, sort: Option<&'static str>) -> Self {
        Self { title, sort, is_number: true }
    }
}

/// Additional filter above the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListFilter {
    /// Key in the URL and in the API.
    pub(crate) key: &'static str,
    /// Accessible label.
    pub(crate) label: &'static str,
    /// Text of the option without a filter.
    pub(crate) any: &'static str,
    /// Option values and texts.
    pub(crate) options: Vec<(String, String)>,
}

/// Common fields of listed objects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct About {
    pub(crate) id: String,
    /// Display name.
    pub(crate) name: String,
    pub(crate) note: Option<String>,
    pub(crate) tags: Vec<String>,
    /// True if the object is pinned to the top.
    pub(crate) pinned: bool,
    /// True if the object is deleted and can be restored.
    pub(crate) deleted: bool,
    /// URL of the page.
    pub(crate) href: String,
    /// API URL for changes and deletion.
    pub(crate) url: String,
    /// API URL that restores the object. Empty if the object cannot be deleted directly.
    pub(crate) restore: String,
}

/// Object that is listed without an explicit save.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Undo {
    /// Reason, displayed after the name.
    pub(crate) reason: &'static str,
    /// Button tooltip.
    pub(crate) hint: &'static str,
    /// URL. A DELETE request removes the object from the list.
    pub(crate) url: String,
}

/// Kind of stored objects.
pub(crate) trait StoredItem: Clone + PartialEq + Send + Sync + 'static {
    /// API response type.
    type List: DeserializeOwned + 'static;
    /// Identifier in tests.
    const KIND: &'static str;
    /// Singular and plural noun.
    const NOUN: (&'static str, &'static str);
    /// API URL of the list.
    const URL: &'static str;
    /// Description of the searched fields.
    const SEARCHED: &'static str;
    /// Columns after the name.
    const COLUMNS: &'static [Column];

    /// True if objects can be deleted and restored directly.
    const CAN_BE_DELETED: bool = true;

    /// Splits a response into objects and list information.
    fn unpack(list: Self::List) -> (Vec<Self>, ListPage);
    /// Returns the common fields.
    fn about(&self) -> About;
    /// Returns the cells, in column order.
    fn cells(&self) -> Vec<AnyView>;
    /// Returns the reason for a listing without an explicit save, and how to remove it.
    fn undo(&self) -> Option<Undo> {
        None
    }
    /// True if the object changes on the server.
    fn moves(&self) -> bool {
        false
    }
    /// Returns an additional filter.
    fn filter() -> Option<ListFilter> {
        None
    }
}

/// Loaded objects and list information, or the request failure. `None` before the first response.
type Known<T> = Option<Result<(Vec<T>, ListPage), RequestError>>;

/// List state.
pub(crate) struct Collection<T: StoredItem> {
    pub(crate) known: RwSignal<Known<T>>,
    pub(crate) parameters: Memo<ListParameters>,
    pub(crate) deletions: Deletions,
    pub(crate) last_error: RwSignal<Option<RequestError>>,
    /// URL of a change that the server has not answered.
    pub(super) pending: RwSignal<Option<String>>,
    go: StoredValue<Box<dyn Fn(ListParameters, bool) + Send + Sync>>,
}

impl<T: StoredItem> Copy for Collection<T> {}

#[expect(
    clippy::expl_impl_clone_on_copy,
    reason = "derived it would ask for things that can be copied; a list only names them"
)]
impl<T: StoredItem> Clone for Collection<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: StoredItem> Collection<T> {
    /// Creates a list from the parameters in the URL.
    pub(crate) fn new() -> Self {
        let (query, location, navigate) = (use_query_map(), use_location(), use_navigate());
        let filter_key = T::filter().map(|filter| filter.key);
        let here = location.pathname.get_untracked();
        let parameters = Memo::new(move |before: Option<&ListParameters>| {
            // During navigation the query belongs to another page.
            if location.pathname.get() != here
                && let Some(before) = before
            {
                return before.clone();
            }
            query.with(|query| ListParameters::read(|key| query.get(key), filter_key))
        });
        let path = location.pathname;
        let go = move |new_parameters: ListParameters, is_replaced: bool| {
            let to = format!("{}{}", path.get_untracked(), new_parameters.address(filter_key, client::encode));
            navigate(&to, NavigateOptions { replace: is_replaced, scroll: false, ..NavigateOptions::default() });
        };
        let collection = Self {
            known: RwSignal::new(None),
            parameters,
            deletions: Deletions::new(),
            last_error: RwSignal::new(None),
            pending: RwSignal::new(None),
            go: StoredValue::new(Box::new(go)),
        };
        Effect::new(move |_| {
            parameters.track();
            collection.reload();
        });
        // A deleted object enters the list of deleted objects as soon as the server has deleted it, not after its toast.
        Effect::new(move |_| {
            collection.deletions.track_completed();
            if collection.parameters.with_untracked(|current| current.deleted) {
                collection.reload();
            }
        });
        collection.refresh_periodically();
        collection
    }

    /// True if the list hides the object because its deletion can still be undone. The list of deleted objects shows it.
    fn hides(self, id: &str) -> bool {
        self.deletions.is_waiting(id) && !self.parameters.with(|current| current.deleted)
    }

    /// Restores a deleted object.
    pub(super) fn restore(self, about: &About) {
        self.deletions.forget(&about.id);
        self.submit("POST", about.restore.clone(), Body::Empty);
    }

    /// Changes the list parameters. Adds a browser history entry unless `is_replaced` is true.
    pub(super) fn change(self, change: impl FnOnce(&mut ListParameters), is_replaced: bool) {
        let mut changed = self.parameters.get_untracked();
        change(&mut changed);
        if changed != self.parameters.get_untracked() {
            self.go.with_value(|go| go(changed, is_replaced));
        }
    }

    pub(crate) fn reload(self) {
        let Some(requested) = self.parameters.try_get_untracked() else { return };
        let url = format!("{}{}", T::URL, requested.query(T::filter().map(|filter| filter.key), client::encode));
        spawn_local(async move {
            let result = client::get::<T::List>(&url).await.map(T::unpack);
            self.pending.try_set(None);
            let is_current = self.parameters.try_get_untracked().as_ref() == Some(&requested);
            if is_current && self.known.with_untracked(|known| known.as_ref() != Some(&result)) {
                self.known.set(Some(result));
            }
        });
    }

    /// Refreshes the list periodically while it contains changing objects.
    fn refresh_periodically(self) {
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

    /// Sends a change to the server, then reloads the list.
    pub(super) fn submit(self, method: &'static str, url: String, body: Body) {
        self.pending.set(Some(url.clone()));
        spawn_local(async move {
            let response = client::submit(method, &url, body).await;
            if self.last_error.try_set(response.err()).is_none() {
                self.reload();
            }
        });
    }

    /// Deletes an object and shows a toast with an undo button.
    pub(super) fn delete(self, about: &About) {
        let gone = Callback::new(move |id: String| {
            let lists_deleted = self.parameters.try_with_untracked(|current| current.deleted) == Some(true);
            self.known.try_update(|known| {
                if !lists_deleted && let Some(Ok((things, page))) = known {
                    let before = things.len();
                    things.retain(|thing| thing.about().id != id);
                    page.total = page.total.saturating_sub((before - things.len()) as u64);
                }
            });
            self.reload();
        });
        // Update recent scenarios immediately. A restored scenario is added again when the user
        // opens it.
        if T::KIND == "scenarios" {
            recent::forget(&about.id);
        }
        let urls = (about.url.clone(), about.restore.clone());
        self.deletions.delete_restorable(about.id.clone(), about.name.clone(), urls, gone);
    }

    /// Returns the displayed objects.
    fn items(self) -> Vec<T> {
        self.known.with(|known| match known {
            Some(Ok((things, _))) => things.clone(),
            _ => Vec::new(),
        })
    }

    /// Number of displayed objects that are deleted but can be restored from the toast.
    pub(super) fn leaving(self) -> usize {
        self.known.with(|known| match known {
            Some(Ok((things, _))) => things.iter().filter(|thing| self.hides(&thing.about().id)).count(),
            _ => 0,
        })
    }

    /// Returns the list information.
    pub(super) fn page(self) -> ListPage {
        let leaving = self.leaving() as u64;
        self.known.with(|known| match known {
            Some(Ok((_, page))) => ListPage { total: page.total.saturating_sub(leaving), ..page.clone() },
            _ => ListPage::default(),
        })
    }
}

/// Display state.
#[derive(Debug, Clone, PartialEq)]
enum Phase {
    Loading,
    Failed(RequestError),
    Empty,
    Listed,
}

/// List with all controls.
#[component]
pub(crate) fn CollectionView<T: StoredItem>(
    /// List state.
    collection: Collection<T>,
    /// View for an empty collection.
    #[prop(into)]
    empty: ViewFn,
) -> impl IntoView {
    // Retain row elements and update only their content, because lists may refresh while the user
    // types or clicks.
    let items = Memo::new(move |_| collection.items());
    let ids = Memo::new(move |_| {
        let ids = items.with(|things| things.iter().map(|thing| thing.about().id).collect::<Vec<_>>());
        ids.into_iter().filter(|id| !collection.hides(id)).collect::<Vec<_>>()
    });
    let phase = Memo::new(move |_| {
        let is_open = collection.parameters.with(ListParameters::is_open);
        // The list becomes empty when the last object is deleted, not when its toast disappears.
        let is_all_gone = collection.page().total == 0 && ids.with(Vec::is_empty);
        collection.known.with(|known| match known {
            None => Phase::Loading,
            Some(Err(error)) => Phase::Failed(error.clone()),
            Some(Ok(_)) if is_all_gone && is_open => Phase::Empty,
            Some(Ok(_)) => Phase::Listed,
        })
    });
    let columns = T::COLUMNS.len() + 2;
    let nothing = move || {
        collection.parameters.with(|parameters| {
            if parameters.deleted {
                format!("No deleted {} can be restored.", T::NOUN.1)
            } else if parameters.is_open() {
                format!("No {} on this page.", T::NOUN.1)
            } else {
                "Nothing matches.".to_owned()
            }
        })
    };
    let body = move || match phase.get() {
        Phase::Loading => view! { <div class="skeleton results-skeleton" aria-hidden="true"></div> }.into_any(),
        Phase::Failed(load_error) => {
            view! { <ErrorNotice error=load_error on_retry=move |()| collection.reload() /> }.into_any()
        }
        Phase::Empty => view! {
            <div class="empty" data-testid=format!("{}-empty", T::KIND)>
                {empty.run()}
                <DeletedLink collection=collection />
            </div>
        }
        .into_any(),
        Phase::Listed => view! {
            <Controls collection=collection />
            <div class="table-scroll" role="region" aria-label=format!("Stored {}", T::NOUN.1) tabindex="0">
                <table class="list listing-list" data-testid=T::KIND>
                    <Head collection=collection />
                    <tbody>
                        <For each=move || ids.get() key=Clone::clone let:id>
                            <ListRow id=id things=items collection=collection />
                        </For>
                        <Show when=move || ids.with(Vec::is_empty)>
                            <tr><td colspan=columns.to_string() class="muted">{nothing}</td></tr>
                        </Show>
                    </tbody>
                </table>
            </div>
            <Pager collection=collection />
            <p class="hint" data-testid=format!("{}-total", T::KIND)>{move || total_text::<T>(&collection.page())}</p>
        }
        .into_any(),
    };
    view! {
        {move || collection.last_error.get().map(|request_error| view! { <ErrorNotice error=request_error /> })}
        {body}
        <DeletionToasts deletions=collection.deletions />
    }
}

/// Link from an empty list to the deleted objects.
#[component]
fn DeletedLink<T: StoredItem>(collection: Collection<T>) -> impl IntoView {
    let label =
        move || (collection.page().deleted_bytes > 0).then(|| format!("Deleted {} that can be restored", T::NOUN.1));
    move || {
        label().map(|text| {
            view! { <p><button class="quiet" on:click=move |_| collection.change(|parameters| parameters.deleted = true, false)>{text}</button></p> }
        })
    }
}

/// Formats object count and storage size.
fn total_text<T: StoredItem>(page: &ListPage) -> String {
    let noun = if page.total == 1 { T::NOUN.0 } else { T::NOUN.1 };
    let mut text = format!("{} {noun}. ", format::count(page.total));
    if page.stored_bytes > 0 {
        let deleted = match page.deleted_bytes {
            0 => String::new(),
            bytes => format!(" (deleted: {})", size(bytes)),
        };
        text += &["Size of all ", T::NOUN.1, ": ", &size(page.stored_bytes), &deleted, ". "].concat();
    }
    if T::CAN_BE_DELETED {
        let days = page.retention_days.to_string();
        text += &["Deleted ", T::NOUN.1, " can be restored for ", &days, " days."].concat();
    }
    text
}
