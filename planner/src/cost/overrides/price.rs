//! How an override gives its time.

use super::{CostOverride, Formula, FormulaError, OverridePhase, TableError, TimeTable, Variable, Variables};

/// Smallest factor of a scale.
const LEAST_SCALE: f64 = 0.01;
/// Largest factor of a scale.
const MOST_SCALE: f64 = 100.0;
/// Longest time that an override gives, eleven days: beyond it sums of times lose their meaning.
const LONGEST_US: f64 = 1e12;

/// A time, in one of the ways of giving it.
#[derive(Debug, Clone, PartialEq)]
pub enum Price {
    /// A factor on what the model predicts.
    Scale(f64),
    /// A formula.
    Formula(Formula),
    /// Points.
    Table(TimeTable),
}

/// Why an override gives no time.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PriceError {
    /// None of the ways, or more than one.
    #[error("exactly one of scale, formula_us and table_us is needed")]
    NotOne,
    /// A wrong factor.
    #[error("{0} is out of range: {LEAST_SCALE} to {MOST_SCALE}")]
    Scale(f64),
    /// A wrong formula.
    #[error(transparent)]
    Formula(#[from] FormulaError),
    /// A wrong table.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A part of the backward of a whole layer.
    #[error("a whole layer has forward and backward; its two gradients keep their shares")]
    LayerPhase,
}

impl PriceError {
    /// The wrong field, as the end of a JSON pointer.
    pub fn field(&self) -> String {
        match self {
            Self::NotOne => String::new(),
            Self::Scale(_) => "/scale".to_owned(),
            Self::Formula(_) => "/formula_us".to_owned(),
            Self::Table(error) => {
                error.point().map_or_else(|| "/table_us".to_owned(), |point| format!("/table_us/{point}"))
            }
            Self::LayerPhase => "/phase".to_owned(),
        }
    }
}

impl Price {
    /// What an override gives.
    pub fn of(given: &CostOverride) -> Result<Self, PriceError> {
        if given.is_layer() && matches!(given.phase, Some(OverridePhase::InputGrad | OverridePhase::WeightGrad)) {
            return Err(PriceError::LayerPhase);
        }
        match (given.scale, &given.formula_us, &given.table_us) {
            (Some(factor), None, None) if (LEAST_SCALE..=MOST_SCALE).contains(&factor) => Ok(Self::Scale(factor)),
            (Some(factor), None, None) => Err(PriceError::Scale(factor)),
            (None, Some(formula), None) => Ok(Self::Formula(Formula::parse(formula)?)),
            (None, None, Some(points)) => Ok(Self::Table(TimeTable::new(points)?)),
            _ => Err(PriceError::NotOne),
        }
    }

    /// Microseconds at some variables; `None` where that is no time.
    pub fn micros(&self, variables: &Variables) -> Option<f64> {
        let micros = self.value(variables);
        (micros.is_finite() && micros >= 0.0).then(|| micros.min(LONGEST_US))
    }

    /// What comes out at some variables, a time or not.
    pub fn value(&self, variables: &Variables) -> f64 {
        match self {
            Self::Scale(factor) => factor * variables.get(Variable::PredictedUs),
            Self::Formula(formula) => formula.evaluate(variables),
            Self::Table(table) => table.micros(variables.get(Variable::Tokens)),
        }
    }
}
