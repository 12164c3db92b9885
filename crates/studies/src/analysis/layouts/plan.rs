//! Plan for a point from the layout sweep: timeline, placement and binding constraint.

use super::{Freedom, LayoutPlan, LayoutPoint, PointMetrics, batch_flops, on_nodes, representative, sizes};
use crate::analysis::AnalysisError;
use planscope_core::host::Cancellation;
use planscope_cost::cost::Pricing;
use planscope_plan::observer::Watched;
use planscope_plan::outcome::{Planned, RankSummary};
use planscope_plan::scenario::ValidScenario;
use planscope_planners::planners::module_layouts::{Mode, NoPoint, PlannedPoint, Point, degree_settings, plan_point};
use planscope_planners::planners::{JudgeError, judge};

/// Plans the representative batch with the layouts of a point, identified by its name in
/// [`super::layouts`]. The plan is validated and simulated like all plans.
///
/// # Errors
/// The scenario does not have these layouts, or they are infeasible.
pub fn layout_plan(
    valid: &ValidScenario,
    name: &str,
    cancellation: &dyn Cancellation,
) -> Result<LayoutPlan, AnalysisError> {
    let unknown = || AnalysisError::NoSuchLayout(name.chars().take(400).collect());
    let (nodes, point) = name.split_once('-').ok_or_else(unknown)?;
    let nodes = nodes.parse().ok().filter(|nodes| sizes(valid.scenario()).contains(nodes)).ok_or_else(unknown)?;
    let point = Point::named(point).ok_or_else(unknown)?;
    let scenario = on_nodes(valid.scenario(), nodes);
    let sizing = representative(valid);
    let degrees = degree_settings(&scenario);
    let pricing = Pricing::new(&scenario.model, &scenario.cluster, &scenario.training).with_degrees(&degrees);
    if cancellation.is_over() {
        return Err(AnalysisError::TimeIsUp);
    }
    let planned = plan_point(&scenario, &pricing, &point, &sizing);
    let PlannedPoint { plan, description: label, devices } = planned.map_err(|none| match none {
        NoPoint::Unknown => unknown(),
        NoPoint::Infeasible(reason) => AnalysisError::Infeasible(reason),
    })?;
    let batches = [sizing];
    let judged =
        judge(&scenario, &pricing, &plan.into(), &batches, &Watched(cancellation)).map_err(|error| match error {
            JudgeError::Cancelled(_) => AnalysisError::TimeIsUp,
            JudgeError::Rejected(violation) => {
                AnalysisError::Infeasible(format!("the checker rejects the plan: {violation}"))
            }
        })?;
    let (planned, timelines) = judged.into_parts();
    let [sizing] = batches;
    let seconds = planned.metrics.iteration_s;
    let metrics = PointMetrics {
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
        title: label,
        layouts,
        microbatch: point.microbatch,
        devices,
        reason: None,
        figures: Some(metrics),
        is_on_front: false,
        against_best: None,
    };
    let lines = binding(&planned);
    let timeline = timelines.into_iter().next().unwrap_or_default();
    Ok(LayoutPlan { point, words: lines, placement: planned.placement, timeline })
}

const fn freedom(mode: Mode) -> Freedom {
    match mode {
        Mode::Homogeneous | Mode::Chain => Freedom::Homogeneous,
        Mode::Colocated => Freedom::Colocated,
        Mode::NonColocated => Freedom::NonColocated,
    }
}

/// Describes the order of actions and the binding constraint.
fn binding(planned: &Planned) -> Vec<String> {
    let mut lines = Vec::new();
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    if let Some(iteration) = planned.iterations.first() {
        lines.extend(iteration.decision.as_ref().map(|order| format!("Order: {order}.")));
        let path = iteration.critical_path;
        lines.push(format!(
            "Critical path: {} compute, {} communication, {} optimizer; {} above the lower bound of these microbatches.",
            percent(path.compute),
            percent(path.communication),
            percent(path.optimizer),
            percent(planned.metrics.gap)
        ));
    }
    let iteration_s = planned.metrics.iteration_s;
    let idle = |rank: &RankSummary| rank.time.bubble_s / iteration_s;
    let order = |a: &&RankSummary, b: &&RankSummary| idle(a).total_cmp(&idle(b)).then(a.rank.cmp(&b.rank));
    let ends = (planned.ranks.iter().min_by(order), planned.ranks.iter().max_by(order));
    if let (Some(busiest), Some(idlest)) = ends {
        lines.push(format!(
            "What binds: {} is idle for {} only; {} for {}.",
            rank_label(planned, busiest.rank),
            percent(idle(busiest)),
            rank_label(planned, idlest.rank),
            percent(idle(idlest))
        ));
    }
    let fullest = planned.ranks.iter().max_by(|a, b| a.memory.resident_gib().total_cmp(&b.memory.resident_gib()));
    if let Some(fullest) = fullest {
        lines.push(format!(
            "Memory: {} holds most, {:.1} of {:.1} GiB.",
            rank_label(planned, fullest.rank),
            planned.metrics.peak_memory_gib,
            planned.metrics.memory_limit_gib
        ));
    }
    lines
}

