//! Unwraps lines from log collectors.
//!
//! - JSON wrappers: Docker json-file driver, `{"log":"step: 1
//!   ...\n","stream":"stdout","time":"2024-05-01T10:20:30.5Z"}`, Loki, Google Cloud Logging,
//!   CloudWatch, Datadog, Splunk, Elasticsearch, journald and loggers that write JSON. [`LINES`],
//!   [`TIMES`] and [`OBJECTS`] list the keys.
//! - Container runtime interface (CRI) lines. The CRI splits long lines into parts.
//! - `kubectl logs --prefix`, which adds the pod name to each line.

use serde_json::{Map, Value};

use super::json_lines;
use super::text::clip;

/// Keys of the text of a line.
const LINES: [&str; 7] = ["log", "line", "textPayload", "message", "MESSAGE", "_raw", "msg"];
/// Keys of its timestamp.
const TIMES: [&str; 8] =
    ["timestamp", "time", "receiveTimestamp", "@timestamp", "__REALTIME_TIMESTAMP", "_time", "asctime", "ts"];
/// Keys of objects that contain the line.
const OBJECTS: [&str; 5] = ["attributes", "jsonPayload", "result", "_source", "content"];

/// Returns the inner text of a wrapped line and its timestamp in microseconds since 1970.
pub(super) fn unwrapped(text: &str) -> Option<(String, Option<i64>)> {
    let has_key = |key: &&str| {
        let mut places = text.match_indices(*key);
        places.any(|(at, _)| text[..at].ends_with('"') && text[at + key.len()..].starts_with("\":"))
    };
    if !text.trim_start().starts_with('{') || !LINES.iter().any(has_key) {
        return None;
    }
    let row: Map<String, Value> = serde_json::from_str(text).ok()?;
    let (line, inner) = line(&row).map(|line| (line, &row)).or_else(|| {
        let mut objects = OBJECTS.iter().filter_map(|key| row.get(*key)?.as_object());
        objects.find_map(|object| Some((line(object)?, object)))
    })?;
    // A metrics row may contain a field with the same name, for example a source location.
    if [&row, inner].iter().any(|object| object.keys().any(|name| json_lines::step_name(name).is_some())) {
        return None;
    }
    Some((line.to_owned(), time_us(inner).or_else(|| time_us(&row))))
}

fn line(row: &Map<String, Value>) -> Option<&str> {
    LINES.iter().find_map(|key| row.get(*key)?.as_str())
}

/// Returns the timestamp of an entry or of the object that contains its line.
pub(super) fn entry_time(row: &Map<String, Value>) -> Option<i64> {
    let inside = || OBJECTS.iter().filter_map(|key| row.get(*key)?.as_object()).find_map(time_us);
    time_us(row).or_else(inside)
}

fn time_us(row: &Map<String, Value>) -> Option<i64> {
    TIMES.iter().find_map(|key| row.get(*key).and_then(json_lines::instant))
}

/// A CRI line: `2026-03-05T00:00:00.1Z stdout P text`.
pub(super) struct RuntimeLine<'a> {
    pub(super) stream: &'static str,
    /// True if the next line of the same stream continues this line.
    pub(super) is_part: bool,
    /// Program output.
    pub(super) text: &'a str,
}

/// Parses a CRI line.
pub(super) fn runtime_line(line: &str) -> Option<RuntimeLine<'_>> {
    let (time, rest) = line.split_once(' ')?;
    let (stream, rest) = rest.split_once(' ')?;
    let stream = ["stdout", "stderr"].into_iter().find(|known| *known == stream)?;
    let (tag, text) = rest.split_once(' ')?;
    let is_time = time.len() >= 20 && time.as_bytes().get(10) == Some(&b'T');
    (is_time && matches!(tag, "P" | "F")).then_some(RuntimeLine { stream, is_part: tag == "P", text })
}

/// Returns the job name from a `kubectl logs --prefix` line, and the line without the prefix
/// `[pod/NAME/CONTAINER] `.
pub(super) fn pod(line: &str) -> (Option<String>, &str) {
    let parts = line.strip_prefix("[pod/").and_then(|rest| rest.split_once("] "));
    match parts.and_then(|(names, text)| Some((names.split_once('/')?.0, text))) {
        Some((name, text)) => (Some(clip(job_name(name), 200)), text),
        None => (None, line),
    }
}

/// Removes the pod-specific suffix: `train-worker-3` and `train-master-0` both give `train`.
fn job_name(pod: &str) -> &str {
    const ROLES: [&str; 6] = ["worker", "master", "launcher", "chief", "leader", "server"];
    // Alphabet of random Kubernetes suffixes.
    let is_random = |part: &str| part.len() == 5 && part.chars().all(|c| "bcdfghjklmnpqrstvwxz2456789".contains(c));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let mut name = pod;
    while let Some((front, last)) = name.rsplit_once('-') {
        if front.is_empty() || !(is_number(last) || is_random(last) || ROLES.contains(&last)) {
            break;
        }
        name = front;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::job_name;

    #[test]
    fn pods_in_a_job_share_a_name() {
        for (pod, job) in [
            ("job-a-0", "job-a"),
            ("train-worker-3", "train"),
            ("train-master-0", "train"),
            ("llm-2-x7k2p", "llm"),
            ("llm-hello", "llm-hello"),
        ] {
            assert_eq!(job_name(pod), job);
        }
    }
}
