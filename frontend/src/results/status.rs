//! Planning status in one line. Screen readers announce it.

use std::collections::BTreeSet;

use leptos::prelude::*;
use wasm_bindgen::JsCast;

use super::plan_again;
use crate::client::RequestError;
use crate::explore::{Explore, PlanState, use_explore};
use crate::field_errors::FieldErrors;
use crate::format;

fn data_state(state: &PlanState, wrong: usize) -> &'static str {
    if wrong > 0 && !state.is_pending() {
        return "error";
    }
    match state {
        PlanState::Idle | PlanState::Cancelled => "idle",
        PlanState::Done => "done",
        PlanState::Infeasible => "infeasible",
        PlanState::Failed(_) => "error",
        PlanState::Opening | PlanState::Sending | PlanState::Queued | PlanState::Running { .. } => "planning",
    }
}

/// Returns the pointers of invalid fields: fields without a number, and fields named in the server
/// error.
fn wrong_fields(state: &PlanState, unreadable: &FieldErrors) -> BTreeSet<String> {
    let mut wrong: BTreeSet<String> = unreadable.pointers().map(str::to_owned).collect();
    if let PlanState::Failed(RequestError::Problem(problem)) = state {
        wrong.extend(problem.errors.iter().map(|error| error.pointer.clone()));
    }
    wrong
}

fn status_text(state: &PlanState, wrong: usize) -> String {
    if wrong > 0 {
        return format!("{} {OUTDATED}", fields_with_errors(wrong));
    }
    match state {
        PlanState::Idle => "Nothing planned yet".to_owned(),
        PlanState::Opening => "Opening…".to_owned(),
        PlanState::Sending => "Planning…".to_owned(),
        PlanState::Queued => "Waiting for a worker…".to_owned(),
        PlanState::Running { planner, phase, best, .. } => {
            let best = best.map(|best| {
                let seconds = format::seconds(best.iteration_s);
                format!(
                    " Best so far for the current settings: {seconds} per step with {}.",
                    best.planner.short_title()
                )
            });
            format!("{planner}: {phase}…{}", best.unwrap_or_default())
        }
        PlanState::Done => "Done".to_owned(),
        PlanState::Infeasible => "No planner found a plan that fits".to_owned(),
        PlanState::Cancelled => "Cancelled".to_owned(),
        PlanState::Failed(error) => error.title(),
    }
}

fn fields_with_errors(count: usize) -> String {
    if count == 1 {
        "1 field has an error; see the message next to it.".to_owned()
    } else {
        format!("{count} fields have errors; see the messages next to them.")
    }
}

/// Text that follows the number of invalid fields.
const OUTDATED: &str = "The results are outdated: they are those of the last valid scenario.";

/// True if the results belong to an older scenario, because a field is invalid or the request for the new one failed.
pub(super) fn is_outdated(explore: Explore) -> bool {
    explore.is_unanswered()
        || explore.state.with(|state| explore.unreadable.with(|unreadable| !wrong_fields(state, unreadable).is_empty()))
}

/// Moves the focus to a form field, or scrolls to its message.
fn go_to_field(pointer: &str) {
    let quoted = pointer.replace('\\', "\\\\").replace('"', "\\\"");
    let find = |attribute: &str| document().query_selector(&format!("[{attribute}=\"{quoted}\"]")).ok().flatten();
    if let Some(input) = find("data-pointer").and_then(|element| element.dyn_into::<web_sys::HtmlElement>().ok()) {
        // Focus fails in a closed group; a removed element needs no focus.
        drop(input.focus());
    }
    if let Some(message) = find("data-error-for") {
        message.scroll_into_view();
    }
}

