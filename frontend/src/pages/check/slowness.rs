//! Measured throughput of a run next to the prediction, and causes of a slower run.

use api::check::SlownessRequest;
use api::planner::slowness::{Cause, Measured, Relation, Slowness};
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::check::{Checked, Loaded};
use crate::client::{self, Body};
use crate::format;
use crate::notice::ErrorNotice;

/// Converts a value to a measurement.
type FromValue = fn(f64) -> Measured;

/// Units of a measurement.
const UNITS: [(&str, FromValue); 3] = [
    ("s per step", Measured::StepS),
    ("tokens/s per GPU", Measured::TokensPerSPerDevice),
    ("TFLOP/s per GPU", Measured::TflopsPerDevice),
];

/// Field for a measurement, and the explanation of its difference from the prediction.
#[component]
pub(super) fn SlownessCard(checked: std::sync::Arc<Checked>) -> impl IntoView {
    if checked.check.plan.is_none() {
        return ().into_any();
    }
    let value = RwSignal::new(String::new());
    let unit = RwSignal::new(0_usize);
    let answer = RwSignal::new(Loaded::<Slowness>::Absent);
    let number = move || value.with(|value| value.trim().parse::<f64>().ok().filter(|value| *value > 0.0));
    let ask = move || {
        let Some(value) = number() else { return };
        let configuration = checked.request.clone();
        let measured = UNITS[unit.get_untracked()].1(value);
        let body = serde_json::to_string(&SlownessRequest { configuration, measured });
        let body = body.expect("a request is made of texts and numbers");
        answer.set(Loaded::Waiting);
        spawn_local(async move {
            let response = client::send::<Slowness>("POST", api::path::CHECK_SLOWNESS, Body::Json(body)).await;
            answer.try_set(Loaded::new(response));
        });
    };
    let ask = StoredValue::new(ask);
    let options =
        UNITS.iter().enumerate().map(|(index, (name, _))| view! { <option value=index.to_string()>{*name}</option> });
    let content = move || {
        match answer.get() {
        Loaded::Absent => ().into_any(),
        Loaded::Waiting => view! {
            <p class="progress" role="status"><progress aria-label="Simulating causes"></progress>"Simulating causes…"</p>
        }
        .into_any(),
        Loaded::Failed(error) => view! { <ErrorNotice error=error /> }.into_any(),
        Loaded::Here(slowness) => view! { <Explanation slowness=(*slowness).clone() /> }.into_any(),
    }
    };
    view! {
        <section class="card" data-testid="check-slowness">
            <header class="card-title"><h2>"Is my run slower?"</h2></header>
            <form class="check-controls" on:submit=move |event| { event.prevent_default(); ask.with_value(|ask| ask()); }>
                <label>
                    "Measured"
                    <input
                        type="text" inputmode="decimal" data-testid="measured"
                        prop:value=move || value.get()
                        on:input=move |event| value.set(event_target_value(&event))
                    />
                </label>
                <select aria-label="Unit" on:change=move |event| unit.set(event_target_value(&event).parse().unwrap_or(0))>
                    {options.collect_view()}
                </select>
                <button data-testid="explain-slowness" disabled=move || number().is_none()>"Explain"</button>
            </form>
            {content}
        </section>
    }
    .into_any()
}

/// Describes the relation of both times.
fn relation_text(slowness: &Slowness) -> String {
    let Slowness { measured_s, predicted_s, measured_mfu, predicted_mfu, relation, .. } = slowness;
    let both = format!(
        "Measured {} per step, MFU {}; predicted {}, MFU {}.",
        format::seconds(*measured_s),
        format::percent(*measured_mfu),
        format::seconds(*predicted_s),
        format::percent(*predicted_mfu)
    );
    let verdict = match relation {
        Relation::Impossible => {
            "This is above the peak of the devices: the measurement is of another job, or the unit is wrong. Check the number of devices, the global batch and the sequence length."
        }
        Relation::Faster => "The run is faster than predicted.",
        Relation::AsPredicted => "The run is as fast as predicted, within 3 %.",
        Relation::Slower => "The run is slower than predicted.",
    };
    format!("{both} {verdict}")
}

#[component]
fn Explanation(slowness: Slowness) -> impl IntoView {
    let gap = slowness.measured_s - slowness.predicted_s;
    let text = relation_text(&slowness);
    let is_slower = slowness.relation == Relation::Slower;
    let rows = slowness.causes.iter().map(|cause: &Cause| {
        let share = format::percent(cause.explains_s / gap);
        view! {
            <tr>
                <th scope="row">{format::capitalised(&cause.title)}<small class="below">{cause.confirm.clone()}</small></th>
                <td>{format::seconds(cause.explains_s)}<small class="below">{share}</small></td>
            </tr>
        }
    });
    let rows = rows.collect::<Vec<_>>();
    let has_rows = !rows.is_empty();
    let excluded = slowness.excluded.join("; ");
    let partial = slowness.is_partial.then_some(" The time limit was reached before all causes were simulated.");
    view! {
        <p role="status">{text}</p>
        {(is_slower && has_rows).then(|| view! {
            <table class="figures check-causes" data-testid="check-causes">
                <caption>{format!("Causes that can explain {}, each alone, closest first", format::seconds(gap))}</caption>
                <thead><tr><th scope="col">"Cause and how to confirm it"</th><th scope="col">"Explains"</th></tr></thead>
                <tbody>{rows}</tbody>
            </table>
        })}
        {is_slower.then(|| view! {
            <p class="hint">
                {(!excluded.is_empty()).then(|| format!("Effect too small or larger than the difference: {excluded}. "))}
                "Not simulated: data loading, checkpoints, evaluation, imbalance of sequence lengths or experts."
                {partial}
            </p>
        })}
    }
}
