//! Which scenarios planners accept: every wrong field is named, with what would be right.

mod distribution;
mod fields;
mod model;
mod overrides;
mod source;
mod workload;

use std::sync::Arc;

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

/// Collects errors of number fields.
struct Ranges<'a>(&'a mut Vec<FieldError>);

impl Ranges<'_> {
    fn whole(&mut self, pointer: &str, value: u32, min: u32, max: u32, unit: &str) {
        if !(min..=max).contains(&value) {
            self.0.push(FieldError::new(pointer, format!("{value}{unit} is out of range: {min} to {max}")));
        }
    }

    fn number(&mut self, pointer: &str, value: f64, min: f64, max: f64, unit: &str) {
        if !(value >= min && value <= max) {
            self.0.push(FieldError::new(pointer, format!("{value}{unit} is out of range: {min} to {max}")));
        }
    }

    fn refuse(&mut self, pointer: &str, detail: String) {
        self.0.push(FieldError::new(pointer, detail));
    }
}
