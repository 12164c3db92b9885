//! Validates the workload: batch, context and sequence limits. [`super::source`] validates the
//! samples.

use std::sync::Arc;

use super::source::Sources;
use super::{Datasets, FieldError, Ranges};
use crate::scenario::Scenario;
use planscope_core::workload::{Dataset, MAX_VIDEO_S};

/// Validates the workload and returns the datasets that it references.
pub(super) fn check(
    scenario: &Scenario,
    datasets: &dyn Datasets,
    errors: &mut Vec<FieldError>,
) -> Vec<(String, Arc<Dataset>)> {
    let mut ranges = Ranges(errors);
    let (workload, model) = (&scenario.workload, &scenario.model);
    ranges.integer("/workload/global_batch", workload.global_batch, 1, 1_048_576, " samples");
    ranges.integer("/workload/context_length", workload.context_length, 1, 16_777_216, " tokens");
    if let Some(samples) = workload.max_samples {
        ranges.integer("/workload/max_samples", samples, 1, 1_048_576, " samples");
    }
    if let Some(seconds) = workload.max_video_s {
        ranges.number("/workload/max_video_s", seconds, 0.001, MAX_VIDEO_S, " s");
        if model.video().is_none() {
            let detail = format!("{} makes no video; leave the limit out", model.name);
            ranges.refuse("/workload/max_video_s", detail);
        }
    }
    let mut sources = Sources::new(model, datasets, ranges);
    sources.check(&workload.samples, "/workload/samples", workload.context_length);
    sources.found()
}
