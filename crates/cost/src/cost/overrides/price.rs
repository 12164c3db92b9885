//! Parsed time definitions of overrides.

use super::{
    CostOverride, Formula, FormulaError, OverridePhase, SequenceTimes, TableError, TimeTable, TimingsError, Variable,
    Variables,
};

/// Minimum scale factor.
pub(crate) const MIN_SCALE: f64 = 0.01;
/// Maximum scale factor.
pub(crate) const MAX_SCALE: f64 = 100.0;
/// Maximum time for an override (11 days). Sums of longer times lose precision.
const MAX_US: f64 = 1e12;

/// A time definition.
#[derive(Debug, Clone, PartialEq)]
pub enum Price {
    /// Factor on the predicted time.
    Scale(f64),
    /// Formula in microseconds.
    Formula(Formula),
    /// Points over tokens.
    Table(TimeTable),
    /// Fit to sequence timings.
    Timings(SequenceTimes),
}

/// Invalid override.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PriceError {
    /// None or several definitions are set.
    #[error("exactly one of scale, formula_us, table_us and timings_us is needed")]
    DefinitionCount,
    /// The factor is out of range.
    #[error("{0} is out of range: {MIN_SCALE} to {MAX_SCALE}")]
    Scale(f64),
    /// Invalid formula.
    #[error(transparent)]
    Formula(#[from] FormulaError),
    /// Invalid table.
    #[error(transparent)]
    Table(#[from] TableError),
    /// Invalid timings.
    #[error(transparent)]
    Timings(#[from] TimingsError),
    /// Sequence timings for a single operator.
    #[error("timings of sequences are of whole layers: the operator must be \"layer\"")]
    TimedOperator,
    /// A layer override for only one of the two gradients.
    #[error("a whole layer has forward and backward; its two gradients keep their shares")]
    LayerPhase,
}

impl PriceError {
    /// Returns the invalid field as a JSON pointer suffix.
    pub fn field(&self) -> String {
        match self {
            Self::DefinitionCount => String::new(),
            Self::Scale(_) => "/scale".to_owned(),
            Self::Formula(_) => "/formula_us".to_owned(),
            Self::Table(error) => {
                error.point().map_or_else(|| "/table_us".to_owned(), |point| format!("/table_us/{point}"))
            }
            Self::Timings(error) => {
                error.index().map_or_else(|| "/timings_us".to_owned(), |index| format!("/timings_us/{index}"))
            }
            Self::TimedOperator => "/operator".to_owned(),
            Self::LayerPhase => "/phase".to_owned(),
        }
    }
}

impl Price {
    /// Parses the time definition of an override.
    pub fn parse(given: &CostOverride) -> Result<Self, PriceError> {
        if given.is_layer() && matches!(given.phase, Some(OverridePhase::InputGrad | OverridePhase::WeightGrad)) {
            return Err(PriceError::LayerPhase);
        }
        match (given.scale, &given.formula_us, &given.table_us, &given.timings_us) {
            (Some(factor), None, None, None) if (MIN_SCALE..=MAX_SCALE).contains(&factor) => Ok(Self::Scale(factor)),
            (Some(factor), None, None, None) => Err(PriceError::Scale(factor)),
            (None, Some(formula), None, None) => Ok(Self::Formula(Formula::parse(formula)?)),
            (None, None, Some(points), None) => Ok(Self::Table(TimeTable::new(points)?)),
            (None, None, None, Some(_)) if !given.is_layer() => Err(PriceError::TimedOperator),
            (None, None, None, Some(timings)) => Ok(Self::Timings(SequenceTimes::new(timings)?)),
            _ => Err(PriceError::DefinitionCount),
        }
    }

    /// Returns the time in microseconds, or `None` if the result is not finite or is negative.
    pub fn micros(&self, variables: &Variables) -> Option<f64> {
        let micros = self.value(variables);
        (micros.is_finite() && micros >= 0.0).then(|| micros.min(MAX_US))
    }

    /// Returns the raw result in microseconds, which can be an invalid time.
    pub fn value(&self, variables: &Variables) -> f64 {
        match self {
            Self::Scale(factor) => factor * variables.get(Variable::PredictedUs),
            Self::Formula(formula) => formula.evaluate(variables),
            Self::Table(table) => table.micros(variables.get(Variable::Tokens)),
            Self::Timings(times) => times.micros(variables),
        }
    }
}
