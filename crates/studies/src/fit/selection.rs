//! Selection of the reported changes.

use planscope_core::workload::Packing;
use planscope_plan::scenario::Scenario;

use super::risk::Risk;
use super::{Change, ChangeKind, FitResult};

/// Largest share of time that a change may lose to come before faster changes because it removes the risk.
const MAX_LOSS: f64 = 0.25;

/// Sorts changes in ascending iteration time. If the scenario is at risk of running out of memory, changes that remove the
/// risk come first, except those that lose much time.
pub(super) fn sort(changes: &mut [Change], risk: Risk) {
    let seconds = |change: &Change| change.result.iteration_s.unwrap_or(f64::INFINITY);
    let is_slow = |change: &Change| {
        let lost = change.difference_s.unwrap_or(0.0);
        lost > MAX_LOSS * (seconds(change) - lost)
    };
    let group = |change: &Change| match (risk.is_present(), risk.is_removed_by(&change.result)) {
        (true, true) if is_slow(change) => 2,
        (true, false) => 1,
        _ => 0,
    };
    changes.sort_by(|a, b| group(a).cmp(&group(b)).then(seconds(a).total_cmp(&seconds(b))));
}

/// Removes changes whose replicas and microbatches do not divide the global batch of full sequences, unless those of the
/// scenario do not either. Frameworks refuse such a job.
pub(super) fn drop_uneven_batches(changes: &mut Vec<Change>, scenario: &Scenario, base: &FitResult) {
    let divides = |result: &FitResult, batch: u64| {
        result.layout.is_none_or(|layout| batch.is_multiple_of(u64::from(layout.data * layout.microbatch).max(1)))
    };
    let batch = u64::from(scenario.workload.global_batch);
    if scenario.workload.packing != Packing::Padded || !divides(base, batch) {
        return;
    }
    changes.retain(|change| {
        let value =
            |pointer: &str| change.fields.iter().find(|field| field.pointer == pointer).map(|field| &field.value);
        let changed = value("/workload/global_batch");
        value("/workload/packing").is_some()
            || divides(&change.result, changed.and_then(serde_json::Value::as_u64).unwrap_or(batch))
    });
}

/// Removes a free layout if a change of single degrees has the same plan.
pub(super) fn drop_redundant_search(changes: &mut Vec<Change>, is_applicable: &dyn Fn(&Change) -> bool) {
    let is_free = |change: &Change| change.fields.iter().any(|field| field.pointer == "/layout");
    let degrees: Vec<FitResult> = changes
        .iter()
        .filter(|change| change.kind == ChangeKind::Layout && !is_free(change) && is_applicable(change))
        .filter(|change| change.fields.iter().all(|field| field.pointer.starts_with("/layout/")))
        .map(|change| change.result.clone())
        .collect();
    changes.retain(|change| !is_free(change) || !degrees.contains(&change.result));
}

/// Keeps the fastest and the fastest applicable of several changes of the same fields, for example of the number of
/// recomputed layers.
pub(super) fn keep_one_of_a_kind(changes: &mut Vec<Change>, is_applicable: &dyn Fn(&Change) -> bool) {
    let mut known: Vec<(Vec<String>, bool)> = Vec::new();
    changes.retain(|change| {
        let pointers: Vec<String> = change.fields.iter().map(|field| field.pointer.clone()).collect();
        let is_known = |is_applicable: bool| known.contains(&(pointers.clone(), is_applicable));
        let is_applicable = is_applicable(change);
        let is_kept = !is_known(true) && (is_applicable || !is_known(false));
        known.push((pointers, is_applicable));
        is_kept
    });
}
