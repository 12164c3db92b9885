//! All module layouts of a scenario as points: throughput per device against cluster throughput.
//!
//! The study compares a single layout, separate layouts on shared devices, and separate layouts on
//! disjoint devices. It uses the full cluster and half the nodes, because fewer devices can have a
//! higher throughput per device. This shows the benefit of heterogeneous parallelism
//! (arXiv 2605.27678). Points are evaluated on the representative batch.

mod plan;

pub use plan::layout_plan;
pub use planscope_analysis::analysis::layouts::*;

use std::collections::BTreeMap;

use planscope_core::host::{Cancellation, Workers};
use planscope_core::workload::{PackedBatch, Packing, Sequence, packing};
use planscope_cost::cost::{MicrobatchLoad, Pricing};
use planscope_plan::outcome::RejectionCount;
use planscope_plan::scenario::Sampler;
use planscope_plan::scenario::{Scenario, ValidScenario};
use planscope_planners::planners::module_layouts;
use planscope_planners::planners::module_layouts::{Mode, PointSeen, SeenPoint};

/// Limit on listed points that are not simulated. Further points are only counted.
const LISTED: usize = 2000;

/// Evaluates all layouts of a scenario's modules. Simulates at most `most` points per freedom and
/// cluster size, sorted by estimate.
pub fn layouts(
    valid: &ValidScenario,
    max_points: u32,
    workers: &dyn Workers,
    cancellation: &dyn Cancellation,
) -> LayoutSweep {
    let scenario = valid.scenario();
    let sizing = representative(valid);
    let mut sweep = LayoutSweep {
        sequences: sizing.sequences.len() as u32,
        tokens: sizing.summary.tokens,
        points: Vec::new(),
        best: Vec::new(),
        simulated: 0,
        left_out: 0,
        rejections: Vec::new(),
        is_partial: false,
    };
    let flops = batch_flops(scenario, &sizing);
    let mut reasons: BTreeMap<String, u32> = BTreeMap::new();
    let mut others = Vec::new();
    for nodes in sizes(scenario) {
        let smaller = on_nodes(scenario, nodes);
        let (points, beyond) = seen(&smaller, &sizing, (max_points, workers, cancellation), &mut sweep.is_partial);
        if beyond > 0 {
            let count = reasons.entry(module_layouts::BEYOND.to_owned()).or_default();
            *count = count.saturating_add(beyond.min(u32::MAX.into()) as u32);
        }
        for (freedom, point) in points {
            let SeenPoint { name, layouts, description: label, microbatch, devices, seen } = point;
            let mut point = LayoutPoint {
                name: format!("{nodes}-{name}"),
                freedom,
                title: label,
                layouts,
                microbatch,
                devices,
                reason: None,
                figures: None,
                is_on_front: false,
                against_best: None,
            };
            match seen {
                PointSeen::Simulated { seconds, peak_gib, bubble, exposed } => {
                    sweep.simulated += 1;
                    point.figures = Some(PointMetrics {
                        iteration_s: seconds,
                        tflops_per_device: flops / seconds / f64::from(devices) * 1e-12,
                        tokens_per_s: sizing.summary.tokens as f64 / seconds,
                        peak_memory_gib: peak_gib,
                        bubble,
                        exposed_communication: exposed,
                    });
                    sweep.points.push(point);
                }
                PointSeen::Rejected(reason) => {
                    *reasons.entry(reason.clone()).or_default() += 1;
                    others.push(LayoutPoint { reason: Some(reason), ..point });
                }
                PointSeen::LeftOut { bound } => {
                    sweep.left_out += 1;
                    let reason =
                        format!("left out: its estimate was not among the best; it takes at least {bound:.3} s");
                    others.push(LayoutPoint { reason: Some(reason), ..point });
                }
            }
        }
    }
    mark_front(&mut sweep.points);
    hold_against_best(&mut sweep.points);
    sweep.best = best(&sweep.points, scenario.cluster.nodes * scenario.cluster.devices_per_node);
    sweep.rejections = reasons.into_iter().map(|(reason, count)| RejectionCount { reason, count }).collect();
    sweep.rejections.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.reason.cmp(&b.reason)));
    others.truncate(LISTED);
    sweep.points.append(&mut others);
    sweep
}

