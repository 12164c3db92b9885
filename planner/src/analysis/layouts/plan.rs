//! Plan for a point from the layout sweep: timeline, placement and binding constraint.

use serde::{Deserialize, Serialize};

use super::{Freedom, LayoutPoint, PointFigures, batch_flops, degree_settings, on_nodes, representative, sizes};
use crate::analysis::NoStudy;
use crate::cost::Pricing;
use crate::host::Watch;
use crate::observer::Watched;
use crate::outcome::{ModulePlacement, Planned, RankSummary};
use crate::planners::module_layouts::{Mode, NoPoint, PlannedPoint, Point, plan_point};
use crate::planners::{JudgeError, judge};
use crate::scenario::ValidScenario;
use crate::timeline::Timeline;

/// A point from the sweep, and its timeline for the same batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LayoutPlan {
    /// The point, with figures from the validated plan.
    pub point: LayoutPoint,
    /// Order of actions and binding constraint as text.
    pub words: Vec<String>,
    /// Placement of modules and transfers between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<ModulePlacement>,
    /// Timeline for all ranks.
    pub timeline: Timeline,
}

/// Plans the representative batch with the layouts of a point, identified by its name in
/// [`super::layouts`]. The plan is validated and simulated like all plans.
///
/// # Errors
/// The scenario does not have these layouts, or they are infeasible.
pub fn layout_plan(valid: &ValidScenario, name: &str, watch: &dyn Watch) -> Result<LayoutPlan, NoStudy> {
    let unknown = || NoStudy::NoSuchLayout(name.chars().take(400).collect());
    let (nodes, point) = name.split_once('-').ok_or_else(unknown)?;
    let nodes = nodes.parse().ok().filter(|nodes| sizes(valid.scenario()).contains(nodes)).ok_or_else(unknown)?;
    let point = Point::named(point).ok_or_else(unknown)?;
    let scenario = on_nodes(valid.scenario(), nodes);
    let sizing = representative(valid);
    let degrees = degree_settings(&scenario);
    let pricing = Pricing::new(&scenario.model, &scenario.cluster, &scenario.training).with_degrees(&degrees);
    if watch.is_over() {
        return Err(NoStudy::TimeIsUp);
    }
    let planned = plan_point(&scenario, &pricing, &point, &sizing);
    let PlannedPoint { plan, words, devices } = planned.map_err(|none| match none {
        NoPoint::Unknown => unknown(),
        NoPoint::Misfit(reason) => NoStudy::Misfit(reason),
    })?;
    let batches = [sizing];
    let judged = judge(&scenario, &pricing, &plan.into(), &batches, &Watched(watch)).map_err(|error| match error {
        JudgeError::Cancelled(_) => NoStudy::TimeIsUp,
        JudgeError::Rejected(violation) => NoStudy::Misfit(format!("the checker rejects the plan: {violation}")),
    })?;
    let (planned, timelines) = judged.into_parts();
    let [sizing] = batches;
    let seconds = planned.metrics.iteration_s;
    let figures = PointFigures {
        iteration_s: seconds,
        tflops_per_device: batch_flops(&scenario, &sizing) / seconds / f64::from(devices) * 1e-12,
        tokens_per_s: sizing.summary.tokens as f64 / seconds,
        peak_memory_gib: planned.metrics.peak_memory_gib,
        bubble: planned.metrics.bubble,
        exposed_communication: planned.metrics.exposed_communication,
    };
    let layouts = planned.placement.as_ref().map(|placement| placement.layouts.clone()).unwrap_or_default();
    let point = LayoutPoint {
        name: name.to_owned(),
        freedom: freedom(point.mode),
        title: words,
        layouts,
        microbatch: point.microbatch,
        devices,
        reason: None,
        figures: Some(figures),
        is_on_front: false,
        against_best: None,
    };
    let words = binding(&planned);
    let timeline = timelines.into_iter().next().unwrap_or_default();
    Ok(LayoutPlan { point, words, placement: planned.placement, timeline })
}

const fn freedom(mode: Mode) -> Freedom {
    match mode {
        Mode::Homogeneous | Mode::Chain => Freedom::Homogeneous,
        Mode::Colocated => Freedom::Colocated,
        Mode::Apart => Freedom::NonColocated,
    }
}

