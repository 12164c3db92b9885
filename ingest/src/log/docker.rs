//! Lines that log collectors wrap in JSON: Docker's json-file driver, `{"log":"step: 1 ...\n","stream":"stdout","time":"2024-05-01T10:20:30.5Z"}`,
//! Loki (`line`, `timestamp`) and Google Cloud Logging (`textPayload`, `timestamp`).

use serde::Deserialize;

use super::text::time_us;

/// A wrapped line.
#[derive(Deserialize)]
struct Wrapped {
    #[serde(alias = "line", alias = "textPayload")]
    log: String,
    #[serde(default, alias = "timestamp")]
    time: Option<String>,
}

/// The text of a wrapped line, and its time of day in microseconds since 1970.
pub(super) fn unwrapped(text: &str) -> Option<(String, Option<i64>)> {
    let is_wrapped = ["\"log\":", "\"line\":", "\"textPayload\":"].iter().any(|key| text.contains(key));
    if !is_wrapped || !text.trim_start().starts_with('{') {
        return None;
    }
    let wrapped: Wrapped = serde_json::from_str(text).ok()?;
    let time = wrapped.time.as_deref().and_then(time_us);
    Some((wrapped.log, time))
}
