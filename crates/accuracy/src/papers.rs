//! Comparison of published figures with Planscope results.
//!
//! `examples/published/*.json` contains published values by table and figure, and names the plan or
//! study to compare with. [`compare`] plans all scenarios. [`page`] writes the tables into
//! docs/papers.md; the other text there is written by hand. No parameter is fitted to these values.

mod page;
mod plans;
mod published;
mod quantity;
mod studies;

pub use page::{console, fill};
pub use published::PublishedPaper;

use std::io;
use std::path::PathBuf;

use api::papers::{Paper, PaperFigure, PaperSet};
use planner::engine::PlanError;

use plans::{Plans, Unavailable};
use published::{PublishedFigure, PublishedSet};

/// Error during the comparison of a paper.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file is missing or unreadable.
    #[error("{}: {error}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// System error.
        error: io::Error,
    },
    /// A file with published figures has an invalid format.
    #[error("{}: {error}", path.display())]
    Published {
        /// Path of the file.
        path: PathBuf,
        /// Parse error.
        error: serde_json::Error,
    },
    /// A scenario is invalid.
    #[error("{}: {field}", path.display())]
    Scenario {
        /// Path of the file.
        path: PathBuf,
        /// First invalid field and its error.
        field: String,
    },
    /// Planning failed.
    #[error("{scenario}: {error}")]
    Plan {
        /// Scenario name.
        scenario: String,
        /// Planning error.
        error: PlanError,
    },
    /// A figure refers to data missing from its scenario.
    #[error("{set}, {label}: {reason}")]
    Figure {
        /// Set identifier.
        set: String,
        /// Figure label.
        label: String,
        /// Missing data.
        reason: String,
    },
    /// The page lacks the start marker or end marker for a table.
    #[error("docs/papers.md: {0}")]
    Page(String),
}

/// Plans all scenarios of a paper from the folder `examples`, and compares the published figures
/// with the plans.
///
/// # Errors
/// Returns an error for a missing or invalid scenario, for a plan rejected by the checker, and for
/// a figure that refers to missing data.
pub fn compare(
    examples: &std::path::Path,
    paper: &PublishedPaper,
    mut starts: impl FnMut(&str),
) -> Result<Paper, Error> {
    let mut plans = Plans::new(examples.to_owned());
    let mut sets = Vec::with_capacity(paper.sets.len());
    for set in &paper.sets {
        starts(&set.place);
        sets.push(compare_set(&mut plans, set)?);
    }
    Ok(Paper { id: paper.id.clone(), title: paper.title.clone(), source: paper.source.clone(), sets })
}

fn compare_set(plans: &mut Plans, set: &PublishedSet) -> Result<PaperSet, Error> {
    let mut results = Vec::with_capacity(set.figures.len());
    let mut unique_plans = Vec::new();
    for figure in &set.figures {
        results.push(compare_figure(plans, set, figure)?);
        for plan in figure.quantity.plans() {
            if !unique_plans.contains(plan) {
                unique_plans.push(plan.clone());
            }
        }
    }
    let figure = |reason| Error::Figure { set: set.id.clone(), label: "chart".to_owned(), reason };
    let chart = match &set.chart {
        Some(chart) => Some(chart.draw(plans).map_err(|error| match error {
            Unavailable::Infeasible(reason) | Unavailable::Inapplicable(reason) => figure(reason),
            Unavailable::Error(error) => error,
        })?),
        None => None,
    };
    let evidence = unique_plans.iter().map(|plan| plans.evidence(plan)).collect::<Result<_, _>>()?;
    Ok(PaperSet {
        id: set.id.clone(),
        place: set.place.clone(),
        title: set.title.clone(),
        is_synthetic: set.is_synthetic,
        assumptions: set.assumptions.clone(),
        figures: results,
        plans: evidence,
        chart,
    })
}

fn compare_figure(plans: &mut Plans, set: &PublishedSet, figure: &PublishedFigure) -> Result<PaperFigure, Error> {
    let wrong = |reason| Error::Figure { set: set.id.clone(), label: figure.label.clone(), reason };
    let (ours, missing) = match figure.quantity.value(plans) {
        Ok(value) => (Some(four_digits(value)), None),
        Err(Unavailable::Infeasible(reason)) => (None, Some(reason)),
        Err(Unavailable::Inapplicable(reason)) => return Err(wrong(reason)),
        Err(Unavailable::Error(error)) => return Err(error),
    };
    let published = figure.published.map(Into::into);
    let difference = published.zip(ours).map(|(published, ours): (api::papers::PublishedValue, f64)| {
        let difference = published.difference(ours, &figure.unit);
        api::papers::Difference { value: four_digits(difference.value), ..difference }
    });
    Ok(PaperFigure {
        label: figure.label.clone(),
        unit: figure.unit.clone(),
        published,
        ours,
        missing,
        difference,
        is_wall_time: figure.quantity.is_wall_time(),
    })
}

/// Rounds to four significant digits. More digits have no meaning.
fn four_digits(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10_f64.powi(3 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests;
