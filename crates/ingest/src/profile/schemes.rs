//! Layer times by sequence length and parallel scheme. Sequence planners (Hydraulis, DHP) fit T(l)
//! to these values.
//!
//! Planscope table, CSV: columns in any order, one timing per row, `#` comments. Rows count from 1,
//! which is the header.
//!
//! | column | value |
//! |---|---|
//! | `tp` | tensor-parallel degree |
//! | `cp` | context-parallel degree; default 1 |
//! | `exchange` | context-parallel communication, `ring` or `all_to_all`; default `ring` |
//! | `length` | sequence length in tokens over the full group |
//! | `sequences` | number of equal sequences packed into the microbatch; default 1 |
//! | `layers` | number of transformer layers timed together; default 1 |
//! | `time_us` | forward and backward time for these layers without recomputation; alternatives are `time_ms`, `time_s`, `time_ns` |
//!
//! The equivalent JSON is `{"scheme_times": [{"tp": 2, "cp": 1, "length": 4096, "time_ms": 12.5},
//! ...]}`. Its timings count from 0.
//!
//! If a row contains two times, they must agree within 1 %. Embedding, head and loss are not
//! layers. If the same microbatch is measured with two layer counts, the time for surrounding
//! modules is subtracted. For repeated timings of a microbatch the median is used.

use std::collections::BTreeMap;

use planner::cost::overrides::AtDegrees;
use planner::training::ContextExchange;
use serde_json::{Map, Value};

use super::cells::Cells;
use super::layers::{Report, seconds_per_layer};
use super::refused::Rejection;
use super::table::Table;
use super::{MAX_VALUES, ProfileError, Refusal, text};

/// Display name of the format.
pub const FORMAT: &str = "Planscope table of scheme times";
/// Time columns with unit in seconds.
const TIMES: [(&str, f64); 4] = [("time_us", 1e-6), ("time_ms", 1e-3), ("time_s", 1.0), ("time_ns", 1e-9)];
/// Other columns. The first and the fourth are required.
const OTHERS: [&str; 6] = ["tp", "cp", "exchange", "length", "sequences", "layers"];
/// JSON key of the timings.
const KEY: &str = "scheme_times";
/// Maximum degree.
const MAX_DEVICES: f64 = 1_048_576.0;
/// Maximum tokens, sequences and layers.
const MAX: f64 = 1e9;
/// Maximum relative difference between two times in a row.
const SAME_TIME: f64 = 0.01;
/// Maximum time in seconds, about eleven days.
const MAX_S: f64 = 1e6;

/// A timed microbatch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SchemeTiming {
    /// Parallel degrees.
    pub at: AtDegrees,
    /// Sequence length in tokens.
    pub tokens: u32,
    /// Number of equal sequences.
    pub sequences: u32,
    /// Layer count.
    pub layers: u32,
    /// Forward and backward time in seconds.
    pub seconds: f64,
}

/// Parsed timings with a report.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemeProfile {
    /// Timings in file order.
    pub timings: Vec<SchemeTiming>,
    /// Counts of used and rejected values.
    pub report: Report,
}

/// Timings per layer for given degrees.
#[derive(Debug, Clone, PartialEq)]
pub struct TimedScheme {
    /// Parallel degrees.
    pub at: AtDegrees,
    /// Tokens per sequence, sequences, and microseconds per layer; sorted by length and count.
    pub timings_us: Vec<[f64; 3]>,
}

/// Returns true if the content matches only this format.
pub fn is(bytes: &[u8]) -> bool {
    let Ok(text) = text::text(bytes) else { return false };
    if text.trim_start().starts_with('{') {
        return text.contains("\"scheme_times\"");
    }
    Table::new(text).is_ok_and(|table| is_header(table.header()))
}

pub(super) fn is_header(header: &[String]) -> bool {
    let has = |name: &str| header.iter().any(|column| column == name);
    has("tp") && has("length") && !has("kernel")
}

