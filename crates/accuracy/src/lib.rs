//! Compares the simulator with published measurements.
//!
//! [`measure`] predicts all rows of the published tables with [`planner::estimate`] and computes
//! the errors. [`report`] writes the results for readers (docs/accuracy.md, plots) and for the
//! dashboard (docs/accuracy.json), and detects sets with increased errors. [`papers`] compares
//! published figures with Planscope plans. Parameters are fitted only to operator and collective
//! timings, and to a small number of step times by [`fit_host`]. They are never fitted to the step
//! times compared here.

pub mod certainty;
pub mod choice;
pub mod fit_host;
pub mod measurements;
pub mod papers;
pub mod report;
pub mod set;
pub mod statistics;
pub mod step;
pub mod truth;

pub use set::{Facet, Row, Set, Variant};
pub use statistics::Statistics;
pub use truth::Error;

use std::path::Path;

/// Results for all sets.
#[derive(Debug, Clone, PartialEq)]
pub struct Accuracy {
    /// One set per published table, in report order.
    pub sets: Vec<Set>,
}

/// Predicts all rows of the published tables in the folder `truth` in `data`.
///
/// # Errors
/// Returns an error with the path for a missing or unreadable file, and an error for a row rejected
/// by the planner.
pub fn measure(data: &Path) -> Result<Accuracy, Error> {
    let folder = data.join("truth");
    let sets = truth::SETS.iter().map(|set| set(&folder)).collect::<Result<Vec<_>, _>>()?;
    Ok(Accuracy { sets: sets.into_iter().flatten().collect() })
}
