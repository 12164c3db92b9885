//! JSON lines with a step: Weights & Biases history, LLaMA-Factory `trainer_log.jsonl`, ms-swift
//! `logging.jsonl`, DLLogger.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::clock::time_us;
use super::labels::Labels;
use super::metric::{Measure, measure};
use super::point::{Named, Note, NoteKind, Point, Source};
use super::quantity::duration_s;
use super::reading::{Draft, Reading, Tear};
use super::steps::Mark;
use super::text::{clip, float, number};
use super::{Limits, hugging_face};

/// Step keys by priority: trainer steps come before logger calls.
const STEPS: [&str; 10] = [
    "train/global_step",
    "trainer/global_step",
    "global_step/max_steps",
    "global_step",
    "current_steps",
    "num_updates",
    "iter",
    "iteration",
    "step",
    "_step",
];

/// Trainer step keys. A row may contain several with different values.
const COUNTERS: [&str; 6] = ["global_step", "current_steps", "num_updates", "iter", "iteration", "step"];
/// Maximum object nesting for metrics.
const MAX_NESTED: usize = 3;

/// Data split keys.
const SPLITS: [&str; 4] = ["split", "mode", "phase", "stage"];
/// Data splits other than training.
const EVALUATION_SPLITS: [&str; 9] =
    ["val", "valid", "validation", "validate", "eval", "evaluation", "evaluate", "test", "dev"];

/// Returns the data split of a row unless it is training.
fn evaluation_split(row: &Map<String, Value>) -> Option<&str> {
    let is_split = |name: &str| SPLITS.iter().any(|known| known.eq_ignore_ascii_case(name));
    let parts = row.iter().filter(|(name, _)| is_split(name)).filter_map(|(_, value)| value.as_str());
    parts.map(str::trim).find(|part| EVALUATION_SPLITS.iter().any(|known| known.eq_ignore_ascii_case(part)))
}

/// Converts held-out metrics to a note, separate from the training metrics of the step.
fn note(row: &Map<String, Value>, part: &str, step: (&str, u64), limits: &Limits) -> Reading {
    let named = |(name, value): (&String, &Value)| {
        let value = float(value).filter(|value| value.is_finite() && name != step.0)?;
        Some(Named { name: clip(name, limits.name_chars), value })
    };
    let values = row.iter().filter_map(named).take(limits.values).collect();
    let time_us = moment(row);
    let name = clip(part, limits.name_chars);
    Reading::Note(Note { kind: NoteKind::Validation, name, step: Some(step.1), time_us, values, text: None })
}

/// Returns the priority of a column name in [`STEPS`]. Lower is better.
pub(super) fn step_name(name: &str) -> Option<usize> {
    STEPS.iter().position(|known| *known == name)
}

/// Returns whether a priority is that of the step of a logger, which may count its calls.
pub(super) fn is_logger_step(priority: usize) -> bool {
    STEPS.get(priority) == Some(&"_step")
}

/// Parses `{"_step":7,"_runtime":12.5,"_timestamp":1700000012.5,"train/loss":2.5,"grad_norm":NaN}`.
///
/// `known` is the best step key so far, as priority from [`step_name`].
pub(super) fn step(text: &str, known: Option<usize>, limits: &Limits) -> Option<Reading> {
    let (before, text) = text.split_at(text.find("{\"")?);
    let text = text.trim_end();
    let is_named = STEPS.iter().any(|name| text.contains(name));
    if !is_named && !text.contains("\"data\"") {
        return None;
    }
    let parsed: Value = match serde_json::from_str(&finite(text)) {
        Ok(parsed) => parsed,
        Err(error) if error.is_eof() => return Some(Reading::Torn(Tear::Cut)),
        // Text in braces is not necessarily JSON. A line that starts with a key and contains a step
        // is treated as torn JSON.
        Err(_) => return is_named.then_some(Reading::Torn(Tear::Json)),
    };
    let Value::Object(row) = parsed else { return None };
    if row.contains_key("log_history") {
        return Some(Reading::Skipped("a trainer_state.json is read as a complete file only"));
    }
    let mut reading = parse_row(&flat(row), known, Source::JsonLines, limits);
    if let Some(Reading::Row { reading, .. }) = &mut reading
        && let Reading::Step { point, .. } = &mut **reading
        && point.time_us.is_none()
    {
        // A logger prints its time before the row.
        point.time_us = time_us(before);
    }
    reading
}