/// Parses a scheme profile.
///
/// # Errors
/// The file has a different format, a column is missing, or no value is usable. The error lists the
/// first invalid positions.
pub fn read(bytes: &[u8]) -> Result<SchemeProfile, ProfileError> {
    let text = text::text(bytes)?;
    let mut profile = SchemeProfile { timings: Vec::new(), report: Report::default() };
    if text.trim_start().starts_with('{') {
        json(text, &mut profile)?;
    } else {
        table(text, &mut profile)?;
    }
    let Report { values, used, refused: rejections, assumptions } = &profile.report;
    if *values == 0 {
        return Err(ProfileError::NoValues { format: FORMAT });
    }
    if *used == 0 {
        let (rejections, assumptions) = (rejections.clone(), assumptions.clone());
        let report = super::Report { rows: *values, refused: rejections, assumptions, ..super::Report::default() };
        return Err(ProfileError::NothingUsable { format: FORMAT, report: Box::new(report) });
    }
    Ok(profile)
}

/// Seconds by layer count, grouped by tokens and sequences per microbatch.
type ByShape = BTreeMap<(u32, u32), BTreeMap<u32, Vec<f64>>>;

/// Returns the time per layer for each set of degrees, combined over all files.
pub fn schemes(timings: &[SchemeTiming]) -> Vec<TimedScheme> {
    let mut by_degrees: BTreeMap<AtDegrees, ByShape> = BTreeMap::new();
    for timing in timings {
        let shapes = by_degrees.entry(timing.at).or_default();
        let shape_times = shapes.entry((timing.tokens, timing.sequences)).or_default();
        shape_times.entry(timing.layers).or_default().push(timing.seconds);
    }
    let layer_time = |(&(tokens, sequences), by_layers): (&(u32, u32), &BTreeMap<u32, Vec<f64>>)| {
        let mut times = seconds_per_layer(by_layers);
        times.sort_by(f64::total_cmp);
        let median = times.get(times.len() / 2).copied().unwrap_or(0.0);
        [f64::from(tokens), f64::from(sequences), median * 1e6]
    };
    by_degrees
        .into_iter()
        .map(|(at, shapes)| TimedScheme { at, timings_us: shapes.iter().map(layer_time).collect() })
        .collect()
}

fn table(text: &str, profile: &mut SchemeProfile) -> Result<(), ProfileError> {
    let mut table = Table::new(text)?;
    let times: Vec<&str> = TIMES.iter().map(|(column, _)| *column).filter(|column| table.has(column)).collect();
    if times.is_empty() {
        return Err(ProfileError::MissingColumn { format: FORMAT, column: "time_us".to_owned() });
    }
    table.require(FORMAT, &["tp", "length"])?;
    let known: Vec<&str> = OTHERS.iter().chain(&times).copied().filter(|column| table.has(column)).collect();
    table.require(FORMAT, &known)?;
    for column in table.header().iter().filter(|column| !known.contains(&column.as_str())) {
        let excerpt: String = column.chars().take(40).collect();
        profile.report.assumptions.push(format!("column {excerpt:?} is not read"));
    }
    while let Some(row) = table.next_row()? {
        let cell = |column: &str| row.optional(column).map(|cell| cell.map(str::to_owned));
        let timing = timing(&Entry { cell: &cell, location: &|column| row.location(column) }, &mut profile.report);
        take(profile, timing)?;
    }
    Ok(())
}

fn json(text: &str, profile: &mut SchemeProfile) -> Result<(), ProfileError> {
    let broken = |detail: String| ProfileError::Json { detail };
    let mut root: Map<String, Value> = serde_json::from_str(text).map_err(|error| broken(error.to_string()))?;
    let Some(Value::Array(timings)) = root.remove(KEY) else {
        return Err(broken(format!("{KEY} must be a list of timings")));
    };
    for (index, entry) in timings.into_iter().enumerate() {
        let location = |column: &str| format!("{KEY}/{index}/{column}");
        let Value::Object(entry) = entry else {
            take(profile, Err(Rejection::new("a timing is no object", format!("{KEY}/{index}"))))?;
            continue;
        };
        let known = |key: &str| OTHERS.contains(&key) || TIMES.iter().any(|(column, _)| *column == key);
        if let Some(key) = entry.keys().find(|key| !known(key)) {
            let excerpt: String = key.chars().take(40).collect();
            assume(&mut profile.report, format!("field {excerpt:?} is not read"));
        }
        let cell = |column: &str| match entry.get(column) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(Rejection::new("a cell holds no number", location(column))),
        };
        let timing = timing(&Entry { cell: &cell, location: &location }, &mut profile.report);
        take(profile, timing)?;
    }
    Ok(())
}

/// Cells of a timing.
struct Entry<'a> {
    cell: &'a dyn Fn(&str) -> Result<Option<String>, Rejection>,
    location: &'a dyn Fn(&str) -> String,
}

