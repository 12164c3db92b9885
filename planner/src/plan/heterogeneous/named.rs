//! One point of the sweep by its name: as a plan of its own, to be judged like any other.

use super::fill::{self, Filled, fill};
use super::report;
use super::space::{Ground, Mode, Point, Space, anchor, space};
use super::{layout_of, points};
use crate::cost::Pricing;
use crate::outcome::{Search, SolverStatus};
use crate::plan::misfit::Misfit;
use crate::plan::{IterationPlan, ModuleLayout, Plan, replica};
use crate::scenario::Scenario;
use crate::workload::PackedBatch;

/// Modes and their names.
const MODES: [(Mode, &str); 4] =
    [(Mode::Homogeneous, "single"), (Mode::Chain, "chain"), (Mode::Colocated, "colocated"), (Mode::Apart, "apart")];

impl Point {
    /// A name that may stand in links, for example `apart-2_0.1.1.1.1.4.1.0.1_1.2.2.1.1.2.1.4.1`: mode and sequences of a
    /// microbatch, then for every layout its first module, the one behind its last, TP, CP, PP, DP, EP, its first device and the
    /// copies side by side.
    pub(crate) fn name(&self) -> String {
        let mode = MODES.iter().find(|(mode, _)| *mode == self.mode).map_or("", |(_, name)| name);
        let layout = |of: &ModuleLayout| {
            let ModuleLayout { first, end, tensor, context, pipeline, data, expert, first_device, beside } = *of;
            let numbers = [first, end, tensor, context, pipeline, data, expert, first_device, beside];
            numbers.map(|number| number.to_string()).join(".")
        };
        let parts: Vec<String> =
            std::iter::once(format!("{mode}-{}", self.microbatch)).chain(self.modules.iter().map(layout)).collect();
        parts.join("_")
    }

    /// The point of a name; `None` where it is none. Whether a scenario has such a point, only its [`space`] says.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let mut parts = name.split('_');
        let (mode, microbatch) = parts.next()?.split_once('-')?;
        let mode = MODES.iter().find(|(_, name)| *name == mode)?.0;
        let layout = |part: &str| {
            let numbers = part.split('.').map(|number| number.parse().ok()).collect::<Option<Vec<u32>>>()?;
            let [first, end, tensor, context, pipeline, data, expert, first_device, beside] = numbers[..] else {
                return None;
            };
            Some(ModuleLayout { first, end, tensor, context, pipeline, data, expert, first_device, beside })
        };
        let modules = parts.map(layout).collect::<Option<Vec<ModuleLayout>>>()?;
        Some(Self { mode, modules, microbatch: microbatch.parse().ok()? })
    }
}

/// Why a point has no plan.
pub(crate) enum NoPoint {
    /// The scenario has no such layouts.
    Unknown,
    /// It has, but they break a rule or exceed the memory.
    Misfit(String),
}

/// A point filled with a batch.
pub(crate) struct PlannedPoint {
    pub plan: Plan,
    /// Layouts in words.
    pub words: String,
    /// Devices that modules stand on.
    pub devices: u32,
}

/// The plan of a point on one batch, filled as the sweep fills it. Only points of the scenario's [`space`] have one.
pub(crate) fn plan_point(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    point: &Point,
    batch: &PackedBatch,
) -> Result<PlannedPoint, NoPoint> {
    let mode = if point.mode == Mode::Chain { Mode::Homogeneous } else { point.mode };
    let Space { points: legal, illegal, .. } = space(&Ground::of(scenario), mode, batch.sequences.len() as u32);
    if !legal.contains(point) {
        let rule = illegal.into_iter().find(|(other, _)| other.mode == point.mode && other.modules == point.modules);
        return Err(rule.map_or(NoPoint::Unknown, |(_, rule)| NoPoint::Misfit(rule)));
    }
    let misfit = |misfit: Misfit| NoPoint::Misfit(in_words(scenario, &misfit));
    let sequences = fill::microbatches(point, anchor(&scenario.model), batch);
    let loads = replica::loads(scenario, batch, &sequences);
    let partition = fill::partition(scenario, pricing, point, &loads).map_err(misfit)?;
    let Filled { plan, order, dealing, .. } = fill(scenario, pricing, (point, &partition), batch).map_err(misfit)?;
    let decision = report::order(point.mode, (order, dealing), plan.microbatches.len());
    let iterations = vec![IterationPlan { replicas: vec![plan], decision: Some(decision) }];
    Ok(PlannedPoint {
        words: report::describe(&scenario.model, point),
        devices: points::devices(point),
        plan: Plan {
            layout: layout_of(scenario, point),
            partition,
            modules: point.modules.clone(),
            iterations,
            algorithm: report::algorithm(point.mode).to_owned(),
            status: SolverStatus::Heuristic,
            search: Search::default(),
            decisions: Vec::new(),
        },
    })
}

/// A misfit with its figures.
fn in_words(scenario: &Scenario, misfit: &Misfit) -> String {
    match misfit.hurdle.memory() {
        Some((rank, needs)) => {
            let (needs, limit) = (needs.gib(), scenario.memory_limit().gib());
            format!("{}: rank {rank} needs {needs:.1} GiB; {limit:.1} GiB available", misfit.reason)
        }
        None => misfit.reason.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(first: u32, first_device: u32) -> ModuleLayout {
        let [tensor, context, pipeline, data, expert, beside] = [2, 1, 4, 8, 1, 2];
        ModuleLayout { first, end: first + 1, tensor, context, pipeline, data, expert, first_device, beside }
    }

    #[test]
    fn a_point_is_found_by_its_name() {
        for (mode, word) in MODES {
            let point = Point { mode, modules: vec![layout(0, 0), layout(1, 64)], microbatch: 4 };
            assert_eq!(point.name(), format!("{word}-4_0.1.2.1.4.8.1.0.2_1.2.2.1.4.8.1.64.2"));
            assert_eq!(Point::named(&point.name()), Some(point));
        }
    }

    #[test]
    fn other_words_are_no_name() {
        for word in [
            "",
            "apart",
            "apart-",
            "apart-2_",
            "apart-2_1.2",
            "beside-2_0.1.2.1.4.8.1.0.2",
            "apart-2_0.1.2.1.4.8.1.0.x",
            "apart--2_0.1.2.1.4.8.1.0.2",
        ] {
            assert_eq!(Point::named(word), None, "{word}");
        }
    }
}
