//! Recognises tables with a step column by their first lines.

use super::json_lines::step_name;
use super::text::number;

/// Returns the delimiter if a line is a table header with a step column.
pub(super) fn delimiter(line: &str) -> Option<u8> {
    [b',', b'\t', b';'].into_iter().find(|&delimiter| is_header(line.split(char::from(delimiter))))
}

/// True if cells are at least two column names, one of them of the steps.
pub(super) fn is_header<'a>(cells: impl Iterator<Item = &'a str>) -> bool {
    let (mut count, mut has_steps) = (0, false);
    for cell in cells.map(cell_name) {
        if cell.contains(['{', '[', '=', '|']) || number(&cell).is_some() {
            return false;
        }
        count += 1;
        has_steps |= step_name(&cell).is_some();
    }
    count > 1 && has_steps
}

/// True if a line is a Weights & Biases panel header: a step column, then run columns.
pub(super) fn is_panel(line: &str) -> bool {
    let mut cells = line.split(',').map(cell_name);
    let has_steps = cells.next().is_some_and(|cell| step_name(&cell).is_some());
    let runs = cells.filter(|cell| cell.contains(" - ")).count();
    has_steps && runs > 0
}

/// Returns a column name without quotes. The case of the first letter is ignored.
pub(super) fn cell_name(cell: &str) -> String {
    let name = cell.trim().trim_matches('"');
    if name == "Step" { "step".to_owned() } else { name.to_owned() }
}

/// True if the first lines contain a time in milliseconds, a value and a step.
pub(super) fn is_mlflow_metric(head: &str) -> bool {
    let mut lines = head.lines().take(3).filter(|line| !line.trim().is_empty()).peekable();
    lines.peek().is_some() && lines.all(|line| metric_line(line).is_some())
}

/// Parses a time in milliseconds, a value and a step.
pub(super) fn metric_line(line: &str) -> Option<(i64, f64, u64)> {
    let parts: Vec<&str> = line.split_whitespace().collect();
    let [time, value, step] = parts[..] else { return None };
    let time: i64 = time.parse().ok().filter(|time| (1_000_000_000_000..10_000_000_000_000).contains(time))?;
    Some((time, number(value)?, step.parse().ok().filter(|&step| step < 1 << 53)?))
}
