//! Edited input: default values, and updates that follow an edit.

use api::planner::schedule::ScheduleKind;
use api::planner::schedule_comparison::SCHEMA;
use serde_json::{Value, json};

use super::values;
use crate::pointer;

/// Pointers of the action times.
pub(crate) const TIMES: [&str; 3] = ["/times/forward", "/times/input_grad", "/times/weight_grad"];

/// Default schedule kinds.
pub(crate) const FIRST_KINDS: [ScheduleKind; 4] =
    [ScheduleKind::OneFOneB, ScheduleKind::Interleaved, ScheduleKind::ZbH1, ScheduleKind::Zbv];

/// Example times per microbatch with a long tail: many short values and a few long values.
const LONG_TAIL: [f64; 16] = [0.6, 0.5, 1.0, 0.4, 2.6, 0.7, 0.5, 0.8, 0.4, 5.2, 0.6, 0.9, 0.5, 1.4, 0.4, 0.7];

/// Returns the default input.
pub(crate) fn first() -> Value {
    json!({
        "schema": SCHEMA,
        "ranks": 4,
        "microbatches": 8,
        "times": {"per": "rank", "forward": 1, "input_grad": 1, "weight_grad": 1, "communication": 0},
        "kinds": FIRST_KINDS,
    })
}

/// Returns the count at a pointer, or 1 if it is missing.
pub(crate) fn count(request: &Value, field_pointer: &str) -> usize {
    pointer::get(request, field_pointer).and_then(Value::as_u64).map_or(1, |count| count.clamp(1, 100_000) as usize)
}

/// Sets or removes the value at a pointer. Time lists adapt to new sizes.
pub(crate) fn change(request: &mut Value, field_pointer: &str, value: Option<Value>) {
    let before = count(request, "/ranks");
    match value {
        Some(value) => pointer::set(request, field_pointer, value),
        None => pointer::remove(request, field_pointer),
    }
    let (ranks, microbatches) = (count(request, "/ranks"), count(request, "/microbatches"));
    let follow: &dyn Fn(&Value) -> Value = match field_pointer {
        "/ranks" => &|value| values::for_ranks(value, before, ranks),
        "/microbatches" => &|value| values::for_microbatches(value, microbatches),
        _ => return,
    };
    for times_pointer in TIMES {
        if let Some(value) = pointer::get(request, times_pointer) {
            let value = follow(value);
            pointer::set(request, times_pointer, value);
        }
    }
}

/// Returns the selected schedule kinds.
pub(crate) fn kinds(request: &Value) -> Vec<ScheduleKind> {
    let list = pointer::get(request, "/kinds").and_then(Value::as_array);
    let ids = list.into_iter().flatten().filter_map(Value::as_str);
    ids.filter_map(ScheduleKind::from_id).collect()
}

/// Sets the selected schedule kinds, in picker order.
pub(crate) fn set_kinds(request: &mut Value, is_selected: impl Fn(ScheduleKind) -> bool) {
    let kinds: Vec<ScheduleKind> = ScheduleKind::ALL.into_iter().filter(|&kind| is_selected(kind)).collect();
    pointer::set(request, "/kinds", json!(kinds));
}

/// Assigns the long-tail example to the microbatches.
pub(crate) fn set_long_tail(request: &mut Value) {
    let microbatches = count(request, "/microbatches");
    let lists: Vec<Value> = LONG_TAIL.iter().cycle().take(microbatches).map(|time| json!([time])).collect();
    for times_pointer in TIMES {
        pointer::set(request, times_pointer, json!(lists));
    }
}

/// Returns table names and texts.
pub(crate) fn tables(request: &Value) -> Vec<(String, String)> {
    let list = pointer::get(request, "/imported").and_then(Value::as_array);
    let text = |table: &Value, field: &str| table[field].as_str().unwrap_or_default().to_owned();
    list.into_iter().flatten().map(|table| (text(table, "name"), text(table, "csv"))).collect()
}