/// Describes a rank and the modules on it.
fn rank_label(planned: &Planned, rank: u32) -> String {
    let label = planned.placement.as_ref().and_then(|placement| placement.ranks.get(rank as usize));
    label.map_or_else(|| format!("rank {rank}"), |label| format!("rank {rank} ({label})"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::analysis::layouts;
    use planscope_core::host::{NeverCancelled, SequentialWorkers};
    use planscope_plan::scenario::validate::NoDatasets;
    use planscope_plan::scenario::{Scenario, parse};

    /// A node of eight H100s, VLM-S, and sixteen samples of two images.
    pub(in super::super) fn vlm_on_one_node() -> Scenario {
        let scenario = serde_json::json!({
            "schema": "scenario/1", "model": { "preset": "vlm-s" }, "cluster": { "preset": "h100", "nodes": 1 },
            "workload": {
                "samples": {
                    "kind": "drawn", "text_tokens": { "kind": "uniform", "min": 500, "max": 1500 },
                    "images": { "kind": "constant", "value": 2 }
                },
                "global_batch": 16, "context_length": 4096, "packing": "single"
            },
            "planners": ["optimus"]
        });
        parse(&scenario.to_string()).unwrap()
    }

    /// For each freedom's winner, the plan's time equals the sweep's result to the nanosecond.
    #[test]
    fn layout_plan_matches_the_sweep() {
        let scenario = vlm_on_one_node();
        let valid = ValidScenario::new(scenario, &NoDatasets).unwrap();
        let sweep = layouts(&valid, 6, &SequentialWorkers, &NeverCancelled);
        assert_eq!(sweep.best.len(), 3);
        for best in &sweep.best {
            let point = &sweep.points[best.point as usize];
            let plan = layout_plan(&valid, &point.name, &NeverCancelled).unwrap();
            assert_eq!((&plan.point.title, plan.point.devices), (&point.title, point.devices));
            assert_eq!(plan.point.freedom, best.freedom);
            let (planned_metrics, sweep_metrics) = (plan.point.figures.unwrap(), point.figures.unwrap());
            assert!(
                (planned_metrics.iteration_s - sweep_metrics.iteration_s).abs() < 1e-9,
                "{planned_metrics:?} {sweep_metrics:?}"
            );
            assert!((planned_metrics.tflops_per_device / sweep_metrics.tflops_per_device - 1.0).abs() < 1e-9);
            assert!(plan.timeline.makespan_ns > 0 && !plan.timeline.is_empty());
            assert!(plan.words.iter().any(|line| line.starts_with("What binds")), "{:?}", plan.words);
            assert!(plan.placement.is_some());
        }
    }

    #[test]
    fn layouts_that_cannot_be_say_why_and_others_are_unknown() {
        let scenario = vlm_on_one_node();
        let valid = ValidScenario::new(scenario, &NoDatasets).unwrap();
        let sweep = layouts(&valid, 6, &SequentialWorkers, &NeverCancelled);
        let why = "TP does not divide";
        let illegal =
            sweep.points.iter().find(|point| point.reason.as_ref().is_some_and(|reason| reason.starts_with(why)));
        let error = illegal.map(|point| layout_plan(&valid, &point.name, &NeverCancelled).unwrap_err().to_string());
        assert!(error.is_none_or(|text| text.starts_with("these layouts cannot be: TP does not divide")));
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
                Err(AnalysisError::NoSuchLayout(name.to_owned())),
                "{name}"
            );
        }
    }
}
