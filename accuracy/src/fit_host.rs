//! The host's overhead, fitted on a few named rows of step times.
//!
//! The time that a host needs to start an operator cannot be had from timings of operators, which hide it. It is fitted
//! on [`FITTED_ROWS`](crate::truth::FITTED_ROWS), small models whose hosts are slower than their devices, by minimising
//! the mean absolute relative error over a grid: two parameters, and an optimum that anybody can check.

use std::path::Path;

use planner::cluster::Curves;
use planner::estimate::Configuration;

use crate::truth::{self, Error, Measured};

/// Smallest and largest time of an operator that is tried, in µs.
const HOST: (u32, u32) = (40, 70);
/// Step between those, in µs.
pub const HOST_STEP: f64 = 1.0;
/// Largest time of a microbatch that is tried, in µs; the smallest is zero.
const MAX_MICROBATCH: u32 = 4000;
/// Step between those, in µs.
pub const MICROBATCH_STEP: f64 = 250.0;

/// A pair of overheads and how well step times follow from them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Host {
    /// Time of the host for one operator, in µs.
    pub host_us: f64,
    /// Time of the host for one microbatch beside its operators, in µs.
    pub host_microbatch_us: f64,
    /// Mean absolute error on the rows fitted on, in per cent.
    pub mean_abs_pct: f64,
}

impl Host {
    fn of(rows: &[Measured], host_us: f64, host_microbatch_us: f64) -> Result<Self, Error> {
        let mut sum = 0.0;
        for row in rows {
            let configuration = with(&row.configuration, host_us, host_microbatch_us);
            let predicted = truth::given(&row.label, &configuration)?.iteration.secs() * 1e3;
            sum += (predicted / row.milliseconds - 1.0).abs();
        }
        Ok(Self { host_us, host_microbatch_us, mean_abs_pct: sum / rows.len().max(1) as f64 * 100.0 })
    }
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { host_us, host_microbatch_us, mean_abs_pct } = self;
        write!(f, "{host_us} us an operator, {host_microbatch_us} us a microbatch: mean error {mean_abs_pct:.3} %")
    }
}

/// The best pair of the grid, the first where several are as good, by the table in the folder `truth` below `data`.
///
/// # Errors
/// As [`crate::measure`].
pub fn fit_host(data: &Path) -> Result<Host, Error> {
    let rows = truth::fitted(&data.join("truth"))?;
    let mut best: Option<Host> = None;
    for host in HOST.0..=HOST.1 {
        for microbatch in (0..=MAX_MICROBATCH).step_by(MICROBATCH_STEP as usize) {
            let tried = Host::of(&rows, f64::from(host), f64::from(microbatch))?;
            if best.is_none_or(|best| tried.mean_abs_pct < best.mean_abs_pct) {
                best = Some(tried);
            }
        }
    }
    best.map_or_else(|| in_force(data), Ok)
}

/// The pair that the machine of these rows has in the planner.
///
/// # Errors
/// As [`crate::measure`].
pub fn in_force(data: &Path) -> Result<Host, Error> {
    let rows = truth::fitted(&data.join("truth"))?;
    let curves = rows.first().and_then(|row| row.configuration.cluster.device.curves.clone());
    let Curves { host_us, host_microbatch_us, .. } = curves.unwrap_or_else(Curves::generic);
    Host::of(&rows, host_us, host_microbatch_us)
}

fn with(configuration: &Configuration, host_us: f64, host_microbatch_us: f64) -> Configuration {
    let mut configuration = configuration.clone();
    let curves = configuration.cluster.device.curves.get_or_insert_with(Curves::generic);
    (curves.host_us, curves.host_microbatch_us) = (host_us, host_microbatch_us);
    configuration
}