/// Returns the scenario with a smaller node count.
fn on_nodes(scenario: &Scenario, nodes: u32) -> Scenario {
    let mut smaller = scenario.clone();
    smaller.cluster.nodes = nodes;
    smaller
}

/// Returns the node counts in the study: all nodes and half the nodes.
fn sizes(scenario: &Scenario) -> Vec<u32> {
    let nodes = scenario.cluster.nodes;
    std::iter::once(nodes).chain((nodes > 1).then_some(nodes / 2)).collect()
}

/// Returns the packed representative batch.
fn representative(valid: &ValidScenario) -> PackedBatch {
    let scenario = valid.scenario();
    packing::pack(&Sampler::new(valid).sizing().samples, &scenario.model, &scenario.workload.packing_rule())
}

/// Model FLOPs of a batch, forward and backward.
fn batch_flops(scenario: &Scenario, batch: &PackedBatch) -> f64 {
    let all: &[Sequence] = &batch.sequences;
    MicrobatchLoad::new(all, &scenario.model, Packing::Packed).model_flops(&scenario.model).get()
}

/// Returns the points for all freedoms on a cluster, and the number of points above the limit.
fn seen(
    scenario: &Scenario,
    sizing: &PackedBatch,
    (max_points, workers, cancellation): (u32, &dyn Workers, &dyn Cancellation),
    is_partial: &mut bool,
) -> (Vec<(Freedom, SeenPoint)>, u64) {
    let degrees = module_layouts::degree_settings(scenario);
    let pricing = Pricing::new(&scenario.model, &scenario.cluster, &scenario.training).with_degrees(&degrees);
    let (mut all, mut beyond) = (Vec::new(), 0);
    for (freedom, mode) in [
        (Freedom::Homogeneous, Mode::Homogeneous),
        (Freedom::Colocated, Mode::Colocated),
        (Freedom::NonColocated, Mode::NonColocated),
    ] {
        let seen = module_layouts::points(scenario, &pricing, mode, sizing, (max_points, workers, cancellation));
        *is_partial |= seen.is_partial;
        beyond += seen.beyond;
        all.extend(seen.points.into_iter().map(|point| (freedom, point)));
    }
    (all, beyond)
}

/// Marks the Pareto front for tokens/s and throughput per device.
fn mark_front(points: &mut [LayoutPoint]) {
    let mut order: Vec<usize> = (0..points.len()).filter(|&point| points[point].figures.is_some()).collect();
    let throughputs = |points: &[LayoutPoint], point: usize| {
        points[point].figures.map_or((0.0, 0.0), |metrics| (metrics.tokens_per_s, metrics.tflops_per_device))
    };
    order.sort_by(|&a, &b| {
        let (a, b) = (throughputs(points, a), throughputs(points, b));
        b.0.total_cmp(&a.0).then_with(|| b.1.total_cmp(&a.1))
    });
    let mut max_per_device = f64::NEG_INFINITY;
    for point in order {
        let per_device = throughputs(points, point).1;
        if per_device > max_per_device {
            points[point].is_on_front = true;
            max_per_device = per_device;
        }
    }
}

/// Describes how simulated points differ from the fastest point.
fn hold_against_best(points: &mut [LayoutPoint]) {
    let fastest = points.iter().filter_map(|point| Some((point.figures?, point.title.clone())));
    let fastest = fastest.max_by(|a, b| a.0.tokens_per_s.total_cmp(&b.0.tokens_per_s));
    let Some((best, title)) = fastest else { return };
    let share = |value: f64| format!("{:.1} %", 100.0 * value);
    for point in points {
        let Some(metrics) = point.figures else { continue };
        let slower = 1.0 - metrics.tokens_per_s / best.tokens_per_s;
        point.against_best = Some(if slower <= 0.0 {
            "The fastest of all.".to_owned()
        } else {
            format!(
                "{} fewer tokens/s than the fastest ({title}). Its devices are idle {} of the time, those of the fastest {}; \
                 communication stands in the way for {}, there for {}.",
                share(slower),
                share(metrics.bubble),
                share(best.bubble),
                share(metrics.exposed_communication),
                share(best.exposed_communication)
            )
        });
    }
}

