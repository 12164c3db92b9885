//! Long format: one metric value per row, as MLflow, tbparse and `pandas.melt` write it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::log::json_lines::{finite, instant, step_name};
use crate::log::labels::is_run;
use crate::log::metric::measure;
use crate::log::parser::Reader;
use crate::log::point::{Point, Source};
use crate::log::reading::Draft;
use crate::log::report::{Location, Report};
use crate::log::rows::{complete, finish};
use crate::log::text::{float, number};
use crate::log::{Limits, Log};

/// Columns with metric names in MLflow's format.
const METRICS: [&str; 3] = ["metric", "key", "metric_name"];
/// Columns with metric names in other formats. Tables with metric columns use them for labels.
const TAGS: [&str; 5] = ["tag", "name", "variable", "scalar", "scalar_name"];
/// Columns with the time of a value.
const TIMES: [&str; 4] = ["timestamp", "wall_time", "wall time", "time"];
/// Column with the log folder of a run, as tbparse writes it.
const FOLDER: &str = "dir_name";

/// Positions of the columns.
#[derive(Debug)]
pub(super) struct Columns {
    metric: usize,
    value: usize,
    step: usize,
    time: Option<usize>,
    runs: Vec<usize>,
}

/// A metric value.
#[derive(Debug)]
pub(super) struct MetricValue {
    run: String,
    metric: String,
    value: f64,
    step: u64,
    time_us: Option<i64>,
}

impl Columns {
    /// Returns the columns if the names are those of the long format.
    pub(super) fn find<Name: AsRef<str>>(names: &[Name]) -> Option<Self> {
        let names = || names.iter().map(AsRef::as_ref);
        let position = |wanted: &str| names().position(|name: &str| name.eq_ignore_ascii_case(wanted));
        let has_metrics = names().any(|name| measure(name).is_some());
        let tag = || TAGS.iter().find_map(|name| position(name)).filter(|_| !has_metrics);
        let is_run_column = |(at, name): (usize, &str)| (is_run(name) || name == FOLDER).then_some(at);
        Some(Self {
            metric: METRICS.iter().find_map(|name| position(name)).or_else(tag)?,
            value: position("value")?,
            step: names().enumerate().filter_map(|(at, name)| Some((step_name(name)?, at))).min()?.1,
            time: TIMES.iter().find_map(|name| position(name)),
            runs: names().enumerate().filter_map(is_run_column).collect(),
        })
    }

    /// Returns the value in a row; `None` if it has no step, no metric or no value.
    pub(super) fn value<'a>(&self, cell: impl Fn(usize) -> Option<Cow<'a, str>>) -> Option<MetricValue> {
        let metric = cell(self.metric)?.trim().to_owned();
        let step = number(&cell(self.step)?).filter(|step| (0.0..9e15).contains(step))?;
        let runs: Vec<String> = self.runs.iter().filter_map(|&at| cell(at)).map(Cow::into_owned).collect();
        Some(MetricValue {
            run: runs.join(", "),
            metric: Some(metric).filter(|metric| !metric.is_empty())?,
            value: number(&cell(self.value)?)?,
            step: step as u64,
            time_us: self.time.and_then(&cell).and_then(|time| instant(&Value::from(time))),
        })
    }
}

/// Returns whether a JSON row has the long format.
pub(in crate::log) fn is_long_row(row: &Map<String, Value>) -> bool {
    let names: Vec<&String> = row.keys().collect();
    let columns = Columns::find(&names);
    let cell = |at: usize| names.get(at).and_then(|name| row.get(*name));
    columns.is_some_and(|columns| {
        cell(columns.metric).is_some_and(Value::is_string) && cell(columns.value).and_then(float).is_some()
    })
}

/// Returns the points in JSON lines with one value per line.
pub(in crate::log) fn import_lines(bytes: &[u8], limits: &Limits) -> Log {
    let mut reader = Reader::default();
    let mut long = Long::default();
    let mut offset = 0;
    for (line_number, line) in (1..).zip(bytes.split_inclusive(|&byte| byte == b'\n')) {
        let place = Location { line: line_number, offset };
        offset += line.len() as u64;
        let line = String::from_utf8_lossy(line);
        if line.trim().is_empty() {
            continue;
        }
        reader.report.lines += 1;
        let row: Map<String, Value> = serde_json::from_str(&finite(&line)).unwrap_or_default();
        let names: Vec<&String> = row.keys().collect();
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let cell = |at: usize| names.get(at).and_then(|name| row.get(*name)).map(|value| Cow::Owned(text(value)));
        let value = Columns::find(&names).and_then(|columns| columns.value(cell));
        long.take(value, place, &mut reader.report, limits);
    }
    let points = long.finish(&mut reader.report, limits);
    finish(reader, points, limits)
}

/// Points of a table with one value per row.
#[derive(Default)]
pub(super) struct Long {
    runs: Vec<String>,
    drafts: BTreeMap<(usize, u64), Draft>,
}

impl Long {
    /// Adds the value of a row and counts the row.
    pub(super) fn take(&mut self, value: Option<MetricValue>, place: Location, report: &mut Report, limits: &Limits) {
        match value {
            None => report.skip("a row has no step, no metric or no value", place),
            Some(value) if self.add(&value, place, limits) => {
                report.steps += 1;
                report.source(Source::StepCsv);
            }
            Some(_) => report.skip("there are more points than can be stored", place),
        }
    }

    /// Adds a value. Returns false if the limit for its step is reached.
    fn add(&mut self, value: &MetricValue, place: Location, limits: &Limits) -> bool {
        let segment = self.runs.iter().position(|known| *known == value.run).unwrap_or_else(|| {
            self.runs.push(value.run.chars().take(limits.name_chars).collect());
            self.runs.len() - 1
        });
        let key = (segment, value.step);
        if self.runs.len() > limits.ranks || (self.drafts.len() >= limits.points && !self.drafts.contains_key(&key)) {
            return false;
        }
        let point = || Point {
            source: Source::StepCsv,
            segment: segment as u32,
            step: value.step,
            time_us: value.time_us,
            line: place.line,
            offset: place.offset,
            ..Point::default()
        };
        let draft = self.drafts.entry(key).or_insert_with(|| Draft::new(point()));
        draft.set(&value.metric, value.value, limits);
        true
    }

    /// Returns the points of all rows.
    pub(super) fn finish(self, report: &mut Report, limits: &Limits) -> Vec<Point> {
        let mut points: Vec<Point> = self.drafts.into_values().map(|draft| draft.finish(report)).collect();
        complete(&mut points, report, limits);
        report.points = points.len() as u64;
        if self.runs.len() > 1 {
            report.assume(&format!("each run of the table is a segment: {}", self.runs.join(", ")));
        }
        points
    }
}
