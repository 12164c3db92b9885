//! Validation of (stage, microbatch) cells: F once, and either B or both I and W once.

use super::parse::{Placed, Table};
use super::problem::Problems;
use planscope_core::action::{Action, ActionKind};

use ActionKind::{Backward, Forward, InputGrad, WeightGrad};

/// Returns action indices sorted by microbatch, stage, kind and position.
pub(super) fn sorted(table: &Table) -> Vec<usize> {
    let mut sorted: Vec<usize> = (0..table.actions.len()).collect();
    sorted.sort_by_key(|&index| {
        let Action { kind, stage, microbatch, .. } = table.actions[index].action;
        (microbatch, stage, kind, index)
    });
    sorted
}

/// Reports duplicate and missing actions in all cells.
pub(super) fn judge(table: &mut Table) {
    let mut problems = std::mem::take(&mut table.problems);
    let cell = |position: &usize| (table.actions[*position].action.microbatch, table.actions[*position].action.stage);
    for indices in sorted(table).chunk_by(|a, b| cell(a) == cell(b)) {
        let actions: Vec<&Placed> = indices.iter().map(|&index| &table.actions[index]).collect();
        twice(&actions, &mut problems);
        if !table.has_unread {
            report_missing(&actions, &mut problems);
        }
    }
    table.problems = problems;
}

fn first<'a>(actions: &[&'a Placed], kind: ActionKind) -> Option<&'a Placed> {
    actions.iter().copied().find(|placed| placed.action.kind == kind)
}

/// Reports duplicate actions, and a full backward in combination with I or W.
fn twice(actions: &[&Placed], problems: &mut Problems) {
    for equal in actions.chunk_by(|a, b| a.action.kind == b.action.kind) {
        for again in &equal[1..] {
            let detail = format!("{} stands in {} already", again.action, equal[0].address.name());
            problems.add(Some(again.address), detail);
        }
    }
    let Some(full) = first(actions, Backward) else { return };
    for part in [InputGrad, WeightGrad].into_iter().filter_map(|kind| first(actions, kind)) {
        let detail =
            format!("{} is a part of {}, which stands in {} whole", part.action, full.action, full.address.name());
        problems.add(Some(part.address), detail);
    }
}

/// Reports missing forwards, missing backwards and missing halves of split backwards.
fn report_missing(actions: &[&Placed], problems: &mut Problems) {
    let [forward, full, input, weight] = [Forward, Backward, InputGrad, WeightGrad].map(|kind| first(actions, kind));
    let named = |kind| Action { kind, with_next: false, ..actions[0].action };
    let (f, b, i, w) = (named(Forward), named(Backward), named(InputGrad), named(WeightGrad));
    let mut add = |placed: &Placed, detail: String| problems.add(Some(placed.address), detail);
    match (forward, full.or(input).or(weight)) {
        (Some(forward), None) => add(forward, format!("{f} has no backward: {b}, or {i} and {w}, is missing")),
        (None, Some(backward)) => add(backward, format!("{} has no forward: {f} is missing", backward.action)),
        _ => {}
    }
    match (full, input, weight) {
        (None, Some(input), None) => add(input, format!("{i} has no {w}: the backward is incomplete")),
        (None, None, Some(weight)) => add(weight, format!("{w} has no {i}: the backward is incomplete")),
        _ => {}
    }
}
