//! All points of a mode as a study shows them.

use super::report::describe;
use super::search::{Seen, Sweep};
use super::space::{Mode, Point};
use crate::cost::Pricing;
use crate::host::{Watch, Workers};
use crate::outcome::PlacedModules;
use crate::plan::modules::placed;
use crate::scenario::Scenario;
use crate::workload::PackedBatch;

/// A point, and what came of it.
pub(crate) struct SeenPoint {
    /// As links write it.
    pub name: String,
    pub layouts: Vec<PlacedModules>,
    pub words: String,
    pub microbatch: u32,
    /// Devices that modules stand on.
    pub devices: u32,
    pub seen: PointSeen,
}

/// What came of a point.
pub(crate) enum PointSeen {
    /// Seconds of the sizing batch, the largest memory in GiB, the idle share, that of communication in the way.
    Simulated { seconds: f64, peak_gib: f64, bubble: f64, exposed: f64 },
    /// Why it cannot be.
    Rejected(String),
    /// It was left out; no order takes less than so many seconds.
    LeftOut { bound: f64 },
}

/// All points of a mode.
pub(crate) struct AllPoints {
    pub points: Vec<SeenPoint>,
    /// Layouts beyond the most that are looked at.
    pub beyond: u64,
    /// Whether the watch was over before.
    pub is_partial: bool,
}

/// Every point of a mode; at most `most` are simulated, those first whose estimates are best.
pub(crate) fn points(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    mode: Mode,
    sizing: &PackedBatch,
    (most, workers, watch): (u32, &dyn Workers, &dyn Watch),
) -> AllPoints {
    let mut sweep = Sweep::new(scenario, pricing, mode, sizing);
    let is_partial = sweep.explore(most, (workers, watch));
    let of = |point: &Point, seen| SeenPoint {
        name: point.name(),
        layouts: point.modules.iter().map(|layout| placed(&scenario.model, &point.modules, layout)).collect(),
        words: describe(&scenario.model, point),
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
                of(point, PointSeen::Simulated { seconds, peak_gib: peak.gib(), bubble, exposed })
            }
            Seen::Rejected(misfit) => of(point, PointSeen::Rejected(misfit.reason.clone())),
        })
        .collect();
    points.extend(sweep.unseen().map(|(point, bound)| of(point, PointSeen::LeftOut { bound })));
    AllPoints { points, beyond: sweep.left_out, is_partial }
}

/// Devices that the modules of a point stand on.
pub(super) fn devices(point: &Point) -> u32 {
    let each = point.modules.iter().map(|layout| layout.devices().end - layout.devices().start);
    if point.mode == Mode::Apart { each.sum() } else { each.max().unwrap_or(0) }
}
