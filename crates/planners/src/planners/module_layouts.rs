//! Heterogeneous parallelism: a separate layout for each module, on shared or disjoint devices
//! (arXiv 2605.27678).
//!
//! The [`space`] of a mode contains all layout combinations that cover the devices. Rules exclude
//! invalid points before any cost computation. [`search`] sorts the remaining points by an estimate
//! (work per device plus pipeline bubble) and simulates them on the sizing batch, unless the work
//! per device already exceeds the lowest time. [`fill`] creates the winner's plan for each batch in
//! the run. The report compares the winner with the best single layout for all modules.

mod estimates;
mod fill;
pub mod module_costs;
mod named;
mod nearest;
mod points;
mod report;
mod search;
mod space;

pub(crate) use fill::wave_pieces;
use search::Sweep;
use space::anchor;

pub use named::{NoPoint, PlannedPoint, plan_point};
pub use points::{PointSeen, SeenPoint, points};
pub use search::BEYOND;
pub use space::{Ground, Mode, ModuleShape, Point, degree_settings, space as points_of};

use crate::planners::batches::SpanCount;
use crate::planners::infeasible::Infeasibility;
use crate::planners::layout_search::Composition;
use crate::planners::{Batches, NO_CEILING, NoPlan, PlanningContext, SearchError};
use planscope_cost::cost::Partition;
use planscope_plan::observer::{Observer, go_on};
use planscope_plan::outcome::{Layout, SolverStatus};
use planscope_plan::plan::{IterationPlan, Plan};
use planscope_plan::scenario::Scenario;

/// Simulation limits: for the search, and for comparing against the best single layout.
const SIMULATED: u32 = 400;
const COMPARED: u32 = 200;
/// Simulation limit below the ceiling of a caller that compares planners.
const BELOW_CEILING: u32 = 100;

/// Chooses the layouts on the sizing batch, then plans every batch of the run.
pub(crate) fn plan(context: PlanningContext<'_>, observer: &mut dyn Observer) -> Result<Plan, SearchError<NoPlan>> {
    let PlanningContext { scenario, pricing, planner: kind, batches: Batches { sizing, .. }, .. } = context;
    let mode = Mode::from_planner(kind);
    if mode != Mode::Homogeneous && scenario.model.modules.len() < 2 {
        return Err(NoPlan::inapplicable("does not apply: a model of one module has one layout").into());
    }
    if mode == Mode::NonColocated && scenario.cluster.devices() < 2 {
        return Err(
            NoPlan::inapplicable("does not apply: separate devices for modules need two devices or more").into()
        );
    }
    let is_limited = context.ceiling != NO_CEILING;
    let limit = if is_limited { BELOW_CEILING } else { SIMULATED };
    let mut sweep = Sweep::new(scenario, pricing, mode, sizing).below(context.ceiling);
    sweep.run(limit, kind, observer)?;
    let mut failed_later = 0;
    loop {
        let Some((point, partition)) = sweep.winner() else { return Err(sweep.no_plan().into()) };
        let composition = fill::fastest_composition(scenario, pricing, (&point, &partition), sizing);
        match fill_all(context, (&point, &partition), composition, observer) {
            Ok(iterations) => {
                let mut decisions = report::decisions(scenario, &sweep, sizing.sequences.len(), failed_later);
                decisions.extend(composition.describe().map(str::to_owned));
                if mode != Mode::Homogeneous && !is_limited {
                    let mut single = Sweep::new(scenario, pricing, Mode::Homogeneous, sizing);
                    single.run(COMPARED, kind, observer)?;
                    decisions.push(report::compare_with_single(scenario, &sweep, &single));
                }
                return Ok(Plan {
                    layout: backbone_layout(scenario, &point),
                    partition,
                    modules: point.modules,
                    iterations,
                    algorithm: report::algorithm(mode).to_owned(),
                    status: SolverStatus::Heuristic,
                    search: sweep.report(),
                    decisions,
                });
            }
            Err(error) => {
                failed_later += 1;
                sweep.reject_winner(&error.reason()?);
                sweep.run(limit, kind, observer)?;
            }
        }
    }
}

/// Returns the backbone's degrees, for tables that show a single layout.
pub(crate) fn backbone_layout(scenario: &Scenario, point: &Point) -> Layout {
    let main = anchor(&scenario.model);
    let main_layout = point.modules.iter().find(|layout| layout.modules().contains(&main)).unwrap_or(&point.modules[0]);
    let (tensor, pipeline, data) = (main_layout.tensor, main_layout.pipeline, main_layout.data);
    Layout { tensor, pipeline, data, chunks: 1, microbatch: point.microbatch, group: None }
}

fn fill_all(
    context: PlanningContext<'_>,
    placed: (&Point, &Partition),
    composition: Composition,
    observer: &mut dyn Observer,
) -> Result<Vec<IterationPlan>, SearchError<Infeasibility>> {
    let PlanningContext { scenario, pricing, planner: kind, batches: Batches { evaluated: batches, .. }, .. } = context;
    let (mut iterations, mut spans) = (Vec::with_capacity(batches.len()), 0);
    for (index, batch) in batches.iter().enumerate() {
        go_on(observer)?;
        observer.progress(kind, "filling batches", index as u32, batches.len() as u32);
        let filled = fill::fill_composed(scenario, pricing, placed, (batch, composition))?;
        let order = report::order(placed.0.mode, (filled.order, filled.dealing), filled.plan.microbatches.len());
        spans += filled.plan.spans();
        observer.drafted(spans);
        iterations.push(IterationPlan { replicas: vec![filled.plan], decision: Some(order) });
    }
    go_on(observer)?;
    Ok(iterations)
}

#[cfg(test)]
mod check_tests;
#[cfg(test)]
mod tests;
