//! Recorded iteration above the simulated iteration on a shared axis, and their differences.

mod differences;

use std::sync::Arc;

use api::job::StoredOutcome;
use api::path;
use api::planner::timeline::Timeline;
use api::trace::{ActionList, Alignment};
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::compared_plan::ComparedPlan;
use crate::client::{self, RequestError};
use crate::form::restore_text;
use crate::gantt::{Gantt, Legend, TimeWindow};
use crate::notice::ErrorNotice;
use crate::outcome_fetch;
use differences::Differences;

type Fetched<T> = RwSignal<Option<Result<T, RequestError>>>;

/// Compared iterations.
#[derive(Clone, Copy)]
struct Compared {
    trace: StoredValue<String>,
    plan: ComparedPlan,
    /// Recorded iteration.
    recorded_iteration: RwSignal<u32>,
    /// Iteration of the plan.
    iteration: RwSignal<u32>,
    /// Factor applied to recorded times.
    speed: RwSignal<f64>,
    actions: Fetched<ActionList>,
    outcome: RwSignal<Option<Arc<StoredOutcome>>>,
    seen: RwSignal<Option<Arc<Timeline>>>,
    planned: RwSignal<Option<Arc<Timeline>>>,
    alignment: Fetched<Alignment>,
    last_error: RwSignal<Option<RequestError>>,
    window: RwSignal<TimeWindow>,
    /// Request number. Responses to older requests are discarded.
    request_number: StoredValue<u64>,
}

/// Compares trace actions with plan actions.
#[component]
pub(crate) fn AlignmentCard(
    /// Trace identifier.
    trace: String,
    /// Plan that another card chooses.
    plan: ComparedPlan,
) -> impl IntoView {
    let compared = Compared {
        trace: StoredValue::new(trace),
        plan,
        recorded_iteration: RwSignal::new(0),
        iteration: RwSignal::new(0),
        speed: RwSignal::new(1.0),
        actions: RwSignal::new(None),
        outcome: RwSignal::new(None),
        seen: RwSignal::new(None),
        planned: RwSignal::new(None),
        alignment: RwSignal::new(None),
        last_error: RwSignal::new(None),
        window: RwSignal::new(TimeWindow { start_ns: 0.0, end_ns: 0.0 }),
        request_number: StoredValue::new(0),
    };
    let url = compared.trace.with_value(|id| path::trace_actions(id));
    spawn_local(async move { compared.actions.set(Some(client::get::<ActionList>(&url).await)) });
    let chosen = Memo::new(move |_| plan.ready());
    Effect::new(move |_| {
        // Another scenario can have fewer iterations. A memo that is only tracked is not computed.
        chosen.with(|_| ());
        if compared.iteration.get_untracked() != 0 {
            compared.iteration.set(0);
        }
    });
    Effect::new(move |_| {
        chosen.with(|_| ());
        compared.recorded_iteration.track();
        compared.iteration.track();
        compared.speed.track();
        compared.fetch();
    });
    let notes = move || {
        let action_notes = compared.actions.get().and_then(Result::ok).map(|actions| actions.notes).unwrap_or_default();
        let alignment_notes = compared.alignment.get().and_then(Result::ok).map(|alignment| alignment.notes);
        let notes = alignment_notes.unwrap_or(action_notes);
        notes.into_iter().map(|note| view! { <p class="hint">{note}</p> }).collect_view()
    };
    view! {
        <section class="card" data-testid="trace-alignment">
            <header class="card-title"><h2>"The pipeline, observed and planned"</h2></header>
            <Choices compared=compared />
            {notes}
            {move || compared.last_error.get().map(|error| view! { <ErrorNotice error=error /> })}
            <Charts compared=compared />
            {move || compared.alignment.get().map(|alignment| match alignment {
                Ok(alignment) => view! { <Differences alignment=alignment /> }.into_any(),
                Err(request_error) => view! { <ErrorNotice error=request_error /> }.into_any(),
            })}
        </section>
    }
}

impl Compared {
    /// Fetches both timelines and their differences.
    fn fetch(self) {
        let number = self.request_number.try_update_value(|latest| {
            *latest += 1;
            *latest
        });
        let is_current = move || self.request_number.try_get_value() == number;
        let id = self.trace.get_value();
        let (recorded, iteration) = (self.recorded_iteration.get_untracked(), self.iteration.get_untracked());
        let speed = format!("&speed={}", self.speed.get_untracked());
        let ready = untrack(|| self.plan.ready());
        spawn_local(async move {
            let seen = timeline(&format!("{}{speed}", path::trace_timeline(&id, recorded))).await;
            if !is_current() {
                return;
            }
            match seen {
                Ok(seen) => {
                    self.last_error.set(None);
                    self.seen.set(Some(seen));
                    self.fit();
                }
                Err(error) => return self.last_error.set(Some(error)),
            }
            let Some((scenario, planner)) = ready else {
                self.planned.set(None);
                self.alignment.set(None);
                return;
            };
            if self
                .outcome
                .with_untracked(|outcome| outcome.as_ref().is_none_or(|stored| stored.outcome.scenario != scenario))
            {
                let outcome = outcome_fetch::stored(&scenario).await.ok().flatten().map(Arc::new);
                if !is_current() {
                    return;
                }
                self.outcome.set(outcome);
            }
            let planner_parameter = planner.map_or_else(String::new, |planner| format!("&planner={}", planner.id()));
            let url = format!(
                "{}&scenario={scenario}{planner_parameter}{speed}",
                path::trace_alignment(&id, recorded, iteration)
            );
            let alignment = client::get::<Alignment>(&url).await;
            if !is_current() {
                return;
            }
            let planned = match &alignment {
                Ok(alignment) => timeline(&path::timeline(&scenario, alignment.planner.id(), iteration)).await.ok(),
                Err(_) => None,
            };
            if is_current() {
                self.planned.set(planned);
                self.alignment.set(Some(alignment));
                self.fit();
            }
        });
    }

