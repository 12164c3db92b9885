//! Gain of an ingredient of a plan.

use serde::{Deserialize, Serialize};

/// Seconds that an ingredient of a plan saves on the representative batch, over a named opponent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Gain {
    /// Ingredient, for example "free settings".
    pub ingredient: String,
    /// Opponent, for example "1F1B or interleaved".
    pub opponent: String,
    /// Iteration time of the opponent in s.
    pub opponent_s: f64,
    /// Iteration time with the ingredient in s.
    pub iteration_s: f64,
}

impl Gain {
    /// Returns the gain, or `None` if one of the times is infinite: there is no plan.
    pub fn new(ingredient: &str, opponent: &str, opponent_s: f64, iteration_s: f64) -> Option<Self> {
        let is_known = opponent_s.is_finite() && iteration_s.is_finite();
        is_known.then(|| Self {
            ingredient: ingredient.to_owned(),
            opponent: opponent.to_owned(),
            opponent_s,
            iteration_s,
        })
    }
}
