//! Value insertion into a scenario's JSON.

use serde_json::{Map, Value};

/// Sets a value at a JSON pointer (RFC 6901). Creates missing objects, because fields with default
/// values are omitted. List items must exist.
pub(super) fn put(root: &mut Value, pointer: &str, value: Value) -> Result<(), String> {
    let mut target = root;
    for part in pointer.split('/').skip(1) {
        let key = part.replace("~1", "/").replace("~0", "~");
        if target.is_null() {
            *target = Value::Object(Map::new());
        }
        target = match target {
            Value::Object(fields) => fields.entry(key).or_insert(Value::Null),
            Value::Array(items) => {
                let count = items.len();
                let item = key.parse::<usize>().ok().and_then(|number| items.get_mut(number));
                item.ok_or_else(|| format!("there is no item {key}: the list has {count}"))?
            }
            other => return Err(format!("{key} would stand inside {other}")),
        };
    }
    *target = value;
    Ok(())
}

/// Returns the scenario with the inserted value after parsing and serialisation, or the parse
/// error.
pub(super) fn read_with(scenario: &Value, pointer: &str, value: Value) -> Result<Value, String> {
    let mut changed = scenario.clone();
    put(&mut changed, pointer, value)?;
    match planscope_plan::scenario::parse(&changed.to_string()) {
        Ok(read) => Ok(serde_json::to_value(&read).expect("a scenario has only text keys")),
        Err(errors) => Err(errors.first().map(ToString::to_string).unwrap_or_default()),
    }
}
