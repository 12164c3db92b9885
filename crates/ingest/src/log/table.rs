//! Pattern tables: each entry matches lines with a regular expression and assigns its groups to
//! fields with units.
//!
//! `trainers.toml` is the built-in table for trainers that print `name: value` pairs. User tables
//! have the same structure, as TOML or JSON. Patterns match bytes and have a bounded compiled size,
//! so matching time is linear in the line length.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use regex::bytes::{Captures, Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use serde::Deserialize;

use super::Limits;
use super::clock::time_us;
use super::metric::{Measure, Metric};
use super::point::{Point, Source};
use super::quantity::{multiplier, quantity};
use super::reading::{Draft, Reading};
use super::steps::Mark;
use super::text::{number, number_with_commas};

/// Maximum table size in bytes.
const MAX_BYTES: usize = 64 << 10;
/// Maximum entries per table.
const MAX_ENTRIES: usize = 64;
/// Maximum pattern length in bytes.
const MAX_PATTERN: usize = 1000;
/// Maximum name length in characters.
const MAX_NAME: usize = 100;
/// Maximum compiled pattern size in bytes, several hundred times the built-in patterns.
const MAX_COMPILED: usize = 64 << 10;
/// Memory limit for matching states in bytes.
const MAX_STATES: usize = 1 << 20;
/// Maximum number of matched bytes per line.
const MATCHED_BYTES: usize = 16 << 10;
/// Note for steps such as 1.48k.
const ROUNDED: &str = "the log rounds large steps (1.48k): a step may be wrong by half of its last printed place, and lines of one number are one \
                       point";
/// Note for steps with a training time.
const TRAINING: &str = "the step time is the time of the training in a step, without the generation of samples and other parts of the step";
/// Schema identifier.
const SCHEMA: &str = "log-table/1";

/// `name: value` and `name=value` pairs with numbers, including NumPy 2 notation. Other text is
/// skipped.
const PAIRS: &str = r"([A-Za-z_][A-Za-z0-9_./()%-]*)\s*[:=]\s*(?:np\.[a-z0-9]+\()?([0-9]+(?::[0-9]{2})+(?:\.[0-9]+)?|[-+]?(?:[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]+\.?[0-9]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?|(?i:nan|inf|infinity)\b))\s?(ms\b|us\b|ns\b|s\b|GiB\b|MiB\b|GB\b|MB\b|TFLOPS\b|TFLOP/s\b|[KMBGT]\b|%)?";

/// Error in a pattern table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the log table: {reason}")]
pub struct TableError {
    /// Line number in the table, from 1.
    pub line: usize,
    /// Error message.
    pub reason: String,
}

/// A compiled pattern table.
#[derive(Debug, Clone)]
pub struct LogTable {
    entries: Arc<[Entry]>,
    set: RegexSet,
    pairs: Regex,
}

#[derive(Debug)]
struct Entry {
    name: Arc<str>,
    pattern: Regex,
    follows: bool,
    fields: BTreeMap<String, Measure>,
    flops: Option<Arc<str>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    schema: String,
    #[serde(default)]
    line: Vec<LineDocument>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LineDocument {
    name: String,
    pattern: String,
    #[serde(default)]
    follows: bool,
    #[serde(default)]
    flops: Option<String>,
    #[serde(default)]
    fields: BTreeMap<String, String>,
}

/// Returns the built-in table.
pub(super) fn trainers() -> Option<&'static LogTable> {
    static TRAINERS: LazyLock<Option<LogTable>> = LazyLock::new(|| LogTable::parse(include_str!("trainers.toml")).ok());
    TRAINERS.as_ref()
}

