//! Measures the simulator against published measurements.
//!
//! [`measure`] predicts every row of the published tables with [`planner::estimate`] and compares; [`report`] writes
//! what came out for people (docs/accuracy.md, plots) and for the dashboard (docs/accuracy.json), and says which
//! set got worse. [`papers`] holds the figures of papers against plans of ours. Only operator and collective timings may be fitted to, and few
//! named step times by [`fit_host`]; never the step times compared here.

pub mod fit_host;
pub mod papers;
pub mod report;
pub mod set;
pub mod statistics;
pub mod truth;

pub use set::{Facet, Row, Set, Variant};
pub use statistics::Statistics;
pub use truth::Error;

use std::path::Path;

/// Everything that was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Accuracy {
    /// One set per published table, in the order of the report.
    pub sets: Vec<Set>,
}

/// Predicts every row of the published tables in the folder `truth` below `data`.
///
/// # Errors
/// A file that is missing or cannot be read, named with its path; a row that the planner refuses.
pub fn measure(data: &Path) -> Result<Accuracy, Error> {
    let folder = data.join("truth");
    let sets = truth::SETS.iter().map(|set| set(&folder)).collect::<Result<Vec<_>, _>>()?;
    Ok(Accuracy { sets: sets.into_iter().flatten().collect() })
}
