//! Where planning stands, in one line that is spoken too.

use leptos::prelude::*;
use wasm_bindgen::JsCast;

use super::begin_again;
use crate::client::Failure;
use crate::explore::{PlanState, use_explore};
use crate::format;

fn data_state(state: &PlanState) -> &'static str {
    match state {
        PlanState::Idle | PlanState::Cancelled => "idle",
        PlanState::Done => "done",
        PlanState::Infeasible => "infeasible",
        PlanState::Failed(_) => "error",
        PlanState::Opening | PlanState::Sending | PlanState::Queued | PlanState::Running { .. } => "planning",
    }
}

fn words(state: &PlanState) -> String {
    match state {
        PlanState::Idle => "Nothing planned yet".to_owned(),
        PlanState::Opening => "Opening…".to_owned(),
        PlanState::Sending => "Planning…".to_owned(),
        PlanState::Queued => "Waiting for a worker…".to_owned(),
        PlanState::Running { planner, phase, .. } => format!("{planner}: {phase}…"),
        PlanState::Done => "Done".to_owned(),
        PlanState::Infeasible => "No planner found a plan that fits".to_owned(),
        PlanState::Cancelled => "Cancelled".to_owned(),
        PlanState::Failed(Failure::Problem(problem)) if !problem.errors.is_empty() => {
            let subject = fields(problem.errors.len());
            format!("{subject} wrong; the message is beside it, and the last answer is shown")
        }
        PlanState::Failed(failure) => failure.title(),
    }
}

fn fields(count: usize) -> String {
    if count == 1 { "1 field is".to_owned() } else { format!("{count} fields are") }
}

/// The first wrong field that the server names.
fn first_wrong(state: &PlanState) -> Option<String> {
    let PlanState::Failed(Failure::Problem(problem)) = state else { return None };
    problem.errors.first().map(|error| error.pointer.clone())
}

/// Moves the focus to a field of the form, or else scrolls to its message.
fn go_to_field(pointer: &str) {
    let quoted = pointer.replace('\\', "\\\\").replace('"', "\\\"");
    let find = |attribute: &str| document().query_selector(&format!("[{attribute}=\"{quoted}\"]")).ok().flatten();
    if let Some(input) = find("data-pointer").and_then(|element| element.dyn_into::<web_sys::HtmlElement>().ok()) {
        // A field in a closed group cannot have the focus; an element that has gone needs none.
        drop(input.focus());
    }
    if let Some(message) = find("data-error-for") {
        message.scroll_into_view();
    }
}

/// The line under the title.
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
    let wrong = Memo::new(move |_| explore.state.with(first_wrong));
    let busy = Memo::new(move |_| explore.state.with(PlanState::is_busy));
    let is_cancelled = Memo::new(move |_| explore.state.with(|state| matches!(state, PlanState::Cancelled)));
    let remains = move || is_cancelled.get() && explore.result.with(Option::is_some);
    view! {
        <div class="status">
            <p data-testid="plan-status" role="status" data-state=move || explore.state.with(data_state)>
                {move || explore.state.with(words)}
                {move || remains().then_some("; the last answer is shown")}
                <span class="facts">{move || facts().map(|facts| format!(" · {facts}"))}</span>
            </p>
            {move || wrong.get().map(|pointer| view! {
                <button class="quiet" data-testid="go-to-field" on:click=move |_| go_to_field(&pointer)>"Go to the field"</button>
            })}
            <Show when=move || is_cancelled.get()>
                <button data-testid="plan-cancelled" on:click=move |_| begin_again(explore)>"Plan it"</button>
            </Show>
            <Show when=move || busy.get()>
                <div class="progress">
                    <progress max="1" prop:value=move || share().unwrap_or(0.0) aria-label="Planning"></progress>
                    <button class="quiet" on:click=move |_| explore.cancel()>"Cancel"</button>
                </div>
            </Show>
        </div>
        {move || old_engine().map(|(then, now)| view! {
            <div class="notice">
                <p>{format!("This answer was computed by {then}. This server runs {now}, which may answer differently.")}</p>
                <button on:click=move |_| explore.retry() disabled=move || busy.get()>"Re-run"</button>
            </div>
        })}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_its_word_in_the_page() {
        let running = PlanState::Running { planner: "GPipe", phase: "searching layouts".into(), done: 1, total: 2 };
        assert_eq!(data_state(&running), "planning");
        assert_eq!(words(&running), "GPipe: searching layouts…");
        assert_eq!(data_state(&PlanState::Failed(Failure::Offline)), "error");
        assert_eq!(data_state(&PlanState::Cancelled), "idle");
        assert_eq!(fields(1), "1 field is");
        assert_eq!(fields(3), "3 fields are");
    }
}
