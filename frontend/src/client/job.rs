//! Follows a planning job to its end.

use std::cell::RefCell;
use std::rc::Rc;

use api::job::Job;
use api::path;
use js_sys::Promise;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{EventSource, MessageEvent};

use super::{Failure, get};

/// A server that does not answer is asked again after pauses that grow, for half a minute in all: one that is restarted goes on with
/// its jobs.
pub(crate) const PAUSES_MS: [i32; 8] = [400, 800, 1_600, 3_200, 6_000, 6_000, 6_000, 6_000];

/// Follows a job until it is final or `seen` says to stop; `seen` gets every state. Answers the last state.
pub(crate) async fn follow(job: Job, seen: impl Fn(&Job) -> bool + 'static) -> Result<Job, Failure> {
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
            Err(Failure::Offline) if silent + 1 < PAUSES_MS.len() => silent += 1,
            Err(failure) => return Err(failure),
        }
    }
    Ok(last)
}

/// One stream of events; the last state, or nothing if it broke.
async fn stream(id: &str, seen: Rc<dyn Fn(&Job) -> bool>) -> Option<Job> {
    let source = EventSource::new(&path::job_events(id)).ok()?;
    let last: Rc<RefCell<Option<Job>>> = Rc::default();
    let mut listeners: Vec<Closure<dyn Fn(MessageEvent)>> = Vec::new();
    let ended = Promise::new(&mut |resolve, _| {
        let (settle, keep) = (resolve.clone(), Rc::clone(&last));
        let seen = Rc::clone(&seen);
        let on_job = Closure::<dyn Fn(MessageEvent)>::new(move |event: MessageEvent| {
            let text = event.data().as_string().unwrap_or_default();
            // An event that cannot be read is as good as a broken stream: the job is asked for instead.
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
        // Listening for a name of an event that exists cannot fail.
        drop(source.add_event_listener_with_callback("job", on_job.as_ref().unchecked_ref()));
        source.set_onerror(Some(on_error.as_ref().unchecked_ref()));
        listeners.push(on_job);
        listeners.push(on_error);
    });
    // The promise only ever resolves.
    drop(JsFuture::from(ended).await);
    source.set_onerror(None);
    source.close();
    drop(listeners);
    last.take()
}

fn settle_now(resolve: &js_sys::Function) {
    // Resolving a promise of ours cannot throw.
    drop(resolve.call0(&JsValue::UNDEFINED));
}

/// Waits.
pub(crate) async fn pause(ms: i32) {
    let timer = Promise::new(&mut |resolve, _| {
        // A window without timers could not have come this far.
        drop(leptos::prelude::window().set_timeout_with_callback_and_timeout_and_arguments_0(&resolve, ms));
    });
    drop(JsFuture::from(timer).await);
}