impl LogTable {
    /// Parses a table from TOML, or from JSON if the first character is a brace.
    ///
    /// # Errors
    /// Returns the first invalid line and the reason.
    pub fn parse(text: &str) -> Result<Self, TableError> {
        let wrong = |line: usize, reason: String| TableError { line, reason };
        if text.len() > MAX_BYTES {
            return Err(wrong(1, format!("the table has more than {MAX_BYTES} bytes")));
        }
        let document: Document = if text.trim_start().starts_with('{') {
            serde_json::from_str(text).map_err(|error| wrong(error.line(), error.to_string()))?
        } else {
            toml::from_str(text).map_err(|error| {
                let at = error.span().map_or(0, |span| span.start.min(text.len()));
                let before = text.get(..at).unwrap_or_default();
                wrong(1 + before.matches('\n').count(), error.message().to_owned())
            })?
        };
        if document.schema != SCHEMA {
            return Err(wrong(line_number(text, 0, "schema"), format!("schema must be {SCHEMA:?}")));
        }
        if document.line.is_empty() || document.line.len() > MAX_ENTRIES {
            return Err(wrong(1, format!("a table has 1 to {MAX_ENTRIES} entries \"line\"")));
        }
        let mut entries = Vec::with_capacity(document.line.len());
        let mut patterns = Vec::with_capacity(document.line.len());
        for (index, line) in document.line.into_iter().enumerate() {
            patterns.push(line.pattern.clone());
            entries.push(
                Entry::from_document(line)
                    .map_err(|(key, reason)| wrong(line_number(text, index + 1, &key), reason))?,
            );
        }
        let size = MAX_COMPILED * MAX_ENTRIES;
        let set =
            RegexSetBuilder::new(&patterns).unicode(false).size_limit(size).dfa_size_limit(4 * MAX_STATES).build();
        let set = set.map_err(|error| wrong(1, format!("the patterns together are too large: {error}")))?;
        let pairs = compiled(PAIRS, 8 * MAX_COMPILED).map_err(|reason| wrong(1, reason))?;
        Ok(Self { entries: entries.into(), set, pairs })
    }

    /// Parses a line behind a prefix that is removed. `before` is the entry that matched the previous
    /// line, for entries that depend on it.
    pub(super) fn read(&self, prefix: &str, text: &str, before: Option<&str>, limits: &Limits) -> Option<Reading> {
        let bytes = text.as_bytes();
        let bytes = &bytes[..bytes.len().min(MATCHED_BYTES)];
        for index in self.set.matches(bytes) {
            let entry = self.entries.get(index)?;
            if entry.follows && before != Some(&*entry.name) {
                continue;
            }
            let found = entry.pattern.captures(bytes);
            let reading = found.and_then(|found| entry.read(&found, (prefix, text), &self.pairs, limits));
            if let Some((reading, note)) = reading {
                let (name, flops) = (Arc::clone(&entry.name), entry.flops.clone());
                return Some(Reading::Listed { reading: Box::new(reading), name, flops, note });
            }
        }
        None
    }
}

/// Returns the line of a key in an entry. Entries count from 1; 0 is the table head.
fn line_number(text: &str, entry: usize, key: &str) -> usize {
    let is_json = text.trim_start().starts_with('{');
    let mut seen = 0;
    let mut found = 1;
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("[[line]]") || (is_json && line.contains("\"name\"")) {
            if seen == entry && entry > 0 {
                break;
            }
            seen += 1;
            if seen == entry {
                found = number;
            }
        }
        if seen == entry && line.trim_start().trim_start_matches('"').starts_with(key) {
            return number;
        }
    }
    found
}

fn compiled(pattern: &str, size: usize) -> Result<Regex, String> {
    let built =
        RegexBuilder::new(pattern).unicode(false).size_limit(size).dfa_size_limit(MAX_STATES).nest_limit(50).build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => {
            format!(
                "the pattern is too large: compiled it takes more than {} KiB; shorten counted repetitions",
                size >> 10
            )
        }
        error => error.to_string(),
    })
}

impl Entry {
    /// # Errors
    /// Returns the invalid key and the reason.
    fn from_document(line: LineDocument) -> Result<Self, (String, String)> {
        let wrong = |key: &str, reason: String| (key.to_owned(), reason);
        if line.name.trim().is_empty() || line.name.chars().count() > MAX_NAME {
            return Err(wrong("name", format!("a name has 1 to {MAX_NAME} characters")));
        }
        if line.pattern.len() > MAX_PATTERN {
            return Err(wrong("pattern", format!("the pattern has more than {MAX_PATTERN} bytes")));
        }
        let pattern = compiled(&line.pattern, MAX_COMPILED).map_err(|reason| wrong("pattern", reason))?;
        let mut fields = BTreeMap::new();
        for (name, text) in &line.fields {
            let measure = Measure::parse(text).map_err(|reason| wrong(name, reason))?;
            fields.insert(name.clone(), measure);
        }
        let groups: Vec<&str> = pattern.capture_names().flatten().collect();
        if groups.is_empty() {
            return Err(wrong("pattern", "the pattern has no named group such as (?P<step>[0-9]+)".to_owned()));
        }
        if groups.contains(&"name") != groups.contains(&"value") {
            return Err(wrong("pattern", "the groups name and value belong together".to_owned()));
        }
        for group in groups {
            if let (None, Ok(measure)) = (fields.get(group), Measure::parse(group)) {
                fields.insert(group.to_owned(), measure);
            }
        }
        Ok(Self {
            name: line.name.trim().into(),
            pattern,
            follows: line.follows,
            fields,
            flops: line.flops.map(Into::into),
        })
    }

