//! MLPerf: `:::MLLOG {"namespace": "", "time_ms": 1, "event_type": "POINT_IN_TIME", "key": "train_loss", "value": 2.5,
//! "metadata": {"step": 10}}`.
//!
//! `tracked_stats` and `train_loss` with a step are points; every other event stays beside the step it follows. What
//! the step counts is the submission's choice, steps or samples.

use serde_json::Value;

use super::Limits;
use super::json_lines::{finite, float};
use super::point::{Named, Note, NoteKind, Point, Source};
use super::reading::{Draft, Reading};
use super::steps::Mark;
use super::text::clip;

/// An event.
pub(super) fn event(text: &str, limits: &Limits) -> Option<Reading> {
    let (_, json) = text.split_once(":::MLLOG")?;
    let Ok(Value::Object(event)) = serde_json::from_str::<Value>(&finite(json.trim())) else {
        return Some(Reading::Torn);
    };
    let Some(key) = event.get("key").and_then(Value::as_str) else {
        return Some(Reading::Skipped("an event without a key"));
    };
    let time_us = event.get("time_ms").and_then(Value::as_i64).and_then(|millis| millis.checked_mul(1000));
    let metadata = event.get("metadata");
    let step = ["step", "step_num", "iteration"]
        .iter()
        .find_map(|name| metadata?.get(*name)?.as_f64())
        .filter(|step| (0.0..9_007_199_254_740_992.0).contains(step))
        .map(|step| step as u64);
    let value = event.get("value").unwrap_or(&Value::Null);
    if let (Some(step), "tracked_stats" | "train_loss") = (step, key) {
        let mut draft = Draft::new(Point { source: Source::Mlperf, step, time_us, ..Point::default() });
        match value {
            Value::Object(figures) => {
                for (name, value) in figures {
                    // The throughput of MLPerf counts samples.
                    let name = if name == "throughput" { "samples_per_sec" } else { name };
                    if let Some(value) = float(value) {
                        draft.set(name, value, limits);
                    }
                }
            }
            value => {
                if let Some(value) = float(value) {
                    draft.set(key, value, limits);
                }
            }
        }
        return Some(draft.step(Mark::Named));
    }
    let mut values = Vec::new();
    let mut text = None;
    match value {
        Value::Null => {}
        Value::String(words) => text = Some(clip(words, limits.name_chars)),
        Value::Object(figures) => {
            let named = |(name, value): (&String, &Value)| {
                let value = float(value).filter(|value| value.is_finite())?;
                Some(Named { name: clip(name, limits.name_chars), value })
            };
            values = figures.iter().filter_map(named).take(limits.values).collect();
        }
        value => match float(value).filter(|value| value.is_finite()) {
            Some(value) => values.push(Named { name: clip(key, limits.name_chars), value }),
            None => text = Some(clip(&value.to_string(), limits.name_chars)),
        },
    }
    let name = clip(key, limits.name_chars);
    Some(Reading::Note(Note { kind: NoteKind::Event, name, step, time_us, values, text }))
}
