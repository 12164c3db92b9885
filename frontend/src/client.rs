//! Talks to the server. Every failure becomes a [`Failure`] that a page can show.

mod ahead;
mod job;

pub(crate) use job::{PAUSES_MS, follow, pause};

use std::future::Future;

use api::problem::Problem;
use js_sys::Promise;
use serde::de::DeserializeOwned;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{AbortController, AbortSignal, Request, RequestInit, Response};

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Failure {
    /// The server cannot be reached.
    Offline,
    /// The server says what is wrong.
    Problem(Box<Problem>),
    /// The answer cannot be read.
    Unreadable(String),
}

impl Failure {
    /// HTTP status, where the server answered at all.
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Problem(problem) => Some(problem.status),
            _ => None,
        }
    }

    /// Whether it says which fields are wrong.
    pub(crate) fn names_fields(&self) -> bool {
        matches!(self, Self::Problem(problem) if !problem.errors.is_empty())
    }

    /// One short line.
    pub(crate) fn title(&self) -> String {
        match self {
            Self::Offline => "The server cannot be reached".to_owned(),
            Self::Problem(problem) => problem.title.clone(),
            Self::Unreadable(_) => "The answer cannot be read".to_owned(),
        }
    }

    /// What happened, and the remedy.
    pub(crate) fn detail(&self) -> String {
        match self {
            Self::Offline => {
                "Check that planscope is still running, then try again. Nothing you entered is lost.".to_owned()
            }
            Self::Problem(problem) => problem.detail.clone(),
            Self::Unreadable(detail) => detail.clone(),
        }
    }
}

/// The body of a request.
pub(crate) enum Body {
    /// None.
    Empty,
    /// A JSON document.
    Json(String),
    /// A file as it is.
    File(web_sys::File),
}

/// Ends a request before its answer is there.
#[derive(Debug, Clone)]
pub(crate) struct Abort(AbortController);

impl Abort {
    /// Of a request to come; `None` in a browser that cannot end one.
    pub(crate) fn new() -> Option<Self> {
        AbortController::new().ok().map(Self)
    }

    /// What the request is told by.
    pub(crate) fn signal(&self) -> AbortSignal {
        self.0.signal()
    }

    /// Ends it; what is over already stays.
    pub(crate) fn abort(&self) {
        self.0.abort();
    }
}

/// GET, the answer as JSON, unless it is ended before.
pub(crate) async fn get_until<T: DeserializeOwned>(url: &str, abort: Option<&Abort>) -> Result<T, Failure> {
    let signal = abort.map(|abort| abort.0.signal());
    read_json(&fetch_until("GET", url, Body::Empty, "application/json", signal).await?).await
}

/// GET, the answer as JSON.
pub(crate) async fn get<T: DeserializeOwned>(url: &str) -> Result<T, Failure> {
    if let Some(asked) = ahead::take(url)
        && let Ok(response) = JsFuture::from(asked).await
        && let Ok(response) = response.dyn_into::<Response>()
    {
        return read_json(&accepted(response).await?).await;
    }
    read_json(&fetch("GET", url, Body::Empty, "application/json").await?).await
}

/// Any method, the answer as JSON.
pub(crate) async fn send<T: DeserializeOwned>(method: &str, url: &str, body: Body) -> Result<T, Failure> {
    read_json(&fetch(method, url, body, "application/json").await?).await
}

/// The same, ended where the signal says so.
pub(crate) async fn send_until<T: DeserializeOwned>(
    method: &str,
    url: &str,
    body: Body,
    signal: Option<AbortSignal>,
) -> Result<T, Failure> {
    read_json(&fetch_until(method, url, body, "application/json", signal).await?).await
}

/// POST of a question whose answer may come too late to be wanted.
pub(crate) async fn ask<T: DeserializeOwned>(url: &str, json: String, signal: &AbortSignal) -> Result<T, Failure> {
    read_json(&fetch_until("POST", url, Body::Json(json), "application/json", Some(signal.clone())).await?).await
}

/// POST of such a question, the answer as bytes.
pub(crate) async fn ask_bytes(url: &str, json: String, accept: &str, signal: &AbortSignal) -> Result<Vec<u8>, Failure> {
    read_bytes(&fetch_until("POST", url, Body::Json(json), accept, Some(signal.clone())).await?).await
}

/// Any method, the answer left unread.
pub(crate) async fn tell(method: &str, url: &str, body: Body) -> Result<(), Failure> {
    fetch(method, url, body, "application/json").await.map(drop)
}

