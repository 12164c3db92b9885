//! All layouts of the modules of a scenario as points: throughput per device against throughput of the cluster.
//!
//! One layout for all modules, layouts of their own on shared devices, and on devices of their own; on the whole cluster and on
//! half of its nodes, since fewer devices may each do more. The figure behind the question of heterogeneous parallelism
//! (arXiv 2605.27678): where does added freedom pay? Points are judged on the representative batch.

mod plan;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cost::{DegreeSettings, MicrobatchLoad, Pricing};
use crate::host::{Watch, Workers};
use crate::outcome::{PlacedModules, RejectionCount};
use crate::plan::heterogeneous::{self, Mode, PointSeen, SeenPoint};
use crate::scenario::{Scenario, ValidScenario};
use crate::workload::{PackedBatch, Packing, Sampler, Sequence, packing};

pub use plan::{LayoutPlan, layout_plan};

/// Points that were not simulated and are listed by themselves; the others are counted.
const LISTED: usize = 2000;

/// How modules stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Freedom {
    /// One layout for all.
    Homogeneous,
    /// Layouts of their own on the same devices.
    Colocated,
    /// Layouts of their own on devices of their own.
    NonColocated,
}

/// Every point, and the best of each freedom.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LayoutSweep {
    /// Sequences of the batch that points are judged on.
    pub sequences: u32,
    /// Its backbone tokens.
    pub tokens: u64,
    /// Simulated points first, then others as far as they are listed.
    pub points: Vec<LayoutPoint>,
    /// The best of each freedom on the whole cluster, as an index into `points`.
    pub best: Vec<BestPoint>,
    /// Points simulated.
    pub simulated: u32,
    /// Points left out because others had better estimates.
    pub left_out: u32,
    /// Points that break a rule, exceed the memory or are beyond the most that are looked at, by reason, most frequent first.
    pub rejections: Vec<RejectionCount>,
    /// Whether the time was up before.
    pub is_partial: bool,
}

/// The best point of a freedom.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BestPoint {
    /// How modules stand to each other.
    pub freedom: Freedom,
    /// Index of the point.
    pub point: u32,
    /// Tokens per second over those of the best single layout for all modules, less one, in %; absent where there is none.
    pub gain_percent: Option<f64>,
}

/// A layout of every module and a size of microbatches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LayoutPoint {
    /// Its name, by which [`layout_plan`] finds it.
    pub name: String,
    /// How modules stand to each other.
    pub freedom: Freedom,
    /// In words.
    pub title: String,
    /// Layouts in the order of the modules.
    pub layouts: Vec<PlacedModules>,
    /// Sequences of a microbatch.
    pub microbatch: u32,
    /// Devices that modules stand on.
    pub devices: u32,
    /// Why it cannot be; absent where it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What it does; absent where it was not simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures: Option<PointFigures>,
    /// Whether no other point has more of both throughputs.
    pub is_on_front: bool,
    /// What it lacks against the fastest, in words; absent where it was not simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against_best: Option<String>,
}

/// What a simulated point does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PointFigures {
    /// Time of the batch, in s.
    pub iteration_s: f64,
    /// Model operations per second and device in use, in TFLOP/s.
    pub tflops_per_device: f64,
    /// Backbone tokens per second.
    pub tokens_per_s: f64,
    /// Largest memory of a rank, in GiB.
    pub peak_memory_gib: f64,
    /// Idle share of the devices in use.
    pub bubble: f64,
    /// Share of their time in which communication stands in the way of computation.
    pub exposed_communication: f64,
}

