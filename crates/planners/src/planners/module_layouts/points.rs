//! All points of a mode, for studies.

use super::report::describe;
use super::search::{Seen, Sweep};
use super::space::{Mode, Point};
use crate::planners::module_layouts::module_costs::placed;
use planscope_core::host::{Cancellation, Workers};
use planscope_core::workload::PackedBatch;
use planscope_cost::cost::Pricing;
use planscope_plan::outcome::PlacedModules;
use planscope_plan::scenario::Scenario;

/// A point and its result.
pub struct SeenPoint {
    /// Name in URLs.
    pub name: String,
    pub layouts: Vec<PlacedModules>,
    pub description: String,
    pub microbatch: u32,
    /// Devices used.
    pub devices: u32,
    pub seen: PointSeen,
}

/// Result for a point.
pub enum PointSeen {
    /// Sizing batch time in seconds, peak memory in GiB, idle fraction, and exposed communication
    /// fraction.
    Simulated {
        seconds: f64,
        peak_gib: f64,
        bubble: f64,
        exposed: f64,
    },
    Rejected(String),
    /// The point was not simulated. `bound` is a lower bound on its time in seconds.
    LeftOut {
        bound: f64,
    },
}

/// Results for all points of a mode.
pub struct AllPoints {
    pub points: Vec<SeenPoint>,
    /// Layouts above the limit.
    pub beyond: u64,
    /// True if the search was cancelled.
    pub is_partial: bool,
}

/// Evaluates every point of a mode. Simulates at most `most` points, sorted by estimate.
pub fn points(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    mode: Mode,
    sizing: &PackedBatch,
    (limit, workers, cancellation): (u32, &dyn Workers, &dyn Cancellation),
) -> AllPoints {
    let mut sweep = Sweep::new(scenario, pricing, mode, sizing);
    let is_partial = sweep.explore(limit, (workers, cancellation));
    let seen_point = |point: &Point, seen| SeenPoint {
        name: point.name(),
        layouts: point.modules.iter().map(|layout| placed(&scenario.model, &point.modules, layout)).collect(),
        description: describe(&scenario.model, point),
        microbatch: point.microbatch,
        devices: devices(point),
        seen,
    };
    let mut points: Vec<SeenPoint> = sweep
        .seen
        .iter()
        .map(|(point, seen)| match seen {
            Seen::Simulated { seconds, peak, bubble, exposed } => {
                let (seconds, bubble, exposed) = (*seconds, *bubble, *exposed);
                seen_point(point, PointSeen::Simulated { seconds, peak_gib: peak.gib(), bubble, exposed })
            }
            Seen::Rejected(infeasibility) => seen_point(point, PointSeen::Rejected(infeasibility.reason.clone())),
        })
        .collect();
    points.extend(sweep.unseen().map(|(point, bound)| seen_point(point, PointSeen::LeftOut { bound })));
    AllPoints { points, beyond: sweep.left_out, is_partial }
}

/// Devices in use.
pub(crate) fn devices(point: &Point) -> u32 {
    let each = point.modules.iter().map(|layout| layout.devices().end - layout.devices().start);
    if point.mode == Mode::NonColocated { each.sum() } else { each.max().unwrap_or(0) }
}
