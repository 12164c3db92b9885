//! Parses requests from JSON.

use serde_json::Value;

use super::question::{ActionTimes, SCHEMA, ScheduleRequest};
use planscope_plan::scenario::{FieldError, parse_value};

/// Parses a request.
///
/// # Errors
/// Returns the JSON pointer to the first malformed field. [`super::ValidQuestion::new`] reports all
/// well-formed fields that have invalid values.
pub fn parse(json: &str) -> Result<ScheduleRequest, Vec<FieldError>> {
    let value: Value =
        serde_json::from_str(json).map_err(|error| vec![FieldError::new("", format!("not JSON: {error}"))])?;
    let Some(root) = value.as_object() else {
        return Err(vec![FieldError::new("", "a question is a JSON object".to_owned())]);
    };
    match root.get("schema").and_then(Value::as_str) {
        Some(SCHEMA) => {}
        Some(other) if other.starts_with("schedule/") => {
            let detail = format!("{other} was made by a newer version; this one reads {SCHEMA}");
            return Err(vec![FieldError::new("/schema", detail)]);
        }
        _ => return Err(vec![FieldError::new("/schema", format!("must be {SCHEMA:?}"))]),
    }
    parse_value(&value)
}

/// Parses only the action times.
///
/// # Errors
/// Returns the JSON pointer to the first malformed field.
pub fn parse_times(json: &str) -> Result<ActionTimes, Vec<FieldError>> {
    let value = serde_json::from_str(json).map_err(|error| vec![FieldError::new("", format!("not JSON: {error}"))])?;
    parse_value(&value)
}
