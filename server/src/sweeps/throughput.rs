//! Throughput per plan, used to compare plans with different batches.

use std::collections::HashMap;

use planner::scenario::PlannerKind;
use planner::sweep::{PointRow, Sweep};

use crate::store::{Reader, StoreError};

/// Rows per database query.
const PAGE: u32 = 1_000;

/// Tokens per second per device, by point and planner.
pub(crate) type Throughput = HashMap<(u32, PlannerKind), f64>;

/// Fields whose change makes iteration times incomparable: the workload, and the number of devices. More devices would always
/// be faster.
const INCOMPARABLE: [&str; 3] = ["/workload", "/cluster/nodes", "/cluster/devices_per_node"];

/// Returns true if the points have different workloads or numbers of devices. Their iteration times are then not comparable.
pub(crate) fn is_by_throughput(sweep: &Sweep) -> bool {
    let is_within = |pointer: &str, field: &str| {
        pointer.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let is_incomparable = |pointer: &str| {
        // An axis over an object changes the fields in it.
        INCOMPARABLE.iter().any(|field| is_within(pointer, field) || is_within(field, pointer))
    };
    sweep.axes().iter().any(|axis| axis.values.len() > 1 && is_incomparable(&axis.pointer))
}

/// Returns the throughput of all plans from an engine, or `None` if all points have the same
/// workload and number of devices.
pub(crate) async fn throughput(reader: &Reader, sweep: &Sweep, engine: &str) -> Result<Option<Throughput>, StoreError> {
    if !is_by_throughput(sweep) {
        return Ok(None);
    }
    let mut found = Throughput::new();
    let mut from = 0;
    loop {
        let rows = reader.sweep_rows(sweep.id().as_str(), engine, from, PAGE).await?;
        let mut last = None;
        for text in rows {
            let row: PointRow = serde_json::from_str(&text)
                .map_err(|error| StoreError::Damaged { kind: "row of a sweep", detail: error.to_string() })?;
            let rates = row.planners().iter().filter_map(|entry| Some((entry.planner(), entry.metrics()?)));
            found.extend(rates.map(|(planner, metrics)| ((row.index, planner), metrics.tokens_per_s_per_device)));
            last = Some(row.index);
        }
        let Some(last) = last else { return Ok(Some(found)) };
        from = last.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(axes: &serde_json::Value) -> Sweep {
        let scenario: serde_json::Value =
            serde_json::from_str(include_str!("../../../examples/vlm-s-image-heavy.json")).unwrap();
        let written = serde_json::json!({"schema": "sweep/1", "scenario": scenario, "axes": axes});
        Sweep::parse(&written.to_string()).unwrap()
    }

    #[test]
    fn times_are_comparable_where_workload_and_devices_are_the_same() {
        for (axes, expected) in [
            (serde_json::json!([{"pointer": "/seed", "values": [1, 2]}]), false),
            (serde_json::json!([{"pointer": "/cluster/nodes", "values": [1, 2]}]), true),
            (serde_json::json!([{"pointer": "/workload/global_batch", "values": [64, 128]}]), true),
            (serde_json::json!([{"pointer": "/workload/context_length", "values": [4096, 8192]}]), true),
            (serde_json::json!([{"pointer": "/workload/global_batch", "values": [64]}]), false),
        ] {
            assert_eq!(is_by_throughput(&sweep(&axes)), expected, "{axes}");
        }
    }
}
