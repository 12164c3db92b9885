//! HTTP client for the API. Maps all errors to [`RequestError`], which pages can display.

mod job;
mod prefetch;

pub(crate) use job::{PAUSES_MS, follow, pause};

use std::future::Future;

use api::problem::Problem;
use js_sys::Promise;
use serde::de::DeserializeOwned;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{AbortController, AbortSignal, Request, RequestInit, Response};

use crate::format;

/// Error of an HTTP request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RequestError {
    /// The server cannot be reached.
    Offline,
    /// The server returned a problem document.
    Problem(Box<Problem>),
    /// The response cannot be parsed.
    Unreadable(String),
}

impl RequestError {
    /// HTTP status, or `None` if the server sent no response.
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Problem(problem) => Some(problem.status),
            _ => None,
        }
    }

    /// Returns true if the error names invalid fields.
    pub(crate) fn names_fields(&self) -> bool {
        matches!(self, Self::Problem(problem) if !problem.errors.is_empty())
    }

    /// Title in one short line.
    pub(crate) fn title(&self) -> String {
        match self {
            Self::Offline => "The server cannot be reached".to_owned(),
            Self::Problem(problem) => problem.title.clone(),
            Self::Unreadable(_) => "The answer cannot be read".to_owned(),
        }
    }

    /// Description of the error and its remedy.
    pub(crate) fn detail(&self) -> String {
        match self {
            Self::Offline => {
                "Check that planscope is still running, then try again. Nothing you entered is lost.".to_owned()
            }
            Self::Problem(problem) => format::sentence(&problem.detail),
            Self::Unreadable(detail) => detail.clone(),
        }
    }
}

/// Request body.
pub(crate) enum Body {
    Empty,
    Json(String),
    File(web_sys::File),
}

/// Handle that cancels a request.
#[derive(Debug, Clone)]
pub(crate) struct Abort(AbortController);

impl Abort {
    /// Creates a handle. Returns `None` if the browser does not support `AbortController`.
    pub(crate) fn new() -> Option<Self> {
        AbortController::new().ok().map(Self)
    }

    /// Signal to pass to the request.
    pub(crate) fn signal(&self) -> AbortSignal {
        self.0.signal()
    }

    /// Cancels the request. Has no effect on a completed request.
    pub(crate) fn abort(&self) {
        self.0.abort();
    }
}

/// Sends a GET request and parses the JSON response. `abort` can cancel the request.
pub(crate) async fn get_until<T: DeserializeOwned>(url: &str, abort: Option<&Abort>) -> Result<T, RequestError> {
    let signal = abort.map(|abort| abort.0.signal());
    read_json(&fetch_until("GET", url, Body::Empty, "application/json", signal).await?).await
}

/// Sends a GET request and parses the JSON response.
pub(crate) async fn get<T: DeserializeOwned>(url: &str) -> Result<T, RequestError> {
    if let Some(prefetched) = prefetch::take(url)
        && let Ok(response) = JsFuture::from(prefetched).await
        && let Ok(response) = response.dyn_into::<Response>()
    {
        return read_json(&accepted(response).await?).await;
    }
    read_json(&fetch("GET", url, Body::Empty, "application/json").await?).await
}

/// Sends a request and parses the JSON response.
pub(crate) async fn send<T: DeserializeOwned>(method: &str, url: &str, body: Body) -> Result<T, RequestError> {
    read_json(&fetch(method, url, body, "application/json").await?).await
}

/// Same as [`send`], but `signal` can cancel the request.
pub(crate) async fn send_until<T: DeserializeOwned>(
    method: &str,
    url: &str,
    body: Body,
    signal: Option<AbortSignal>,
) -> Result<T, RequestError> {
    read_json(&fetch_until(method, url, body, "application/json", signal).await?).await
}

/// Sends a POST request that the caller can cancel, and parses the JSON response.
pub(crate) async fn post_abortable<T: DeserializeOwned>(
    url: &str,
    json: String,
    signal: &AbortSignal,
) -> Result<T, RequestError> {
    read_json(&fetch_until("POST", url, Body::Json(json), "application/json", Some(signal.clone())).await?).await
}

/// Sends a POST request that the caller can cancel, and returns the response bytes.
pub(crate) async fn post_for_bytes(
    url: &str,
    json: String,
    accept: &str,
    signal: &AbortSignal,
) -> Result<Vec<u8>, RequestError> {
    read_bytes(&fetch_until("POST", url, Body::Json(json), accept, Some(signal.clone())).await?).await
}

