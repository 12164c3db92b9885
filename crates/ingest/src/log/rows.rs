//! Files with lists of rows: `trainer_state.json`, golden curves, panel CSV, scalar CSV.

use std::collections::BTreeMap;

use csv::{ReaderBuilder, StringRecord};
use serde_json::{Map, Value};

use super::cut::{LAST_CELL, has_open_end};
use super::hugging_face;
use super::json_lines::micros;
use super::pace::Pace;
use super::parser::Reader;
use super::point::{Point, Source};
use super::reading::Draft;
use super::report::{Location, Report};
use super::steps::Mark;
use super::text::{float, number};
use super::{Limits, Log, LogError};

/// Maximum number of panel columns. Further columns are skipped.
const MAX_COLUMNS: usize = 1000;
/// Rows that show the number of decimals of a column.
const MIN_ROWS: u32 = 2;

/// Returns the points in a Hugging Face trainer state.
pub(super) fn trainer_state(document: Value, limits: &Limits) -> Result<Log, LogError> {
    let mut reader = Reader::default();
    let mut points = Vec::new();
    let readings = hugging_face::trainer_state(document, limits)?;
    for (row, reading) in readings.into_iter().enumerate() {
        reader.report.lines += 1;
        reader.take(reading, None, Location { line: row as u64 + 1, offset: 0 }, "", limits);
        points.append(&mut reader.steps.take_done());
        if points.len() > limits.points {
            break;
        }
    }
    Ok(finish(reader, points, limits))
}

/// Returns whether all members are curves: `{"lm loss": {"start_step": 1, "step_interval": 5,
/// "values": {"1": 10.5}}}`.
pub(super) fn are_curves(document: &Map<String, Value>) -> bool {
    let is = |curve: &Value| curve.get("step_interval").is_some() && curve.get("values").is_some_and(Value::is_object);
    !document.is_empty() && document.values().all(is)
}

/// Returns the points of curves. A point contains the values of all curves at a step.
pub(super) fn curves(document: &Map<String, Value>, limits: &Limits) -> Log {
    let mut reader = Reader::default();
    let mut drafts: BTreeMap<u64, Draft> = BTreeMap::new();
    for (name, curve) in document {
        for (step, value) in curve.get("values").and_then(Value::as_object).into_iter().flatten() {
            reader.report.lines += 1;
            let (Ok(step), Some(value)) = (step.parse::<u64>(), float(value)) else {
                reader.report.skip("a value without a step, or no number", Location::default());
                continue;
            };
            if step >= 1 << 53 {
                reader.report.skip("a step is beyond 2^53", Location::default());
                continue;
            }
            if drafts.len() >= limits.points && !drafts.contains_key(&step) {
                reader.report.skip("there are more points than can be stored", Location::default());
                continue;
            }
            reader.report.steps += 1;
            reader.report.source(Source::GoldenCurves);
            let point = || Point { source: Source::GoldenCurves, step, ..Point::default() };
            drafts.entry(step).or_insert_with(|| Draft::new(point())).set(name, value, limits);
        }
    }
    let mut points: Vec<Point> = drafts.into_values().map(|draft| draft.finish(&mut reader.report)).collect();
    complete(&mut points, &mut reader.report, limits);
    reader.report.points = points.len() as u64;
    finish(reader, points, limits)
}

pub(super) fn finish(mut reader: Reader, mut points: Vec<Point>, limits: &Limits) -> Log {
    let (last, mut report) = reader.finish(limits);
    points.extend(last);
    reader.complete_file(&mut points, &mut report);
    Log { points, setup: Vec::new(), report }
}

