//! How an override gives its time.

use super::{
    CostOverride, Formula, FormulaError, OverridePhase, SequenceTimes, TableError, TimeTable, TimingsError, Variable,
    Variables,
};

/// Smallest factor of a scale.
pub(crate) const LEAST_SCALE: f64 = 0.01;
/// Largest factor of a scale.
pub(crate) const MOST_SCALE: f64 = 100.0;
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
    /// Timings of sequences.
    Timings(SequenceTimes),
}

/// Why an override gives no time.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PriceError {
    /// None of the ways, or more than one.
    #[error("exactly one of scale, formula_us, table_us and timings_us is needed")]
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
    /// Wrong timings.
    #[error(transparent)]
    Timings(#[from] TimingsError),
    /// Timings of a single operator.
    #[error("timings of sequences are of whole layers: the operator must be \"layer\"")]
    TimedOperator,
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
            Self::Timings(error) => {
                error.place().map_or_else(|| "/timings_us".to_owned(), |place| format!("/timings_us/{place}"))
            }
            Self::TimedOperator => "/operator".to_owned(),
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
        match (given.scale, &given.formula_us, &given.table_us, &given.timings_us) {
            (Some(factor), None, None, None) if (LEAST_SCALE..=MOST_SCALE).contains(&factor) => Ok(Self::Scale(factor)),
            (Some(factor), None, None, None) => Err(PriceError::Scale(factor)),
            (None, Some(formula), None, None) => Ok(Self::Formula(Formula::parse(formula)?)),
            (None, None, Some(points), None) => Ok(Self::Table(TimeTable::new(points)?)),
            (None, None, None, Some(_)) if !given.is_layer() => Err(PriceError::TimedOperator),
            (None, None, None, Some(timings)) => Ok(Self::Timings(SequenceTimes::new(timings)?)),
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
            Self::Timings(times) => times.micros(variables),
        }
    }
}