/// Sends a request and ignores the response body.
pub(crate) async fn submit(method: &str, url: &str, body: Body) -> Result<(), RequestError> {
    fetch(method, url, body, "application/json").await.map(drop)
}

/// Sends a GET request and returns the response bytes.
pub(crate) async fn get_bytes(url: &str, accept: &str) -> Result<Vec<u8>, RequestError> {
    start_bytes(url, accept).await
}

/// Sends a GET request and returns a future for the response bytes. The request starts before the
/// first poll, so several requests can run in parallel.
pub(crate) fn start_bytes(url: &str, accept: &str) -> impl Future<Output = Result<Vec<u8>, RequestError>> + use<> {
    let begun = start("GET", url, &Body::Empty, accept, None);
    async move { read_bytes(&end(begun).await?).await }
}

async fn read_bytes(response: &Response) -> Result<Vec<u8>, RequestError> {
    let buffer = response.array_buffer().map_err(|error| unreadable(&error))?;
    // The connection closed, or the request was cancelled, after the headers and before the end of
    // the body.
    let buffer = JsFuture::from(buffer).await.map_err(|_| RequestError::Offline)?;
    Ok(js_sys::Uint8Array::new(&buffer).to_vec())
}

/// Percent-encodes a text for a query string.
pub(crate) fn encode(text: &str) -> String {
    String::from(js_sys::encode_uri_component(text))
}

async fn fetch(method: &str, url: &str, body: Body, accept: &str) -> Result<Response, RequestError> {
    fetch_until(method, url, body, accept, None).await
}

async fn fetch_until(
    method: &str,
    url: &str,
    body: Body,
    accept: &str,
    signal: Option<AbortSignal>,
) -> Result<Response, RequestError> {
    end(start(method, url, &body, accept, signal.as_ref())).await
}

fn start(
    method: &str,
    url: &str,
    body: &Body,
    accept: &str,
    signal: Option<&AbortSignal>,
) -> Result<Promise, RequestError> {
    let init = RequestInit::new();
    init.set_method(method);
    init.set_signal(signal);
    if method == "DELETE" {
        // The row is already removed from the page. With `keepalive`, the DELETE request completes
        // even if the user leaves the page.
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

/// Waits for the response.
async fn end(begun: Result<Promise, RequestError>) -> Result<Response, RequestError> {
    // `fetch` rejects only if no response arrives.
    let response = JsFuture::from(begun?).await.map_err(|_| RequestError::Offline)?;
    accepted(response.unchecked_into()).await
}

async fn accepted(response: Response) -> Result<Response, RequestError> {
    if response.ok() { Ok(response) } else { Err(response_error(&response).await) }
}

async fn response_error(response: &Response) -> RequestError {
    match read_text(response).await {
        Ok(text) => error_from_status(response.status(), &response.status_text(), &text),
        Err(error) => error,
    }
}

/// Converts an error response to a [`RequestError`].
pub(crate) fn error_from_status(status: u16, status_text: &str, text: &str) -> RequestError {
    RequestError::Problem(Box::new(serde_json::from_str(text).unwrap_or_else(|_| Problem {
        kind: "about:blank".to_owned(),
        title: format!("The server answered {status} {status_text}"),
        status,
        detail: text.chars().take(400).collect(),
        errors: Vec::new(),
        candidates: Vec::new(),
        deleted: None,
    })))
}

async fn read_json<T: DeserializeOwned>(response: &Response) -> Result<T, RequestError> {
    let text = read_text(response).await?;
    serde_json::from_str(&text).map_err(|error| {
        RequestError::Unreadable(format!(
            "{}: {error}. The page may be older than the server: reload it.",
            response.url()
        ))
    })
}

async fn read_text(response: &Response) -> Result<String, RequestError> {
    let text = response.text().map_err(|error| unreadable(&error))?;
    // The connection closed after the headers and before the end of the body.
    let text = JsFuture::from(text).await.map_err(|_| RequestError::Offline)?;
    Ok(text.as_string().unwrap_or_default())
}

fn unreadable(error: &JsValue) -> RequestError {
    RequestError::Unreadable(format!("{error:?}"))
}
