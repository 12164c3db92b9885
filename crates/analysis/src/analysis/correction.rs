//! Results of the adaptive correction of DFLOP in a run with slow shapes.

use serde::{Deserialize, Serialize};

/// Result of the correction study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CorrectionAnalysis {
    /// Distinct shapes in the run: images or clips, and tokens in steps of 256.
    pub shapes: u32,
    /// Slow shapes: the requested fraction, rounded.
    pub slow_shapes: u32,
    /// Extra time per slow item, in s.
    pub delay_s: f64,
    /// Time per iteration without correction, in s: the planner's tables plus the extra time for
    /// slow shapes.
    pub without_s: Vec<f64>,
    /// Time per iteration with correction, in s. Includes the monitoring cost while correction is
    /// on.
    pub with_s: Vec<f64>,
    /// Net speed-up per iteration: uncorrected time divided by the time with correction and
    /// monitoring, minus one.
    pub net: Vec<f64>,
    /// Estimated benefit B per iteration while correction is on.
    pub benefits: Vec<f64>,
    /// Monitoring cost C, relative to throughput.
    pub cost: f64,
    /// Decisions to continue or stop correction.
    pub decisions: Vec<Decision>,
    /// Iteration after which correction stopped; omitted if correction remains on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switched_off: Option<u32>,
    /// Mean net speed-up in the last half of the run.
    pub settled: f64,
    /// Shape penalties from a run, in descending order; empty without a run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub penalties: Vec<Penalty>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// Decision after an iteration to continue or stop correction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Decision {
    /// Iteration.
    pub iteration: u32,
    /// Mean benefit since the previous decision.
    pub benefit: f64,
    /// True if the benefit exceeds the cost.
    pub stays_on: bool,
}

/// Penalty for a shape from a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Penalty {
    /// Shape description, for example "3 items, 1,025 to 1,280 tokens".
    pub shape: String,
    /// Items with this shape in the analysed steps.
    pub items: u32,
    /// Estimated measured time divided by planned time.
    pub penalty: f64,
}
