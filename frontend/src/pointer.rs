//! Reads and writes scenario values by JSON pointer (RFC 6901).

use serde_json::{Map, Value};

/// Returns the value at a pointer, or `None` for a missing value and for null.
pub(crate) fn get<'a>(root: &'a Value, pointer: &str) -> Option<&'a Value> {
    root.pointer(pointer).filter(|value| !value.is_null())
}

pub(crate) fn text(root: &Value, pointer: &str) -> Option<String> {
    get(root, pointer).and_then(Value::as_str).map(str::to_owned)
}

/// Sets the value at a pointer and creates missing objects on the path. If the path crosses an
/// array out of bounds or a scalar, nothing changes.
pub(crate) fn set(root: &mut Value, pointer: &str, value: Value) {
    let Some((parent, last)) = pointer.rsplit_once('/') else {
        *root = value;
        return;
    };
    let key = unescape(last);
    match descend(root, parent) {
        Some(Value::Object(fields)) => {
            fields.insert(key, value);
        }
        Some(Value::Array(items)) => {
            if let Some(item) = key.parse::<usize>().ok().and_then(|index| items.get_mut(index)) {
                *item = value;
            }
        }
        _ => {}
    }
}

pub(crate) fn remove(root: &mut Value, pointer: &str) {
    if let Some((parent, last)) = pointer.rsplit_once('/')
        && let Some(Value::Object(fields)) = root.pointer_mut(parent)
    {
        fields.remove(&unescape(last));
    }
}

fn descend<'a>(root: &'a mut Value, parent: &str) -> Option<&'a mut Value> {
    let mut at = root;
    for segment in parent.split('/').skip(1) {
        let key = unescape(segment);
        at = match at {
            Value::Array(items) => items.get_mut(key.parse::<usize>().ok()?)?,
            other => {
                if other.is_null() {
                    *other = Value::Object(Map::new());
                }
                other.as_object_mut()?.entry(key).or_insert_with(|| Value::Object(Map::new()))
            }
        };
    }
    Some(at)
}

fn unescape(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

/// Parses a number. Integral values become JSON integers, because the API rejects floats for
/// counts.
pub(crate) fn parse_number(text: &str) -> Option<Value> {
    let text = text.trim();
    if let Ok(integer) = text.parse::<i64>() {
        return Some(integer.into());
    }
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite())?;
    // "1e3" in a count field is the integer 1000.
    if value.fract() == 0.0 && value.abs() < 9e15 { Some((value as i64).into()) } else { Some(value.into()) }
}

/// Formats a number for an input field.
pub(crate) fn write_number(value: &Value) -> String {
    match value.as_f64() {
        Some(number) if number.fract() == 0.0 && number.abs() < 9e15 => format!("{number:.0}"),
        Some(number) => number.to_string(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_put_where_the_pointer_says() {
        let mut root = json!({"cluster": {"nodes": 1}, "model": {"modules": [{"layers": 32}]}});
        set(&mut root, "/cluster/nodes", json!(4));
        set(&mut root, "/model/modules/0/layers", json!(40));
        set(&mut root, "/layout/tensor", json!(8));
        set(&mut root, "/a~1b", json!(1));
        assert_eq!(
            root,
            json!({"cluster": {"nodes": 4}, "model": {"modules": [{"layers": 40}]}, "layout": {"tensor": 8}, "a/b": 1})
        );
        let before = root.clone();
        set(&mut root, "/model/modules/7/layers", json!(1));
        set(&mut root, "/cluster/nodes/deep", json!(1));
        assert_eq!(root, before, "no place, no change");
        remove(&mut root, "/layout/tensor");
        remove(&mut root, "/nowhere/at/all");
        assert_eq!(root["layout"], json!({}));
    }

    #[test]
    fn counts_remain_integers() {
        assert_eq!(parse_number("8"), Some(json!(8)));
        assert_eq!(parse_number(" 1e3 "), Some(json!(1000)));
        assert_eq!(parse_number("0.25"), Some(json!(0.25)));
        assert_eq!(parse_number("-3"), Some(json!(-3)));
        for bad in ["", "eight", "NaN", "inf", "1,5"] {
            assert_eq!(parse_number(bad), None, "{bad}");
        }
        assert_eq!(write_number(&json!(80.0)), "80");
        assert_eq!(write_number(&json!(0.87)), "0.87");
        assert_eq!(write_number(&json!("x")), "");
    }
}