    fn extent_ns(self) -> u64 {
        let makespan_ns = |timeline: RwSignal<Option<Arc<Timeline>>>| {
            timeline.with(|loaded| loaded.as_ref().map_or(0, |current| current.makespan_ns))
        };
        makespan_ns(self.seen).max(makespan_ns(self.planned))
    }

    /// Shows the full time range.
    fn fit(self) {
        let extent = untrack(move || self.extent_ns());
        self.window.set(TimeWindow::fit(extent));
    }
}

async fn timeline(url: &str) -> Result<Arc<Timeline>, RequestError> {
    let bytes = client::get_bytes(url, path::TIMELINE_MEDIA_TYPE).await?;
    api::timeline::decode(&bytes).map(Arc::new).map_err(|error| RequestError::Unreadable(error.to_string()))
}

/// Selection of iterations and speed.
#[component]
fn Choices(compared: Compared) -> impl IntoView {
    let iterations = move || {
        let actions = compared.actions.get().and_then(Result::ok).map(|actions| actions.iterations).unwrap_or_default();
        let option = |(index, iteration): (usize, api::trace::MeasuredIteration)| {
            let name = if iteration.announced {
                format!("step {}", iteration.number)
            } else {
                format!("iteration {}", iteration.number)
            };
            let text = format!(
                "{name}: {}, {} actions",
                crate::gantt::time_text::duration(iteration.span_ns as f64),
                iteration.actions
            );
            view! { <option value=index.to_string()>{text}</option> }
        };
        actions.into_iter().enumerate().map(option).collect_view()
    };
    let number = |event: &web_sys::Event| event_target_value(event).parse().unwrap_or(0);
    let quicken = move |event: web_sys::Event| {
        let typed = event_target_value(&event).parse::<f64>().ok();
        if let Some(speed) = typed.filter(|speed| speed.is_finite() && *speed > 0.0) {
            compared.speed.set(speed);
        } else {
            // Restore the current value if the input is not a valid factor.
            restore_text(&event, &compared.speed.get_untracked().to_string());
        }
    };
    let batches = move || {
        compared.outcome.with(|outcome| outcome.as_ref().map_or(1, |stored| stored.outcome.batches.len().max(1)))
    };
    view! {
        <div class="trace-choices">
            <label>"Observed "
                <select data-testid="observed-iteration" on:change=move |event| compared.recorded_iteration.set(number(&event))>{iterations}</select>
            </label>
            <label>"Iteration of the plan "
                <select on:change=move |event| compared.iteration.set(number(&event))>
                    {move || (0..batches()).map(|at| view! { <option value=at.to_string() prop:selected=move || compared.iteration.get() as usize == at>{at}</option> }).collect_view()}
                </select>
            </label>
            <label title="Observed times are multiplied by it: for a run of a scaled job">"Speed "
                <input
                    type="number"
                    data-testid="trace-speed"
                    min="0.000001"
                    step="any"
                    prop:value=move || compared.speed.get().to_string()
                    on:change=quicken
                />
            </label>
        </div>
    }
}

#[component]
fn Charts(compared: Compared) -> impl IntoView {
    let selection = RwSignal::new(None);
    let hover = RwSignal::new(None);
    let extent = Signal::derive(move || compared.extent_ns());
    let timelines =
        Signal::derive(move || compared.seen.get().into_iter().chain(compared.planned.get()).collect::<Vec<_>>());
    let planned_title = Signal::derive(move || {
        let planner = compared.alignment.get().and_then(Result::ok).map(|alignment| alignment.planner.title());
        format!("Simulated: {}", planner.unwrap_or("…"))
    });
    view! {
        <h3>"Observed"</h3>
        <Gantt
            chart=0
            id="observed"
            title=Signal::derive(|| "Observed".to_owned())
            timeline=compared.seen
            extent_ns=extent
            window=compared.window
            selection=selection
            hover=hover
        />
        <Show when=move || compared.planned.with(Option::is_some)>
            <h3>{planned_title}</h3>
            <Gantt
                chart=1
                id="planned"
                title=planned_title
                timeline=compared.planned
                extent_ns=extent
                window=compared.window
                selection=selection
                hover=hover
            />
        </Show>
        <Legend timelines=timelines />
    }
}
