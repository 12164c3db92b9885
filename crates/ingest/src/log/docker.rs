//! Unwraps lines from log collectors.
//!
//! - JSON wrappers: Docker json-file driver, `{"log":"step: 1
//!   ...\n","stream":"stdout","time":"2024-05-01T10:20:30.5Z"}`, Loki (`line`, `timestamp`), Google
//!   Cloud Logging (`textPayload`, `timestamp`) and CloudWatch (`message`, `timestamp`).
//! - Container runtime interface (CRI) lines. The CRI splits long lines into parts.
//! - `kubectl logs --prefix`, which adds the pod name to each line.

use serde::Deserialize;

use super::json_lines;
use super::text::clip;

#[derive(Deserialize)]
struct Wrapped {
    #[serde(alias = "line", alias = "textPayload", alias = "message")]
    log: String,
    #[serde(default, alias = "timestamp")]
    time: Option<serde_json::Value>,
    #[serde(flatten)]
    others: serde_json::Map<String, serde_json::Value>,
}

/// Returns the inner text of a wrapped line and its timestamp in microseconds since 1970.
pub(super) fn unwrapped(text: &str) -> Option<(String, Option<i64>)> {
    let is_wrapped = ["\"log\":", "\"line\":", "\"textPayload\":", "\"message\":"].iter().any(|key| text.contains(key));
    if !is_wrapped || !text.trim_start().starts_with('{') {
        return None;
    }
    let wrapped: Wrapped = serde_json::from_str(text).ok()?;
    // A metrics row may contain a field with the same name, for example a source location.
    if wrapped.others.keys().any(|name| json_lines::step_name(name).is_some()) {
        return None;
    }
    let time = wrapped.time.as_ref().and_then(json_lines::instant);
    Some((wrapped.log, time))
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