/// GET, the answer as bytes.
pub(crate) async fn get_bytes(url: &str, accept: &str) -> Result<Vec<u8>, Failure> {
    begin_bytes(url, accept).await
}

/// GET, the answer as bytes; it is on its way before anybody waits for it, so that several come side by side.
pub(crate) fn begin_bytes(url: &str, accept: &str) -> impl Future<Output = Result<Vec<u8>, Failure>> + use<> {
    let begun = begin("GET", url, &Body::Empty, accept, None);
    async move { read_bytes(&end(begun).await?).await }
}

async fn read_bytes(response: &Response) -> Result<Vec<u8>, Failure> {
    let buffer = response.array_buffer().map_err(|error| unreadable(&error))?;
    // The connection broke, or was ended, between the headers and the end of the body.
    let buffer = JsFuture::from(buffer).await.map_err(|_| Failure::Offline)?;
    Ok(js_sys::Uint8Array::new(&buffer).to_vec())
}

/// A text made safe for a query.
pub(crate) fn encode(text: &str) -> String {
    String::from(js_sys::encode_uri_component(text))
}

async fn fetch(method: &str, url: &str, body: Body, accept: &str) -> Result<Response, Failure> {
    fetch_until(method, url, body, accept, None).await
}

async fn fetch_until(
    method: &str,
    url: &str,
    body: Body,
    accept: &str,
    signal: Option<AbortSignal>,
) -> Result<Response, Failure> {
    end(begin(method, url, &body, accept, signal.as_ref())).await
}

/// Sends a request.
fn begin(method: &str, url: &str, body: &Body, accept: &str, signal: Option<&AbortSignal>) -> Result<Promise, Failure> {
    let init = RequestInit::new();
    init.set_method(method);
    init.set_signal(signal);
    if method == "DELETE" {
        // The line has left the screen already: who leaves the page behind it has deleted all the same.
        js_sys::Reflect::set(&init, &"keepalive".into(), &JsValue::TRUE).map_err(|error| unreadable(&error))?;
    }
    let content_type = match body {
        Body::Empty => None,
        Body::Json(text) => {
            init.set_body(&JsValue::from_str(text));
            Some("application/json")
        }
        Body::File(file) => {
            init.set_body(file);
            Some("application/octet-stream")
        }
    };
    let request = Request::new_with_str_and_init(url, &init).map_err(|error| unreadable(&error))?;
    let headers = request.headers();
    headers.set("accept", accept).map_err(|error| unreadable(&error))?;
    if let Some(content_type) = content_type {
        headers.set("content-type", content_type).map_err(|error| unreadable(&error))?;
    }
    Ok(leptos::prelude::window().fetch_with_request(&request))
}

/// Waits for the answer to a request.
async fn end(begun: Result<Promise, Failure>) -> Result<Response, Failure> {
    // fetch rejects only where no answer came at all.
    let response = JsFuture::from(begun?).await.map_err(|_| Failure::Offline)?;
    accepted(response.unchecked_into()).await
}

async fn accepted(response: Response) -> Result<Response, Failure> {
    if response.ok() { Ok(response) } else { Err(problem_of(&response).await) }
}

async fn problem_of(response: &Response) -> Failure {
    match read_text(response).await {
        Ok(text) => failure_of(response.status(), &response.status_text(), &text),
        Err(failure) => failure,
    }
}

/// The failure of an answer with the status of an error.
pub(crate) fn failure_of(status: u16, status_text: &str, text: &str) -> Failure {
    Failure::Problem(Box::new(serde_json::from_str(text).unwrap_or_else(|_| Problem {
        kind: "about:blank".to_owned(),
        title: format!("The server answered {status} {status_text}"),
        status,
        detail: text.chars().take(400).collect(),
        errors: Vec::new(),
        candidates: Vec::new(),
        deleted: None,
    })))
}

async fn read_json<T: DeserializeOwned>(response: &Response) -> Result<T, Failure> {
    let text = read_text(response).await?;
    serde_json::from_str(&text).map_err(|error| {
        Failure::Unreadable(format!("{}: {error}. The page may be older than the server: reload it.", response.url()))
    })
}

async fn read_text(response: &Response) -> Result<String, Failure> {
    let text = response.text().map_err(|error| unreadable(&error))?;
    // The connection broke between the headers and the end of the body.
    let text = JsFuture::from(text).await.map_err(|_| Failure::Offline)?;
    Ok(text.as_string().unwrap_or_default())
}

fn unreadable(error: &JsValue) -> Failure {
    Failure::Unreadable(format!("{error:?}"))
}
