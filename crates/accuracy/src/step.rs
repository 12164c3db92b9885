//! The predicted step of a published row.

use planner::certainty::{Features, layout_distance};
use planner::estimate::{Configuration, Estimate};
use planner::outcome::Layout;
use planner::training::{Precision, Recompute};

/// The predicted step of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Properties on which the error may depend.
    pub features: Features,
    layout: Layout,
    zero: u32,
    recompute: Recompute,
    context: u32,
    /// Memory of the device, in GiB.
    pub(crate) device_gib: f64,
    /// Equal for rows with the same model, cluster, sequences and precision.
    pub(crate) group: [u32; 7],
}

impl Step {
    /// Returns the step of an estimate.
    pub fn new(configuration: &Configuration, estimate: &Estimate) -> Self {
        let Configuration { model, cluster, training, layout, global_batch, sequence_length, .. } = configuration;
        let hidden = model.modules.first().map_or(0, |module| module.hidden);
        let precision = u32::from(training.precision == Precision::Fp8);
        let memory = cluster.device.memory_gib.round() as u32;
        Self {
            features: Features::of_estimate(configuration, estimate),
            layout: *layout,
            zero: training.zero_stage(),
            recompute: training.recompute,
            context: training.context_parallel,
            device_gib: cluster.device.memory_gib,
            group: [model.layers(), hidden, cluster.devices(), memory, *sequence_length, *global_batch, precision],
        }
    }

    /// Returns the distance between two steps, as for two plans.
    pub(crate) fn distance(&self, other: &Self) -> f64 {
        let one = |differ: bool| f64::from(u8::from(differ));
        let context = (f64::from(self.context) / f64::from(other.context)).log2().abs();
        layout_distance(self.layout, other.layout)
            + one(self.zero != other.zero)
            + one(self.recompute != other.recompute)
            + context
    }
}
