//! Selection of the reported changes.

use super::risk::Risk;
use super::{Change, ChangeKind, FitResult};

/// Sorts changes in ascending iteration time. If the scenario is at risk of running out of memory, changes that remove the
/// risk come first.
pub(super) fn sort(changes: &mut [Change], risk: Risk) {
    let seconds = |change: &Change| change.result.iteration_s.unwrap_or(f64::INFINITY);
    let remains = |change: &Change| risk.is_present() && !risk.is_removed_by(&change.result);
    changes.sort_by(|a, b| remains(a).cmp(&remains(b)).then(seconds(a).total_cmp(&seconds(b))));
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
