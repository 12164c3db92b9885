//! Points of the sweep by name. The plan of a point is validated and simulated like any other plan.

use super::fill::{self, Filled, fill};
use super::report;
use super::space::{Ground, Mode, Point, Space, anchor, space_by};
use super::{backbone_layout, points};
use crate::planners::infeasible::Infeasibility;
use crate::planners::replica;
use planscope_core::workload::PackedBatch;
use planscope_cost::cost::Pricing;
use planscope_plan::outcome::{Search, SolverStatus};
use planscope_plan::plan::{IterationPlan, ModuleLayout, Plan};
use planscope_plan::scenario::Scenario;

const MODES: [(Mode, &str); 4] = [
    (Mode::Homogeneous, "single"),
    (Mode::Chain, "chain"),
    (Mode::Colocated, "colocated"),
    (Mode::NonColocated, "apart"),
];

impl Point {
    /// Returns a URL-safe name, for example `apart-2_0.1.1.1.1.4.1.0.1_1.2.2.1.1.2.1.4.1`. It
    /// contains the mode and the sequences per microbatch. Then for each layout: first module, end
    /// module (exclusive), TP, CP, PP, DP, EP, first device, and copies per rank.
    pub(crate) fn name(&self) -> String {
        let mode = MODES.iter().find(|(mode, _)| *mode == self.mode).map_or("", |(_, name)| name);
        let layout = |module_layout: &ModuleLayout| {
            let ModuleLayout { first, end, tensor, context, pipeline, data, expert, first_device, copies_per_rank } =
                *module_layout;
            let numbers = [first, end, tensor, context, pipeline, data, expert, first_device, copies_per_rank];
            numbers.map(|number| number.to_string()).join(".")
        };
        let parts: Vec<String> =
            std::iter::once(format!("{mode}-{}", self.microbatch)).chain(self.modules.iter().map(layout)).collect();
        parts.join("_")
    }

    /// Parses a name. `None` if the syntax is invalid. The function does not check that the point
    /// belongs to the scenario's [`space`].
    pub fn named(name: &str) -> Option<Self> {
        let mut parts = name.split('_');
        let (mode, microbatch) = parts.next()?.split_once('-')?;
        let mode = MODES.iter().find(|(_, name)| *name == mode)?.0;
        let layout = |part: &str| {
            let numbers = part.split('.').map(|number| number.parse().ok()).collect::<Option<Vec<u32>>>()?;
            let [first, end, tensor, context, pipeline, data, expert, first_device, copies_per_rank] = numbers[..]
            else {
                return None;
            };
            Some(ModuleLayout { first, end, tensor, context, pipeline, data, expert, first_device, copies_per_rank })
        };
        let modules = parts.map(layout).collect::<Option<Vec<ModuleLayout>>>()?;
        Some(Self { mode, modules, microbatch: microbatch.parse().ok()? })
    }
}

/// Error for a point without a plan.
pub enum NoPoint {
    /// The scenario's space does not contain the layouts.
    Unknown,
    /// The layouts violate a rule or exceed the memory limit.
    Infeasible(String),
}

/// Plan of a point for a batch.
pub struct PlannedPoint {
    pub plan: Plan,
    /// Layouts as text.
    pub description: String,
    /// Devices used.
    pub devices: u32,
}

/// Plans a point in the scenario's [`space`] for a batch, in the same way as the sweep.
pub fn plan_point(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    point: &Point,
    batch: &PackedBatch,
) -> Result<PlannedPoint, NoPoint> {
    let mode = if point.mode == Mode::Chain { Mode::Homogeneous } else { point.mode };
    // The limit on points does not exclude the requested one.
    let mut score = |other: &Point| if other.modules == point.modules { 0.0 } else { 1.0 };
    let Space { points: legal, illegal, .. } =
        space_by(&Ground::from_scenario(scenario), mode, batch.sequences.len() as u32, &mut score);
    if !legal.contains(point) {
        let rule = illegal.into_iter().find(|(other, _)| other.mode == point.mode && other.modules == point.modules);
        return Err(rule.map_or(NoPoint::Unknown, |(_, rule)| NoPoint::Infeasible(rule)));
    }
    let to_error = |infeasibility: Infeasibility| NoPoint::Infeasible(describe_infeasibility(scenario, &infeasibility));
    let sequences = fill::microbatches(point, anchor(&scenario.model), batch);
    let loads = replica::loads(scenario, batch, &sequences);
    let partition = fill::partition(scenario, pricing, point, &loads).map_err(to_error)?;
    let Filled { plan, order, dealing, .. } = fill(scenario, pricing, (point, &partition), batch).map_err(to_error)?;
    let decision = report::order(point.mode, (order, dealing), plan.microbatches.len());
    let iterations = vec![IterationPlan { replicas: vec![plan], decision: Some(decision) }];
    Ok(PlannedPoint {
        description: report::describe(&scenario.model, point),
        devices: points::devices(point),
        plan: Plan {
            layout: backbone_layout(scenario, point),
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

/// Formats a misfit, including memory figures.
fn describe_infeasibility(scenario: &Scenario, infeasibility: &Infeasibility) -> String {
    match infeasibility.constraint.memory() {
        Some((rank, needs)) => {
            let (needs, limit) = (needs.gib(), scenario.memory_limit().gib());
            format!("{}: rank {rank} needs {needs:.1} GiB; {limit:.1} GiB available", infeasibility.reason)
        }
        None => infeasibility.reason.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(first: u32, first_device: u32) -> ModuleLayout {
        let [tensor, context, pipeline, data, expert, copies_per_rank] = [2, 1, 4, 8, 1, 2];
        ModuleLayout { first, end: first + 1, tensor, context, pipeline, data, expert, first_device, copies_per_rank }
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
    fn invalid_names_are_rejected() {
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
