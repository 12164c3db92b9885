//! Which scenarios planners accept: every wrong field is named, with what would be right.

mod distribution;
mod fields;
mod model;
mod overrides;
mod source;
mod workload;

use std::sync::Arc;

use serde_json::Value;

use super::{Scenario, ScenarioId};
use crate::workload::Dataset;

/// A wrong field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{detail}", place(pointer))]
pub struct FieldError {
    /// JSON pointer into the scenario, for example "/cluster/nodes".
    pub pointer: String,
    /// What is wrong, and what would be right.
    pub detail: String,
}

/// Where it is, for the beginning of a sentence; nothing of the document as a whole.
fn place(pointer: &str) -> String {
    if pointer.is_empty() { String::new() } else { format!("{pointer}: ") }
}

impl FieldError {
    /// A wrong field at `pointer`.
    pub fn new(pointer: &str, detail: String) -> Self {
        Self { pointer: pointer.to_owned(), detail }
    }
}

/// Finds datasets by content address.
pub trait Datasets {
    /// The dataset of that identifier, if it is at hand.
    fn dataset(&self, id: &str) -> Option<Arc<Dataset>>;
}

/// No datasets at all: scenarios must carry their distributions themselves.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoDatasets;

impl Datasets for NoDatasets {
    fn dataset(&self, _: &str) -> Option<Arc<Dataset>> {
        None
    }
}

/// A scenario that planners accept, with the datasets it names.
#[derive(Debug, Clone)]
pub struct ValidScenario {
    scenario: Scenario,
    id: ScenarioId,
    datasets: Vec<(String, Arc<Dataset>)>,
}

impl ValidScenario {
    /// Checks every field and finds the datasets; names all wrong fields at once.
    pub fn new(scenario: Scenario, datasets: &dyn Datasets) -> Result<Self, Vec<FieldError>> {
        let mut errors = Vec::new();
        fields::check(&scenario, &mut errors);
        let found = workload::check(&scenario, datasets, &mut errors);
        overrides::check(&scenario, &mut errors);
        if errors.is_empty() { Ok(Self { id: scenario.id(), scenario, datasets: found }) } else { Err(errors) }
    }

    /// [`Scenario::sketch`] of it.
    pub fn sketch(&self) -> Option<Self> {
        // What the searches are told has no rule that taking them away could break.
        self.scenario.sketch().and_then(|sketch| Self::new(sketch, self).ok())
    }

    /// The scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Its identifier.
    pub fn id(&self) -> &ScenarioId {
        &self.id
    }

    /// The datasets that the scenario names.
    pub fn datasets(&self) -> impl Iterator<Item = &Dataset> {
        self.datasets.iter().map(|(_, dataset)| dataset.as_ref())
    }

    /// A dataset that the scenario names.
    pub fn dataset(&self, id: &str) -> Option<&Dataset> {
        self.datasets.iter().find(|(name, _)| name == id).map(|(_, dataset)| dataset.as_ref())
    }
}

/// The datasets of a scenario, for another one that differs in other fields.
impl Datasets for ValidScenario {
    fn dataset(&self, id: &str) -> Option<Arc<Dataset>> {
        self.datasets.iter().find(|(name, _)| name == id).map(|(_, dataset)| Arc::clone(dataset))
    }
}

/// Stands between a value and its range in the detail of an error.
const OUT_OF_RANGE: &str = " is out of range: ";

/// Collects errors of fields, one of each: the first says what has to change before any other can be right.
struct Ranges<'a>(&'a mut Vec<FieldError>);

impl Ranges<'_> {
    fn whole(&mut self, pointer: &str, value: u32, min: u32, max: u32, unit: &str) {
        if !(min..=max).contains(&value) {
            self.refuse(pointer, format!("{value}{unit}{OUT_OF_RANGE}{min} to {max}"));
        }
    }

    fn number(&mut self, pointer: &str, value: f64, min: f64, max: f64, unit: &str) {
        if !(value >= min && value <= max) {
            self.refuse(pointer, format!("{value}{unit}{OUT_OF_RANGE}{min} to {max}"));
        }
    }

    fn refuse(&mut self, pointer: &str, detail: String) {
        if self.0.iter().all(|error| error.pointer != pointer) {
            self.0.push(FieldError::new(pointer, detail));
        }
    }

    /// Whether a field at or below `prefix` is wrong.
    fn any_under(&self, prefix: &str) -> bool {
        let is_under =
            |pointer: &str| pointer.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        self.0.iter().any(|error| is_under(&error.pointer))
    }
}

/// The range of a number field of a document, for example "1 to 4096"; `None` if it has none. It is what the checks answer to
/// values that no range contains.
pub(super) fn range(document: &Value, pointer: &str) -> Option<String> {
    let probes = [Value::from(u32::MAX), Value::from(1e300), Value::from(0)];
    probes.into_iter().find_map(|probe| {
        let mut probed = document.clone();
        *probed.pointer_mut(pointer)? = probe;
        let scenario: Scenario = serde_json::from_value(probed).ok()?;
        let errors = ValidScenario::new(scenario, &NoDatasets).err()?;
        let error = errors.into_iter().find(|error| error.pointer == pointer)?;
        error.detail.split_once(OUT_OF_RANGE).map(|(_, range)| range.to_owned())
    })
}
