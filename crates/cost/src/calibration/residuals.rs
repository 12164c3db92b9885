//! Measured and predicted times, for plots.

use super::parts::predict;
use super::{Part, Sample};
use crate::cost::kernel::Kernel;
use crate::cost::operator::Rates;
use planscope_core::cluster::Cluster;

/// A measured and a predicted time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Residual {
    /// Size in the unit of [`PartResiduals::size`].
    pub size: f64,
    /// Measured time in s.
    pub measured_s: f64,
    /// Predicted time in s.
    pub predicted_s: f64,
}

/// Residuals of a part.
#[derive(Debug, Clone, PartialEq)]
pub struct PartResiduals {
    /// Part name, as in [`super::PartReport`].
    pub part: &'static str,
    /// Unit of the sizes.
    pub size: &'static str,
    /// Points in sample order, thinned evenly to the requested maximum.
    pub points: Vec<Residual>,
}

/// Computes measured and predicted times for all samples that belong to a part, at most `most`
/// points per part. Profiles time kernels separately, so the rates exclude the power limit, as in
/// [`super::fit`].
pub fn residuals(cluster: &Cluster, samples: &[Sample], max_points: usize) -> Vec<PartResiduals> {
    let mut isolated = cluster.clone();
    if let Some(curves) = &mut isolated.device.curves {
        curves.sustained = 1.0;
    }
    let rates = Rates::new(&isolated.device);
    let timed = |sample: &&Sample| sample.time.secs() > 0.0 && sample.time.secs().is_finite();
    let part_residuals = |part: Part| {
        let part_samples: Vec<&Sample> = samples.iter().filter(timed).filter(|sample| part.owns(sample)).collect();
        let every = part_samples.len().div_ceil(max_points.max(1)).max(1);
        let point = |sample: &&Sample| Residual {
            size: size(&sample.kernel),
            measured_s: sample.time.secs(),
            predicted_s: predict(&rates, &isolated, sample),
        };
        let counted = match part {
            Part::MatMul | Part::Attention => "floating-point operations",
            Part::Elementwise | Part::Collective => "bytes",
        };
        PartResiduals {
            part: part.name(),
            size: counted,
            points: part_samples.iter().step_by(every).map(point).collect(),
        }
    };
    Part::ALL.into_iter().map(part_residuals).filter(|residuals| !residuals.points.is_empty()).collect()
}

fn size(kernel: &Kernel) -> f64 {
    match kernel {
        Kernel::MatMul(product) => product.flops(),
        Kernel::Attention(attention) => attention.flops(),
        Kernel::Streaming(stream) => stream.bytes,
        Kernel::Collective(collective) => collective.bytes,
    }
}
