//! Flattens JSON and TOML documents to dotted keys. Lists become text.

use serde_json::Value;

use super::JobConfigError;
use super::keys::Keys;

pub(super) fn json(text: &str) -> Result<Keys, JobConfigError> {
    let malformed = |error: serde_json::Error| JobConfigError::Malformed { format: "JSON", detail: error.to_string() };
    flat(&serde_json::from_str(text).map_err(malformed)?)
}

pub(super) fn toml(text: &str) -> Result<Keys, JobConfigError> {
    // Files that are not TOML usually have an unknown format. Most job files contain headers of sections.
    let has_header = text.lines().any(|line| line.trim_start().starts_with('['));
    let malformed = |error: toml::de::Error| {
        if has_header {
            JobConfigError::Malformed { format: "TOML", detail: error.message().to_owned() }
        } else {
            JobConfigError::Unknown
        }
    };
    flat(&toml::from_str::<Value>(text).map_err(malformed)?)
}

fn flat(document: &Value) -> Result<Keys, JobConfigError> {
    let mut keys = Keys::default();
    add(&mut keys, "", document)?;
    Ok(keys)
}

fn add(keys: &mut Keys, path: &str, value: &Value) -> Result<(), JobConfigError> {
    match value {
        Value::Object(fields) => fields.iter().try_for_each(|(key, value)| {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            add(keys, &path, value)
        }),
        // Absent and null are equivalent in all supported formats.
        Value::Null => Ok(()),
        Value::String(text) => keys.push(path.to_owned(), text.clone()),
        other => keys.push(path.to_owned(), other.to_string()),
    }
}
