//! Distance between two layouts: how many settings differ, and by how much.

use crate::outcome::{Layout, Planned};
use crate::scenario::PlanSettings;

/// Returns the sum of |log2 ratio| over TP, PP, chunks and microbatch.
pub fn layout_distance(a: Layout, b: Layout) -> f64 {
    let pairs = [(a.tensor, b.tensor), (a.pipeline, b.pipeline), (a.chunks, b.chunks), (a.microbatch, b.microbatch)];
    pairs.into_iter().map(|(a, b)| log_ratio(a, b)).sum()
}

/// Returns the distance between the layouts and settings of two plans of one scenario. Each setting
/// with another value adds 1, a degree adds |log2 ratio|.
pub(super) fn plan_distance(a: &Planned, b: &Planned) -> f64 {
    let settings = match (&a.settings, &b.settings) {
        (Some(a), Some(b)) => settings_distance(a, b),
        _ => 0.0,
    };
    layout_distance(a.layout, b.layout) + settings
}

fn settings_distance(a: &PlanSettings, b: &PlanSettings) -> f64 {
    let differ = [
        (a.recompute, a.recompute_layers) != (b.recompute, b.recompute_layers),
        (a.activation_offload - b.activation_offload).abs() > 1e-9,
        a.zero != b.zero,
        a.context_exchange != b.context_exchange,
        a.packing != b.packing,
    ];
    let count = differ.into_iter().filter(|differ| *differ).count() as f64;
    count + log_ratio(a.context_parallel, b.context_parallel) + log_ratio(a.expert_parallel, b.expert_parallel)
}

fn log_ratio(a: u32, b: u32) -> f64 {
    libm::log2(f64::from(a.max(1)) / f64::from(b.max(1))).abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubled_degrees_add_one_each() {
        let layout = Layout { tensor: 2, pipeline: 4, data: 8, chunks: 1, microbatch: 1, group: None };
        assert!(layout_distance(layout, layout).abs() < 1e-12);
        let other = Layout { tensor: 8, pipeline: 2, data: 4, microbatch: 2, ..layout };
        assert!((layout_distance(layout, other) - 4.0).abs() < 1e-12);
    }
}