/// Flattens nested objects: `{"train": {"loss": 2.5}}` becomes `train/loss`.
fn flat(row: Map<String, Value>) -> Map<String, Value> {
    let row = dllogger(row);
    if !row.values().any(Value::is_object) {
        return row;
    }
    let mut all = Map::new();
    flatten(row, "", MAX_NESTED, &mut all);
    all
}

fn flatten(row: Map<String, Value>, prefix: &str, depth: usize, all: &mut Map<String, Value>) {
    for (name, value) in row {
        let name = format!("{prefix}{name}");
        match value {
            // Weights & Biases media and histograms.
            Value::Object(inner) if inner.contains_key("_type") => {}
            Value::Object(inner) if depth > 0 => flatten(inner, &format!("{name}/"), depth - 1, all),
            value => {
                all.insert(name, value);
            }
        }
    }
}

/// Unwraps DLLogger rows: metrics are in `data`, and the step is a list with epoch and step.
fn dllogger(mut row: Map<String, Value>) -> Map<String, Value> {
    if let (true, Some(Value::Object(data))) = (row.contains_key("step"), row.remove("data")) {
        if let Some(Value::Array(parts)) = row.get("step") {
            let last = parts.last().cloned().unwrap_or(Value::Null);
            row.insert("step".to_owned(), last);
        }
        row.extend(data);
    }
    row
}

/// Key and value of a row's step, priority, total steps, and a note if the row contains several
/// steps.
struct Found {
    preference: usize,
    name: &'static str,
    step: f64,
    total: Option<u64>,
    note: Option<Cow<'static, str>>,
}

fn find_step(row: &Map<String, Value>) -> Option<Found> {
    let mut found = STEPS.iter().enumerate().filter_map(|(preference, name)| {
        let value = row.get(*name)?;
        let (step, total) = match value.as_str().and_then(hugging_face::fraction) {
            Some((step, total)) => (step as f64, Some(total)),
            None => (float(value)?, None),
        };
        Some(Found { preference, name, step, total, note: None })
    });
    let best = found.next()?;
    let others: Vec<Found> = found.collect();
    // litgpt uses `iter` for microbatches and times them.
    if let (true, Some(optimizer_step)) =
        (best.name == "iter" && row.contains_key("iter_time"), others.iter().find(|other| other.name == "step"))
    {
        let note = "rows have iter and step: iter counts microbatches, and iter_time is the time of one, so that it is no step time";
        return Some(Found { note: Some(note.into()), preference: optimizer_step.preference, ..*optimizer_step });
    }
    let is_counter = |found: &&Found| COUNTERS.contains(&found.name);
    let other =
        others.iter().filter(is_counter).find(|other| is_counter(&&best) && (other.step - best.step).abs() > 0.5);
    let note = other.map(|other| {
        Cow::from(format!(
            "rows have {} and {} with different values: {} is read as the step",
            best.name, other.name, best.name
        ))
    });
    Some(Found { note, ..best })
}

/// Parses a JSON or CSV row; `None` if it contains no step.
pub(super) fn parse_row(
    row: &Map<String, Value>,
    known: Option<usize>,
    source: Source,
    limits: &Limits,
) -> Option<Reading> {
    let Found { preference, name, step, total: total_steps, note: step_note } = find_step(row)?;
    if step.fract() != 0.0 {
        return Some(Reading::Skipped("the step is no whole number"));
    }
    if !(0.0..9_007_199_254_740_992.0).contains(&step) {
        return Some(Reading::Skipped("the step is negative or beyond 2^53"));
    }
    let labels = Labels::read(row);
    if let Some(part) = evaluation_split(row) {
        let reading = Box::new(note(row, part, (name, step as u64), limits));
        return Some(Reading::Row { reading, step_name: preference, labels, note: step_note });
    }
    let time_us = moment(row);
    let mut draft = Draft::new(Point { source, step: step as u64, time_us, total_steps, ..Point::default() });
    // LLaMA-Factory `trainer_log.jsonl`.
    let is_llama_factory = row.contains_key("current_steps");
    let rate = Measure::parse("tokens_per_s").ok().filter(|_| is_llama_factory);
    // fairseq counts words over all devices.
    let word_rate = Measure::parse("tokens_per_s").ok().filter(|_| row.contains_key("num_updates"));
    let is_microbatch_time = row.contains_key("iter") && name == "step";
    for (key, value) in row {
        match key.as_str() {
            key if key == name || key == "_timestamp" => {}
            key if TIMES.contains(&key) && instant(value).is_some() => {}
            key if labels.has(key) => {}
            "elapsed_time" => draft.point.elapsed_s = value.as_str().and_then(duration_s).or_else(|| float(value)),
            "_runtime" | "elapsedtime" => {
                draft.point.elapsed_s = float(value).filter(|seconds| seconds.is_finite());
                set(&mut draft, key, None, value, limits);
            }
            "total_steps" | "max_steps" => draft.point.total_steps = value.as_u64().filter(|&total| total > 0),
            "throughput" => set(&mut draft, key, rate, value, limits),
            "wps" => set(&mut draft, key, word_rate, value, limits),
            "iter_time" if is_microbatch_time => set(&mut draft, "microbatch_time", None, value, limits),
            _ => set(&mut draft, key, None, value, limits),
        }
    }
    let is_worse = known.is_some_and(|known| preference > known);
    let mark = if is_worse { Mark::Open } else { Mark::Named };
    Some(Reading::Row { reading: Box::new(draft.step(mark)), step_name: preference, labels, note: step_note })
}

