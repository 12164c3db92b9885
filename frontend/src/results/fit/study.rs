//! A study that runs on request. Answers are kept per URL, so a scenario that comes back by undo has its answer
//! without another request. The last answer of another scenario stays visible until a new one arrives.

use std::sync::Arc;

use leptos::prelude::*;
use leptos::task::spawn_local;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::client::{self, Abort, RequestError};
use crate::notice::ErrorNotice;

/// Maximum number of kept answers.
const MAX_KEPT: usize = 8;

/// State of the request.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum StudyState {
    /// No request, or an answered request.
    Idle,
    Waiting,
    /// Cancelled by the user.
    Cancelled,
    Failed(RequestError),
}

/// An answer and what it belongs to.
#[derive(Debug)]
pub(super) struct Answer<T> {
    url: String,
    /// The scenario that was studied.
    pub(super) document: Value,
    pub(super) content: T,
}

/// Study of the open scenario.
pub(super) struct Study<T: Send + Sync + 'static> {
    /// Request URL of the open scenario. `None` while its plans are not shown.
    url: Memo<Option<String>>,
    document: RwSignal<Value>,
    pub(super) state: RwSignal<StudyState>,
    /// Last answer, of this scenario or of an earlier one.
    pub(super) last: RwSignal<Option<Arc<Answer<T>>>>,
    kept: StoredValue<Vec<Arc<Answer<T>>>>,
    /// Request number. Responses to older requests are discarded.
    number: StoredValue<u64>,
    abort: StoredValue<Option<Abort>, LocalStorage>,
}

impl<T: Send + Sync + 'static> Clone for Study<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Send + Sync + 'static> Copy for Study<T> {}

impl<T: DeserializeOwned + Send + Sync + 'static> Study<T> {
    /// Creates a study of `document`, requested at `url`.
    pub(super) fn new(url: Memo<Option<String>>, document: RwSignal<Value>) -> Self {
        let study = Self {
            url,
            document,
            state: RwSignal::new(StudyState::Idle),
            last: RwSignal::new(None),
            kept: StoredValue::default(),
            number: StoredValue::new(0),
            abort: StoredValue::new_local(None),
        };
        // A request for an earlier scenario must not hold a worker of the server.
        Effect::new(move |_| {
            let url = study.url.get();
            study.stop(StudyState::Idle);
            let kept = url.and_then(|url| study.kept.with_value(|kept| kept.iter().find(|it| it.url == url).cloned()));
            if kept.is_some() {
                study.last.set(kept);
            }
        });
        on_cleanup(move || study.end());
        study
    }

    /// True if the open scenario can be studied now.
    pub(super) fn is_possible(self) -> bool {
        self.url.with(Option::is_some)
    }

    /// True if the last answer belongs to another scenario or to other options.
    pub(super) fn is_stale(self) -> bool {
        self.last.with(|last| last.as_ref().is_some_and(|last| self.url.with(|url| url.as_ref() != Some(&last.url))))
    }

    pub(super) fn request(self) {
        let Some(url) = self.url.get_untracked() else { return };
        let document = self.document.get_untracked();
        let abort = Abort::new();
        self.end();
        self.abort.set_value(abort.clone());
        let number = self.number.get_value();
        self.state.set(StudyState::Waiting);
        spawn_local(async move {
            let response = client::get_until::<T>(&url, abort.as_ref()).await;
            // The page may be gone, or the request replaced.
            if self.number.try_get_value() != Some(number) {
                return;
            }
            self.abort.set_value(None);
            match response {
                Ok(content) => {
                    let answer = Arc::new(Answer { url, document, content });
                    self.kept.update_value(|kept| keep(kept, Arc::clone(&answer)));
                    self.last.set(Some(answer));
                    self.state.set(StudyState::Idle);
                }
                Err(error) => self.state.set(StudyState::Failed(error)),
            }
        });
    }

    pub(super) fn stop(self, state: StudyState) {
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

/// Adds an answer, in place of an older one of the same URL.
fn keep<T>(kept: &mut Vec<Arc<Answer<T>>>, answer: Arc<Answer<T>>) {
    kept.retain(|other| other.url != answer.url);
    if kept.len() == MAX_KEPT {
        kept.remove(0);
    }
    kept.push(answer);
}

/// Button that runs a study, and one line for its state: progress with a button to cancel, or the note.
#[component]
pub(super) fn StudyControls<T>(
    study: Study<T>,
    label: &'static str,
    /// Text during the request.
    waiting: &'static str,
    /// Text otherwise.
    #[prop(into)]
    note: Signal<String>,
    /// Further controls after the note.
    #[prop(optional, into)]
    further: Option<ViewFn>,
) -> impl IntoView
where
    T: DeserializeOwned + Send + Sync + 'static,
{
    let waits = Memo::new(move |_| study.state.with(|state| *state == StudyState::Waiting));
    let text = move || {
        study.state.with(|state| match state {
            StudyState::Waiting => waiting.to_owned(),
            StudyState::Cancelled => format!("Cancelled. {}", note.get()),
            StudyState::Idle | StudyState::Failed(_) => note.get(),
        })
    };
    let error = move || {
        study.state.with(|state| match state {
            StudyState::Failed(error) => Some(error.clone()),
            _ => None,
        })
    };
    view! {
        <div class="fit-controls">
            <button on:click=move |_| study.request() disabled=move || waits.get() || !study.is_possible()>{label}</button>
            <p class="hint" role="status">{text}</p>
            <Show when=move || waits.get() fallback=move || further.as_ref().map(ViewFn::run)>
                <div class="progress">
                    <progress aria-label=waiting></progress>
                    <button class="quiet" on:click=move |_| study.stop(StudyState::Cancelled)>"Cancel"</button>
                </div>
            </Show>
        </div>
        {move || error().map(|error| view! { <ErrorNotice error=error on_retry=move |()| study.request() /> })}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_answers_are_forgotten_and_new_ones_replace_those_of_the_same_url() {
        let answer =
            |url: usize, content: u32| Arc::new(Answer { url: url.to_string(), document: Value::Null, content });
        let mut kept = Vec::new();
        for url in 0..=MAX_KEPT {
            keep(&mut kept, answer(url, 0));
        }
        assert_eq!((kept.len(), kept[0].url.as_str()), (MAX_KEPT, "1"));
        keep(&mut kept, answer(3, 7));
        assert_eq!((kept.len(), kept.last().unwrap().content), (MAX_KEPT, 7));
        assert_eq!(kept.iter().filter(|it| it.url == "3").count(), 1);
    }
}
