//! The workload: distributions, datasets, batch and context.

use std::sync::Arc;

use super::{Datasets, FieldError, Ranges};
use crate::model::Model;
use crate::scenario::Scenario;
use crate::workload::{Dataset, Distribution, SampleSource};

/// Longest sample, in tokens; most images of a sample.
const LONGEST: u32 = 1_000_000_000;
const MOST_VALUES: usize = 100_000;
/// Sources of one mixture.
const MOST_PARTS: usize = 64;
/// Sources inside sources; deeper nesting says nothing that weights could not.
const DEEPEST_MIXTURE: u32 = 4;

/// Checks the workload and returns the datasets it names.
pub(super) fn check(
    scenario: &Scenario,
    datasets: &dyn Datasets,
    errors: &mut Vec<FieldError>,
) -> Vec<(String, Arc<Dataset>)> {
    let mut ranges = Ranges(errors);
    let workload = &scenario.workload;
    ranges.whole("/workload/global_batch", workload.global_batch, 1, 65_536, " samples");
    ranges.whole("/workload/context_length", workload.context_length, 1, 16_777_216, " tokens");
    let per_image = scenario.model.tokens_per_image();
    if workload.context_length < per_image && draws_images(&workload.samples) {
        let detail = format!("shorter than one image of {per_image} tokens");
        ranges.refuse("/workload/context_length", detail);
    }
    let mut found = Vec::new();
    source(&workload.samples, "/workload/samples", 0, &scenario.model, datasets, &mut ranges, &mut found);
    found
}

fn source(
    samples: &SampleSource,
    at: &str,
    depth: u32,
    model: &Model,
    datasets: &dyn Datasets,
    ranges: &mut Ranges<'_>,
    found: &mut Vec<(String, Arc<Dataset>)>,
) {
    match samples {
        SampleSource::Drawn { text_tokens, images } => {
            distribution(text_tokens, &format!("{at}/text_tokens"), ranges);
            distribution(images, &format!("{at}/images"), ranges);
            sees_images(images, &format!("{at}/images"), model, ranges);
            if text_tokens.is_zero() && images.is_zero() {
                ranges.refuse(&format!("{at}/text_tokens"), "every sample is empty".to_owned());
            }
        }
        SampleSource::Dataset { id, images } => {
            match datasets.dataset(id) {
                Some(dataset) => {
                    if images.is_none() && has_images(&dataset) && model.item_module().is_none() {
                        let detail = format!(
                            "this dataset has images and {} has no vision encoder; set images to 0 to leave them out",
                            model.name
                        );
                        ranges.refuse(&format!("{at}/images"), detail);
                    }
                    if found.iter().all(|(name, _)| name != id) {
                        found.push((id.clone(), dataset));
                    }
                }
                None => ranges.refuse(
                    &format!("{at}/id"),
                    "this dataset is not stored here (any more); upload it again or choose another".to_owned(),
                ),
            }
            if let Some(images) = images {
                distribution(images, &format!("{at}/images"), ranges);
                sees_images(images, &format!("{at}/images"), model, ranges);
            }
        }
        SampleSource::Mixture { parts } => {
            if parts.is_empty() || parts.len() > MOST_PARTS || depth >= DEEPEST_MIXTURE {
                let detail = format!("a mixture has one to {MOST_PARTS} parts and at most {DEEPEST_MIXTURE} levels");
                ranges.refuse(&format!("{at}/parts"), detail);
                return;
            }
            for (index, part) in parts.iter().enumerate() {
                ranges.number(&format!("{at}/parts/{index}/weight"), part.weight, 0.0, 1e12, "");
                let inner = format!("{at}/parts/{index}/source");
                source(&part.source, &inner, depth + 1, model, datasets, ranges, found);
            }
            if parts.iter().all(|part| part.weight == 0.0) {
                ranges.refuse(&format!("{at}/parts/0/weight"), "at least one weight must be positive".to_owned());
            }
        }
    }
}

fn draws_images(samples: &SampleSource) -> bool {
    match samples {
        SampleSource::Drawn { images, .. } => !images.is_zero(),
        SampleSource::Dataset { images, .. } => images.as_ref().is_none_or(|images| !images.is_zero()),
        SampleSource::Mixture { parts } => parts.iter().any(|part| draws_images(&part.source)),
    }
}

fn has_images(dataset: &Dataset) -> bool {
    match dataset {
        Dataset::Rows { images, .. } => images.iter().any(|&count| count > 0),
        Dataset::Histogram { .. } => false,
    }
}

/// Images need a module that reads them.
fn sees_images(images: &Distribution, at: &str, model: &Model, ranges: &mut Ranges<'_>) {
    if !images.is_zero() && model.item_module().is_none() {
        ranges.refuse(at, format!("{} has no vision encoder; set images to 0", model.name));
    }
}

fn distribution(distribution: &Distribution, at: &str, ranges: &mut Ranges<'_>) {
    match distribution {
        Distribution::Constant { value } => ranges.whole(&format!("{at}/value"), *value, 0, LONGEST, ""),
        Distribution::Uniform { min, max } => range(*min, *max, at, ranges),
        Distribution::LogNormal { median, sigma, min, max } => {
            ranges.number(&format!("{at}/median"), *median, 1e-3, 1e9, "");
            ranges.number(&format!("{at}/sigma"), *sigma, 0.0, 10.0, "");
            range(*min, *max, at, ranges);
        }
        Distribution::Histogram { edges, counts } => histogram(edges, counts, at, ranges),
        Distribution::Values { values } => {
            if values.is_empty() || values.len() > MOST_VALUES {
                let detail = format!("one to {MOST_VALUES} values; upload longer lists as a dataset");
                ranges.refuse(&format!("{at}/values"), detail);
            }
            if let Some(index) = values.iter().position(|&value| value > LONGEST) {
                ranges.refuse(&format!("{at}/values/{index}"), format!("at most {LONGEST}"));
            }
        }
    }
}

fn range(min: u32, max: u32, at: &str, ranges: &mut Ranges<'_>) {
    ranges.whole(&format!("{at}/max"), max, 0, LONGEST, "");
    if min > max {
        ranges.refuse(&format!("{at}/min"), format!("the smallest value {min} is above the largest, {max}"));
    }
}

fn histogram(edges: &[f64], counts: &[f64], at: &str, ranges: &mut Ranges<'_>) {
    if counts.is_empty() || counts.len() > MOST_VALUES || edges.len() != counts.len() + 1 {
        let detail = format!("{} edges for {} counts: one more edge than counts is needed", edges.len(), counts.len());
        ranges.refuse(&format!("{at}/edges"), detail);
        return;
    }
    if let Some(index) = edges.iter().position(|edge| !(0.0..=f64::from(LONGEST)).contains(edge)) {
        ranges.refuse(&format!("{at}/edges/{index}"), format!("edges lie between 0 and {LONGEST}"));
    } else if let Some(index) = edges.windows(2).position(|pair| pair[1] < pair[0]) {
        ranges.refuse(&format!("{at}/edges/{}", index + 1), "edges must not fall".to_owned());
    }
    if let Some(index) = counts.iter().position(|count| !(0.0..=1e18).contains(count)) {
        ranges.refuse(&format!("{at}/counts/{index}"), "counts are zero or more".to_owned());
    } else if counts.iter().all(|&count| count == 0.0) {
        ranges.refuse(&format!("{at}/counts"), "at least one count must be positive".to_owned());
    }
}
