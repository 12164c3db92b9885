//! Parses scenario JSON and expands presets.

mod unique_keys;
mod unreadable;

use serde::de::DeserializeOwned;
use serde_json::Value;

use unique_keys::UniqueKeys;

use super::validate::range;
use super::{FieldError, SCHEMA, Scenario};
use planscope_core::{cluster, model};

/// Parses a scenario. The function replaces `{"preset": "llama-2-7b"}` in `model` or `cluster` by
/// the preset; additional fields override the preset's fields. `"frozen": [names]` next to a model
/// preset freezes these modules.
///
/// # Errors
/// Returns the JSON pointer to the malformed field. [`super::ValidScenario::new`] reports all
/// well-formed fields that have invalid values.
pub fn parse(json: &str) -> Result<Scenario, Vec<FieldError>> {
    let UniqueKeys(mut value) = serde_json::from_str(json).map_err(|error| {
        let detail = if error.is_data() { error.to_string() } else { format!("not JSON: {error}") };
        vec![FieldError::new("", detail)]
    })?;
    let Some(root) = value.as_object_mut() else {
        return Err(vec![FieldError::new("", "a scenario is a JSON object".to_owned())]);
    };
    match root.get("schema").and_then(Value::as_str) {
        Some(SCHEMA) => {}
        Some(other) if other.starts_with("scenario/") => {
            let detail = format!("{other} was made by a newer version; this one reads {SCHEMA}");
            return Err(vec![FieldError::new("/schema", detail)]);
        }
        _ => return Err(vec![FieldError::new("/schema", format!("must be {SCHEMA:?}"))]),
    }
    let mut errors = Vec::new();
    if let Some(field) = root.get_mut("model") {
        let frozen = field.as_object_mut().and_then(|model| model.remove("frozen"));
        fill(
            field,
            "/model",
            &mut errors,
            |id| model::presets::model(id).map(to_value),
            || model::presets::models().iter().map(|preset| preset.id).collect(),
        );
        if let Some(frozen) = frozen {
            freeze(field, &frozen, &mut errors);
        }
    }
    if let Some(field) = root.get_mut("cluster") {
        fill(
            field,
            "/cluster",
            &mut errors,
            |id| cluster::presets::cluster(id).map(to_value),
            || cluster::presets::clusters().iter().map(|preset| preset.id).collect(),
        );
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    read(&value, |pointer| range(&value, pointer))
}

/// Reads a JSON value.
///
/// # Errors
/// Returns the JSON pointer to the malformed or missing field.
pub fn parse_value<T: DeserializeOwned>(value: &Value) -> Result<T, Vec<FieldError>> {
    read(value, |_| None)
}

fn read<T: DeserializeOwned>(value: &Value, range: impl Fn(&str) -> Option<String>) -> Result<T, Vec<FieldError>> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let found = unreadable::field_error::<T>(value, range);
        vec![found.unwrap_or_else(|| FieldError::new(&pointer(error.path()), error.inner().to_string()))]
    })
}

fn to_value<T: serde::Serialize>(preset: T) -> Value {
    serde_json::to_value(preset).expect("presets have only text keys")
}

/// Replaces `{"preset": id, ...overrides}` by the preset, then applies the overrides.
fn fill(
    field: &mut Value,
    at: &str,
    errors: &mut Vec<FieldError>,
    find: impl Fn(&str) -> Option<Value>,
    known: impl Fn() -> Vec<&'static str>,
) {
    let Some(object) = field.as_object_mut() else { return };
    let Some(name) = object.remove("preset") else { return };
    let Some(mut preset) = name.as_str().and_then(find) else {
        let detail = format!("no preset {name}; there are {}", known().join(", "));
        errors.push(FieldError::new(&format!("{at}/preset"), detail));
        return;
    };
    lay_over(&mut preset, std::mem::take(field));
    *field = preset;
}

/// Applies `"frozen": [name, ...]` to the modules in a preset.
fn freeze(model: &mut Value, frozen: &Value, errors: &mut Vec<FieldError>) {
    let mut modules: Vec<&mut serde_json::Map<String, Value>> = model
        .get_mut("modules")
        .and_then(Value::as_array_mut)
        .map(|modules| modules.iter_mut().filter_map(Value::as_object_mut).collect())
        .unwrap_or_default();
    let Some(names) = frozen.as_array() else {
        errors.push(FieldError::new("/model/frozen", "must be a list of names of modules".to_owned()));
        return;
    };
    for (index, name) in names.iter().enumerate() {
        if let Some(module) = modules.iter_mut().find(|module| module.get("name") == Some(name)) {
            module.insert("frozen".to_owned(), Value::Bool(true));
            continue;
        }
        let known: Vec<&str> = modules.iter().filter_map(|module| module.get("name")?.as_str()).collect();
        let detail = format!("no module {name}; there are {}", known.join(", "));
        errors.push(FieldError::new(&format!("/model/frozen/{index}"), detail));
    }
}

fn lay_over(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                lay_over(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

/// Converts a serde path to a JSON pointer (RFC 6901).
pub fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    let mut pointer = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => {
                pointer.push('/');
                pointer.push_str(&index.to_string());
            }
            Segment::Map { key } => {
                pointer.push('/');
                pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
            }
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    pointer
}
