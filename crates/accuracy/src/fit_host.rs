//! Host overhead, fitted to a small number of step times.
//!
//! Operator timings hide the launch overhead on the host, so it cannot be derived from them. It is
//! fitted to [`FITTED_ROWS`](crate::truth::FITTED_ROWS): small models with a host slower than the
//! device. The fit minimises the mean absolute relative error over a grid with two parameters. The
//! optimum is reproducible.

use std::path::Path;

use planner::cluster::Curves;
use planner::estimate::Configuration;

use crate::truth::{self, Error, Measured};

/// Range of operator times in the grid, in µs.
const HOST: (u32, u32) = (40, 70);
/// Grid step for the operator time in µs.
pub const HOST_STEP: f64 = 1.0;
/// Maximum microbatch time in the grid, in µs. The minimum is zero.
const MAX_MICROBATCH: u32 = 4000;
/// Grid step for the microbatch time in µs.
pub const MICROBATCH_STEP: f64 = 250.0;

/// Host overhead and its fit error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Host {
    /// Host time per operator in µs.
    pub host_us: f64,
    /// Additional host time per microbatch in µs.
    pub host_microbatch_us: f64,
    /// Mean absolute error over the fitted rows in percent.
    pub mean_abs_pct: f64,
}

impl Host {
    fn evaluate(rows: &[Measured], host_us: f64, host_microbatch_us: f64) -> Result<Self, Error> {
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

/// Returns the grid point with the minimum error; on ties the first. The table is in the folder
/// `truth` of `data`.
///
/// # Errors
/// See [`crate::measure`].
pub fn fit_host(data: &Path) -> Result<Host, Error> {
    let rows = truth::fitted(&data.join("truth"))?;
    let mut best: Option<Host> = None;
    for host in HOST.0..=HOST.1 {
        for microbatch in (0..=MAX_MICROBATCH).step_by(MICROBATCH_STEP as usize) {
            let candidate = Host::evaluate(&rows, f64::from(host), f64::from(microbatch))?;
            if best.is_none_or(|best| candidate.mean_abs_pct < best.mean_abs_pct) {
                best = Some(candidate);
            }
        }
    }
    best.map_or_else(|| in_force(data), Ok)
}

/// Returns the host overhead that the planner uses for the machine in these rows, and its error.
///
/// # Errors
/// See [`crate::measure`].
pub fn in_force(data: &Path) -> Result<Host, Error> {
    let rows = truth::fitted(&data.join("truth"))?;
    let curves = rows.first().and_then(|row| row.configuration.cluster.device.curves.clone());
    let Curves { host_us, host_microbatch_us, .. } = curves.unwrap_or_else(Curves::generic);
    Host::evaluate(&rows, host_us, host_microbatch_us)
}

fn with(configuration: &Configuration, host_us: f64, host_microbatch_us: f64) -> Configuration {
    let mut configuration = configuration.clone();
    let curves = configuration.cluster.device.curves.get_or_insert_with(Curves::generic);
    (curves.host_us, curves.host_microbatch_us) = (host_us, host_microbatch_us);
    configuration
}
