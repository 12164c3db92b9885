//! The field that makes a scenario unreadable, and what it has to be, in words.

use serde_json::Value;

use super::super::{FieldError, Scenario};

/// Values that are tried as the wrong one.
const MOST_TRIED: usize = 256;

/// The error of a document that is no scenario.
pub(super) fn field_error(document: &Value) -> Option<FieldError> {
    let (pointer, detail) = read(document)?;
    // Below a field that chooses a kind, serde names the whole group; the wrong value is the one whose replacement
    // changes the error.
    let mut leaves = Vec::new();
    if let Some(group) = document.pointer(&pointer).filter(|value| value.is_object() || value.is_array()) {
        collect(group, &pointer, &mut leaves);
    }
    let wrong = leaves.iter().find(|leaf| {
        let mut repaired = document.clone();
        let Some(value) = repaired.pointer_mut(leaf) else { return false };
        *value = Value::from(1);
        read(&repaired).is_none_or(|(_, other)| other != detail)
    });
    Some(FieldError::new(wrong.unwrap_or(&pointer), words(&detail)))
}

/// Pointer and message of the first error; `None` for a scenario.
fn read(document: &Value) -> Option<(String, String)> {
    let read = serde_path_to_error::deserialize::<_, Scenario>(document);
    read.err().map(|error| (super::pointer(error.path()), error.inner().to_string()))
}

/// Pointers of the values below a value that are neither objects nor lists, nor names of kinds.
fn collect(value: &Value, at: &str, leaves: &mut Vec<String>) {
    if leaves.len() >= MOST_TRIED {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (key, value) in fields.iter().filter(|(key, _)| *key != "kind") {
                collect(value, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), leaves);
            }
        }
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                collect(value, &format!("{at}/{index}"), leaves);
            }
        }
        _ => leaves.push(at.to_owned()),
    }
}

/// A message of serde in the words of the form; others as they are.
fn words(message: &str) -> String {
    let Some((found, expected)) = message
        .strip_prefix("invalid value: ")
        .or_else(|| message.strip_prefix("invalid type: "))
        .and_then(|rest| rest.rsplit_once(", expected "))
    else {
        return message.to_owned();
    };
    let expected = match expected {
        "u8" | "u16" | "u32" => "a whole number from 0 to 4,294,967,295",
        "u64" | "usize" => "a whole number of 0 or more",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" => "a text",
        "a sequence" => "a list",
        other if other.starts_with("struct ") || other == "a map" => "an object",
        _ => return message.to_owned(),
    };
    let found = match found {
        "null" => "nothing",
        "map" => "an object",
        "sequence" => "a list",
        other => ["integer ", "floating point ", "boolean ", "string "]
            .iter()
            .find_map(|kind| other.strip_prefix(kind))
            .unwrap_or(other)
            .trim_matches('`'),
    };
    format!("{found} is not {expected}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_named_in_words() {
        for (message, expected) in [
            ("invalid value: integer `-1`, expected u32", "-1 is not a whole number from 0 to 4,294,967,295"),
            ("invalid type: floating point `1.5`, expected u64", "1.5 is not a whole number of 0 or more"),
            ("invalid type: string \"four\", expected f64", "\"four\" is not a number"),
            ("invalid type: null, expected a boolean", "nothing is not true or false"),
            ("missing field `nodes`", "missing field `nodes`"),
        ] {
            assert_eq!(words(message), expected);
        }
    }
}
