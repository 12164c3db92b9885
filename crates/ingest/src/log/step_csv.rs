//! Tables with a step column: Lightning `metrics.csv`, Weights & Biases `run.history().to_csv()`,
//! MLflow exports, notebook tables; and MLflow metric files.

mod long;
mod notation;

use csv::{ReaderBuilder, StringRecord};
use serde_json::{Map, Value};

use long::{Columns, Long};
use notation::Notation;

pub(super) use long::{import_lines as import_long_lines, is_long_row};

use super::header::{cell_name, is_header, metric_line};
use super::json_lines::parse_row;
use super::parser::Reader;
use super::point::{Point, Source};
use super::quantity;
use super::reading::Draft;
use super::report::Location;
use super::rows::{LastCells, finish};
use super::steps::Mark;
use super::{Limits, Log, LogError};

/// Number of cells used to detect the number notation.
const NOTATION_ROWS: usize = 1000;

/// Returns the points in an MLflow metric file. The metric name is the file name.
pub(super) fn mlflow_metric(bytes: &[u8], limits: &Limits) -> Log {
    let mut reader = Reader::default();
    let mut points = Vec::new();
    let mut offset = 0;
    for (number, line) in (1..).zip(bytes.split_inclusive(|&byte| byte == b'\n')) {
        let location = Location { line: number, offset };
        offset += line.len() as u64;
        let line = String::from_utf8_lossy(line);
        if line.trim().is_empty() {
            continue;
        }
        reader.report.lines += 1;
        // The last line may be cut inside its step.
        let is_whole = line.ends_with(char::is_whitespace);
        let Some((time, value, step)) = metric_line(&line).filter(|_| is_whole) else {
            reader.report.skip("the line is not a time, a value and a step", location);
            continue;
        };
        let time_us = time.checked_mul(1000);
        let mut draft = Draft::new(Point { source: Source::StepCsv, step, time_us, ..Point::default() });
        draft.set("value", value, limits);
        reader.take(draft.step(Mark::Named), None, location, "", limits);
        points.append(&mut reader.steps.take_done());
        if points.len() > limits.points {
            break;
        }
    }
    reader.report.assume("the file does not name the metric; its values are stored as \"value\"");
    finish(reader, points, limits)
}

/// Returns the points in a table.
///
/// # Errors
/// The header is not text.
pub(super) fn import(bytes: &[u8], delimiter: u8, limits: &Limits) -> Result<Log, LogError> {
    let table = || ReaderBuilder::new().has_headers(false).flexible(true).delimiter(delimiter).from_reader(bytes);
    let head: Vec<StringRecord> = table().into_records().skip(1).take(NOTATION_ROWS).filter_map(Result::ok).collect();
    let (notation, note) = Notation::detect(head.iter().flatten(), delimiter);
    let mut rows = table();
    let mut header = StringRecord::new();
    if !rows.read_record(&mut header).map_err(|_| LogError::Shape { found: "a table that is not UTF-8" })? {
        return Err(LogError::Empty);
    }
    let mut names: Vec<String> = header.iter().take(limits.values).map(cell_name).collect();
    let mut reader = Reader::default();
    if let Some(note) = note {
        reader.report.assume(&note);
    }
    if header.len() > names.len() {
        reader.report.assume(&format!("columns behind the first {} are not read", limits.values));
    }
    let mut columns = Columns::find(&names);
    let mut long = Long::default();
    let mut points = Vec::new();
    let mut record = StringRecord::new();
    let mut last_cells = LastCells::default();
    let mut is_below_header = true;
    loop {
        let location = Location { line: rows.position().line(), offset: rows.position().byte() };
        match rows.read_record(&mut record) {
            Ok(false) => break,
            Ok(true) => {}
            Err(_) => {
                reader.report.lines += 1;
                reader.report.skip("a row is not UTF-8", location);
                continue;
            }
        }
        reader.report.lines += 1;
        last_cells.check(&rows, bytes, &mut record, &mut reader.report, location);
        if is_header(record.iter()) {
            reader.report.problem(repeated_header(&mut names, &record, limits), location);
            let next = Columns::find(&names);
            if columns.is_some() != next.is_some() {
                reader.report.problem("a table in another form begins here; it is not read", location);
                break;
            }
            columns = next;
            is_below_header = true;
            continue;
        }
        if std::mem::take(&mut is_below_header) && add_units(&mut names, &record) {
            continue;
        }
        let cells = names.iter().zip(record.iter()).filter(|(name, cell)| !name.is_empty() && !cell.trim().is_empty());
        if let Some(columns) = &columns {
            let value = columns.value(|at| record.get(at).map(|cell| notation.plain(cell)));
            long.take(value, location, &mut reader.report, limits);
            continue;
        }
        let row: Map<String, Value> =
            cells.map(|(name, cell)| (name.clone(), Value::from(notation.plain(cell)))).collect();
        match parse_row(&row, reader.step_name(), Source::StepCsv, limits) {
            Some(reading) => reader.take(reading, None, location, "", limits),
            None => reader.report.skip("a row has no step", location),
        }
        points.append(&mut reader.steps.take_done());
        if points.len() > limits.points {
            break;
        }
    }
    if columns.is_some() {
        points = long.finish(&mut reader.report, limits);
    }
    Ok(finish(reader, points, limits))
}

/// Replaces the names of the columns by those of a header between rows. Returns what the header is.
fn repeated_header(names: &mut Vec<String>, record: &StringRecord, limits: &Limits) -> &'static str {
    let next: Vec<String> = record.iter().take(limits.values).map(cell_name).collect();
    if *names == next {
        return "the header again";
    }
    *names = next;
    "a header with other columns; the rows below it are read with these"
}

/// Adds the units of a row such as `-, ms, GB` below the header to the names of the columns. Returns false if the row
/// has other cells.
fn add_units(names: &mut [String], record: &StringRecord) -> bool {
    let is_empty = |cell: &str| cell.trim_matches(['-', ' ']).is_empty();
    let bare = |cell: &str| cell.trim().trim_matches(['(', ')', '[', ']']).to_owned();
    let is_unit = |cell: &str| quantity::unit(&bare(cell)).is_some();
    if !record.iter().any(is_unit) || !record.iter().all(|cell| is_empty(cell) || is_unit(cell)) {
        return false;
    }
    for (name, cell) in names.iter_mut().zip(record).filter(|(_, cell)| !is_empty(cell)) {
        *name = format!("{name} ({})", bare(cell));
    }
    true
}
