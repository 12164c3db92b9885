//! Chart data for sweeps.

use std::collections::HashMap;

use api::sweep::{Cell, Front, FrontPlan, LabelledAxis, Layer, Metric, NamedPlanner, Picture};
use planner::certainty::RISK;
use planner::scenario::{FieldError, PlannerKind};
use planner::sweep::{Axis, PlanMetrics, PlannerRow, PointOutcome, PointRow, Sweep};

use super::throughput::Throughput;
use crate::field_names;
use crate::store::{PlanPoint, Reader, StoreError};

/// Maximum cells in a map, and maximum plans in a front. Limits the chart size.
const MAX_DRAWN: usize = 5_000;

/// Parameters of a chart.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChartRequest {
    /// Index of the horizontal axis.
    pub(crate) x: usize,
    /// Index of the vertical axis.
    pub(crate) y: Option<usize>,
    /// Value indices on all axes, for the fixed axes.
    pub(crate) at: Vec<usize>,
    /// Planner in a map. `None` selects all planners, for a line chart.
    pub(crate) planner: Option<PlannerKind>,
    pub(crate) metric: Metric,
}

/// Converts an axis for display.
pub(crate) fn labelled(axis: &Axis) -> LabelledAxis {
    let unit = axis.unit.as_ref().map(|unit| format!(", {unit}")).unwrap_or_default();
    let numbers: Option<Vec<f64>> = axis.values.iter().map(serde_json::Value::as_f64).collect();
    LabelledAxis {
        pointer: axis.pointer.clone(),
        title: format!("{}{unit}", axis.name()),
        labels: (0..axis.values.len()).map(|index| axis.label(index)).collect(),
        numbers,
    }
}

/// Returns a planner with its display name.
pub(crate) fn named(planner: PlannerKind) -> NamedPlanner {
    NamedPlanner { planner, title: planner.title().to_owned() }
}

/// Returns the chart points, row by row.
fn grid(sweep: &Sweep, request: &ChartRequest) -> Result<Vec<Vec<u32>>, FieldError> {
    let sizes: Vec<usize> = sweep.axes().iter().map(|axis| axis.values.len()).collect();
    let mut at = request.at.clone();
    at.resize(sizes.len(), 0);
    let known = |field: &str, axis: usize| {
        sizes.get(axis).copied().ok_or_else(|| FieldError::new(field, format!("there are {} axes", sizes.len())))
    };
    let columns = known("/x", request.x)?;
    let rows = request.y.map_or(Ok(1), |y| known("/y", y))?;
    if request.y == Some(request.x) {
        return Err(FieldError::new("/y", "must be another axis than x".to_owned()));
    }
    if columns * rows > MAX_DRAWN {
        return Err(FieldError::new("", format!("{} cells: at most {MAX_DRAWN} are drawn", columns * rows)));
    }
    let mut grid = Vec::with_capacity(rows);
    for row in 0..rows {
        let mut line = Vec::with_capacity(columns);
        for column in 0..columns {
            at[request.x] = column;
            if let Some(y) = request.y {
                at[y] = row;
            }
            let point = sweep.index(&at);
            line.push(point.ok_or_else(|| FieldError::new("/at", "is no place on the axes".to_owned()))?);
        }
        grid.push(line);
    }
    Ok(grid)
}

