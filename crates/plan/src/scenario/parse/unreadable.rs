//! Finds the malformed field in a scenario and describes the expected value.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::super::FieldError;

/// Maximum values to try.
const MAX_CANDIDATES: usize = 256;

/// Returns the error if the document is not a `T`. `range` returns the range of the numbers of a field.
pub(super) fn field_error<T: DeserializeOwned>(
    document: &Value,
    range: impl Fn(&str) -> Option<String>,
) -> Option<FieldError> {
    let (pointer, detail) = read::<T>(document)?;
    if let Some(missing) = missing::<T>(document, &pointer, &detail) {
        return Some(FieldError::new(&missing, "is missing".to_owned()));
    }
    // Inside an enum that is tagged by `kind`, serde reports only the enclosing object. The
    // malformed value is the value whose replacement changes the error.
    let mut leaves = Vec::new();
    if let Some(group) = document.pointer(&pointer).filter(|value| value.is_object() || value.is_array()) {
        collect(group, &pointer, &mut leaves);
    }
    let wrong = leaves.iter().find(|leaf| {
        let mut repaired = document.clone();
        let Some(value) = repaired.pointer_mut(leaf) else { return false };
        *value = Value::from(1);
        read::<T>(&repaired).is_none_or(|(_, other)| other != detail)
    });
    let wrong = wrong.unwrap_or(&pointer);
    Some(FieldError::new(wrong, user_message(&detail, || range(wrong))))
}

/// Returns pointer and message for an error, or `None` if the document is valid.
fn read<T: DeserializeOwned>(document: &Value) -> Option<(String, String)> {
    let read = serde_path_to_error::deserialize::<_, T>(document);
    read.err().map(|error| (super::pointer(error.path()), error.inner().to_string()))
}

/// Returns the pointer to a missing field. serde reports the last field that it has read, which can be deep inside a
/// neighbour. The object that lacks the field encloses that one, and adding the field changes the error.
fn missing<T: DeserializeOwned>(document: &Value, last: &str, detail: &str) -> Option<String> {
    let name = detail.strip_prefix("missing field `")?.split('`').next()?;
    let mut at = last;
    loop {
        let mut completed = document.clone();
        let added = completed.pointer_mut(at).and_then(Value::as_object_mut);
        if let Some(object) = added.filter(|object| !object.contains_key(name)) {
            object.insert(name.to_owned(), Value::from(1));
            if read::<T>(&completed).is_none_or(|(_, other)| other != detail) {
                return Some(format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")));
            }
        }
        at = &at[..at.rfind('/')?];
    }
}

/// Collects pointers to scalar values below a value, except `kind` tags.
fn collect(value: &Value, at: &str, leaves: &mut Vec<String>) {
    if leaves.len() >= MAX_CANDIDATES {
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

/// Converts a serde message to user-interface terms and adds the field's number range. Other
/// messages stay unchanged.
fn user_message(message: &str, range: impl Fn() -> Option<String>) -> String {
    let Some((found, expected)) = message
        .strip_prefix("invalid value: ")
        .or_else(|| message.strip_prefix("invalid type: "))
        .and_then(|rest| rest.rsplit_once(", expected "))
    else {
        return message.to_owned();
    };
    let within = |noun: &str, otherwise: &str| {
        range().map_or_else(|| format!("{noun}{otherwise}"), |range| format!("{noun} from {range}"))
    };
    let expected = match expected {
        "u8" | "u16" | "u32" => within("a whole number", " from 0 to 4,294,967,295"),
        "u64" | "usize" => within("a whole number", " of 0 or more"),
        "f32" | "f64" => within("a number", ""),
        "a boolean" => "true or false".to_owned(),
        "a string" => "a text".to_owned(),
        "a sequence" => "a list".to_owned(),
        other if other.starts_with("struct ") || other == "a map" => "an object".to_owned(),
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

    /// Contains expanded presets.
    const EXAMPLE: &str =
        include_str!("../../../../../crates/planner/tests/planner/stored/llama-2-7b-long-documents.json");

    #[test]
    fn errors_describe_the_expected_number() {
        for (message, expected) in [
            ("invalid value: integer `-1`, expected u32", "-1 is not a whole number from 0 to 4,294,967,295"),
            ("invalid type: floating point `1.5`, expected u64", "1.5 is not a whole number of 0 or more"),
            ("invalid type: string \"four\", expected f64", "\"four\" is not a number"),
            ("invalid type: null, expected a boolean", "nothing is not true or false"),
            ("missing field `nodes`", "missing field `nodes`"),
        ] {
            assert_eq!(user_message(message, || None), expected);
        }
    }

    #[test]
    fn missing_fields_have_a_location() {
        let without = |parent: &str, key: &str| {
            let mut document: Value = serde_json::from_str(EXAMPLE).unwrap();
            document.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(key);
            let errors = crate::scenario::parse(&document.to_string()).unwrap_err();
            assert_eq!(errors[0].detail, "is missing", "{errors:?}");
            errors[0].pointer.clone()
        };
        for (parent, key) in [
            ("", "planners"),
            ("", "workload"),
            ("/cluster", "nodes"),
            ("/cluster/inter_node", "gb_per_s"),
            ("/workload", "samples"),
        ] {
            assert_eq!(without(parent, key), format!("{parent}/{key}"));
        }
    }

    #[test]
    fn number_errors_state_the_field_range() {
        let error_detail = |pointer: &str, wrong: Value| {
            let mut document: Value = serde_json::from_str(EXAMPLE).unwrap();
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            document.pointer_mut(parent).unwrap()[key] = wrong;
            let errors = crate::scenario::parse(&document.to_string()).unwrap_err();
            assert_eq!(errors.len(), 1, "{errors:?}");
            assert_eq!(errors[0].pointer, pointer);
            errors[0].detail.clone()
        };
        for (pointer, wrong, says) in [
            ("/cluster/nodes", Value::from(2.5), "2.5 is not a whole number from 1 to 16384"),
            ("/cluster/nodes", Value::from(-3), "-3 is not a whole number from 1 to 16384"),
            ("/iterations", Value::from("ten"), "\"ten\" is not a whole number from 1 to 10000"),
            ("/layout/pipeline", Value::from(2.5), "2.5 is not a whole number from 1 to 32"),
            ("/cluster/inter_node/efficiency", Value::from("all"), "\"all\" is not a number from 0.01 to 1"),
            ("/workload/global_batch", Value::from(0.5), "0.5 is not a whole number from 1 to 1048576"),
            ("/seed", Value::from(1.5), "1.5 is not a whole number from 0 to 4,294,967,295"),
        ] {
            assert_eq!(error_detail(pointer, wrong), says, "{pointer}");
        }
    }
}
