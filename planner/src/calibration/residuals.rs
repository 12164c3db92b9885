//! Measurements beside what a cluster says of them, for plots.

use super::parts::predict;
use super::{Part, Sample};
use crate::cluster::Cluster;
use crate::cost::kernel::Kernel;
use crate::cost::operator::Rates;

/// A measurement beside what a cluster says of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Residual {
    /// Size, as [`PartResiduals::size`] counts it.
    pub size: f64,
    /// Measured time, in s.
    pub measured_s: f64,
    /// Predicted time, in s.
    pub predicted_s: f64,
}

/// The measurements of one part.
#[derive(Debug, Clone, PartialEq)]
pub struct PartResiduals {
    /// As in [`super::PartReport`].
    pub part: &'static str,
    /// What sizes count.
    pub size: &'static str,
    /// At most so many as asked for, evenly thinned, in the order of the samples.
    pub points: Vec<Residual>,
}

/// What a cluster says of every sample that has a part, at most `most` points a part. Kernels of a profile are timed alone, so their
/// rates are those before the power limit, as in [`super::fit`].
pub fn residuals(cluster: &Cluster, samples: &[Sample], most: usize) -> Vec<PartResiduals> {
    let mut alone = cluster.clone();
    if let Some(curves) = &mut alone.device.curves {
        curves.sustained = 1.0;
    }
    let rates = Rates::of(&alone.device);
    let timed = |sample: &&Sample| sample.time.secs() > 0.0 && sample.time.secs().is_finite();
    let of_part = |part: Part| {
        let own: Vec<&Sample> = samples.iter().filter(timed).filter(|sample| part.owns(sample)).collect();
        let every = own.len().div_ceil(most.max(1)).max(1);
        let point = |sample: &&Sample| Residual {
            size: size(&sample.kernel),
            measured_s: sample.time.secs(),
            predicted_s: predict(&rates, &alone, sample),
        };
        let counted = match part {
            Part::MatMul | Part::Attention => "floating-point operations",
            Part::Elementwise | Part::Collective => "bytes",
        };
        PartResiduals { part: part.name(), size: counted, points: own.iter().step_by(every).map(point).collect() }
    };
    Part::ALL.into_iter().map(of_part).filter(|residuals| !residuals.points.is_empty()).collect()
}

fn size(kernel: &Kernel) -> f64 {
    match kernel {
        Kernel::MatMul(product) => product.flops(),
        Kernel::Attention(attention) => attention.flops(),
        Kernel::Streaming(stream) => stream.bytes,
        Kernel::Collective(collective) => collective.bytes,
    }
}
