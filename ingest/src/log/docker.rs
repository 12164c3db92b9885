//! Lines that log collectors wrap in JSON: Docker's json-file driver, `{"log":"step: 1 ...\n","stream":"stdout","time":"2024-05-01T10:20:30.5Z"}`,
//! Loki (`line`, `timestamp`) and Google Cloud Logging (`textPayload`, `timestamp`).

use serde::Deserialize;

use super::json_lines;

/// A wrapped line.
#[derive(Deserialize)]
struct Wrapped {
    #[serde(alias = "line", alias = "textPayload")]
    log: String,
    #[serde(default, alias = "timestamp")]
    time: Option<serde_json::Value>,
    #[serde(flatten)]
    others: serde_json::Map<String, serde_json::Value>,
}

/// The text of a wrapped line, and its time of day in microseconds since 1970.
pub(super) fn unwrapped(text: &str) -> Option<(String, Option<i64>)> {
    let is_wrapped = ["\"log\":", "\"line\":", "\"textPayload\":"].iter().any(|key| text.contains(key));
    if !is_wrapped || !text.trim_start().starts_with('{') {
        return None;
    }
    let wrapped: Wrapped = serde_json::from_str(text).ok()?;
    // A row of figures may have a field of such a name too: the place in the source, or a text beside the figures.
    if wrapped.others.keys().any(|name| json_lines::step_name(name).is_some()) {
        return None;
    }
    let time = wrapped.time.as_ref().and_then(json_lines::instant);
    Some((wrapped.log, time))
}
