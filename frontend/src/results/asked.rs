//! A card that asks the server for something only when it is opened, and can be told to stop.

use std::sync::Arc;

use leptos::html;
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde::de::DeserializeOwned;

use crate::client::{self, Abort, Failure};
use crate::notice::FailureNotice;

/// Where a question stands.
#[derive(Debug, Clone)]
enum Standing<T> {
    /// Nobody has asked.
    Idle,
    /// The server computes; with the answer before, where it stays in sight.
    Waiting(Option<Arc<T>>),
    /// The answer is there.
    Here(Arc<T>),
    /// Ended by the user.
    Stopped,
    /// Something went wrong.
    Failed(Failure),
}

/// One question: its address, whether anyone looks, and where it stands.
struct Question<T: Send + Sync + 'static> {
    url: Memo<Option<String>>,
    open: RwSignal<bool>,
    standing: RwSignal<Standing<T>>,
    /// Counts questions; an answer to an older one is dropped.
    number: StoredValue<u64>,
    abort: StoredValue<Option<Abort>, LocalStorage>,
    meanwhile: Meanwhile,
}

/// What is shown while another question is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meanwhile {
    /// Nothing: the last answer is of something else.
    Nothing,
    /// The last answer, so that the page keeps still while settings of the card change.
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
        // Another scenario or iteration is another question; one that nobody looks at is not asked.
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

    /// Ends the request that is under way; what it still answers is dropped.
    fn end(self) {
        self.number.try_update_value(|number| *number += 1);
        if let Some(Some(abort)) = self.abort.try_update_value(Option::take) {
            abort.abort();
        }
    }
}

/// When a card is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unfolded {
    /// When somebody opens it.
    OnRequest,
    /// From the start: a link asks for what is in it.
    FromTheStart,
}

/// A folded card; opening it asks, and what is answered is shown by `show`.
#[component]
pub(super) fn AskedCard<T, V>(
    /// Where the answer is; none where there is nothing to ask.
    url: Memo<Option<String>>,
    /// Heading.
    title: &'static str,
    /// What it shows, in a sentence.
    about: &'static str,
    /// Names the card in tests.
    test_id: &'static str,
    /// Shows an answer.
    show: fn(Arc<T>) -> V,
    /// Settings above the answer; the last answer stays in sight while they change.
    #[prop(optional, into)]
    settings: Option<ViewFn>,
    /// Whether it is open from the start.
    #[prop(default = Unfolded::OnRequest)]
    unfolded: Unfolded,
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
