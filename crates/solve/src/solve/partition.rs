//! Partitions a global batch into buckets that balance encoder and backbone load.

use serde::{Deserialize, Serialize};

use super::slices::run_in_slices;
use planscope_core::host::{Cancellation, Workers};
use planscope_core::optimality::Optimality;
use planscope_planners::planners::dflop::{Item, PartitionError, PartitionSettings, Partitioned, partition};
use planscope_plan::scenario::FieldError;

/// Search steps per second. A fixed rate instead of a clock makes the result machine-independent.
const STEPS_PER_SECOND: f64 = 1e8;
/// Steps of the first run within a time budget.
const FIRST_STEPS: u64 = 100_000;
/// Maximum time limit.
const MAX_S: f64 = 3600.0;
/// Maximum items.
const ITEMS: usize = 65_536;
/// Maximum buckets.
const BUCKETS: u32 = 65_536;
/// Maximum items x buckets. The initial heuristic compares all items to all buckets.
const CELLS: u64 = 100_000_000;
/// Valid loads. The upper limit prevents overflow in sums.
const LOADS: std::ops::Range<f64> = 0.0..1e150;

/// A batch and the bucket count.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Encoder stage and backbone stage time per item, `[e, l]`, in an arbitrary unit.
    pub items: Vec<[f64; 2]>,
    /// Microbatches x backbone replicas.
    pub buckets: u32,
    /// Approximate search time in seconds, converted to steps. Default: 0.05.
    #[serde(default)]
    pub time_limit_s: Option<f64>,
    /// Target gap. Default: 0.
    #[serde(default)]
    pub gap: Option<f64>,
}

/// Item assignment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    /// Bucket per item.
    pub assignment: Vec<u32>,
    /// Maximum bucket sum in e or l, DFLOP Eq. 6.
    pub cmax: f64,
    /// Lower bound on `cmax` for any assignment.
    pub lower_bound: f64,
    /// (cmax - bound) / cmax.
    pub gap: f64,
    /// "optimal", "within_gap" or "heuristic".
    pub status: &'static str,
    /// `cmax` from the longest-processing-time heuristic.
    pub lpt_cmax: f64,
    /// Search steps.
    pub steps: u64,
}

/// Assigns the items. Within a time budget, the steps increase up to those of `time_limit_s`.
///
/// # Errors
/// Returns the JSON pointers to all invalid fields.
pub fn respond(request: &Request, _: &dyn Workers, cancellation: &dyn Cancellation) -> Result<Response, Vec<FieldError>> {
    let mut errors = Vec::new();
    let mut wrong = |pointer: &str, detail: String| errors.push(FieldError::new(pointer, detail));
    let count = request.items.len();
    if count == 0 {
        wrong("/items", "there are no items".to_owned());
    }
    if count > ITEMS {
        wrong("/items", format!("{count} items are more than {ITEMS}"));
    }
    for (item, loads) in request.items.iter().enumerate().take(ITEMS) {
        for (index, load) in loads.iter().enumerate().filter(|(_, load)| !LOADS.contains(load)) {
            wrong(&format!("/items/{item}/{index}"), format!("{load:?} is not from 0 to {:e}", LOADS.end));
        }
    }
    let buckets = request.buckets;
    if !(1..=BUCKETS).contains(&buckets) {
        wrong("/buckets", format!("{buckets} is not a number of buckets from 1 to {BUCKETS}"));
    } else if u64::from(buckets) * count as u64 > CELLS {
        wrong("/buckets", format!("{count} items times {buckets} buckets are more than {CELLS}"));
    }
    let limit = request.time_limit_s.unwrap_or(0.05);
    if !(0.0..=MAX_S).contains(&limit) {
        wrong("/time_limit_s", format!("{limit} is not a number of seconds from 0 to {MAX_S}"));
    }
    let gap = request.gap.unwrap_or(0.0);
    if !(0.0..1.0).contains(&gap) {
        wrong("/gap", format!("{gap} is not from 0 to below 1"));
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let items: Vec<Item> = request.items.iter().map(|&[encoder, backbone]| Item { encoder, backbone }).collect();
    let steps = (limit * STEPS_PER_SECOND) as u64;
    let is_final = |found: &Result<Partitioned, PartitionError>| {
        found.as_ref().map_or(true, |dealt| dealt.optimality != Optimality::Heuristic)
    };
    let dealt = run_in_slices((FIRST_STEPS.min(steps), steps), cancellation, is_final, |steps| {
        partition(&items, buckets as usize, PartitionSettings { steps, gap })
    });
    let dealt = dealt.map_err(|error| field_errors(&error))?;
    let mut assignment = vec![0; count];
    for (bucket, items) in (0..).zip(&dealt.buckets) {
        for &item in items {
            assignment[item as usize] = bucket;
        }
    }
    Ok(Response {
        assignment,
        cmax: dealt.makespan,
        lower_bound: dealt.bound,
        gap: dealt.gap,
        status: dealt.optimality.id(),
        lpt_cmax: dealt.start,
        steps: dealt.steps,
    })
}

fn field_errors(error: &PartitionError) -> Vec<FieldError> {
    let pointer = match error {
        PartitionError::Stopped => String::new(),
        PartitionError::NoBuckets => "/buckets".to_owned(),
        PartitionError::Load { item } => format!("/items/{item}"),
    };
    vec![FieldError::new(&pointer, error.to_string())]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::solve::tests::{answered, validation_errors};

    /// Encoder 3 + 2 and 3 + 2, backbone 1 + 4 and 1 + 4: all sums equal the mean, 5.
    #[test]
    fn items_get_buckets() {
        let response = answered(&json!({
            "kind": "partition", "items": [[3, 1], [3, 1], [2, 4], [2, 4]], "buckets": 2
        }));
        let bucket = |item: usize| response["assignment"][item].as_u64().unwrap();
        assert_ne!(bucket(0), bucket(1));
        assert_ne!(bucket(2), bucket(3));
        for (field, expected) in [("cmax", 5.0), ("lower_bound", 5.0), ("gap", 0.0)] {
            assert_eq!(response[field].as_f64(), Some(expected), "{field}");
        }
        assert_eq!((response["kind"].as_str(), response["status"].as_str()), (Some("partition"), Some("optimal")));
    }

    #[test]
    fn wrong_fields_are_named() {
        let problem = json!({
            "kind": "partition", "items": [[1, -1], [1e200, 1]], "buckets": 0, "time_limit_s": -1, "gap": 1
        });
        assert_eq!(
            validation_errors(&problem),
            [
                "/items/0/1: -1.0 is not from 0 to 1e150",
                "/items/1/0: 1e200 is not from 0 to 1e150",
                "/buckets: 0 is not a number of buckets from 1 to 65536",
                "/time_limit_s: -1 is not a number of seconds from 0 to 3600",
                "/gap: 1 is not from 0 to below 1",
            ]
        );
        assert_eq!(validation_errors(&json!({ "kind": "partition", "items": [], "buckets": 1 })), ["/items: there are no items"]);
        assert_eq!(
            validation_errors(&json!({ "kind": "partition", "items": [[1]], "buckets": 1 })).len(),
            1,
            "an item without a second load"
        );
    }
}