impl Entry<'_> {
    fn describe(&self, column: &str, cell: &str) -> String {
        let clean = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
        let cell: String = cell.chars().take(40).map(clean).collect();
        format!("{}: {cell}", (self.location)(column))
    }

    fn positive(&self, column: &str, cell: &str, max: f64) -> Result<f64, Rejection> {
        let rejection = |reason| Rejection::new(reason, self.describe(column, cell));
        let number: f64 = cell.trim().parse().map_err(|_| rejection("a cell holds no number"))?;
        if !number.is_finite() {
            Err(rejection("a number is not finite"))
        } else if number <= 0.0 {
            Err(rejection("a number is zero or negative"))
        } else if number > max {
            Err(rejection("a number is out of range"))
        } else {
            Ok(number)
        }
    }

    /// Parses an integer from 1 to `most`.
    fn integer(&self, column: &str, max: f64) -> Result<Option<u32>, Rejection> {
        let Some(cell) = (self.cell)(column)? else { return Ok(None) };
        let number = self.positive(column, &cell, max)?;
        if number.fract() > 0.0 {
            return Err(Rejection::new("a number is not whole", self.describe(column, &cell)));
        }
        Ok(Some(number as u32))
    }

    fn needed(&self, column: &str, max: f64) -> Result<u32, Rejection> {
        self.integer(column, max)?.ok_or_else(|| Rejection::new("a needed cell is empty", (self.location)(column)))
    }
}

fn timing(entry: &Entry<'_>, report: &mut Report) -> Result<SchemeTiming, Rejection> {
    let tensor = entry.needed("tp", MAX_DEVICES)?;
    let context = entry.integer("cp", MAX_DEVICES)?.unwrap_or(1);
    let tokens = entry.needed("length", MAX)?;
    let sequences = entry.integer("sequences", MAX)?.unwrap_or(1);
    let layers = entry.integer("layers", MAX)?.unwrap_or_else(|| {
        assume(report, "one layer was timed where layers is not told".to_owned());
        1
    });
    let exchange = match (entry.cell)("exchange")?.as_deref().map(str::trim) {
        None if context > 1 => {
            assume(report, "sequences travel a ring where exchange is not told".to_owned());
            Some(ContextExchange::Ring)
        }
        _ if context == 1 => None,
        Some("ring") => Some(ContextExchange::Ring),
        Some("all_to_all") => Some(ContextExchange::AllToAll),
        other => {
            let description = entry.describe("exchange", other.unwrap_or_default());
            return Err(Rejection::new("an exchange is neither ring nor all_to_all", description));
        }
    };
    let mut time = None;
    for (column, unit) in TIMES {
        let Some(cell) = (entry.cell)(column)? else { continue };
        let seconds = entry.positive(column, &cell, MAX_S / unit)? * unit;
        if time.is_some_and(|first: f64| (seconds / first - 1.0).abs() > SAME_TIME) {
            return Err(Rejection::new("two times of a row contradict each other", entry.describe(column, &cell)));
        }
        time = time.or(Some(seconds));
    }
    let seconds = time.ok_or_else(|| Rejection::new("a time is missing", (entry.location)("time_us")))?;
    Ok(SchemeTiming { at: AtDegrees { tensor, context, exchange }, tokens, sequences, layers, seconds })
}

fn assume(report: &mut Report, assumption: String) {
    if !report.assumptions.contains(&assumption) {
        report.assumptions.push(assumption);
    }
}