fn set(draft: &mut Draft, key: &str, preferred: Option<Measure>, value: &Value, limits: &Limits) {
    let measured = preferred.or_else(|| measure(key));
    if let Some(value) = float(value) {
        draft.set_as(measured, key, value, limits);
    } else if let Some(text) = value.as_str() {
        // The value contains the unit: `"mfu": "41.2%"`, `"step_time": "9.0s"`, `"tokens_per_sec":
        // "98.7K"`.
        draft.set_text(key, text, measured, limits);
    }
}

/// Timestamp keys other than the Weights & Biases key.
const TIMES: [&str; 8] = ["timestamp", "ts", "time", "@timestamp", "created_at", "wall_time", "datetime", "asctime"];

/// Returns the row timestamp in microseconds since 1970.
fn moment(row: &Map<String, Value>) -> Option<i64> {
    let timestamp = row.get("_timestamp").and_then(float).and_then(micros);
    timestamp.or_else(|| TIMES.iter().find_map(|name| instant(row.get(*name)?)))
}

/// Converts a timestamp to microseconds since 1970. Supported: ISO 8601, or seconds, milliseconds,
/// microseconds or nanoseconds since 1970. For the years 2001 to 2286 the digit count identifies
/// the unit. Smaller numbers are durations.
pub(super) fn instant(value: &Value) -> Option<i64> {
    if let Value::String(text) = value
        && number(text).is_none()
    {
        return time_us(text);
    }
    let value = float(value)?;
    let per_second = [1.0, 1e3, 1e6, 1e9].into_iter().find(|per| (1e9..1e10).contains(&(value / per)))?;
    micros(value / per_second)
}

pub(super) fn micros(seconds: f64) -> Option<i64> {
    let micros = seconds * 1e6;
    (micros.is_finite() && micros.abs() < 9e15).then_some(micros.round() as i64)
}

/// Quotes bare `NaN`, `Infinity` and `-Infinity`, and replaces control characters in strings by
/// blanks.
pub(super) fn finite(text: &str) -> Cow<'_, str> {
    let bare = text.contains("NaN") || text.contains("Infinity");
    if !bare && !text.bytes().any(|byte| byte < 0x20) {
        return Cow::Borrowed(text);
    }
    let mut repaired = String::with_capacity(text.len() + 16);
    let (mut quoted, mut escaped) = (false, false);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let word = ["-Infinity", "Infinity", "NaN"].into_iter().find(|word| !quoted && rest.starts_with(word));
        if let Some(word) = word {
            repaired.push('"');
            repaired.push_str(word);
            repaired.push('"');
            rest = &rest[word.len()..];
            continue;
        }
        quoted ^= c == '"' && !escaped;
        escaped = quoted && c == '\\' && !escaped;
        repaired.push(if quoted && c.is_ascii_control() { ' ' } else { c });
        rest = &rest[c.len_utf8()..];
    }
    Cow::Owned(repaired)
}

#[cfg(test)]
mod tests {
    use super::finite;

    #[test]
    fn unquoted_text_is_quoted_and_strings_are_unchanged() {
        assert_eq!(finite(r#"{"a":NaN,"b":-Infinity}"#), r#"{"a":"NaN","b":"-Infinity"}"#);
        assert_eq!(finite(r#"{"NaN":[Infinity],"\"NaN":1}"#), r#"{"NaN":["Infinity"],"\"NaN":1}"#);
        assert_eq!(finite("{\"a\tNaN\": 1}"), "{\"a NaN\": 1}");
    }
}