/// Error of a chart.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) enum PictureError {
    /// A field of the request is invalid.
    Field(#[from] FieldError),
    Store(#[from] StoreError),
}

/// Computes a chart from the rows of an engine.
pub(crate) async fn picture(
    reader: &Reader,
    sweep: &Sweep,
    engine: &str,
    request: &ChartRequest,
) -> Result<Picture, PictureError> {
    let grid = grid(sweep, request)?;
    let points: Vec<u32> = grid.iter().flatten().copied().collect();
    let mut rows: HashMap<u32, PointRow> = HashMap::with_capacity(points.len());
    for text in reader.engine_sweep_rows(sweep.id().as_str(), engine, &points).await? {
        let row: PointRow = serde_json::from_str(&text)
            .map_err(|error| StoreError::Damaged { kind: "row of a sweep", detail: error.to_string() })?;
        rows.insert(row.index, row);
    }
    let planners: Vec<PlannerKind> = match request.planner {
        Some(planner) => vec![planner],
        None => sweep.planners(),
    };
    let layer = |planner: PlannerKind| {
        let cell = |point: &u32| cell(sweep.axes(), (*point, rows.get(point)), planner, request.metric);
        let cells = grid.iter().map(|line| line.iter().map(cell).collect()).collect();
        Layer { planner: named(planner), cells }
    };
    Ok(Picture {
        metric: request.metric,
        title: request.metric.title().to_owned(),
        x: request.x,
        y: request.y,
        layers: planners.into_iter().map(layer).collect(),
    })
}

fn cell(axes: &[Axis], (point, row): (u32, Option<&PointRow>), planner: PlannerKind, metric: Metric) -> Cell {
    let Some(row) = row else { return Cell { point, value: None, reason: None, risk: None } };
    let plan = row.planners().iter().find(|entry| entry.planner() == planner).and_then(PlannerRow::metrics);
    let risk = plan.and_then(risk);
    let (value, reason) = match &row.answer {
        PointOutcome::Planned { planners, .. } => match planners.iter().find(|entry| entry.planner() == planner) {
            Some(PlannerRow::Planned { figures: metrics, .. }) => (Some(value(metrics, metric)), None),
            Some(PlannerRow::Infeasible { reason, .. }) => (None, Some(reason.clone())),
            None => (None, Some("the planner was not asked".to_owned())),
        },
        PointOutcome::Invalid { errors } => {
            let messages: Vec<String> =
                errors.iter().map(|error| format!("{}: {}", field_name(axes, &error.pointer), error.detail)).collect();
            (None, Some(messages.join("; ")))
        }
        PointOutcome::Failed { detail } => (None, Some(detail.clone())),
    };
    Cell { point, value, reason, risk }
}

/// Returns the name of the axis of a field, or the plain name of another field.
fn field_name(axes: &[Axis], pointer: &str) -> String {
    let axis = axes.iter().find(|axis| axis.pointer == pointer);
    axis.map_or_else(|| field_names::plain(pointer), |axis| axis.name().to_owned())
}

/// Returns the probability of running out of memory, if it is a risk.
pub(crate) fn risk(metrics: &PlanMetrics) -> Option<f64> {
    metrics.probability_out_of_memory.filter(|probability| *probability > RISK)
}

/// Returns a metric value in the unit of the metric's title.
fn value(metrics: &PlanMetrics, metric: Metric) -> f64 {
    match metric {
        Metric::IterationS => metrics.iteration_s,
        Metric::TokensPerS => metrics.tokens_per_s,
        Metric::TokensPerSPerDevice => metrics.tokens_per_s_per_device,
        Metric::Mfu => metrics.mfu * 100.0,
        Metric::Bubble => metrics.bubble * 100.0,
        Metric::ExposedCommunication => metrics.exposed_communication * 100.0,
        Metric::PeakMemoryGib => metrics.peak_memory_gib,
        Metric::Gap => metrics.gap * 100.0,
    }
}

/// Returns the Pareto front for iteration time and peak memory. `plans` must be sorted by time. If
/// `throughput` is given, it replaces the iteration time.
pub(crate) fn front(sweep: &Sweep, plans: &[PlanPoint], throughput: Option<&Throughput>) -> Front {
    let rate = |plan: &PlanPoint| throughput?.get(&(plan.point, plan.planner)).copied();
    let mut plans: Vec<&PlanPoint> = plans.iter().collect();
    if throughput.is_some() {
        plans.retain(|plan| rate(plan).is_some());
        let fastest = |plan: &PlanPoint| rate(plan).unwrap_or(0.0);
        plans.sort_by(|a, b| fastest(b).total_cmp(&fastest(a)).then(a.peak_memory_gib.total_cmp(&b.peak_memory_gib)));
    }
    let mut min_memory = f64::INFINITY;
    let (optimal, others): (Vec<&PlanPoint>, Vec<&PlanPoint>) = plans.iter().copied().partition(|plan| {
        let is_optimal = plan.peak_memory_gib < min_memory;
        min_memory = min_memory.min(plan.peak_memory_gib);
        is_optimal
    });
    let drawn = |plan: &PlanPoint, optimal: bool| FrontPlan {
        point: plan.point,
        planner: named(plan.planner),
        iteration_s: plan.iteration_s,
        interval_s: None,
        tokens_per_s_per_device: rate(plan),
        peak_memory_gib: plan.peak_memory_gib,
        risk: None,
        optimal,
        words: point_label(sweep, plan.point),
    };
    let optimal_count = optimal.len().min(MAX_DRAWN);
    // Samples the remaining plans evenly, to preserve the shape of the point cloud.
    let step = others.len().div_ceil((MAX_DRAWN - optimal_count).max(1)).max(1);
    let front_plans = optimal.iter().take(MAX_DRAWN).map(|plan| drawn(plan, true));
    let plans_drawn = front_plans.chain(others.iter().step_by(step).map(|plan| drawn(plan, false)));
    Front {
        plans: plans_drawn.take(MAX_DRAWN).collect(),
        total: plans.len() as u64,
        optimal: optimal.len() as u64,
        by_throughput: throughput.is_some(),
    }
}

/// Returns a description of a point with units, for example "nodes 4, link between nodes 100.0 GB/s".
fn point_label(sweep: &Sweep, point: u32) -> String {
    let axes = sweep.axes().iter().zip(sweep.places(point));
    axes.map(|(axis, index)| axis.value_label(index)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep() -> Sweep {
        let mut written: serde_json::Value =
            serde_json::from_str(include_str!("../../../examples/vlm-s-image-heavy.json")).unwrap();
        written = serde_json::json!({
            "schema": "sweep/1", "scenario": written,
            "axes": [{"pointer": "/cluster/nodes", "values": [1, 2, 4]}, {"pointer": "/seed", "values": [7, 8]}],
        });
        Sweep::parse(&written.to_string()).unwrap()
    }

    #[test]
    fn front_contains_undominated_plans() {
        let plan = |point, iteration_s, peak_memory_gib| PlanPoint {
            point,
            planner: PlannerKind::OneFOneB,
            iteration_s,
            peak_memory_gib,
        };
        // (2 s, 50 GiB) is dominated by (1 s, 40 GiB). (3 s, 40 GiB) is dominated too, because it
        // uses the same memory.
        let plans = [plan(0, 1.0, 40.0), plan(1, 2.0, 50.0), plan(2, 3.0, 40.0), plan(3, 4.0, 10.0)];
        let front = front(&sweep(), &plans, None);
        let order: Vec<(u32, bool)> = front.plans.iter().map(|plan| (plan.point, plan.optimal)).collect();
        assert_eq!(order, [(0, true), (3, true), (1, false), (2, false)]);
        assert_eq!((front.total, front.optimal), (4, 2));
        assert_eq!(front.plans[1].words, "nodes 2, seed 8");
    }

    /// Batch 64: 1 s at 1,000 tokens/s/GPU. Batch 128: 1.6 s at 1,250 tokens/s/GPU. The plan with
    /// the longer iteration is better.
    #[test]
    fn different_batches_are_compared_by_throughput() {
        let planner = PlannerKind::OneFOneB;
        let plan = |point, iteration_s, peak_memory_gib| PlanPoint { point, planner, iteration_s, peak_memory_gib };
        let plans = [plan(0, 1.0, 40.0), plan(1, 1.6, 40.0), plan(2, 2.0, 30.0)];
        let throughput = Throughput::from([((0, planner), 1_000.0), ((1, planner), 1_250.0), ((2, planner), 900.0)]);
        let front = front(&sweep(), &plans, Some(&throughput));
        let order: Vec<(u32, bool)> = front.plans.iter().map(|plan| (plan.point, plan.optimal)).collect();
        assert_eq!(order, [(1, true), (2, true), (0, false)]);
        assert_eq!((front.by_throughput, front.plans[0].tokens_per_s_per_device), (true, Some(1_250.0)));
    }

    #[test]
    fn a_map_holds_the_axes_that_it_does_not_show() {
        let sweep = sweep();
        let grid =
            |x, y, at: &[usize]| grid(&sweep, &ChartRequest { x, y, at: at.to_vec(), ..ChartRequest::default() });
        // Point = 2 x index on the node axis + index on the seed axis.
        assert_eq!(grid(0, Some(1), &[]).unwrap(), [[0, 2, 4], [1, 3, 5]]);
        assert_eq!(grid(1, None, &[2]).unwrap(), [[4, 5]]);
        for (x, y, at) in [(2, None, &[][..]), (0, Some(0), &[]), (0, Some(9), &[]), (0, None, &[0, 5])] {
            assert!(grid(x, y, at).is_err(), "{x} {y:?} {at:?}");
        }
    }
}
