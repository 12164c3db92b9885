//! Follows a planning job until it ends.

use std::cell::RefCell;
use std::rc::Rc;

use api::job::Job;
use api::path;
use js_sys::Promise;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{EventSource, MessageEvent};

use super::{RequestError, get};

/// Retry delays if the server does not respond, about 30 s in total. Jobs continue after a server
/// restart.
pub(crate) const PAUSES_MS: [i32; 8] = [400, 800, 1_600, 3_200, 6_000, 6_000, 6_000, 6_000];

/// Follows a job until its state is final or `seen` returns true. Calls `seen` with each state.
/// Returns the last state.
pub(crate) async fn follow(job: Job, seen: impl Fn(&Job) -> bool + 'static) -> Result<Job, RequestError> {
    let seen: Rc<dyn Fn(&Job) -> bool> = Rc::new(seen);
    let mut last = job;
    let mut silent = 0;
    while seen(&last) && !last.state.is_final() {
        if let Some(job) = stream(&last.id, Rc::clone(&seen)).await {
            (last, silent) = (job, 0);
            continue;
        }
        pause(PAUSES_MS[silent]).await;
        match get(&path::job(&last.id)).await {
            Ok(job) => (last, silent) = (job, 0),
            Err(RequestError::Offline) if silent + 1 < PAUSES_MS.len() => silent += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(last)
}

/// Reads one event stream. Returns the last state, or `None` if the stream fails.
async fn stream(id: &str, seen: Rc<dyn Fn(&Job) -> bool>) -> Option<Job> {
    let source = EventSource::new(&path::job_events(id)).ok()?;
    let last: Rc<RefCell<Option<Job>>> = Rc::default();
    let mut listeners: Vec<Closure<dyn Fn(MessageEvent)>> = Vec::new();
    let ended = Promise::new(&mut |resolve, _| {
        let (settle, keep) = (resolve.clone(), Rc::clone(&last));
        let seen = Rc::clone(&seen);
        let on_job = Closure::<dyn Fn(MessageEvent)>::new(move |event: MessageEvent| {
            let text = event.data().as_string().unwrap_or_default();
            // An unreadable event counts as a stream error. The caller then fetches the job
            // directly.
            let job = serde_json::from_str::<Job>(&text).ok();
            let go_on = job.as_ref().is_some_and(|job| seen(job) && !job.state.is_final());
            *keep.borrow_mut() = job;
            if !go_on {
                settle_now(&settle);
            }
        });
        let (settle, keep) = (resolve, Rc::clone(&last));
        let on_error = Closure::<dyn Fn(MessageEvent)>::new(move |_| {
            *keep.borrow_mut() = None;
            settle_now(&settle);
        });
        // `add_event_listener` cannot fail for a valid event name.
        drop(source.add_event_listener_with_callback("job", on_job.as_ref().unchecked_ref()));
        source.set_onerror(Some(on_error.as_ref().unchecked_ref()));
        listeners.push(on_job);
        listeners.push(on_error);
    });
    // The promise never rejects.
    drop(JsFuture::from(ended).await);
    source.set_onerror(None);
    source.close();
    drop(listeners);
    last.take()
}

fn settle_now(resolve: &js_sys::Function) {
    // A call to the promise's own resolve function cannot throw.
    drop(resolve.call0(&JsValue::UNDEFINED));
}

/// Waits for `ms` milliseconds.
pub(crate) async fn pause(ms: i32) {
    let timer = Promise::new(&mut |resolve, _| {
        // `set_timeout` does not fail in a browser window.
        drop(leptos::prelude::window().set_timeout_with_callback_and_timeout_and_arguments_0(&resolve, ms));
    });
    drop(JsFuture::from(timer).await);
}
