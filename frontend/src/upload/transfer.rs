//! Sends request bodies larger than memory, with progress. It uses `XMLHttpRequest` because `fetch`
//! reports no upload progress.

use leptos::prelude::*;
use serde::de::DeserializeOwned;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use wasm_bindgen_futures::JsFuture;
use web_sys::{Blob, ProgressEvent, XmlHttpRequest};

use crate::client::{RequestError, error_from_status};

/// Active request, if any.
#[derive(Clone, Copy)]
pub(super) struct Transfer {
    request: StoredValue<Option<XmlHttpRequest>, LocalStorage>,
}

impl Transfer {
    pub(super) fn new() -> Self {
        Self { request: StoredValue::new_local(None) }
    }

    /// Aborts the active request.
    pub(super) fn abort(self) {
        if let Some(request) = self.request.try_update_value(Option::take).flatten() {
            // Aborting a completed request has no effect.
            drop(request.abort());
        }
    }

    /// Sends a POST request and decodes the JSON response. `on_progress` receives the number of
    /// sent bytes.
    pub(super) async fn post<T: DeserializeOwned>(
        self,
        url: &str,
        content_type: &str,
        body: &Blob,
        on_progress: impl Fn(f64) + 'static,
    ) -> Result<T, RequestError> {
        let unsendable = |error: wasm_bindgen::JsValue| RequestError::Unreadable(format!("{error:?}"));
        let request = XmlHttpRequest::new().map_err(unsendable)?;
        request.open_with_async("POST", url, true).map_err(unsendable)?;
        request.set_request_header("accept", "application/json").map_err(unsendable)?;
        request.set_request_header("content-type", content_type).map_err(unsendable)?;
        let progress = Closure::<dyn Fn(ProgressEvent)>::new(move |event: ProgressEvent| on_progress(event.loaded()));
        let upload = request.upload().map_err(unsendable)?;
        upload.set_onprogress(Some(progress.as_ref().unchecked_ref()));
        let over = js_sys::Promise::new(&mut |resolve, _| request.set_onloadend(Some(&resolve)));
        self.abort();
        self.request.try_set_value(Some(request.clone()));
        request.send_with_opt_blob(Some(body)).map_err(unsendable)?;
        // The promise resolves on success, error and abort.
        drop(JsFuture::from(over).await);
        upload.set_onprogress(None);
        request.set_onloadend(None);
        // Status 0: no response, or the request was aborted.
        let status = request.status().unwrap_or(0);
        if status == 0 {
            return Err(RequestError::Offline);
        }
        let text = request.response_text().ok().flatten().unwrap_or_default();
        if !(200..300).contains(&status) {
            return Err(error_from_status(status, &request.status_text().unwrap_or_default(), &text));
        }
        serde_json::from_str(&text).map_err(|error| {
            RequestError::Unreadable(format!("{url}: {error}. The page may be older than the server: reload it."))
        })
    }
}
