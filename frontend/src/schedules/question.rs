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
pub(crate) fn count(question: &Value, place: &str) -> usize {
    pointer::get(question, place).and_then(Value::as_u64).map_or(1, |count| count.clamp(1, 100_000) as usize)
}

/// Sets or removes the value at a pointer. Time lists adapt to new sizes.
pub(crate) fn change(question: &mut Value, place: &str, value: Option<Value>) {
    let before = count(question, "/ranks");
    match value {
        Some(value) => pointer::set(question, place, value),
        None => pointer::remove(question, place),
    }
    let (ranks, microbatches) = (count(question, "/ranks"), count(question, "/microbatches"));
    let follow: &dyn Fn(&Value) -> Value = match place {
        "/ranks" => &|value| values::for_ranks(value, before, ranks),
        "/microbatches" => &|value| values::for_microbatches(value, microbatches),
        _ => return,
    };
    for place in TIMES {
        if let Some(value) = pointer::get(question, place) {
            let value = follow(value);
            pointer::set(question, place, value);
        }
    }
}

/// Returns the selected schedule kinds.
pub(crate) fn kinds(question: &Value) -> Vec<ScheduleKind> {
    let list = pointer::get(question, "/kinds").and_then(Value::as_array);
    let ids = list.into_iter().flatten().filter_map(Value::as_str);
    ids.filter_map(ScheduleKind::from_id).collect()
}

/// Sets the selected schedule kinds, in picker order.
pub(crate) fn set_kinds(question: &mut Value, chosen: impl Fn(ScheduleKind) -> bool) {
    let kinds: Vec<ScheduleKind> = ScheduleKind::ALL.into_iter().filter(|&kind| chosen(kind)).collect();
    pointer::set(question, "/kinds", json!(kinds));
}

/// Assigns the long-tail example to the microbatches.
pub(crate) fn set_long_tail(question: &mut Value) {
    let microbatches = count(question, "/microbatches");
    let lists: Vec<Value> = LONG_TAIL.iter().cycle().take(microbatches).map(|time| json!([time])).collect();
    for place in TIMES {
        pointer::set(question, place, json!(lists));
    }
}

/// Returns table names and texts.
pub(crate) fn tables(question: &Value) -> Vec<(String, String)> {
    let list = pointer::get(question, "/imported").and_then(Value::as_array);
    let text = |table: &Value, field: &str| table[field].as_str().unwrap_or_default().to_owned();
    list.into_iter().flatten().map(|table| (text(table, "name"), text(table, "csv"))).collect()
}

/// Adds a table and returns its name. A duplicate name gets a number suffix.
pub(crate) fn add_table(question: &mut Value, name: &str, csv: String) -> String {
    let mut all = tables(question);
    let name = free_name(&all, name);
    all.push((name.clone(), csv));
    set_tables(question, all);
    name
}

pub(crate) fn set_table(question: &mut Value, name: &str, csv: String) {
    let mut all = tables(question);
    if let Some(table) = all.iter_mut().find(|table| table.0 == name) {
        table.1 = csv;
    }
    set_tables(question, all);
}

/// Renames a table and returns the resulting name.
pub(crate) fn rename_table(question: &mut Value, from: &str, to: &str) -> String {
    let mut all = tables(question);
    let Some(at) = all.iter().position(|table| table.0 == from).filter(|_| !to.trim().is_empty() && from != to) else {
        return from.to_owned();
    };
    let name = free_name(&all, to);
    all[at].0.clone_from(&name);
    set_tables(question, all);
    name
}

pub(crate) fn remove_table(question: &mut Value, name: &str) {
    let mut all = tables(question);
    all.retain(|table| table.0 != name);
    set_tables(question, all);
}

fn set_tables(question: &mut Value, all: Vec<(String, String)>) {
    if all.is_empty() {
        pointer::remove(question, "/imported");
    } else {
        let list: Vec<Value> = all.into_iter().map(|(name, csv)| json!({"name": name, "csv": csv})).collect();
        pointer::set(question, "/imported", Value::Array(list));
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
    fn the_first_question_is_one() {
        let question: ScheduleRequest = serde_json::from_value(first()).expect("a question");
        assert_eq!((question.ranks, question.microbatches, question.kinds.len()), (4, 8, 4));
        assert_eq!(kinds(&first()), FIRST_KINDS);
    }

    #[test]
    fn times_follow_the_sizes() {
        let mut question = first();
        set_long_tail(&mut question);
        change(&mut question, "/microbatches", Some(json!(20)));
        assert_eq!(question["times"]["forward"].as_array().map(Vec::len), Some(20));
        pointer::set(&mut question, "/times/forward", json!([1, 2, 3, 4]));
        change(&mut question, "/ranks", Some(json!(5)));
        assert_eq!(question["times"]["forward"], json!([1, 2, 3, 4, 4]));
        change(&mut question, "/memory_cap", Some(json!(3)));
        change(&mut question, "/memory_cap", None);
        assert!(question.get("memory_cap").is_none());
    }

    #[test]
    fn tables_have_names_of_their_own() {
        let mut question = first();
        assert_eq!(add_table(&mut question, "mine", "0F0".to_owned()), "mine");
        assert_eq!(add_table(&mut question, "mine", "0F1".to_owned()), "mine 2");
        assert_eq!(add_table(&mut question, " ", String::new()), "table");
        set_table(&mut question, "mine", "0B0".to_owned());
        assert_eq!(rename_table(&mut question, "mine 2", "mine"), "mine 3");
        remove_table(&mut question, "table");
        let left = [("mine", "0B0"), ("mine 3", "0F1")].map(|(name, csv)| (name.to_owned(), csv.to_owned()));
        assert_eq!(tables(&question), left);
        remove_table(&mut question, "mine");
        remove_table(&mut question, "mine 3");
        assert!(question.get("imported").is_none());
    }
}
