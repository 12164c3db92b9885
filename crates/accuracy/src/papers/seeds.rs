//! Values of the figures over several seeds.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use api::papers::{PaperFigure, PaperSet, Spread};

use super::plans::{Needs, Plans, Unavailable};
use super::published::{PublishedFigure, PublishedPaper, PublishedSet};
use super::{Error, four_digits, measure_difference};

/// Number of seeds. Seed k is the seed of the scenario plus k, from k = 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seeds {
    /// All seeds, with that of the scenario. At least 1.
    pub count: u32,
    /// Threads that plan the other seeds. Wall times are measured before they start.
    pub threads: u32,
}

/// Values for a seed, by set and figure of [`seeded`]. `None`: no plan.
type Values = Vec<Vec<Option<f64>>>;

/// Computes the values for all seeds except that of the scenario.
pub(super) fn others(
    examples: &Path,
    paper: &PublishedPaper,
    seeds: Seeds,
    starts: &(dyn Fn(&str) + Sync),
) -> Result<Vec<Values>, Error> {
    let needs = Needs::of(paper.sets.iter().flat_map(seeded));
    let next = AtomicU32::new(1);
    let work = || {
        let mut own = Vec::new();
        loop {
            let offset = next.fetch_add(1, Ordering::Relaxed);
            if offset >= seeds.count {
                return Ok(own);
            }
            starts(&format!("seed + {offset}"));
            own.push(values(&mut Plans::new(examples.to_owned(), &needs, offset), paper)?);
        }
    };
    let results: Vec<Result<Vec<Values>, Error>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..seeds.threads.clamp(1, seeds.count)).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("planning does not panic")).collect()
    });
    let mut all = Vec::new();
    for result in results {
        all.extend(result?);
    }
    Ok(all)
}

/// Returns the figures of a set that have values for several seeds.
fn seeded(set: &PublishedSet) -> impl Iterator<Item = &PublishedFigure> {
    set.figures.iter().filter(|figure| !set.one_seed && figure.quantity.is_over_seeds())
}

fn values(plans: &mut Plans<'_>, paper: &PublishedPaper) -> Result<Values, Error> {
    let mut all = Vec::with_capacity(paper.sets.len());
    for set in &paper.sets {
        let mut own = Vec::with_capacity(set.figures.len());
        for figure in seeded(set) {
            own.push(match figure.quantity.value(plans) {
                Ok(value) => Some(value),
                Err(Unavailable::Infeasible(_)) => None,
                Err(Unavailable::Inapplicable(reason)) => {
                    return Err(Error::Figure { set: set.id.clone(), label: figure.label.clone(), reason });
                }
                Err(Unavailable::Error(error)) => return Err(error),
            });
        }
        all.push(own);
    }
    Ok(all)
}

/// Adds the values for the other seeds to figures that have a value for the seed of the scenario. The value of such
/// a figure becomes the mean.
pub(super) fn spread(paper: &PublishedPaper, sets: &mut [PaperSet], others: &[Values]) {
    for (index, (published, set)) in paper.sets.iter().zip(sets).enumerate() {
        let figures = published.figures.iter().zip(&mut set.figures);
        let seeded = figures.filter(|(figure, _)| !published.one_seed && figure.quantity.is_over_seeds());
        for (position, (_, figure)) in seeded.enumerate() {
            let values: Vec<Option<f64>> = others.iter().map(|values| values[index][position]).collect();
            add(figure, &values);
        }
    }
}

fn add(figure: &mut PaperFigure, others: &[Option<f64>]) {
    let Some(own) = figure.ours else { return };
    let known: Vec<f64> = std::iter::once(own).chain(others.iter().copied().flatten()).collect();
    let limit = |choose: fn(f64, f64) -> f64| four_digits(known.iter().copied().fold(own, choose));
    figure.spread = Some(Spread {
        seeds: known.len() as u32,
        without_value: others.iter().filter(|value| value.is_none()).count() as u32,
        own,
        min: limit(f64::min),
        max: limit(f64::max),
    });
    figure.ours = Some(four_digits(known.iter().sum::<f64>() / known.len() as f64));
    measure_difference(figure);
}

#[cfg(test)]
mod tests {
    use api::papers::{Difference, DifferenceUnit, PublishedValue};

    use super::*;

    fn figure(ours: Option<f64>) -> PaperFigure {
        PaperFigure {
            label: "gain".to_owned(),
            unit: "%".to_owned(),
            published: Some(PublishedValue { from: 10.0, to: 10.0 }),
            ours,
            spread: None,
            opponent: None,
            missing: None,
            difference: None,
            is_wall_time: false,
        }
    }

    #[test]
    fn the_mean_is_compared_with_the_published_value() {
        let mut mean = figure(Some(12.0));
        add(&mut mean, &[Some(8.0), None, Some(19.0)]);
        assert_eq!(mean.spread, Some(Spread { seeds: 3, without_value: 1, own: 12.0, min: 8.0, max: 19.0 }));
        assert_eq!(mean.ours, Some(13.0));
        assert_eq!(mean.difference, Some(Difference { value: 3.0, of: DifferenceUnit::Points }));
    }

    #[test]
    fn a_figure_without_a_plan_has_no_spread() {
        let mut missing = figure(None);
        add(&mut missing, &[Some(8.0)]);
        assert_eq!(missing, figure(None));
    }
}
