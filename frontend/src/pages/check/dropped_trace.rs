//! A profiler trace that is dropped next to a configuration: it is stored, and a link leads to its comparison.

use std::sync::Arc;

use api::path;
use api::trace::UploadedTrace;
use leptos::prelude::*;
use leptos::task::spawn_local;
use wasm_bindgen_futures::JsFuture;

use crate::check::{Checked, Loaded};
use crate::client::{self, RequestError};
use crate::file_uploads::FileUploads;
use crate::notice::ErrorNotice;

/// Bytes at the start of a file that decide whether it is a trace.
const HEAD_BYTES: f64 = 65_536.0;
/// Ends of names of packed and binary traces.
const ENDS: [&str; 6] = [".gz", ".pftrace", ".perfetto-trace", ".sqlite", ".et", ".nsys-rep"];

/// A stored trace: its name, and the address of its comparison with the configuration.
#[derive(Debug, Clone, PartialEq)]
struct Stored {
    name: String,
    url: String,
}

/// Upload of a trace.
#[derive(Clone, Copy)]
pub(super) struct DroppedTrace {
    uploads: FileUploads,
    stored: RwSignal<Loaded<Stored>>,
}

impl DroppedTrace {
    pub(super) fn new() -> Self {
        Self { uploads: FileUploads::new(), stored: RwSignal::new(Loaded::Absent) }
    }

    /// Removes the link and cancels an upload.
    pub(super) fn clear(self) {
        self.uploads.cancel_all();
        self.stored.set(Loaded::Absent);
    }

    /// Stores a trace and the scenario of the configuration.
    pub(super) fn store(self, checked: Arc<Checked>, file: web_sys::File) {
        self.stored.set(Loaded::Waiting);
        spawn_local(async move {
            let response = self.send(&checked, file).await;
            if let Some(response) = response {
                self.stored.try_set(Loaded::new(response));
            }
        });
    }

    /// Returns `None` if the upload was cancelled.
    async fn send(self, checked: &Checked, file: web_sys::File) -> Option<Result<Stored, RequestError>> {
        let scenario = match checked.store_own_scenario().await {
            Ok(stored) => stored.id,
            Err(error) => return Some(Err(error)),
        };
        let url = format!("{}?name={}", path::TRACES, client::encode(&file.name()));
        let uploaded = self.uploads.send::<UploadedTrace>(&url, file).await?;
        Some(uploaded.map(|UploadedTrace { trace, .. }| Stored {
            url: format!("{}?scenario={scenario}", path::trace_page(&trace.id)),
            name: trace.name,
        }))
    }
}

/// True if a file is a profiler trace and no log, by its name and its first bytes.
pub(super) async fn is_trace(file: &web_sys::File) -> bool {
    if is_trace_name(&file.name()) {
        return true;
    }
    let Ok(start) = file.slice_with_f64_and_f64(0.0, HEAD_BYTES) else { return false };
    let text = JsFuture::from(start.text()).await.ok().and_then(|text| text.as_string());
    text.is_some_and(|text| is_trace_text(&text))
}

fn is_trace_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ENDS.iter().any(|end| name.ends_with(end))
}

fn is_trace_text(head: &str) -> bool {
    let document = head.trim_start();
    let is_json = document.starts_with(['{', '[']);
    let has = |word: &str| document.contains(word);
    document.starts_with("SQLite format 3")
        || (is_json
            && (has("\"traceEvents\"") || has("\"ph\"") || (has("\"schemaVersion\"") && has("\"deviceProperties\""))))
}

/// Progress of the upload, and the link to the comparison.
#[component]
pub(super) fn DroppedTraceView(trace: DroppedTrace) -> impl IntoView {
    move || match trace.stored.get() {
        Loaded::Absent => ().into_any(),
        Loaded::Waiting => view! {
            <p class="progress" role="status">
                <progress aria-label="Storing the trace"></progress>
                "Storing the trace…"
                <button type="button" class="quiet" on:click=move |_| trace.clear()>"Cancel"</button>
            </p>
        }
        .into_any(),
        Loaded::Failed(error) => view! { <ErrorNotice error=error /> }.into_any(),
        Loaded::Here(stored) => view! {
            <p role="status" data-testid="stored-trace">
                {format!("{} is stored as a trace. ", stored.name)}
                <a href=stored.url.clone()>"Compare its kernels with the prediction"</a>
            </p>
        }
        .into_any(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_differ_from_logs() {
        for name in ["rank0.pt.trace.json.gz", "run.SQLITE", "a.pftrace"] {
            assert!(is_trace_name(name), "{name}");
        }
        assert!(!is_trace_name("train.log") && !is_trace_name("metrics.jsonl"));
        for head in [
            "{\"traceEvents\": [",
            "\n[{\"ph\": \"X\", \"name\": \"gemm\"}",
            "{\"schemaVersion\": 1, \"deviceProperties\": [{",
            "SQLite format 3\0",
        ] {
            assert!(is_trace_text(head), "{head}");
        }
        for head in
            ["{\"step\": 1, \"loss\": 2.5}\n{\"step\": 2}", "iteration 1: \"traceEvents\"", "", "step,loss\n1,2"]
        {
            assert!(!is_trace_text(head), "{head}");
        }
    }
}
