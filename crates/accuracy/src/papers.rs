//! Comparison of published figures with Planscope results.
//!
//! `examples/published/*.json` contains published values by table and figure, and names the plan or
//! study to compare with. [`compare`] plans all scenarios, for several seeds. [`page`] writes the
//! tables into docs/papers.md; the other text there is written by hand. No parameter is fitted to
//! these values.

mod clock;
mod page;
mod plans;
mod published;
mod quantity;
mod seeds;
mod studies;

pub use page::{console, fill};
pub use published::PublishedPaper;

use std::io;
use std::path::PathBuf;

use api::papers::{Difference, Paper, PaperChoice, PaperFigure, PaperSet};
use planner::engine::PlanError;
use planner::outcome::Planned;

use plans::{Needs, Plans, Unavailable};
use published::{PlanReference, PublishedChoice, PublishedFigure, PublishedSet};
pub use seeds::Seeds;

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
    seeds: Seeds,
    starts: &(dyn Fn(&str) + Sync),
) -> Result<Paper, Error> {
    let needs = Needs::of_all(paper);
    let mut plans = Plans::new(examples.to_owned(), &needs, 0);
    let mut sets = Vec::with_capacity(paper.sets.len());
    for set in &paper.sets {
        starts(&set.place);
        sets.push(compare_set(&mut plans, set)?);
    }
    drop(plans);
    let others = seeds::others(examples, paper, seeds, starts)?;
    if !others.is_empty() {
        seeds::spread(paper, &mut sets, &others);
    }
    Ok(Paper { id: paper.id.clone(), title: paper.title.clone(), source: paper.source.clone(), sets })
}

fn compare_set(plans: &mut Plans<'_>, set: &PublishedSet) -> Result<PaperSet, Error> {
    let figure = |reason| Error::Figure { set: set.id.clone(), label: "chart".to_owned(), reason };
    let mut results = Vec::with_capacity(set.figures.len());
    let mut unique_plans = Vec::new();
    for published in &set.figures {
        let (result, opponent) = compare_figure(plans, set, published)?;
        results.push(result);
        for plan in published.quantity.plans().into_iter().chain(opponent) {
            if !unique_plans.contains(&plan) {
                unique_plans.push(plan);
            }
        }
    }
    let choices = set.choices.iter().map(|choice| compare_choice(plans, set, choice)).collect::<Result<_, _>>()?;
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
        choices,
        plans: evidence,
        chart,
    })
}

/// Returns the compared figure for the seed of the scenario, and the plan that it is relative to if the quantity does
/// not name it.
fn compare_figure(
    plans: &mut Plans<'_>,
    set: &PublishedSet,
    figure: &PublishedFigure,
) -> Result<(PaperFigure, Option<PlanReference>), Error> {
    let wrong = |reason| Error::Figure { set: set.id.clone(), label: figure.label.clone(), reason };
    let (ours, missing) = match figure.quantity.value(plans) {
        Ok(value) => (Some(four_digits(value)), None),
        Err(Unavailable::Infeasible(reason)) => (None, Some(reason)),
        Err(Unavailable::Inapplicable(reason)) => return Err(wrong(reason)),
        Err(Unavailable::Error(error)) => return Err(error),
    };
    let opponent = figure.quantity.opponent(plans).map_err(|error| wrong(error.to_string()))?;
    let mut result = PaperFigure {
        label: figure.label.clone(),
        unit: figure.unit.clone(),
        published: figure.published.map(Into::into),
        ours,
        spread: None,
        opponent: opponent.as_ref().map(|opponent| opponent.planner),
        missing,
        difference: None,
        is_wall_time: figure.quantity.is_wall_time(),
    };
    measure_difference(&mut result);
    Ok((result, opponent))
}

/// Sets the difference between the value of the figure and the published value.
fn measure_difference(figure: &mut PaperFigure) {
    figure.difference = figure.published.zip(figure.ours).map(|(published, ours)| {
        let difference = published.difference(ours, &figure.unit);
        Difference { value: four_digits(difference.value), ..difference }
    });
}

fn compare_choice(plans: &mut Plans<'_>, set: &PublishedSet, choice: &PublishedChoice) -> Result<PaperChoice, Error> {
    let ours = match plans.planned(&choice.plan) {
        Ok(planned) => planned_choice(planned),
        Err(Unavailable::Error(error)) => return Err(error),
        Err(Unavailable::Infeasible(reason)) => reason,
        Err(Unavailable::Inapplicable(reason)) => {
            return Err(Error::Figure { set: set.id.clone(), label: choice.label.clone(), reason });
        }
    };
    Ok(PaperChoice { label: choice.label.clone(), published: choice.published.clone(), ours })
}

/// Returns the groups or the strategy of the first iteration, or the degrees of the layout.
fn planned_choice(planned: &Planned) -> String {
    let first = planned.iterations.first();
    if let Some(groups) = first.and_then(|iteration| iteration.groups.as_ref()) {
        let lines: Vec<&str> = groups.microbatches.iter().map(|microbatch| microbatch.notation.as_str()).collect();
        return lines.join("; ");
    }
    if let Some(strategy) = first.and_then(|iteration| iteration.strategy.as_ref()) {
        return strategy.label.clone();
    }
    let layout = planned.layout;
    format!("TP {}, PP {}, DP {}, VPP {}", layout.tensor, layout.pipeline, layout.data, layout.chunks)
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