/// Describes the order of actions and the binding constraint.
fn binding(planned: &Planned) -> Vec<String> {
    let mut words = Vec::new();
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    if let Some(iteration) = planned.iterations.first() {
        words.extend(iteration.decision.as_ref().map(|order| format!("Order: {order}.")));
        let path = iteration.critical_path;
        words.push(format!(
            "Critical path: {} compute, {} communication, {} optimizer; {} above the lower bound of these microbatches.",
            percent(path.compute),
            percent(path.communication),
            percent(path.optimizer),
            percent(planned.metrics.gap)
        ));
    }
    let whole = planned.metrics.iteration_s;
    let idle = |rank: &RankSummary| rank.time.bubble_s / whole;
    let order = |a: &&RankSummary, b: &&RankSummary| idle(a).total_cmp(&idle(b)).then(a.rank.cmp(&b.rank));
    let ends = (planned.ranks.iter().min_by(order), planned.ranks.iter().max_by(order));
    if let (Some(busiest), Some(idlest)) = ends {
        words.push(format!(
            "What binds: {} is idle for {} only; {} for {}.",
            stands(planned, busiest.rank),
            percent(idle(busiest)),
            stands(planned, idlest.rank),
            percent(idle(idlest))
        ));
    }
    let fullest = planned.ranks.iter().max_by(|a, b| a.memory.held_gib().total_cmp(&b.memory.held_gib()));
    if let Some(fullest) = fullest {
        words.push(format!(
            "Memory: {} holds most, {:.1} of {:.1} GiB.",
            stands(planned, fullest.rank),
            planned.metrics.peak_memory_gib,
            planned.metrics.memory_limit_gib
        ));
    }
    words
}

/// Describes a rank and the modules on it.
fn stands(planned: &Planned, rank: u32) -> String {
    let label = planned.placement.as_ref().and_then(|placement| placement.ranks.get(rank as usize));
    label.map_or_else(|| format!("rank {rank}"), |label| format!("rank {rank} ({label})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::layouts;
    use crate::host::{NeverCancelled, SequentialWorkers};
    use crate::scenario::validate::NoDatasets;

    /// For each freedom's winner, the plan's time equals the sweep's result to the nanosecond.
    #[test]
    fn a_point_does_by_itself_what_it_did_in_the_sweep() {
        let scenario = crate::planners::module_layouts::module_costs::tests::scenario();
        let valid = ValidScenario::new(scenario, &NoDatasets).unwrap();
        let sweep = layouts(&valid, 6, &SequentialWorkers, &NeverCancelled);
        assert_eq!(sweep.best.len(), 3);
        for best in &sweep.best {
            let point = &sweep.points[best.point as usize];
            let plan = layout_plan(&valid, &point.name, &NeverCancelled).unwrap();
            assert_eq!((&plan.point.title, plan.point.devices), (&point.title, point.devices));
            assert_eq!(plan.point.freedom, best.freedom);
            let (own, of_sweep) = (plan.point.figures.unwrap(), point.figures.unwrap());
            assert!((own.iteration_s - of_sweep.iteration_s).abs() < 1e-9, "{own:?} {of_sweep:?}");
            assert!((own.tflops_per_device / of_sweep.tflops_per_device - 1.0).abs() < 1e-9);
            assert!(plan.timeline.makespan_ns > 0 && !plan.timeline.is_empty());
            assert!(plan.words.iter().any(|line| line.starts_with("What binds")), "{:?}", plan.words);
            assert!(plan.placement.is_some());
        }
    }

    #[test]
    fn layouts_that_cannot_be_say_why_and_others_are_unknown() {
        let scenario = crate::planners::module_layouts::module_costs::tests::scenario();
        let valid = ValidScenario::new(scenario, &NoDatasets).unwrap();
        let sweep = layouts(&valid, 6, &SequentialWorkers, &NeverCancelled);
        let why = "TP does not divide";
        let illegal =
            sweep.points.iter().find(|point| point.reason.as_ref().is_some_and(|reason| reason.starts_with(why)));
        let refused = illegal.map(|point| layout_plan(&valid, &point.name, &NeverCancelled).unwrap_err().to_string());
        assert!(refused.is_none_or(|refused| refused.starts_with("these layouts cannot be: TP does not divide")));
        let known = &sweep.points[0].name;
        for name in [
            "",
            "1",
            "x-apart-2",
            "3-apart-2_0.1.1.1.1.1.1.0.1",
            &known.replace("1-", "2-"),
            &format!("{known}_0.1.1.1.1.1.1.0.1"),
        ] {
            assert_eq!(
                layout_plan(&valid, name, &NeverCancelled),
                Err(NoStudy::NoSuchLayout(name.to_owned())),
                "{name}"
            );
        }
    }
}
