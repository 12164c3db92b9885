//! Figures of papers beside ours.
//!
//! `examples/published/*.json` holds what a paper published, by table and figure, and which plan or study of which
//! ready scenario is held against it. [`compare`] plans them all; [`page`] writes the tables into docs/papers.md, whose
//! other text is people's. Nothing here is ever fitted to.

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

use plans::Plans;
use published::{PublishedFigure, PublishedSet};

/// Why a paper cannot be held against ours.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file is missing or cannot be read.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A file of published figures is not one.
    #[error("{}: {error}", path.display())]
    Published {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: serde_json::Error,
    },
    /// A scenario is not valid.
    #[error("{}: {field}", path.display())]
    Scenario {
        /// The file.
        path: PathBuf,
        /// The first wrong field, and what is wrong with it.
        field: String,
    },
    /// A plan could not be made.
    #[error("{scenario}: {error}")]
    Plan {
        /// The scenario.
        scenario: String,
        /// Why.
        error: PlanError,
    },
    /// A figure asks for what its scenario does not have.
    #[error("{set}, {label}: {reason}")]
    Figure {
        /// The set.
        set: String,
        /// The figure.
        label: String,
        /// What is missing.
        reason: String,
    },
    /// The page lacks the place of a table, or the end of one.
    #[error("docs/papers.md: {0}")]
    Page(String),
}

/// Plans every scenario of a paper, found in the folder `examples`, and holds the published figures against the plans.
///
/// # Errors
/// A scenario that is missing or not valid; a plan that the checker refuses; a figure of what its scenario does not have.
pub fn compare(
    examples: &std::path::Path,
    paper: &PublishedPaper,
    mut starts: impl FnMut(&str),
) -> Result<Paper, Error> {
    let mut plans = Plans::of(examples.to_owned());
    let mut sets = Vec::with_capacity(paper.sets.len());
    for set in &paper.sets {
        starts(&set.place);
        sets.push(compare_set(&mut plans, set)?);
    }
    Ok(Paper { id: paper.id.clone(), title: paper.title.clone(), source: paper.source.clone(), sets })
}

fn compare_set(plans: &mut Plans, set: &PublishedSet) -> Result<PaperSet, Error> {
    let mut figures = Vec::with_capacity(set.figures.len());
    let mut shown = Vec::new();
    for figure in &set.figures {
        figures.push(compare_figure(plans, set, figure)?);
        for plan in figure.quantity.plans() {
            if !shown.contains(plan) {
                shown.push(plan.clone());
            }
        }
    }
    let figure = |reason| Error::Figure { set: set.id.clone(), label: "chart".to_owned(), reason };
    let chart = match &set.chart {
        Some(chart) => Some(chart.draw(plans)?.map_err(figure)?),
        None => None,
    };
    let shown = shown.iter().map(|plan| plans.evidence(plan)).collect::<Result<_, _>>()?;
    Ok(PaperSet {
        id: set.id.clone(),
        place: set.place.clone(),
        title: set.title.clone(),
        is_synthetic: set.is_synthetic,
        assumptions: set.assumptions.clone(),
        figures,
        plans: shown,
        chart,
    })
}

fn compare_figure(plans: &mut Plans, set: &PublishedSet, figure: &PublishedFigure) -> Result<PaperFigure, Error> {
    let wrong = |reason| Error::Figure { set: set.id.clone(), label: figure.label.clone(), reason };
    let found = figure.quantity.value(plans)?.map_err(wrong)?;
    let (ours, missing) = match found {
        quantity::Found::Value(value) => (Some(four_digits(value)), None),
        quantity::Found::None(why) => (None, Some(why)),
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

/// To four significant digits: more are not meant.
fn four_digits(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10_f64.powi(3 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests;
