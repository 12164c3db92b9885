//! A grid of scenarios: a base scenario and axes of field values. Every combination is a numbered
//! point.
//!
//! A sweep is content-addressed like a scenario. Points are independent: a row depends only on the
//! sweep, the point number and the engine. Several machines can therefore split the points without
//! communication (ADR 37).

mod axis;
mod place;
mod row;
mod shard;
mod sheet;
mod study;
#[cfg(test)]
mod tests;

pub use axis::Axis;
pub use row::{PlanMetrics, PlannerRow, PointOutcome, PointRow, WrongField};
pub use shard::{NotAShard, Shard, ranges, runs};
pub use sheet::{Heading, SHEET_SCHEMA, Sheet, SheetError};
pub use study::{ScalingSweep, UsualField, usual_fields};

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use axis::WrittenAxis;
use planscope_core::host::{Cancellation, NeverCancelled};
use planscope_plan::scenario::validate::Datasets;
use planscope_plan::scenario::{FieldError, PlannerKind, ValidScenario, pointer};

/// Format name for sweeps.
pub const SCHEMA: &str = "sweep/1";
/// Maximum number of points. The rows then fit in a file of about 100 MB, and larger charts are not
/// readable.
pub const MAX_POINTS: u32 = 100_000;
/// Maximum number of axes, including the seed axis.
pub const MAX_AXES: usize = 6;
/// Limit on values without a valid scenario. A larger number is rejected, because each value must
/// be inserted and parsed.
const MAX_FAILING: u32 = 100;
/// Maximum label length in characters.
const MAX_LABEL: usize = 200;
/// Domain separator for sweep identifiers, so that they differ from other hashes of the same bytes.
const DOMAIN: &[u8] = b"planscope sweep\0";

/// A sweep with explicit axis values.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sweep {
    schema: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    scenario: Value,
    axes: Vec<Axis>,
}

/// Input format for a sweep.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    schema: String,
    title: Option<String>,
    scenario: Value,
    axes: Vec<WrittenAxis>,
    planners: Option<Vec<PlannerKind>>,
    seeds: Option<Vec<u32>>,
}

impl Sweep {
    /// Parses a sweep and returns all field errors. Points with invalid scenarios are allowed. An
    /// axis is rejected if no value yields a parsable scenario, because the pointer is probably
    /// misspelt.
    pub fn parse(json: &str) -> Result<Self, Vec<FieldError>> {
        Self::parse_while(json, &NeverCancelled)
    }

