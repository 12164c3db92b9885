//! Calibration: fits device curves to measured kernels and collectives (docs/models.md, section
//! 10).
//!
//! Only operators and collectives are fitted, never step times: these validate the fit. A
//! coefficient is fitted if enough different shapes determine it ([`MIN`] for a curve shape).
//! Other coefficients use the values of the given cluster. The mean residual of a part never
//! increases: a fit that would increase it is discarded. The report lists both cases.

mod coefficient;
mod link;
mod minimise;
mod parts;
mod report;
mod residuals;
pub mod sample;

pub use report::{Bound, CoefficientReport, Outcome, PartReport, Unchanged};
pub use residuals::{PartResiduals, Residual, residuals};
pub use sample::Sample;

use crate::cost::kernel::{Format, Kernel, Operation, StreamingClass};
use parts::Part;
use planscope_core::cluster::{Cluster, Curves};

/// Minimum number of different shapes to fit a curve coefficient.
pub const MIN: usize = 12;

/// Maximum cache size of any device, in bytes. Streams that fit in the cache do not measure memory
/// bandwidth.
const MAX_CACHE: f64 = 1.2e8;

/// Timings for which no coefficient is fitted.
const OTHERS: &str = "norms, embeddings and activations of inference engines, streams within the cache, sends, \
                      groups across nodes, and number formats other than bf16 are not fitted";

/// Result of a calibration.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// The given cluster with fitted efficiencies and curves.
    pub cluster: Cluster,
    /// Report per part.
    pub parts: Vec<PartReport>,
}

/// Fits the curves of a cluster's device and links to `samples`.
///
/// The search starts at typical device curves, then at the cluster's current values. For links it
/// also starts at a linear least-squares fit, and the best result counts. It minimizes the logarithm
/// of measured / predicted time; large residuals have linear weight. If all searches increase the
/// mean residual, the current values are confirmed. The result is deterministic.
pub fn fit(cluster: &Cluster, samples: &[Sample], source: &str) -> Fitted {
    let mut cluster = cluster.clone();
    let mut curves = cluster.device.curves.take().unwrap_or_else(Curves::generic);
    // Keep earlier calibration results for parts that these samples do not cover.
    let before = std::mem::take(&mut curves.calibration);
    curves.calibration = planscope_core::cluster::Calibration {
        source: if before.samples() > 0 { format!("{}; {source}", before.source) } else { source.to_owned() },
        ..before
    };
    // Profiles time kernels separately, not under sustained load.
    let sustained = std::mem::replace(&mut curves.sustained, 1.0);
    cluster.device.curves = Some(curves);
    let mut reports = Vec::new();
    let (mut weighted, mut fitted) = (0.0, 0_u32);
    let timed = |sample: &&Sample| sample.time.secs() > 0.0 && sample.time.secs().is_finite();
    for part in Part::ALL {
        let part_samples: Vec<Sample> =
            samples.iter().filter(timed).copied().filter(|sample| part.owns(sample)).collect();
        let report = part.fit(&mut cluster, &part_samples);
        let curves = cluster.device.curves.get_or_insert_with(Curves::generic);
        if report.fitted {
            let count = report.samples as u32;
            match part {
                Part::MatMul => curves.calibration.matmul = count,
                Part::Attention => curves.calibration.attention = count,
                Part::Elementwise => curves.calibration.streaming = count,
                Part::Collective => curves.calibration.collective = count,
            }
            weighted += report.mean_residual * f64::from(count);
            fitted += count;
        }
        reports.push(report);
    }
    let curves = cluster.device.curves.get_or_insert_with(Curves::generic);
    curves.sustained = sustained;
    if fitted > 0 {
        curves.calibration.residual = weighted / f64::from(fitted);
    }
    let others = samples.iter().filter(|sample| !Part::ALL.iter().any(|part| part.owns(sample))).count();
    if others > 0 {
        reports.push(PartReport {
            part: "others",
            samples: others,
            fitted: false,
            mean_before: 0.0,
            p90_before: 0.0,
            mean_residual: 0.0,
            p90_residual: 0.0,
            note: OTHERS.to_owned(),
            coefficients: Vec::new(),
        });
    }
    Fitted { cluster, parts: reports }
}

impl Part {
    /// Returns whether a timing belongs to this part.
    fn owns(self, sample: &Sample) -> bool {
        match (self, &sample.kernel) {
            (Self::MatMul, Kernel::MatMul(product)) => product.format == Format::Bf16,
            (Self::Attention, Kernel::Attention(_)) => true,
            (Self::Elementwise, Kernel::Streaming(stream)) => {
                stream.class == StreamingClass::Elementwise && stream.bytes > MAX_CACHE
            }
            (Self::Collective, Kernel::Collective(collective)) => {
                collective.operation != Operation::SendReceive && collective.ranks == collective.ranks_per_node
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
