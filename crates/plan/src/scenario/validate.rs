//! Validates scenarios. Errors name all invalid fields plus the allowed values.

mod distribution;
mod fields;
mod model;
mod overrides;
mod source;
mod workload;

use std::sync::Arc;

use serde_json::Value;

use super::{PlanSettings, Scenario, ScenarioId};
use planscope_core::workload::Dataset;

/// Validation error for a field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{detail}", location_prefix(pointer))]
pub struct FieldError {
    /// JSON pointer into the scenario, for example "/cluster/nodes".
    pub pointer: String,
    /// Error description and allowed values.
    pub detail: String,
}

/// Returns the location as a sentence prefix, empty for the document root.
fn location_prefix(pointer: &str) -> String {
    if pointer.is_empty() { String::new() } else { format!("{pointer}: ") }
}

impl FieldError {
    /// Creates an error for the field at `pointer`.
    pub fn new(pointer: &str, detail: String) -> Self {
        Self { pointer: pointer.to_owned(), detail }
    }
}

/// Dataset lookup by content address.
pub trait Datasets {
    /// Returns the dataset that has the identifier, if available.
    fn dataset(&self, id: &str) -> Option<Arc<Dataset>>;
}

/// Provides no datasets: scenarios must contain the distributions.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoDatasets;

impl Datasets for NoDatasets {
    fn dataset(&self, _: &str) -> Option<Arc<Dataset>> {
        None
    }
}

/// A validated scenario, including the datasets that it references.
#[derive(Debug, Clone)]
pub struct ValidScenario {
    scenario: Scenario,
    id: ScenarioId,
    datasets: Vec<(String, Arc<Dataset>)>,
}

impl ValidScenario {
    /// Validates all fields and resolves the datasets. Returns all invalid fields.
    pub fn new(scenario: Scenario, datasets: &dyn Datasets) -> Result<Self, Vec<FieldError>> {
        let mut errors = Vec::new();
        fields::check(&scenario, &mut errors);
        let found = workload::check(&scenario, datasets, &mut errors);
        overrides::check(&scenario, &mut errors);
        if errors.is_empty() { Ok(Self { id: scenario.id(), scenario, datasets: found }) } else { Err(errors) }
    }

    /// Returns the validated [`Scenario::sketch`].
    pub fn sketch(&self) -> Option<Self> {
        // The sketch changes only search settings, which other validation rules do not use.
        self.scenario.sketch().and_then(|sketch| Self::new(sketch, self).ok())
    }

    /// Returns the scenario under the settings of a plan. Settings of plans are valid.
    #[must_use]
    pub fn with_settings(&self, settings: &PlanSettings) -> Self {
        let scenario = self.scenario.with_settings(settings);
        Self { id: scenario.id(), scenario, datasets: self.datasets.clone() }
    }

    /// Returns the scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Returns the scenario identifier.
    pub fn id(&self) -> &ScenarioId {
        &self.id
    }

    /// Returns the datasets referenced by the scenario.
    pub fn datasets(&self) -> impl Iterator<Item = &Dataset> {
        self.datasets.iter().map(|(_, dataset)| dataset.as_ref())
    }

    /// Returns a dataset referenced by the scenario.
    pub fn dataset(&self, id: &str) -> Option<&Dataset> {
        self.datasets.iter().find(|(name, _)| name == id).map(|(_, dataset)| dataset.as_ref())
    }
}

/// Provides the datasets for another scenario that differs in other fields.
impl Datasets for ValidScenario {
    fn dataset(&self, id: &str) -> Option<Arc<Dataset>> {
        self.datasets.iter().find(|(name, _)| name == id).map(|(_, dataset)| Arc::clone(dataset))
    }
}

/// Separates a value from its range in error details.
const RANGE_ERROR: &str = " is out of range: ";

/// Formats a number. One with many zeros has an exponent: 1e300 has 301 digits.
fn shortened(value: f64) -> String {
    let is_short = value == 0.0 || (1e-6..1e15).contains(&value.abs());
    if is_short { value.to_string() } else { format!("{value:e}") }
}

/// Collects at most one error per field, because later checks depend on earlier checks.
struct Ranges<'a>(&'a mut Vec<FieldError>);

impl Ranges<'_> {
    fn integer(&mut self, pointer: &str, value: u32, min: u32, max: u32, unit: &str) {
        if !(min..=max).contains(&value) {
            self.refuse(pointer, format!("{value}{unit}{RANGE_ERROR}{min} to {max}"));
        }
    }

    fn number(&mut self, pointer: &str, value: f64, min: f64, max: f64, unit: &str) {
        if !(value >= min && value <= max) {
            self.refuse(pointer, format!("{}{unit}{RANGE_ERROR}{min} to {max}", shortened(value)));
        }
    }

    fn refuse(&mut self, pointer: &str, detail: String) {
        if self.0.iter().all(|error| error.pointer != pointer) {
            self.0.push(FieldError::new(pointer, detail));
        }
    }

    /// Returns whether a field at or below `prefix` is invalid.
    fn any_under(&self, prefix: &str) -> bool {
        let is_under =
            |pointer: &str| pointer.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        self.0.iter().any(|error| is_under(&error.pointer))
    }
}

/// Returns the valid range for a numeric field, for example "1 to 4096", or `None`. Derived by
/// validating values outside any range.
pub(super) fn range(document: &Value, pointer: &str) -> Option<String> {
    let probes = [Value::from(u32::MAX), Value::from(1e300), Value::from(0)];
    probes.into_iter().find_map(|probe| {
        let mut probed = document.clone();
        *probed.pointer_mut(pointer)? = probe;
        let scenario: Scenario = serde_json::from_value(probed).ok()?;
        let errors = ValidScenario::new(scenario, &NoDatasets).err()?;
        let error = errors.into_iter().find(|error| error.pointer == pointer)?;
        error.detail.split_once(RANGE_ERROR).map(|(_, range)| range.to_owned())
    })
}
