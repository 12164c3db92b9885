//! Expandable card with a cancellable server request. Expanding the card sends the request.

use std::sync::Arc;

use leptos::html;
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde::de::DeserializeOwned;

use crate::client::{self, Abort, Failure};
use crate::notice::FailureNotice;

/// Request state.
#[derive(Debug, Clone)]
enum Standing<T> {
    /// Not sent.
    Idle,
    /// Pending, with the previous response if it stays visible.
    Waiting(Option<Arc<T>>),
    Here(Arc<T>),
    /// Cancelled by the user.
    Stopped,
    Failed(Failure),
}

/// Request URL, expanded state of the card, and request state.
struct Question<T: Send + Sync + 'static> {
    url: Memo<Option<String>>,
    open: RwSignal<bool>,
    standing: RwSignal<Standing<T>>,
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
    LastAnswer,
}

impl<T: Send + Sync + 'static> Clone for Question<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Send + Sync + 'static> Copy for Question<T> {}

impl<T: DeserializeOwned + Send + Sync + 'static> Question<T> {
    fn new(url: Memo<Option<String>>, meanwhile: Meanwhile, unfolded: Unfolded) -> Self {
        let question = Self {
            url,
            open: RwSignal::new(unfolded == Unfolded::FromTheStart),
            standing: RwSignal::new(Standing::Idle),
            number: StoredValue::new(0),
            abort: StoredValue::new_local(None),
            meanwhile,
        };
        // A new scenario or iteration needs a new request. A collapsed card sends none.
        Effect::new(move |_| {
            question.url.track();
            if question.open.get_untracked() && question.url.with_untracked(Option::is_some) {
                question.ask();
            } else {
                question.stop(Standing::Idle);
            }
        });
        Effect::new(move |_| {
            let is_open = question.open.get();
            let standing = question.standing.with_untracked(|standing| match standing {
                Standing::Idle | Standing::Stopped => Some(true),
                Standing::Waiting(_) => Some(false),
                Standing::Here(_) | Standing::Failed(_) => None,
            });
            match (is_open, standing) {
                (true, Some(true)) => question.ask(),
                (false, Some(false)) => question.stop(Standing::Idle),
                _ => {}
            }
        });
        on_cleanup(move || question.end());
        question
    }

    fn ask(self) {
        let Some(url) = self.url.get_untracked() else { return };
        let abort = Abort::new();
        self.end();
        self.abort.set_value(abort.clone());
        let number = self.number.get_value();
        let last = self.standing.with_untracked(|standing| match standing {
            Standing::Here(answer) | Standing::Waiting(Some(answer)) => Some(Arc::clone(answer)),
            _ => None,
        });
        self.standing.set(Standing::Waiting(last.filter(|_| self.meanwhile == Meanwhile::LastAnswer)));
        spawn_local(async move {
            let answer = client::get_until::<T>(&url, abort.as_ref()).await;
            if self.number.try_get_value() == Some(number) {
                self.abort.set_value(None);
                self.standing.set(match answer {
                    Ok(answer) => Standing::Here(Arc::new(answer)),
                    Err(failure) => Standing::Failed(failure),
                });
            }
        });
    }

    fn stop(self, standing: Standing<T>) {
        self.end();
        self.standing.set(standing);
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
pub(super) fn AskedCard<T, V>(
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
    let meanwhile = if settings.is_some() { Meanwhile::LastAnswer } else { Meanwhile::Nothing };
    let question = Question::<T>::new(url, meanwhile, unfolded);
    let details = NodeRef::<html::Details>::new();
    let toggled = move |_| question.open.set(details.get_untracked().is_some_and(|details| details.open()));
    let waits = Memo::new(move |_| question.standing.with(|standing| matches!(standing, Standing::Waiting(_))));
    let spoken = move || {
        question.standing.with(|standing| match standing {
            Standing::Waiting(_) => format!("{title}: computing"),
            Standing::Here(_) => format!("{title}: done"),
            Standing::Stopped => format!("{title}: cancelled"),
            Standing::Idle | Standing::Failed(_) => String::new(),
        })
    };
    let body = move || match question.standing.get() {
        Standing::Idle | Standing::Waiting(None) => None,
        Standing::Waiting(Some(answer)) => {
            Some(view! { <div class="asked-before" aria-busy="true">{show(answer)}</div> }.into_any())
        }
        Standing::Here(answer) => Some(show(answer).into_any()),
        Standing::Stopped => Some(
            view! { <p>"Cancelled. "<button on:click=move |_| question.ask()>"Compute it"</button></p> }.into_any(),
        ),
        Standing::Failed(failure) => {
            Some(view! { <FailureNotice failure=failure on_retry=move |()| question.ask() /> }.into_any())
        }
    };
    view! {
        <section class="card asked" data-testid=test_id>
            <details node_ref=details on:toggle=toggled open=unfolded == Unfolded::FromTheStart>
                <summary><h2>{title}</h2></summary>
                <p class="hint">{about}</p>
                {settings.map(|settings| settings.run())}
                <Show when=move || waits.get()>
                    <div class="progress asked-progress">
                        <progress aria-label=format!("{title}: computing")></progress>
                        <button class="quiet" on:click=move |_| question.stop(Standing::Stopped)>"Cancel"</button>
                    </div>
                </Show>
                {body}
            </details>
            <p class="visually-hidden" role="status">{spoken}</p>
        </section>
    }
}
