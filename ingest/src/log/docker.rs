//! Lines in the form that log collectors give them.
//!
//! - Wrapped in JSON: Docker's json-file driver, `{"log":"step: 1 ...\n","stream":"stdout","time":"2024-05-01T10:20:30.5Z"}`, Loki
//!   (`line`, `timestamp`), Google Cloud Logging (`textPayload`, `timestamp`) and CloudWatch (`message`, `timestamp`).
//! - Lines of the container runtime interface (CRI), which cuts long lines into parts.
//! - `kubectl logs --prefix`, which names the pod of each line.

use serde::Deserialize;

use super::json_lines;
use super::text::clip;

/// A wrapped line.
#[derive(Deserialize)]
struct Wrapped {
    #[serde(alias = "line", alias = "textPayload", alias = "message")]
    log: String,
    #[serde(default, alias = "timestamp")]
    time: Option<serde_json::Value>,
    #[serde(flatten)]
    others: serde_json::Map<String, serde_json::Value>,
}

/// Returns the text of a wrapped line and its time of day in microseconds since 1970.
pub(super) fn unwrapped(text: &str) -> Option<(String, Option<i64>)> {
    let is_wrapped = ["\"log\":", "\"line\":", "\"textPayload\":", "\"message\":"].iter().any(|key| text.contains(key));
    if !is_wrapped || !text.trim_start().starts_with('{') {
        return None;
    }
    let wrapped: Wrapped = serde_json::from_str(text).ok()?;
    // A row of figures may have a field of such a name too, for example its place in the source.
    if wrapped.others.keys().any(|name| json_lines::step_name(name).is_some()) {
        return None;
    }
    let time = wrapped.time.as_ref().and_then(json_lines::instant);
    Some((wrapped.log, time))
}

/// A line of the container runtime interface: `2026-03-05T00:00:00.1Z stdout P text`.
pub(super) struct RuntimeLine<'a> {
    /// Its stream.
    pub(super) stream: &'static str,
    /// Whether the line goes on in the next one of its stream.
    pub(super) is_part: bool,
    /// The text of the program.
    pub(super) text: &'a str,
}

/// Returns the parts of a line of the container runtime interface.
pub(super) fn runtime_line(line: &str) -> Option<RuntimeLine<'_>> {
    let (time, rest) = line.split_once(' ')?;
    let (stream, rest) = rest.split_once(' ')?;
    let stream = ["stdout", "stderr"].into_iter().find(|known| *known == stream)?;
    let (tag, text) = rest.split_once(' ')?;
    let is_time = time.len() >= 20 && time.as_bytes().get(10) == Some(&b'T');
    (is_time && matches!(tag, "P" | "F")).then_some(RuntimeLine { stream, is_part: tag == "P", text })
}

/// Returns the job of a line of `kubectl logs --prefix`, and the line without the prefix `[pod/NAME/CONTAINER] `.
pub(super) fn pod(line: &str) -> (Option<String>, &str) {
    let parts = line.strip_prefix("[pod/").and_then(|rest| rest.split_once("] "));
    match parts.and_then(|(names, text)| Some((names.split_once('/')?.0, text))) {
        Some((name, text)) => (Some(clip(job_of(name), 200)), text),
        None => (None, line),
    }
}

/// The name of a pod without the parts that differ between the pods of one job: `train-worker-3` and `train-master-0` are of `train`.
fn job_of(pod: &str) -> &str {
    const ROLES: [&str; 6] = ["worker", "master", "launcher", "chief", "leader", "server"];
    // The letters of the random ends that Kubernetes gives.
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
    use super::job_of;

    #[test]
    fn pods_of_one_job_have_one_name() {
        for (pod, job) in [
            ("job-a-0", "job-a"),
            ("train-worker-3", "train"),
            ("train-master-0", "train"),
            ("llm-2-x7k2p", "llm"),
            ("llm-hello", "llm-hello"),
        ] {
            assert_eq!(job_of(pod), job);
        }
    }
}