/// Status line below the title.
#[component]
pub(super) fn StatusLine() -> impl IntoView {
    let explore = use_explore();
    let facts = move || {
        explore.result.with(|result| {
            let result = result.as_ref()?;
            let iterations = result.outcome.batches.len();
            let seed = explore.stored.with(|stored| stored.as_ref().map(|stored| stored.scenario.seed));
            let planning: f64 = result.planning_ms.iter().map(|time| time.ms).sum();
            let seed = seed.map(|seed| format!(" · seed {seed}")).unwrap_or_default();
            let noun = if iterations == 1 { "iteration" } else { "iterations" };
            let planned = if result.is_sketch { "sketched" } else { "planned" };
            Some(format!(
                "{iterations} {noun}{seed} · {planned} in {} · {}",
                format::seconds(planning / 1e3),
                result.outcome.engine
            ))
        })
    };
    let old_engine = move || {
        explore.result.with(|result| {
            let result = result.as_ref()?;
            (result.outcome.engine != result.current_engine)
                .then(|| (result.outcome.engine.clone(), result.current_engine.clone()))
        })
    };
    let share = move || match explore.state.get() {
        PlanState::Running { done, total, .. } if total > 0 => Some(f64::from(done) / f64::from(total)),
        _ => None,
    };
    let wrong = Memo::new(move |_| {
        explore.state.with(|state| explore.unreadable.with(|unreadable| wrong_fields(state, unreadable)))
    });
    let count = move || wrong.with(BTreeSet::len);
    let is_pending = Memo::new(move |_| explore.state.with(PlanState::is_pending));
    let is_cancelled = Memo::new(move |_| explore.state.with(|state| matches!(state, PlanState::Cancelled)));
    let has_result = move || explore.result.with(Option::is_some);
    let note = move || match (has_result(), count()) {
        (true, 0) if explore.is_unanswered() => {
            Some(". The results are outdated: they are those of an earlier scenario.")
        }
        (true, _) if is_cancelled.get() => Some("; the last answer is shown"),
        _ => None,
    };
    view! {
        <div class="status">
            <p data-testid="plan-status" role="status" data-state=move || explore.state.with(|state| data_state(state, count()))>
                {move || explore.state.with(|state| status_text(state, count()))}
                {note}
                <span class="facts">{move || facts().map(|facts| format!(" · {facts}"))}</span>
            </p>
            {move || wrong.get().pop_first().map(|pointer| view! {
                <button class="quiet" data-testid="go-to-field" on:click=move |_| go_to_field(&pointer)>"Go to the field"</button>
            })}
            <Show when=move || is_cancelled.get()>
                <button data-testid="plan-cancelled" on:click=move |_| plan_again(explore)>"Plan it"</button>
            </Show>
            <Show when=move || is_pending.get()>
                <div class="progress">
                    <progress max="1" prop:value=move || share().unwrap_or(0.0) aria-label="Planning"></progress>
                    <button class="quiet" on:click=move |_| explore.cancel()>"Cancel"</button>
                </div>
            </Show>
        </div>
        {move || old_engine().map(|(then, now)| view! {
            <div class="notice">
                <p>{format!("This answer was computed by {then}. This server runs {now}, which may answer differently.")}</p>
                <button on:click=move |_| explore.retry() disabled=move || is_pending.get()>"Re-run"</button>
            </div>
        })}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::planner::observer::BestSoFar;
    use api::planner::scenario::PlannerKind;

    #[test]
    fn every_state_has_its_word_in_the_page() {
        let running =
            PlanState::Running { planner: "GPipe", phase: "searching layouts".into(), done: 1, total: 2, best: None };
        assert_eq!(data_state(&running, 0), "planning");
        assert_eq!(status_text(&running, 0), "GPipe: searching layouts…");
        let best = BestSoFar { planner: PlannerKind::Interleaved, iteration_s: 1.5, step: 3 };
        let running =
            PlanState::Running { planner: "Best", phase: "trying".into(), done: 3, total: 9, best: Some(best) };
        assert_eq!(
            status_text(&running, 0),
            "Best: trying… Best so far for the current settings: 1.50\u{202f}s per step with interleaved."
        );
        assert_eq!(data_state(&PlanState::Failed(RequestError::Offline), 0), "error");
        assert_eq!(data_state(&PlanState::Cancelled, 0), "idle");
        assert_eq!(fields_with_errors(3), "3 fields have errors; see the messages next to them.");
    }

    /// An empty field is not sent, so the planning state still describes the previous result.
    #[test]
    fn an_empty_field_is_no_finished_plan() {
        let mut unreadable = FieldErrors::default();
        assert!(wrong_fields(&PlanState::Done, &unreadable).is_empty());
        unreadable.set("/cluster/nodes", Some("a number is needed here".to_owned()));
        let wrong = wrong_fields(&PlanState::Done, &unreadable);
        assert_eq!(wrong.iter().collect::<Vec<_>>(), ["/cluster/nodes"]);
        assert_eq!(data_state(&PlanState::Done, wrong.len()), "error");
        assert_eq!(
            status_text(&PlanState::Done, wrong.len()),
            "1 field has an error; see the message next to it. The results are outdated: they are those of the last valid scenario."
        );
        assert_eq!(status_text(&PlanState::Done, 0), "Done");
    }
}