/// Sweeps over all layouts of a scenario's modules. At most `most` points of each freedom and cluster size are tried, those first
/// whose estimates are best.
pub fn layouts(valid: &ValidScenario, most: u32, workers: &dyn Workers, watch: &dyn Watch) -> LayoutSweep {
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
        let (points, beyond) = seen(&smaller, &sizing, (most, workers, watch), &mut sweep.is_partial);
        if beyond > 0 {
            let count = reasons.entry(heterogeneous::BEYOND.to_owned()).or_default();
            *count = count.saturating_add(beyond.min(u32::MAX.into()) as u32);
        }
        for (freedom, point) in points {
            let SeenPoint { name, layouts, words, microbatch, devices, seen } = point;
            let mut point = LayoutPoint {
                name: format!("{nodes}-{name}"),
                freedom,
                title: words,
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
                    point.figures = Some(PointFigures {
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

/// The scenario on some of its nodes.
fn on_nodes(scenario: &Scenario, nodes: u32) -> Scenario {
    let mut smaller = scenario.clone();
    smaller.cluster.nodes = nodes;
    smaller
}

/// Numbers of nodes that layouts are looked at on: all, and half of them.
fn sizes(scenario: &Scenario) -> Vec<u32> {
    let nodes = scenario.cluster.nodes;
    std::iter::once(nodes).chain((nodes > 1).then_some(nodes / 2)).collect()
}

/// Degrees that modules may have for themselves.
fn degree_settings(scenario: &Scenario) -> DegreeSettings {
    let (contexts, experts) = heterogeneous::degrees(scenario);
    DegreeSettings::of(&scenario.training, &contexts, &experts)
}

/// The representative batch, packed.
fn representative(valid: &ValidScenario) -> PackedBatch {
    let scenario = valid.scenario();
    packing::pack(&Sampler::new(valid).sizing().samples, &scenario.model, &scenario.workload.packing_rule())
}

/// Operations of the model for all sequences of a batch, forward and backward.
fn batch_flops(scenario: &Scenario, batch: &PackedBatch) -> f64 {
    let all: &[Sequence] = &batch.sequences;
    MicrobatchLoad::of(all, &scenario.model, Packing::Packed).model_flops(&scenario.model).get()
}

/// The points of all freedoms on one cluster, and how many more there are than are looked at.
fn seen(
    scenario: &Scenario,
    sizing: &PackedBatch,
    (most, workers, watch): (u32, &dyn Workers, &dyn Watch),
    is_partial: &mut bool,
) -> (Vec<(Freedom, SeenPoint)>, u64) {
    let degrees = degree_settings(scenario);
    let pricing = Pricing::new(&scenario.model, &scenario.cluster, &scenario.training).with_degrees(&degrees);
    let (mut all, mut beyond) = (Vec::new(), 0);
    for (freedom, mode) in [
        (Freedom::Homogeneous, Mode::Homogeneous),
        (Freedom::Colocated, Mode::Colocated),
        (Freedom::NonColocated, Mode::Apart),
    ] {
        let seen = heterogeneous::points(scenario, &pricing, mode, sizing, (most, workers, watch));
        *is_partial |= seen.is_partial;
        beyond += seen.beyond;
        all.extend(seen.points.into_iter().map(|point| (freedom, point)));
    }
    (all, beyond)
}

/// Marks the points of which no other has more tokens per second and no less per device, or the other way round.
fn mark_front(points: &mut [LayoutPoint]) {
    let mut order: Vec<usize> = (0..points.len()).filter(|&point| points[point].figures.is_some()).collect();
    let of = |points: &[LayoutPoint], point: usize| {
        points[point].figures.map_or((0.0, 0.0), |figures| (figures.tokens_per_s, figures.tflops_per_device))
    };
    order.sort_by(|&a, &b| {
        let (a, b) = (of(points, a), of(points, b));
        b.0.total_cmp(&a.0).then_with(|| b.1.total_cmp(&a.1))
    });
    let mut most = f64::NEG_INFINITY;
    for point in order {
        let per_device = of(points, point).1;
        if per_device > most {
            points[point].is_on_front = true;
            most = per_device;
        }
    }
}

/// Says of every simulated point what it lacks against the fastest of all.
fn hold_against_best(points: &mut [LayoutPoint]) {
    let fastest = points.iter().filter_map(|point| Some((point.figures?, point.title.clone())));
    let fastest = fastest.max_by(|a, b| a.0.tokens_per_s.total_cmp(&b.0.tokens_per_s));
    let Some((best, title)) = fastest else { return };
    let share = |value: f64| format!("{:.1} %", 100.0 * value);
    for point in points {
        let Some(own) = point.figures else { continue };
        let slower = 1.0 - own.tokens_per_s / best.tokens_per_s;
        point.against_best = Some(if slower <= 0.0 {
            "The fastest of all.".to_owned()
        } else {
            format!(
                "{} fewer tokens/s than the fastest ({title}). Its devices are idle {} of the time, those of the fastest {}; \
                 communication stands in the way for {}, there for {}.",
                share(slower),
                share(own.bubble),
                share(best.bubble),
                share(own.exposed_communication),
                share(best.exposed_communication)
            )
        });
    }
}

/// The best point of each freedom on a cluster of that many devices.
fn best(points: &[LayoutPoint], devices: u32) -> Vec<BestPoint> {
    let figure = |point: usize| points[point].figures.map_or(0.0, |figures| figures.tokens_per_s);
    let fits = |point: &usize| points[*point].devices <= devices && points[*point].figures.is_some();
    let of = |freedom: Freedom| {
        let own = (0..points.len()).filter(|&point| points[point].freedom == freedom).filter(fits);
        own.max_by(|&a, &b| figure(a).total_cmp(&figure(b)).then(b.cmp(&a)))
    };
    let single = of(Freedom::Homogeneous).map(figure);
    let line = |freedom: Freedom| {
        let point = of(freedom)?;
        let gain_percent = single.map(|single| 100.0 * (figure(point) / single - 1.0));
        Some(BestPoint { freedom, point: point as u32, gain_percent })
    };
    [Freedom::Homogeneous, Freedom::Colocated, Freedom::NonColocated].into_iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{Alone, Unwatched};
    use crate::scenario::validate::NoDatasets;

    fn point(tokens_per_s: f64, tflops_per_device: f64) -> LayoutPoint {
        let figures = PointFigures {
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
            figures: Some(figures),
            is_on_front: false,
            against_best: None,
        }
    }

    #[test]
    fn the_front_is_what_no_other_point_beats_twice() {
        let mut points =
            vec![point(4.0, 1.0), point(3.0, 2.0), point(2.0, 1.5), point(1.0, 3.0), point(1.0, 2.5), point(4.0, 0.5)];
        mark_front(&mut points);
        let front: Vec<bool> = points.iter().map(|point| point.is_on_front).collect();
        assert_eq!(front, [true, true, false, true, false, false]);
    }

    /// One node, VLM-S: all three freedoms have points, the same every time; a reason stands beside whatever cannot be.
    #[test]
    fn every_freedom_has_points_and_every_misfit_a_reason() {
        let scenario = crate::plan::modules::tests::scenario();
        let valid = ValidScenario::new(scenario, &NoDatasets).unwrap();
        let sweep = layouts(&valid, 12, &Alone, &Unwatched);
        assert_eq!(sweep.best.len(), 3);
        assert_eq!(sweep.best[0].gain_percent, Some(0.0));
        assert!(sweep.points.iter().all(|point| point.figures.is_some() != point.reason.is_some()));
        assert!(sweep.points.iter().any(|point| point.is_on_front));
        assert!(!sweep.rejections.is_empty());
        assert_eq!(layouts(&valid, 12, &Alone, &Unwatched), sweep);
        let best = sweep.points.iter().filter(|point| point.against_best.as_deref() == Some("The fastest of all."));
        let most = sweep
            .points
            .iter()
            .filter_map(|point| point.figures)
            .map(|figures| figures.tokens_per_s)
            .fold(0.0, f64::max);
        assert!(best.map(|point| point.figures.unwrap().tokens_per_s).eq([most]));
    }
}