    /// Parses a sweep with a cancellation check. Fails if the watch ends before all values are
    /// parsed.
    pub fn parse_while(json: &str, cancellation: &dyn Cancellation) -> Result<Self, Vec<FieldError>> {
        let mut reader = serde_json::Deserializer::from_str(json);
        let written: Written = serde_path_to_error::deserialize(&mut reader)
            .map_err(|error| vec![FieldError::new(&pointer(error.path()), error.inner().to_string())])?;
        reader.end().map_err(|error| vec![FieldError::new("", format!("not JSON: {error}"))])?;
        if written.schema != SCHEMA {
            return Err(vec![FieldError::new("/schema", format!("must be {SCHEMA:?}"))]);
        }
        let mut errors = Vec::new();
        if written.title.as_ref().is_some_and(|title| title.chars().count() > MAX_LABEL) {
            errors.push(FieldError::new("/title", format!("at most {MAX_LABEL} characters")));
        }
        let mut axes: Vec<Axis> = Vec::new();
        for (number, axis) in written.axes.into_iter().enumerate() {
            axes.extend(axis.spelled_out(&format!("/axes/{number}"), &mut errors));
        }
        if let Some(seeds) = written.seeds {
            let values = Some(seeds.into_iter().map(Value::from).collect());
            let axis = WrittenAxis { values, title: Some("seed".to_owned()), ..WrittenAxis::at("/seed") };
            axes.extend(axis.spelled_out("/seeds", &mut errors));
        }
        if axes.is_empty() && errors.is_empty() {
            errors.push(FieldError::new("/axes", format!("1 to {MAX_AXES} axes are needed")));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let mut scenario = written.scenario;
        if let (Some(planners), Some(object)) = (written.planners, scenario.as_object_mut()) {
            object.insert("planners".to_owned(), planners.iter().map(|planner| Value::from(planner.id())).collect());
        }
        Self::within(written.title, &scenario, axes, cancellation)
    }

    /// Builds a sweep over the given axes. The scenario may contain presets.
    pub(crate) fn new(title: Option<String>, scenario: &Value, axes: Vec<Axis>) -> Result<Self, Vec<FieldError>> {
        Self::within(title, scenario, axes, &NeverCancelled)
    }

    fn within(
        title: Option<String>,
        scenario: &Value,
        axes: Vec<Axis>,
        cancellation: &dyn Cancellation,
    ) -> Result<Self, Vec<FieldError>> {
        let base = planscope_plan::scenario::parse(&scenario.to_string())
            .map_err(|errors| errors.into_iter().map(|error| under("/scenario", error)).collect::<Vec<FieldError>>())?;
        let base = serde_json::to_value(&base).expect("a scenario has only text keys");
        let mut sweep = Self { schema: SCHEMA, title, scenario: base, axes };
        let mut errors = Vec::new();
        if sweep.axes.len() > MAX_AXES {
            errors.push(FieldError::new("/axes", format!("{} axes: at most {MAX_AXES}", sweep.axes.len())));
        }
        let points = sweep.axes.iter().try_fold(1_u64, |points, axis| points.checked_mul(axis.values.len() as u64));
        if points.is_none_or(|points| points > u64::from(MAX_POINTS)) {
            let points = points.map_or("too many".to_owned(), |points| points.to_string());
            errors.push(FieldError::new("/axes", format!("{points} points: at most {MAX_POINTS}")));
        }
        axis::overlaps(&sweep.axes, &mut errors);
        if errors.is_empty() {
            sweep.resolve(&mut errors, cancellation);
        }
        if errors.is_empty() { Ok(sweep) } else { Err(errors) }
    }

    /// User-defined title.
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// Returns the sweep with a different title.
    #[must_use]
    pub fn titled(self, title: Option<String>) -> Self {
        Self { title, ..self }
    }

    /// Axes, slowest first.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Base scenario with resolved presets.
    pub const fn scenario(&self) -> &Value {
        &self.scenario
    }

    /// Planners in the base scenario, in its order.
    pub fn planners(&self) -> Vec<PlannerKind> {
        let listed = self.scenario.get("planners").and_then(Value::as_array);
        listed.into_iter().flatten().filter_map(|planner| PlannerKind::from_id(planner.as_str()?)).collect()
    }

    /// Number of points.
    pub fn points(&self) -> u32 {
        self.axes.iter().map(|axis| axis.values.len() as u32).product()
    }

    /// Returns the point number at these axis positions. `None` if they are out of range.
    pub fn index(&self, places: &[usize]) -> Option<u32> {
        if places.len() != self.axes.len() {
            return None;
        }
        self.axes.iter().zip(places).try_fold(0, |index, (axis, &position)| {
            (position < axis.values.len()).then_some(index * axis.values.len() as u32 + position as u32)
        })
    }

    /// Returns a point's axis positions; the last axis varies fastest.
    pub fn places(&self, index: u32) -> Vec<usize> {
        let mut rest = index as usize;
        let mut places: Vec<usize> = self
            .axes
            .iter()
            .rev()
            .map(|axis| {
                let position = rest % axis.values.len();
                rest /= axis.values.len();
                position
            })
            .collect();
        places.reverse();
        places
    }

    /// Returns a point's axis values. `None` if the index is out of range.
    pub fn coordinates(&self, index: u32) -> Option<Vec<Value>> {
        let places = (index < self.points()).then(|| self.places(index))?;
        Some(self.axes.iter().zip(places).map(|(axis, position)| axis.values[position].clone()).collect())
    }

    /// Returns a point. `None` if the index is out of range.
    pub fn point(&self, index: u32) -> Option<Point> {
        let coordinates = self.coordinates(index)?;
        let places = self.places(index);
        let mut scenario = self.scenario.clone();
        let mut misplaced = None;
        for (axis, value) in self.axes.iter().zip(&coordinates) {
            if let Err(detail) = place::put(&mut scenario, &axis.pointer, value.clone()) {
                misplaced.get_or_insert_with(|| FieldError::new(&axis.pointer, detail));
            }
        }
        let labels: Vec<String> =
            self.axes.iter().zip(&places).map(|(axis, &position)| axis.value_label(position)).collect();
        let name = self.title.as_deref().or_else(|| self.scenario.get("title").and_then(Value::as_str));
        let title = name.map_or_else(|| labels.join(", "), |name| format!("{name}: {}", labels.join(", ")));
        if let Some(object) = scenario.as_object_mut() {
            object.insert("title".to_owned(), Value::from(title.chars().take(MAX_LABEL).collect::<String>()));
        }
        Some(Point { index, coordinates, scenario, misplaced })
    }

    /// Returns the canonical form: JSON without labels, with explicit values, sorted keys and no
    /// white space.
    pub fn canonical(&self) -> String {
        let mut scenario = self.scenario.clone();
        if let Some(object) = scenario.as_object_mut() {
            object.remove("title");
        }
        let axes: Vec<Value> =
            self.axes.iter().map(|axis| serde_json::json!({"pointer": axis.pointer, "values": axis.values})).collect();
        serde_json::json!({"schema": SCHEMA, "scenario": scenario, "axes": axes}).to_string()
    }

    /// Returns the content-based identifier.
    pub fn id(&self) -> SweepId {
        let digest = Sha256::new().chain_update(DOMAIN).chain_update(self.canonical()).finalize();
        SweepId(data_encoding::BASE32_NOPAD.encode(&digest).to_ascii_lowercase())
    }

    /// Formats the sweep as JSON for [`Sweep::parse`].
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a sweep has only text keys")
    }

