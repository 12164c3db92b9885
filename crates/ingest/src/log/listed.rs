//! JSON documents that contain rows or log entries in a list: an array of objects, CloudWatch
//! `{"events": [..]}`, or column lists `{"step": [..], "loss": [..]}`; and tables of log lines.

use csv::ReaderBuilder;
use serde_json::{Map, Value};

use super::docker::entry_time;
use super::json_lines::step_name;

/// Returns the rows as JSON lines, oldest first; `None` if the document has no such list.
pub(super) fn lines(document: &Value) -> Option<String> {
    let rows = match document {
        Value::Array(rows) => objects(rows)?,
        // A single row, or a file handled by a different reader.
        Value::Object(members)
            if members.contains_key("log_history")
                || members.iter().any(|(name, value)| step_name(name).is_some() && !value.is_array()) =>
        {
            return None;
        }
        Value::Object(members) => {
            let mut lists = members.values().filter_map(Value::as_array).filter_map(|list| objects(list));
            match (lists.next(), lists.next()) {
                (Some(rows), None) => rows,
                (Some(_), Some(_)) => return None,
                (None, _) => return columns(members).or_else(|| nested(members)),
            }
        }
        _ => return None,
    };
    let times: Vec<i64> = rows.iter().filter_map(|row| entry_time(row)).collect();
    // Cloud consoles export the newest entry first.
    let is_newest_first =
        times.len() == rows.len() && times.first() > times.last() && times.is_sorted_by(|a, b| a >= b);
    let mut lines: Vec<String> = rows.iter().filter_map(|row| serde_json::to_string(row).ok()).collect();
    if is_newest_first {
        lines.reverse();
    }
    Some(lines.join("\n"))
}

/// Returns the rows of a list one level below, if only one object has such a list: `{"hits": {"hits": [..]}}`.
fn nested(members: &Map<String, Value>) -> Option<String> {
    let has_list = |object: &&Value| {
        object
            .as_object()
            .is_some_and(|object| object.values().filter_map(Value::as_array).any(|list| objects(list).is_some()))
    };
    let mut found = members.values().filter(has_list);
    let only = found.next()?;
    if found.next().is_none() { lines(only) } else { None }
}

/// Columns with log lines, and columns with their times, in tables of Grafana (Loki), CloudWatch, Google
/// Cloud Logging, Kibana and Datadog.
const LINE_COLUMNS: [&str; 7] = ["line", "@message", "textpayload", "message", "log", "content", "msg"];
const TIME_COLUMNS: [&str; 6] = ["time", "@timestamp", "timestamp", "date", "datetime", "receivetimestamp"];

/// Returns the positions of the columns with lines and times.
fn log_columns<'a>(names: &(impl Iterator<Item = &'a str> + Clone)) -> Option<(usize, usize)> {
    let find = |wanted: &[&str]| {
        wanted.iter().find_map(|wanted| names.clone().position(|name| name.trim().eq_ignore_ascii_case(wanted)))
    };
    Some((find(&LINE_COLUMNS)?, find(&TIME_COLUMNS)?))
}

/// Returns whether a line is the header of a table of log lines.
pub(super) fn is_log_table(header: &str) -> bool {
    log_columns(&header.split(',').map(|name| name.trim().trim_matches('"'))).is_some()
}

/// Returns the log lines of a table as JSON lines, oldest first.
pub(super) fn table(bytes: &[u8]) -> Option<String> {
    let mut rows = ReaderBuilder::new().has_headers(true).flexible(true).from_reader(bytes);
    let header = rows.headers().ok()?.clone();
    let (line, time) = log_columns(&header.iter())?;
    let row = |record: csv::StringRecord| {
        let text = record.get(line).filter(|text| !text.trim().is_empty())?;
        Some(serde_json::json!({ "line": text, "time": record.get(time).unwrap_or_default() }))
    };
    lines(&Value::Array(rows.records().filter_map(Result::ok).filter_map(row).collect()))
}

/// Returns the elements if all are objects.
fn objects(list: &[Value]) -> Option<Vec<&Map<String, Value>>> {
    (!list.is_empty()).then(|| list.iter().map(Value::as_object).collect::<Option<Vec<_>>>()).flatten()
}

/// Converts columns to rows. The columns must have equal lengths and include the steps.
fn columns(members: &Map<String, Value>) -> Option<String> {
    let (_, steps) = members.iter().find(|(name, column)| step_name(name).is_some() && column.is_array())?;
    let length = steps.as_array()?.len();
    let columns: Vec<(&String, &Vec<Value>)> = members
        .iter()
        .filter_map(|(name, column)| Some((name, column.as_array()?)))
        .filter(|(_, column)| column.len() == length)
        .collect();
    let row = |at: usize| -> Option<String> {
        let cells = columns.iter().filter_map(|(name, column)| Some(((*name).clone(), column.get(at)?.clone())));
        serde_json::to_string(&cells.collect::<Map<String, Value>>()).ok()
    };
    Some((0..length).filter_map(row).collect::<Vec<_>>().join("\n"))
}
