//! Page for a stored object, with loading skeleton and error page.

use std::sync::Arc;

use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::hooks::use_params_map;
use serde::de::DeserializeOwned;

use crate::client::{self, Body, RequestError};
use crate::format;
use crate::notice::ErrorNotice;

/// Number of errors that are shown in place of a stored object. A link to such an object has no use.
#[derive(Clone, Copy)]
pub(crate) struct MissingObject(RwSignal<u32>);

impl MissingObject {
    pub(crate) fn new() -> Self {
        Self(RwSignal::new(0))
    }

    pub(crate) fn is_shown(self) -> bool {
        self.0.get() > 0
    }
}

/// Kind of stored objects with detail pages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    /// Name of an object in text, for example "sweep".
    pub(crate) noun: &'static str,
    /// URL of the list page.
    pub(crate) list: &'static str,
}

impl Kind {
    fn title(self) -> String {
        let (first, rest) = self.noun.split_at(1);
        format!("{}{rest}", first.to_ascii_uppercase())
    }
}

/// Fetches and shows the object in the address. A change of the identifier starts a new request.
#[component]
pub(crate) fn ResourcePage<T: DeserializeOwned + Send + Sync + 'static>(
    kind: Kind,
    url: fn(&str) -> String,
    show: fn(Arc<T>) -> AnyView,
) -> impl IntoView {
    let params = use_params_map();
    let id = Memo::new(move |_| params.with(|params| params.get("id")).unwrap_or_default());
    let response = RwSignal::new(None::<Result<Arc<T>, RequestError>>);
    let fetch = move || {
        let requested_id = id.get_untracked();
        response.set(None);
        spawn_local(async move {
            let found = client::get::<T>(&url(&requested_id)).await.map(Arc::new);
            // The page may be unmounted, or show another object by now.
            if id.try_get_untracked().as_ref() == Some(&requested_id) {
                response.try_set(Some(found));
            }
        });
    };
    Effect::new(move |_| {
        id.track();
        fetch();
    });
    move || match response.get() {
        None => view! {
            <h1 class="visually-hidden">{kind.title()}</h1>
            <div class="skeleton results-skeleton" aria-hidden="true"></div>
        }
        .into_any(),
        Some(Err(error)) => view! { <ResourceErrorPage kind=kind error=error on_retry=move |()| fetch() /> }.into_any(),
        Some(Ok(found)) => show(found),
    }
}

/// Error page of an object. For a deleted object, shows the deletion time and a restore button.
#[component]
pub(crate) fn ResourceErrorPage(
    kind: Kind,
    error: RequestError,
    #[prop(into)] on_retry: Callback<()>,
) -> impl IntoView {
    let MissingObject(shown) = expect_context();
    shown.update(|shown| *shown += 1);
    on_cleanup(move || {
        shown.try_update(|shown| *shown = shown.saturating_sub(1));
    });
    let restore_error = RwSignal::new(None::<RequestError>);
    let deleted = match &error {
        RequestError::Problem(problem) if problem.status == 410 => problem.deleted.clone(),
        _ => None,
    };
    document().set_title(&format!("{} · Planscope", kind.title()));
    let body = match deleted {
        Some(deleted) => {
            let when = format!("It was deleted on {} UTC.", format::moment(&deleted.at));
            let action = match deleted.restore {
                Some(url) => {
                    let restore = move |_| {
                        let url = url.clone();
                        spawn_local(async move {
                            match client::submit("POST", &url, Body::Empty).await {
                                Ok(()) => drop(on_retry.try_run(())),
                                Err(problem) => drop(restore_error.try_set(Some(problem))),
                            }
                        });
                    };
                    view! { <p class="actions"><button class="primary" data-testid="restore" on:click=restore>"Restore"</button></p> }.into_any()
                }
                None => view! { <p>"It cannot be restored."</p> }.into_any(),
            };
            view! {
                <h1>{format!("This {} was deleted", kind.noun)}</h1>
                <p class="lead" data-testid="deleted-when">{when}</p>
                {action}
            }
            .into_any()
        }
        None => view! {
            <h1>{format!("This {} cannot be shown", kind.noun)}</h1>
            <ErrorNotice error=error on_retry=on_retry />
        }
        .into_any(),
    };
    view! {
        {body}
        {move || restore_error.get().map(|request_error| view! { <ErrorNotice error=request_error /> })}
        <p><a href=kind.list>{format!("All {}s", kind.noun)}</a></p>
    }
}
