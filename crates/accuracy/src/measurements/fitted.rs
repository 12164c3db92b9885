//! Calibration of a preset to the operators of a device.

use std::collections::BTreeSet;

use planner::calibration::{Fitted, Sample, fit};
use planner::cluster::Cluster;
use planner::cost::kernel::Kernel;
use planner::cost::operator::Rates;
use planner::units::Seconds;

use super::device::{AttentionRow, Device, ExpertRow, PointwiseRow};

/// Rates before and after a calibration, without the sustained factor, because operators are timed in bursts.
#[derive(Debug)]
pub(super) struct Calibrated {
    pub(super) fitted: Fitted,
    pub(super) before: Rates,
    pub(super) after: Rates,
}

impl Calibrated {
    /// Fits the preset of a device to its operators, as `planscope calibrate` does.
    pub(super) fn new(device: &Device) -> Self {
        let fitted = fit(&device.cluster, &samples(device), "own measurement");
        let (before, after) = (Rates::new(&burst(&device.cluster).device), Rates::new(&burst(&fitted.cluster).device));
        Self { fitted, before, after }
    }

    /// Returns measured, present and calibrated time of a sample in seconds.
    pub(super) fn times(&self, sample: &Sample) -> [f64; 3] {
        [sample.time, self.before.time(&sample.kernel), self.after.time(&sample.kernel)].map(Seconds::secs)
    }
}

/// Returns the cluster without the sustained factor.
pub(super) fn burst(cluster: &Cluster) -> Cluster {
    let mut cluster = cluster.clone();
    if let Some(curves) = &mut cluster.device.curves {
        curves.sustained = 1.0;
    }
    cluster
}

/// Returns the operators of a fit: plain products, other forms of shapes without a plain product, attention of equal lengths by the kernel
/// that PyTorch selects, and residual additions.
fn samples(device: &Device) -> Vec<Sample> {
    let mut shapes = BTreeSet::new();
    let mut samples = Vec::new();
    let mut add = |sample: Sample| {
        if shapes.insert(format!("{:?}", sample.kernel)) {
            samples.push(sample);
        }
    };
    let products = |form: &'static str| device.products.iter().filter(move |row| row.accumulate == form);
    products("none").chain(products("fp32_fused")).for_each(|row| add(row.sample()));
    let experts = |form: &'static str| device.experts.iter().filter(move |row| row.function == form);
    experts("_grouped_mm").chain(experts("bmm")).filter_map(ExpertRow::sample).for_each(&mut add);
    let selected = device.selected_attention();
    samples.extend(
        device
            .attention
            .iter()
            .filter(|row| row.backend == selected && row.queries.is_some())
            .map(AttentionRow::sample),
    );
    samples.extend(device.pointwise.iter().filter(|row| row.op == "residual").map(PointwiseRow::sample));
    samples
}

/// Returns the number of samples by kind: products, attention, streams.
pub(super) fn counts(fitted: &Fitted) -> String {
    let parts = fitted.parts.iter().filter(|part| part.samples > 0 && part.fitted);
    parts.map(|part| format!("{} {}", part.samples, part.part)).collect::<Vec<_>>().join(", ")
}

/// Returns the operations of a kernel.
pub(super) fn operations(kernel: &Kernel) -> f64 {
    match kernel {
        Kernel::MatMul(product) => product.flops(),
        Kernel::Attention(attention) => attention.flops(),
        Kernel::Streaming(_) | Kernel::Collective(_) => 0.0,
    }
}
