//! Field differences between two scenarios.

use leptos::prelude::*;
use serde_json::Value;

/// Initial row limit. The user can expand the rest.
const MAX_VISIBLE: usize = 16;
/// Maximum value length in characters.
const LETTERS: usize = 48;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Change {
    pub(super) pointer: String,
    /// Value in the other scenario, or `None` if the field is absent.
    pub(super) there: Option<Value>,
    /// Value in the open scenario.
    pub(super) here: Option<Value>,
}

/// Returns all different fields except the title, sorted by pointer depth. Top-level choices come
/// first; nested device figures come last.
pub(super) fn between(there: &Value, here: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    collect(String::new(), Some(there), Some(here), &mut changes);
    changes.retain(|change| change.pointer != "/title");
    changes.sort_by_key(|change| change.pointer.matches('/').count());
    changes
}

fn collect(pointer: String, there: Option<&Value>, here: Option<&Value>, changes: &mut Vec<Change>) {
    if there == here {
        return;
    }
    match (there, here) {
        (Some(Value::Object(there)), Some(Value::Object(here))) => {
            for (key, value) in here {
                collect(below(&pointer, key), there.get(key), Some(value), changes);
            }
            for (key, value) in there.iter().filter(|(key, _)| !here.contains_key(*key)) {
                collect(below(&pointer, key), Some(value), None, changes);
            }
        }
        (Some(Value::Array(there)), Some(Value::Array(here)))
            if there.len() == here.len() && here.iter().any(Value::is_object) =>
        {
            for (index, (there, here)) in there.iter().zip(here).enumerate() {
                collect(below(&pointer, &index.to_string()), Some(there), Some(here), changes);
            }
        }
        _ => changes.push(Change { pointer, there: there.cloned(), here: here.cloned() }),
    }
}

/// Appends an escaped key to a JSON pointer.
fn below(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}

fn value_text(value: Option<&Value>) -> String {
    let text = match value {
        None => return "–".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(list)) if list.iter().all(Value::is_string) => {
            list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
        }
        Some(Value::Array(list)) if list.iter().all(|entry| entry["name"].is_string()) => {
            list.iter().filter_map(|entry| entry["name"].as_str()).collect::<Vec<_>>().join(", ")
        }
        Some(Value::Number(number)) => number.to_string().trim_end_matches(".0").to_owned(),
        Some(value) => value.to_string(),
    };
    if text.chars().count() <= LETTERS {
        return text;
    }
    text.chars().take(LETTERS - 1).chain(['…']).collect()
}

pub(super) fn show(changes: &[Change]) -> AnyView {
    if changes.is_empty() {
        return view! { <p class="hint" data-testid="comparison-same">"Both scenarios are equal."</p> }.into_any();
    }
    let (first, more) = changes.split_at(changes.len().min(MAX_VISIBLE));
    let all = (!more.is_empty()).then(|| {
        view! {
            <details class="advanced">
                <summary>{format!("{} fields more", more.len())}</summary>
                {table(more, "Further fields that differ", "comparison-further-changes")}
            </details>
        }
    });
    view! {
        {table(first, "Fields that differ", "comparison-changes")}
        {all}
    }
    .into_any()
}

fn table(changes: &[Change], label: &'static str, test_id: &'static str) -> impl IntoView + use<> {
    let line = |change: &Change| {
        view! {
            <tr>
                <th scope="row">{change.pointer.trim_start_matches('/').replace('/', " › ").replace('_', " ")}</th>
                <td>{value_text(change.there.as_ref())}</td>
                <td>{value_text(change.here.as_ref())}</td>
            </tr>
        }
    };
    let lines = changes.iter().map(line).collect_view();
    view! {
        <div class="table-scroll" role="region" aria-label=label tabindex="0">
            <table class="figures words" data-testid=test_id>
                <thead><tr><th scope="col">"Field"</th><th scope="col">"There"</th><th scope="col">"Here"</th></tr></thead>
                <tbody>{lines}</tbody>
            </table>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_field_that_differs_is_named_once() {
        let there = json!({"title": "a", "cluster": {"nodes": 4, "name": "x"}, "planners": ["1f1b"], "seed": 1, "m": [{"l": 1}, {"l": 2}]});
        let here = json!({"title": "b", "cluster": {"nodes": 8, "name": "x"}, "planners": ["1f1b", "zb"], "a/b": 2, "m": [{"l": 1}, {"l": 3}]});
        let deep = between(&json!({"a": {"b": {"c": 1}}, "z": 1}), &json!({"a": {"b": {"c": 2}}, "z": 2}));
        assert_eq!(deep.iter().map(|change| change.pointer.as_str()).collect::<Vec<_>>(), ["/z", "/a/b/c"]);
        let mut changes = between(&there, &here);
        changes.sort_by(|a, b| a.pointer.cmp(&b.pointer));
        let pointers: Vec<_> = changes.iter().map(|change| change.pointer.as_str()).collect();
        assert_eq!(pointers, ["/a~1b", "/cluster/nodes", "/m/1/l", "/planners", "/seed"]);
        assert_eq!((changes[1].there.clone(), changes[1].here.clone()), (Some(json!(4)), Some(json!(8))));
        assert_eq!((changes[4].there.clone(), changes[4].here.clone()), (Some(json!(1)), None));
        assert!(between(&there, &there).is_empty());
    }

    #[test]
    fn values_are_short() {
        assert_eq!(value_text(Some(&json!(["1f1b", "zb"]))), "1f1b, zb");
        assert_eq!(value_text(None), "–");
        assert_eq!(value_text(Some(&json!(195.0))), "195");
        assert_eq!(
            value_text(Some(&json!([{"name": "ViT 5B", "layers": 63}, {"name": "Llama-3 8B"}]))),
            "ViT 5B, Llama-3 8B"
        );
        assert_eq!(value_text(Some(&json!("x".repeat(100)))).chars().count(), LETTERS);
    }
}
