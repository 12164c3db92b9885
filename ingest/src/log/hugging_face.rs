//! The Hugging Face trainer: Python dicts on standard output, and `trainer_state.json`.

use serde_json::{Map, Value};

use super::json_lines::float;
use super::point::{Named, Note, NoteKind, Point, Source};
use super::reading::{Draft, Reading};
use super::steps::Mark;
use super::text::{clip, number};
use super::{Limits, LogError};

/// `{'loss': 2.1322, 'grad_norm': nan, 'learning_rate': 4.9e-05, 'epoch': 0.02}`, wherever in the line.
pub(super) fn dict(text: &str, limits: &Limits) -> Option<Reading> {
    const STARTS: [&str; 4] = ["{'loss'", "{'eval_", "{'train_", "{'grad_norm'"];
    let at = STARTS.iter().filter_map(|start| text.find(start)).min()?;
    let Some(pairs) = entries(&text[at..]) else { return Some(Reading::Torn) };
    let pairs: Vec<(&str, Option<f64>)> =
        pairs.into_iter().map(|(name, value)| (name, number(value.trim_matches(['\'', '"'])))).collect();
    Some(reading(&pairs, Source::HuggingFaceDict, Mark::Counted, limits))
}

/// Names and values of a dict of plain values, as text; `None` where it is cut.
fn entries(text: &str) -> Option<Vec<(&str, &str)>> {
    let mut rest = text.strip_prefix('{')?;
    let mut entries = Vec::new();
    loop {
        rest = rest.trim_start_matches([' ', ',']);
        if rest.starts_with('}') {
            return Some(entries);
        }
        let (name, after) = rest.strip_prefix('\'')?.split_once('\'')?;
        let after = after.strip_prefix(':')?.trim_start();
        let end = match after.strip_prefix(['\'', '"']) {
            Some(quoted) => quoted.find(['\'', '"'])? + 2,
            None => after.find([',', '}'])?,
        };
        entries.push((name, after.get(..end)?));
        rest = after.get(end..)?;
    }
}

/// A row of figures: of training, of evaluation, or of the whole run.
fn reading(pairs: &[(&str, Option<f64>)], source: Source, mark: Mark, limits: &Limits) -> Reading {
    let has = |prefix: &str| pairs.iter().any(|(name, _)| name.starts_with(prefix));
    let step = pairs.iter().find(|(name, _)| *name == "step").and_then(|(_, step)| whole((*step)?));
    let kind = match (has("eval_"), has("train_runtime")) {
        (true, _) => Some(NoteKind::Validation),
        (_, true) => Some(NoteKind::Summary),
        _ => None,
    };
    if let Some(kind) = kind {
        let named = |(name, value): &(&str, Option<f64>)| {
            let value = value.filter(|value| value.is_finite())?;
            (*name != "step").then(|| Named { name: clip(name, limits.name_chars), value })
        };
        let values = pairs.iter().filter_map(named).take(limits.values).collect();
        let name = if kind == NoteKind::Validation { "evaluation" } else { "training" }.to_owned();
        return Reading::Note(Note { kind, name, step, time_us: None, values, text: None });
    }
    let mut draft = Draft::new(Point { source, step: step.unwrap_or_default(), ..Point::default() });
    for (name, value) in pairs {
        if let (Some(value), true) = (value, *name != "step") {
            draft.set(name, *value, limits);
        }
    }
    draft.step(mark)
}

/// The rows of `log_history`, in order, and the steps of the whole training.
pub(super) fn trainer_state(document: Value, limits: &Limits) -> Result<Vec<Reading>, LogError> {
    let Value::Object(mut document) = document else { return Err(LogError::Shape { found: "no object" }) };
    let Some(Value::Array(rows)) = document.remove("log_history") else {
        return Err(LogError::Shape { found: "an object without a list log_history" });
    };
    let total = document.get("max_steps").and_then(Value::as_u64).filter(|&total| total > 0);
    Ok(rows.into_iter().map(|row| history(&row, total, limits)).collect())
}

fn history(row: &Value, total: Option<u64>, limits: &Limits) -> Reading {
    let Value::Object(row) = row else { return Reading::Skipped("a row of log_history is no object") };
    let pairs = numbers(row);
    if !pairs.iter().any(|(name, step)| *name == "step" && step.and_then(whole).is_some()) {
        return Reading::Skipped("a row of log_history has no step");
    }
    let mut reading = reading(&pairs, Source::TrainerState, Mark::Named, limits);
    if let Reading::Step { point, .. } = &mut reading {
        point.total_steps = total;
    }
    reading
}

fn numbers(row: &Map<String, Value>) -> Vec<(&str, Option<f64>)> {
    row.iter().map(|(name, value)| (name.as_str(), float(value))).collect()
}

fn whole(step: f64) -> Option<u64> {
    (0.0..9_007_199_254_740_992.0).contains(&step).then_some(step as u64)
}