fn take(profile: &mut SchemeProfile, timing: Result<SchemeTiming, Rejection>) -> Result<(), ProfileError> {
    let report = &mut profile.report;
    if report.values >= MAX_VALUES as u64 {
        return Err(ProfileError::TooManyValues);
    }
    report.values += 1;
    match timing {
        Ok(timing) => {
            report.used += 1;
            profile.timings.push(timing);
        }
        Err(Rejection { reason, first }) => match report.refused.iter_mut().find(|known| known.reason == reason) {
            Some(known) => known.count += 1,
            None => report.refused.push(Refusal { reason: reason.to_owned(), count: 1, first }),
        },
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "# ours\ntp,cp,length,sequences,layers,time_ms,host\n2,1,1024,,4,8,a\n2,1,2048,1,4,20,a\n2,1,2048,1,4,22,a\n\
                         2,1,2048,1,4,100,a\n2,4,8192,2,4,60,a\n2,0,8192,1,4,60,a\n2,1,8192,1,4,-3,a\n2,1.5,8192,1,4,3,a\n";

    #[test]
    fn rows_become_timings_and_invalid_rows_are_reported() {
        assert!(is(TABLE.as_bytes()));
        let profile = read(TABLE.as_bytes()).unwrap();
        let Report { values, used, refused: rejections, assumptions } = &profile.report;
        assert_eq!((*values, *used), (8, 5));
        let reported: Vec<String> =
            rejections.iter().map(|rejection| format!("{} {}", rejection.count, rejection.first)).collect();
        assert_eq!(reported, ["2 row 8, column cp: 0", "1 row 10, column cp: 1.5"]);
        assert_eq!(*assumptions, ["column \"host\" is not read", "sequences travel a ring where exchange is not told"]);
        let result = schemes(&profile.timings);
        let at = |context, exchange| AtDegrees { tensor: 2, context, exchange };
        assert_eq!(result.len(), 2);
        assert_eq!(result[0].at, at(1, None));
        // 8 ms for four layers; the median of 20, 22 and 100 ms.
        let close =
            |found: &[f64; 3], expected: [f64; 3]| found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6);
        assert!(close(&result[0].timings_us[0], [1024.0, 1.0, 2000.0]), "{result:?}");
        assert!(close(&result[0].timings_us[1], [2048.0, 1.0, 5500.0]), "{result:?}");
        assert_eq!(result[1].at, at(4, Some(ContextExchange::Ring)));
        assert!(close(&result[1].timings_us[0], [8192.0, 2.0, 15_000.0]), "{result:?}");
    }

    /// Two layers take 15 ms and four take 23 ms: 4 ms per layer.
    #[test]
    fn json_is_equivalent_and_surrounding_time_is_subtracted() {
        let text = r#"{"scheme_times": [
            {"tp": 1, "length": 2048, "layers": 2, "time_ms": 15}, {"tp": 1, "length": 2048, "layers": 4, "time_s": 0.023},
            {"tp": 1, "cp": 2, "exchange": "all_to_all", "length": 2048, "layers": 1, "time_us": "900"},
            {"tp": 1, "cp": 2, "exchange": "mail", "length": 2048, "time_us": 9}, 7, {"tp": [1], "length": 2, "time_us": 9}
        ]}"#;
        assert!(is(text.as_bytes()));
        let profile = read(text.as_bytes()).unwrap();
        let reported: Vec<&str> = profile.report.refused.iter().map(|rejection| rejection.first.as_str()).collect();
        assert_eq!(reported, ["scheme_times/3/exchange: mail", "scheme_times/4", "scheme_times/5/tp"]);
        let result = schemes(&profile.timings);
        assert!((result[0].timings_us[0][2] - 4000.0).abs() < 1e-6, "{result:?}");
        assert_eq!(result[1].at.exchange, Some(ContextExchange::AllToAll));
    }

    /// 8 ms equal 8,000 us, not 24,000 us.
    #[test]
    fn contradicting_times_are_rejected() {
        let profile = read(b"tp,length,time_ms,time_us\n1,2048,8,8000\n1,2048,8,24000\n1,4096,,9000\n").unwrap();
        assert_eq!(profile.timings.iter().map(|timing| timing.tokens).collect::<Vec<_>>(), [2048, 4096]);
        let [refusal] = &profile.report.refused[..] else { panic!("{:?}", profile.report) };
        assert_eq!(refusal.reason, "two times of a row contradict each other");
        assert_eq!(refusal.first, "row 3, column time_ms: 8");
    }

    #[test]
    fn files_that_hold_none_say_why() {
        for (text, says) in [
            ("tp,length\n1,2\n", "no column time_us"),
            ("tp,length,time_ms,tp\n1,2,3,4\n", "two columns tp"),
            ("tp,length,time_ms\n", "holds no measured value"),
            ("tp,length,time_ms\n1,2048,0\n", "a number is zero or negative (1, first row 2, column time_ms: 0)"),
            ("{\"scheme_times\": 3}", "must be a list"),
            ("{\"scheme_times\": [", "EOF"),
        ] {
            assert!(is(text.as_bytes()), "{text}");
            let error = read(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        assert!(!is(b"kernel,tp,length,time_us\n") && !is(b"a,b\n1,2\n") && !is(b"{}"));
    }
}
