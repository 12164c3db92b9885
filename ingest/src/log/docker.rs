//! Lines that Docker's json-file driver wraps: `{"log":"step: 1 ...\n","stream":"stdout","time":"2024-05-01T10:20:30.5Z"}`.

use serde::Deserialize;

use super::text::time_us;

/// A wrapped line.
#[derive(Deserialize)]
struct Wrapped {
    log: String,
    #[serde(default)]
    time: Option<String>,
}

/// The text of a wrapped line, and its time of day in microseconds since 1970.
pub(super) fn unwrapped(text: &str) -> Option<(String, Option<i64>)> {
    if !text.trim_start().starts_with("{\"log\":") {
        return None;
    }
    let wrapped: Wrapped = serde_json::from_str(text).ok()?;
    let time = wrapped.time.as_deref().and_then(time_us);
    Some((wrapped.log, time))
}