/// Adds a table and returns its name. A duplicate name gets a number suffix.
pub(crate) fn add_table(request: &mut Value, name: &str, csv: String) -> String {
    let mut all = tables(request);
    let name = free_name(&all, name);
    all.push((name.clone(), csv));
    set_tables(request, all);
    name
}

pub(crate) fn set_table(request: &mut Value, name: &str, csv: String) {
    let mut all = tables(request);
    if let Some(table) = all.iter_mut().find(|table| table.0 == name) {
        table.1 = csv;
    }
    set_tables(request, all);
}

/// Renames a table and returns the resulting name.
pub(crate) fn rename_table(request: &mut Value, from: &str, to: &str) -> String {
    let mut all = tables(request);
    let Some(at) = all.iter().position(|table| table.0 == from).filter(|_| !to.trim().is_empty() && from != to) else {
        return from.to_owned();
    };
    let name = free_name(&all, to);
    all[at].0.clone_from(&name);
    set_tables(request, all);
    name
}

pub(crate) fn remove_table(request: &mut Value, name: &str) {
    let mut all = tables(request);
    all.retain(|table| table.0 != name);
    set_tables(request, all);
}

fn set_tables(request: &mut Value, all: Vec<(String, String)>) {
    if all.is_empty() {
        pointer::remove(request, "/imported");
    } else {
        let list: Vec<Value> = all.into_iter().map(|(name, csv)| json!({"name": name, "csv": csv})).collect();
        pointer::set(request, "/imported", Value::Array(list));
    }
}

fn free_name(tables: &[(String, String)], wanted: &str) -> String {
    let wanted = wanted.trim();
    let wanted: String = if wanted.is_empty() { "table".to_owned() } else { wanted.chars().take(120).collect() };
    let is_free = |name: &String| tables.iter().all(|table| table.0 != *name);
    let numbered = (2..).map(|number| format!("{wanted} {number}"));
    std::iter::once(wanted.clone()).chain(numbered).find(is_free).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use api::planner::schedule_comparison::ScheduleRequest;

    use super::*;

    #[test]
    fn default_request_is_valid() {
        let request: ScheduleRequest = serde_json::from_value(first()).expect("a question");
        assert_eq!((request.ranks, request.microbatches, request.kinds.len()), (4, 8, 4));
        assert_eq!(kinds(&first()), FIRST_KINDS);
    }

    #[test]
    fn times_follow_the_sizes() {
        let mut request = first();
        set_long_tail(&mut request);
        change(&mut request, "/microbatches", Some(json!(20)));
        assert_eq!(request["times"]["forward"].as_array().map(Vec::len), Some(20));
        pointer::set(&mut request, "/times/forward", json!([1, 2, 3, 4]));
        change(&mut request, "/ranks", Some(json!(5)));
        assert_eq!(request["times"]["forward"], json!([1, 2, 3, 4, 4]));
        change(&mut request, "/memory_cap", Some(json!(3)));
        change(&mut request, "/memory_cap", None);
        assert!(request.get("memory_cap").is_none());
    }

    #[test]
    fn table_names_are_unique() {
        let mut request = first();
        assert_eq!(add_table(&mut request, "mine", "0F0".to_owned()), "mine");
        assert_eq!(add_table(&mut request, "mine", "0F1".to_owned()), "mine 2");
        assert_eq!(add_table(&mut request, " ", String::new()), "table");
        set_table(&mut request, "mine", "0B0".to_owned());
        assert_eq!(rename_table(&mut request, "mine 2", "mine"), "mine 3");
        remove_table(&mut request, "table");
        let left = [("mine", "0B0"), ("mine 3", "0F1")].map(|(name, csv)| (name.to_owned(), csv.to_owned()));
        assert_eq!(tables(&request), left);
        remove_table(&mut request, "mine");
        remove_table(&mut request, "mine 3");
        assert!(request.get("imported").is_none());
    }
}