/// Returns the winner per freedom, using at most `devices` devices.
fn best(points: &[LayoutPoint], devices: u32) -> Vec<BestPoint> {
    let figure = |point: usize| points[point].figures.map_or(0.0, |metrics| metrics.tokens_per_s);
    let fits = |point: &usize| points[*point].devices <= devices && points[*point].figures.is_some();
    let fastest = |freedom: Freedom| {
        let candidates = (0..points.len()).filter(|&point| points[point].freedom == freedom).filter(fits);
        candidates.max_by(|&a, &b| figure(a).total_cmp(&figure(b)).then(b.cmp(&a)))
    };
    let single = fastest(Freedom::Homogeneous).map(figure);
    let line = |freedom: Freedom| {
        let point = fastest(freedom)?;
        let gain_percent = single.map(|single| 100.0 * (figure(point) / single - 1.0));
        Some(BestPoint { freedom, point: point as u32, gain_percent })
    };
    [Freedom::Homogeneous, Freedom::Colocated, Freedom::NonColocated].into_iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use planscope_core::host::{NeverCancelled, SequentialWorkers};
    use planscope_plan::scenario::validate::NoDatasets;

    fn point(tokens_per_s: f64, tflops_per_device: f64) -> LayoutPoint {
        let metrics = PointMetrics {
            iteration_s: 1.0,
            tflops_per_device,
            tokens_per_s,
            peak_memory_gib: 1.0,
            bubble: 0.0,
            exposed_communication: 0.0,
        };
        LayoutPoint {
            name: String::new(),
            freedom: Freedom::Colocated,
            title: String::new(),
            layouts: Vec::new(),
            microbatch: 1,
            devices: 8,
            reason: None,
            figures: Some(metrics),
            is_on_front: false,
            against_best: None,
        }
    }

    #[test]
    fn front_contains_points_not_dominated_in_both_throughputs() {
        let mut points =
            vec![point(4.0, 1.0), point(3.0, 2.0), point(2.0, 1.5), point(1.0, 3.0), point(1.0, 2.5), point(4.0, 0.5)];
        mark_front(&mut points);
        let front: Vec<bool> = points.iter().map(|point| point.is_on_front).collect();
        assert_eq!(front, [true, true, false, true, false, false]);
    }

    /// A node with VLM-S: all freedoms have points, results are deterministic, and each rejection
    /// has an explanation.
    #[test]
    fn every_freedom_has_points_and_every_rejection_a_reason() {
        let scenario = plan::tests::vlm_on_one_node();
        let valid = ValidScenario::new(scenario, &NoDatasets).unwrap();
        let sweep = layouts(&valid, 12, &SequentialWorkers, &NeverCancelled);
        assert_eq!(sweep.best.len(), 3);
        assert_eq!(sweep.best[0].gain_percent, Some(0.0));
        assert!(sweep.points.iter().all(|point| point.figures.is_some() != point.reason.is_some()));
        assert!(sweep.points.iter().any(|point| point.is_on_front));
        assert!(!sweep.rejections.is_empty());
        assert_eq!(layouts(&valid, 12, &SequentialWorkers, &NeverCancelled), sweep);
        let best = sweep.points.iter().filter(|point| point.against_best.as_deref() == Some("The fastest of all."));
        let max_tokens_per_s = sweep
            .points
            .iter()
            .filter_map(|point| point.figures)
            .map(|metrics| metrics.tokens_per_s)
            .fold(0.0, f64::max);
        assert!(best.map(|point| point.figures.unwrap().tokens_per_s).eq([max_tokens_per_s]));
    }
}
