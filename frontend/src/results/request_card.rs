//! Expandable card with a cancellable server request. Expanding the card sends the request.

use std::sync::Arc;

use leptos::html;
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde::de::DeserializeOwned;

use crate::client::{self, Abort, RequestError};
use crate::notice::ErrorNotice;

/// Request state.
#[derive(Debug, Clone)]
enum RequestState<T> {
    /// Not sent.
    Idle,
    /// Pending, with the previous response if it stays visible.
    Loading(Option<Arc<T>>),
    Loaded(Arc<T>),
    /// Cancelled by the user.
    Stopped,
    Failed(RequestError),
}

/// Request URL, expanded state of the card, and request state.
struct CardRequest<T: Send + Sync + 'static> {
    url: Memo<Option<String>>,
    open: RwSignal<bool>,
    state: RwSignal<RequestState<T>>,
    /// Request number. Responses to older requests are discarded.
    number: StoredValue<u64>,
    abort: StoredValue<Option<Abort>, LocalStorage>,
    meanwhile: Meanwhile,
}

/// Card content during a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meanwhile {
    /// Nothing, because the previous response belongs to another subject.
    Nothing,
    /// The previous response, so that the layout does not jump while the user changes card
    /// settings.
    LastResponse,
}

impl<T: Send + Sync + 'static> Clone for CardRequest<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Send + Sync + 'static> Copy for CardRequest<T> {}

impl<T: DeserializeOwned + Send + Sync + 'static> CardRequest<T> {
    fn new(url: Memo<Option<String>>, meanwhile: Meanwhile, unfolded: Unfolded) -> Self {
        let request = Self {
            url,
            open: RwSignal::new(unfolded == Unfolded::FromTheStart),
            state: RwSignal::new(RequestState::Idle),
            number: StoredValue::new(0),
            abort: StoredValue::new_local(None),
            meanwhile,
        };
        // A new scenario or iteration needs a new request. A collapsed card sends none.
        Effect::new(move |_| {
            request.url.track();
            if request.open.get_untracked() && request.url.with_untracked(Option::is_some) {
                request.send();
            } else {
                request.stop(RequestState::Idle);
            }
        });
        Effect::new(move |_| {
            let is_open = request.open.get();
            let is_idle = request.state.with_untracked(|state| match state {
                RequestState::Idle | RequestState::Stopped => Some(true),
                RequestState::Loading(_) => Some(false),
                RequestState::Loaded(_) | RequestState::Failed(_) => None,
            });
            match (is_open, is_idle) {
                (true, Some(true)) => request.send(),
                (false, Some(false)) => request.stop(RequestState::Idle),
                _ => {}
            }
        });
        on_cleanup(move || request.end());
        request
    }

    fn send(self) {
        let Some(url) = self.url.get_untracked() else { return };
        let abort = Abort::new();
        self.end();
        self.abort.set_value(abort.clone());
        let number = self.number.get_value();
        let last = self.state.with_untracked(|current_state| match current_state {
            RequestState::Loaded(response) | RequestState::Loading(Some(response)) => Some(Arc::clone(response)),
            _ => None,
        });
        self.state.set(RequestState::Loading(last.filter(|_| self.meanwhile == Meanwhile::LastResponse)));
        spawn_local(async move {
            let result = client::get_until::<T>(&url, abort.as_ref()).await;
            if self.number.try_get_value() == Some(number) {
                self.abort.set_value(None);
                self.state.set(match result {
                    Ok(response) => RequestState::Loaded(Arc::new(response)),
                    Err(error) => RequestState::Failed(error),
                });
            }
        });
    }

    fn stop(self, state: RequestState<T>) {
        self.end();
        self.state.set(state);
    }

    /// Aborts the pending request and discards its response.
    fn end(self) {
        self.number.try_update_value(|number| *number += 1);
        if let Some(Some(abort)) = self.abort.try_update_value(Option::take) {
            abort.abort();
        }
    }
}

/// Initial state of the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unfolded {
    /// Collapsed until the user expands it.
    OnRequest,
    /// Expanded, because the link refers to its content.
    FromTheStart,
}

/// Collapsed card. Expanding it sends the request; `show` renders the response.
#[component]
pub(super) fn RequestCard<T, V>(
    /// Request URL, or `None` if there is nothing to request.
    url: Memo<Option<String>>,
    title: &'static str,
    /// Content description in a sentence.
    about: &'static str,
    test_id: &'static str,
    /// Renders a response.
    show: fn(Arc<T>) -> V,
    /// Settings above the response. The previous response stays visible while settings change.
    #[prop(optional, into)]
    settings: Option<ViewFn>,
    #[prop(default = Unfolded::OnRequest)] unfolded: Unfolded,
) -> impl IntoView
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
    V: IntoView + 'static,
{
    let meanwhile = if settings.is_some() { Meanwhile::LastResponse } else { Meanwhile::Nothing };
    let request = CardRequest::<T>::new(url, meanwhile, unfolded);
    let details = NodeRef::<html::Details>::new();
    let toggled = move |_| request.open.set(details.get_untracked().is_some_and(|details| details.open()));
    let waits = Memo::new(move |_| request.state.with(|state| matches!(state, RequestState::Loading(_))));
    let spoken = move || {
        request.state.with(|current_state| match current_state {
            RequestState::Loading(_) => format!("{title}: computing"),
            RequestState::Loaded(_) => format!("{title}: done"),
            RequestState::Stopped => format!("{title}: cancelled"),
            RequestState::Idle | RequestState::Failed(_) => String::new(),
        })
    };
    let body = move || match request.state.get() {
        RequestState::Idle | RequestState::Loading(None) => None,
        RequestState::Loading(Some(previous)) => {
            Some(view! { <div class="request-card-before" aria-busy="true">{show(previous)}</div> }.into_any())
        }
        RequestState::Loaded(response) => Some(show(response).into_any()),
        RequestState::Stopped => Some(
            view! { <p>"Cancelled. "<button on:click=move |_| request.send()>"Compute it"</button></p> }.into_any(),
        ),
        RequestState::Failed(error) => {
            Some(view! { <ErrorNotice error=error on_retry=move |()| request.send() /> }.into_any())
        }
    };
    view! {
        <section class="card request-card" data-testid=test_id>
            <details node_ref=details on:toggle=toggled open=unfolded == Unfolded::FromTheStart>
                <summary><h2>{title}</h2></summary>
                <p class="hint">{about}</p>
                {settings.map(|settings| settings.run())}
                <Show when=move || waits.get()>
                    <div class="progress request-card-progress">
                        <progress aria-label=format!("{title}: computing")></progress>
                        <button class="quiet" on:click=move |_| request.stop(RequestState::Stopped)>"Cancel"</button>
                    </div>
                </Show>
                {body}
            </details>
            <p class="visually-hidden" role="status">{spoken}</p>
        </section>
    }
}
