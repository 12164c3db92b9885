//! How far a cluster is off its timings before anything is fitted.

use planner::calibration::{Sample, fit};
use planner::cluster::Cluster;

/// Relative residuals of the timings of one part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Residual {
    /// Their mean.
    pub(super) mean: f64,
    /// Nine of ten timings lie within.
    pub(super) p90: f64,
}

impl Residual {
    /// Of the timings of a part under a cluster as it stands; none where it has no timings.
    ///
    /// A fit of one timing changes nothing, as that is too few, and says to which part the timing belongs and how far
    /// it is off.
    pub(super) fn of(cluster: &Cluster, part: &str, samples: &[Sample]) -> Option<Self> {
        let alone = |sample: &Sample| fit(cluster, std::slice::from_ref(sample), "").parts;
        let mut all: Vec<f64> = samples
            .iter()
            .flat_map(alone)
            .filter(|report| report.samples == 1 && report.part == part)
            .map(|report| report.mean_residual)
            .collect();
        all.sort_by(f64::total_cmp);
        let p90 = *all.get(all.len() * 9 / 10)?;
        Some(Self { mean: all.iter().sum::<f64>() / all.len() as f64, p90 })
    }
}

#[cfg(test)]
mod tests {
    use planner::cluster::presets;
    use planner::cost::kernel::{Format, Kernel, MatMul, Product};
    use planner::units::Seconds;

    use super::*;

    #[test]
    fn residuals_are_those_that_a_fit_reports() {
        let product = |m: u32| MatMul {
            batch: 1.0,
            m: f64::from(m),
            k: 4096.0,
            n: 4096.0,
            product: Product::Forward,
            format: Format::Bf16,
        };
        let sample = |at: u32| Sample {
            kernel: Kernel::MatMul(product(128 * at)),
            time: Seconds::from_micros(f64::from(20 + 11 * at + 9 * (at % 3))),
        };
        let samples: Vec<Sample> = (1..=20).map(sample).collect();
        let fitted = fit(&presets::cluster("h100").unwrap(), &samples, "made up");
        let report = &fitted.parts[0];
        let residual = Residual::of(&fitted.cluster, report.part, &samples).unwrap();
        assert!(report.fitted && (residual.mean - report.mean_residual).abs() < 1e-12, "{residual:?} {report:?}");
        assert!((residual.p90 - report.p90_residual).abs() < 1e-12, "{residual:?} {report:?}");
        assert_eq!(Residual::of(&fitted.cluster, "fused attention", &samples), None);
    }
}