/// Returns the points of a Weights & Biases panel with a column per run and metric. Each run is a
/// segment.
pub(super) fn panel(bytes: &[u8], limits: &Limits) -> Result<Log, LogError> {
    let mut reader = Reader::default();
    let mut rows = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
    let mut record = StringRecord::new();
    let headed = rows.read_record(&mut record).map_err(|_| LogError::Shape { found: "a table that is not UTF-8" })?;
    if !headed {
        return Err(LogError::Empty);
    }
    let width = record.len();
    let columns: Vec<Option<(String, String)>> = record.iter().skip(1).take(MAX_COLUMNS).map(column).collect();
    let nameless = record.iter().skip(1).take(MAX_COLUMNS).filter(|name| !is_run_column(name)).count();
    if nameless > 0 {
        reader.report.assume(&format!("columns that are not called \"<run> - <metric>\" are not read: {nameless}"));
    }
    if width > MAX_COLUMNS + 1 {
        let beyond = width - MAX_COLUMNS - 1;
        reader.report.assume(&format!("columns behind the first {MAX_COLUMNS} are not read: {beyond}"));
    }
    let mut runs: Vec<&str> = Vec::new();
    for (run, _) in columns.iter().flatten() {
        if !runs.contains(&run.as_str()) {
            runs.push(run);
        }
    }
    let mut by_run: BTreeMap<usize, Vec<Point>> = BTreeMap::new();
    let mut stored = 0;
    let mut last_cells = LastCells::default();
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
        let Some(step) = record.get(0).and_then(number).filter(|step| (0.0..9e15).contains(step)) else {
            reader.report.skip("a row has no step", location);
            continue;
        };
        if record.len() > width {
            reader.report.problem("a row has more cells than there are columns", location);
        }
        let mut drafts: BTreeMap<usize, Draft> = BTreeMap::new();
        for (cell, column) in record.iter().skip(1).zip(&columns) {
            let Some((run, metric)) = column else { continue };
            let Some(value) = number(cell) else {
                // A run without this step has an empty cell.
                if !cell.trim().is_empty() {
                    reader.report.problem("a cell is no number", location);
                }
                continue;
            };
            let run = runs.iter().position(|name| name == run).unwrap_or_default();
            let point = || Point {
                source: Source::PanelCsv,
                segment: run as u32,
                step: step as u64,
                line: location.line,
                offset: location.offset,
                ..Point::default()
            };
            drafts.entry(run).or_insert_with(|| Draft::new(point())).set(metric, value, limits);
        }
        if stored + drafts.len() > limits.points {
            reader.report.skip("there are more points than can be stored", location);
            continue;
        }
        reader.report.steps += 1;
        reader.report.source(Source::PanelCsv);
        for (run, draft) in drafts {
            stored += 1;
            by_run.entry(run).or_default().push(draft.finish(&mut reader.report));
        }
    }
    if runs.len() > 1 {
        reader.report.assume(&format!("each run of the panel is a segment: {}", runs.join(", ")));
    }
    reader.report.assume("a panel's CSV is sampled by Weights & Biases; the history has every step");
    let mut points: Vec<Point> = by_run.into_values().flatten().collect();
    complete(&mut points, &mut reader.report, limits);
    reader.report.points = points.len() as u64;
    Ok(finish(reader, points, limits))
}

/// Last cells of the rows of a table.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LastCells {
    rows: u32,
    /// Cells of a row, and digits behind the point of its last cell; `None` if rows differ.
    form: Option<(usize, usize)>,
}

impl LastCells {
    /// Removes the last cell of a table without a final line end, unless it has as many decimals as the cell has in all rows before:
    /// a cut number has fewer.
    pub(super) fn check(
        &mut self,
        rows: &csv::Reader<&[u8]>,
        table: &[u8],
        record: &mut StringRecord,
        report: &mut Report,
        location: Location,
    ) {
        let cell = record.iter().next_back().and_then(|cell| cell.trim().rsplit_once('.')).map(|(_, digits)| digits);
        let is_decimal = |digits: &&str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        let form = cell.filter(is_decimal).map(|digits| (record.len(), digits.len()));
        if rows.position().byte() >= table.len() as u64 && has_open_end(table) {
            if self.rows < MIN_ROWS || form.is_none() || form != self.form {
                report.problem(LAST_CELL, location);
                record.truncate(record.len().saturating_sub(1));
            }
            return;
        }
        self.form = if self.rows == 0 { form } else { self.form.filter(|known| Some(*known) == form) };
        self.rows += 1;
    }
}

/// Completes the points of a file whose steps are not lines.
pub(super) fn complete(points: &mut [Point], report: &mut Report, limits: &Limits) {
    let mut pace = Pace::default();
    for point in points {
        pace.complete(point, report, limits);
    }
    pace.finish(report);
}

/// Returns whether a column names a run.
fn is_run_column(name: &str) -> bool {
    name.contains(" - ")
}

/// Returns run and metric of a column. Columns with minimum and maximum are skipped.
fn column(name: &str) -> Option<(String, String)> {
    // Run names can contain the separator; metric names rarely do.
    let (run, metric) = name.rsplit_once(" - ")?;
    let extreme = metric.ends_with("__MIN") || metric.ends_with("__MAX");
    (!extreme).then(|| (run.chars().take(200).collect(), metric.to_owned()))
}

/// Returns the points of a scalar in TensorBoard's CSV, which does not contain its name.
pub(super) fn scalars(bytes: &[u8], limits: &Limits) -> Log {
    let mut reader = Reader::default();
    let mut points = Vec::new();
    let mut rows = ReaderBuilder::new().has_headers(true).flexible(true).from_reader(bytes);
    let mut record = StringRecord::new();
    let mut last_cells = LastCells::default();
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
        let cell = |index: usize| record.get(index).and_then(number);
        let step = cell(1).filter(|step| (0.0..9e15).contains(step));
        let (Some(step), Some(value)) = (step, cell(2)) else {
            reader.report.skip("a row has no step or no value", location);
            continue;
        };
        let time_us = cell(0).and_then(micros);
        let point = Point { source: Source::Tensorboard, step: step as u64, time_us, ..Point::default() };
        let mut draft = Draft::new(point);
        draft.set("value", value, limits);
        reader.take(draft.step(Mark::Named), None, location, "", limits);
        points.append(&mut reader.steps.take_done());
        if points.len() > limits.points {
            break;
        }
    }
    reader.report.assume("the file does not name the scalar; it is kept as \"value\"");
    finish(reader, points, limits)
}