    fn read(
        &self,
        found: &Captures<'_>,
        (prefix, text): (&str, &str),
        pairs: &Regex,
        limits: &Limits,
    ) -> Option<(Reading, Option<&'static str>)> {
        let group = |name: &str| found.name(name).and_then(|group| str::from_utf8(group.as_bytes()).ok());
        let before = found.get(0).and_then(|all| text.get(..all.start()));
        let time_us = group("time")
            .and_then(time_us)
            .or_else(|| before.and_then(time_us))
            .or_else(|| time_us(prefix))
            .or_else(|| time_us(text));
        let mut builder = PointBuilder {
            draft: Draft::new(Point { source: Source::Table, time_us, ..Point::default() }),
            step: None,
            epoch: None,
            epoch_step: None,
            epoch_steps: None,
            note: None,
        };
        for name in self.pattern.capture_names().flatten() {
            match (name, group(name)) {
                ("time" | "name", _) | (_, None) => {}
                ("pairs", Some(all)) => {
                    for pair in pairs.captures_iter(all.as_bytes()) {
                        let part = |at: usize| pair.get(at).and_then(|part| str::from_utf8(part.as_bytes()).ok());
                        let (Some(name), Some(value)) = (part(1), part(2)) else { continue };
                        let value = format!("{value}{}", part(3).unwrap_or_default());
                        self.fill(&mut builder, name, &value, limits);
                    }
                }
                ("value", Some(value)) => self.fill(&mut builder, group("name")?.trim(), value, limits),
                (name, Some(value)) => self.fill(&mut builder, name, value, limits),
            }
        }
        let PointBuilder { mut draft, step, epoch, epoch_step, epoch_steps, note } = builder;
        let epoch_based_step = || Some(epoch.unwrap_or(0.0) * epoch_steps? + epoch_step?);
        let mark = match step.or_else(epoch_based_step) {
            Some(step) if (0.0..9_007_199_254_740_992.0).contains(&step) => {
                draft.point.step = step as u64;
                Mark::Named
            }
            Some(_) => return Some((Reading::Skipped("the step is negative or beyond 2^53"), None)),
            None if self.follows => Mark::Open,
            None => Mark::Counted,
        };
        Some((draft.step(mark), note))
    }

    fn fill(&self, builder: &mut PointBuilder, name: &str, text: &str, limits: &Limits) {
        let field = self.fields.get(name).copied();
        let is_step = field.is_some_and(|measure| measure.metric == Metric::Step);
        if is_step && let Some(step) = rounded(text) {
            (builder.step, builder.note) = (Some(step), Some(ROUNDED));
            return;
        }
        if field.is_some_and(|measure| measure.metric == Metric::TrainingTime) {
            builder.note = builder.note.or(Some(TRAINING));
        }
        let slot = match field.map(|measure| measure.metric) {
            Some(Metric::Step) => &mut builder.step,
            Some(Metric::StepFromZero) => {
                builder.step = number(text).map(|step| step + 1.0);
                return;
            }
            Some(Metric::EpochStep) => &mut builder.epoch_step,
            Some(Metric::EpochSteps) => &mut builder.epoch_steps,
            Some(metric @ (Metric::Epoch | Metric::EpochFrom1)) => {
                let first = f64::from(u8::from(metric == Metric::EpochFrom1));
                builder.epoch = number(text).map(|epoch| epoch - first);
                builder.draft.set_text("epoch", text, None, limits);
                return;
            }
            _ => {
                // Text such as "n/a" is not a number.
                builder.draft.set_text(name, text, field, limits);
                return;
            }
        };
        *slot = number_with_commas(text);
    }
}

/// Returns a number with a multiplier, such as 1.48k.
fn rounded(text: &str) -> Option<f64> {
    let quantity = quantity(text)?;
    multiplier(quantity.suffix).map(|factor| (quantity.value * factor).round())
}

/// A point under construction and the values that determine its step.
struct PointBuilder {
    draft: Draft,
    step: Option<f64>,
    epoch: Option<f64>,
    epoch_step: Option<f64>,
    epoch_steps: Option<f64>,
    /// Note about the step.
    note: Option<&'static str>,
}