    /// Resolves presets in axis values, so that stored sweeps do not depend on them. Rejects axes
    /// with misspelt fields.
    fn resolve(&mut self, errors: &mut Vec<FieldError>, cancellation: &dyn Cancellation) {
        let mut start = self.scenario.clone();
        let mut failed = 0;
        for (number, axis) in self.axes.iter_mut().enumerate() {
            let mut first_wrong = None;
            let mut first_readable = None;
            let mut readable = false;
            for value in &mut axis.values {
                let is_preset = value.get("preset").is_some();
                if readable && !is_preset {
                    continue;
                }
                if cancellation.is_over() {
                    let detail = "time was up before all its values were looked at".to_owned();
                    return errors.push(FieldError::new(&format!("/axes/{number}"), detail));
                }
                match place::read_with(&start, &axis.pointer, value.clone()) {
                    Ok(read) => {
                        readable = true;
                        first_readable.get_or_insert_with(|| value.clone());
                        if let Some(filled) = read.pointer(&axis.pointer).filter(|_| is_preset) {
                            *value = filled.clone();
                        }
                    }
                    Err(detail) => {
                        failed += 1;
                        if failed == MAX_FAILING {
                            let last = format!("the last of {}: {detail}", axis.pointer);
                            let detail = format!("{MAX_FAILING} values give no scenario, {last}");
                            return errors.push(FieldError::new(&format!("/axes/{number}"), detail));
                        }
                        first_wrong.get_or_insert(detail);
                    }
                }
            }
            match first_wrong {
                Some(detail) if !readable => {
                    let detail = format!("no value of {} gives a scenario: {detail}", axis.pointer);
                    errors.push(FieldError::new(&format!("/axes/{number}"), detail));
                }
                _ => {
                    // A later axis may overwrite fields set by the first readable value here.
                    let value = first_readable.unwrap_or_else(|| axis.values[0].clone());
                    let _ = place::put(&mut start, &axis.pointer, value);
                }
            }
        }
    }
}

/// A combination of values.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Point number, from 0.
    pub index: u32,
    /// Value per axis.
    pub coordinates: Vec<Value>,
    /// Base scenario with these values; it may not be parsable.
    pub scenario: Value,
    misplaced: Option<FieldError>,
}

impl Point {
    /// Returns the point's scenario, or all field errors.
    pub fn valid(&self, datasets: &dyn Datasets) -> Result<ValidScenario, Vec<FieldError>> {
        if let Some(misplaced) = &self.misplaced {
            return Err(vec![misplaced.clone()]);
        }
        ValidScenario::new(planscope_plan::scenario::parse(&self.scenario.to_string())?, datasets)
    }
}

/// Identifier of a sweep: SHA-256 over its canonical form, in lower-case base32 without padding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SweepId(String);

impl SweepId {
    /// Returns the identifier as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SweepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for SweepId {
    type Err = NotASweep;

    fn from_str(text: &str) -> Result<Self, NotASweep> {
        let valid = text.len() == 52 && text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'2'..=b'7'));
        if valid { Ok(Self(text.to_owned())) } else { Err(NotASweep) }
    }
}

/// Error: the text is not a sweep identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the identifier of a sweep has 52 characters of a-z and 2-7")]
pub struct NotASweep;

fn under(at: &str, error: FieldError) -> FieldError {
    FieldError::new(&format!("{at}{}", error.pointer), error.detail)
}
