//! Measured throughput of a run next to the prediction, and causes of a slower run.

use api::check::{CheckRequest, LogCheck, LogCheckRequest, SlownessRequest};
use api::planner::slowness::{Cause, LatePhase, Measured, Relation, Slowness};
use api::run::Comparison;
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::dropped_trace::{DroppedTrace, DroppedTraceView, is_trace};
use super::log_comparison::{LogComparison, read_log};
use crate::check::{Checked, Loaded};
use crate::client::{self, Body, RequestError};
use crate::format;
use crate::notice::ErrorNotice;
use crate::picked_files::{DropTarget, selected};

/// Comparison with a log or with a number.
#[derive(Debug, Clone, PartialEq)]
struct Answer {
    /// `None` for a number.
    comparison: Option<Comparison>,
    /// `None` if the log is of another job.
    slowness: Option<Slowness>,
}

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
    // Gradients are reduced over replicas and context-parallel ranks.
    let data = checked.check.plan.as_ref().map_or(1, |plan| plan.layout.data);
    let replicas = data.saturating_mul(checked.check.scenario.training.context_parallel);
    let unreadable = RwSignal::new(None::<String>);
    let value = RwSignal::new(String::new());
    let unit = RwSignal::new(0_usize);
    let answer = RwSignal::new(Loaded::<Answer>::Absent);
    let number = move || value.with(|value| measured_number(value));
    let wrong = move || number().err();
    let trace = DroppedTrace::new();
    let of_log = std::sync::Arc::clone(&checked);
    let read_log = StoredValue::new(move |files: Vec<web_sys::File>| {
        let Some(file) = files.into_iter().next() else { return };
        let checked = std::sync::Arc::clone(&of_log);
        unreadable.set(None);
        trace.clear();
        answer.set(Loaded::Absent);
        spawn_local(async move {
            if is_trace(&file).await {
                return trace.store(checked, file);
            }
            answer.try_set(Loaded::Waiting);
            let configuration = checked.request.clone();
            match check_log(configuration, file).await {
                Ok(response) => drop(answer.try_set(Loaded::new(response))),
                Err(message) => {
                    unreadable.try_set(Some(message));
                    answer.try_set(Loaded::Absent);
                }
            }
        });
    });
    let target = DropTarget::new(move |files| read_log.with_value(|read| read(files)));
    let ask = move || {
        let Ok(Some(value)) = number() else { return };
        let configuration = checked.request.clone();
        unreadable.set(None);
        let measured = UNITS[unit.get_untracked()].1(value);
        let body = serde_json::to_string(&SlownessRequest { configuration, measured });
        let body = body.expect("a request is made of texts and numbers");
        answer.set(Loaded::Waiting);
        spawn_local(async move {
            let response = client::send::<Slowness>("POST", api::path::CHECK_SLOWNESS, Body::Json(body)).await;
            let answered = response.map(|slowness| Answer { comparison: None, slowness: Some(slowness) });
            answer.try_set(Loaded::new(answered));
        });
    };
    let ask = StoredValue::new(ask);
    let options =
        UNITS.iter().enumerate().map(|(index, (name, _))| view! { <option value=index.to_string()>{*name}</option> });
    let content = move || answered(answer.get(), replicas);
    view! {
        <section class="card" data-testid="check-slowness" class:over=move || target.is_over()
            on:dragover=move |event| target.drag_over(&event)
            on:dragleave=move |_| target.drag_leave()
            on:drop=move |event| target.drop(&event)
        >
            <header class="card-title"><h2>"Is my run slower?"</h2></header>
            <form class="check-controls" on:submit=move |event| { event.prevent_default(); ask.with_value(|ask| ask()); }>
                <label>
                    "Measured"
                    <input
                        type="text" inputmode="decimal" data-testid="measured"
                        aria-invalid=move || wrong().is_some().to_string()
                        aria-describedby=move || wrong().map(|_| "measured-error")
                        prop:value=move || value.get()
                        on:input=move |event| value.set(event_target_value(&event))
                    />
                </label>
                <select aria-label="Unit" on:change=move |event| unit.set(event_target_value(&event).parse().unwrap_or(0))>
                    {options.collect_view()}
                </select>
                <button data-testid="explain-slowness" disabled=move || !matches!(number(), Ok(Some(_)))>"Explain"</button>
                <span class="muted">"or"</span>
                <label class="button quiet-button">
                    <input type="file" class="visually-hidden" data-testid="check-log" on:change=move |event| read_log.with_value(|read| read(selected(&event))) />
                    "Open a log or a trace of the run"
                </label>
            </form>
            {move || wrong().map(|message| view! {
                <p class="field-error" id="measured-error" role="alert">{format!("Measured: {message}")}</p>
            })}
            <p class="hint">"The median step of a log and its timers are compared. A log can be dropped here. It is not stored. A profiler trace of a rank is stored, with the scenario, and its kernels are compared with the prediction on its page."</p>
            {move || unreadable.get().map(|message| view! { <p class="field-error" role="alert">{message}</p> })}
            <DroppedTraceView trace=trace />
            {content}
        </section>
    }
    .into_any()
}

/// Returns the content below the form.
fn answered(answer: Loaded<Answer>, replicas: u32) -> AnyView {
    match answer {
        Loaded::Absent => ().into_any(),
        Loaded::Waiting => view! {
            <p class="progress" role="status"><progress aria-label="Simulating causes"></progress>"Simulating causes…"</p>
        }
        .into_any(),
        Loaded::Failed(error) => view! { <ErrorNotice error=error /> }.into_any(),
        Loaded::Here(answer) => {
            let Answer { comparison, slowness } = (*answer).clone();
            view! {
                {comparison.map(|comparison| view! { <LogComparison comparison=comparison /> })}
                {slowness.map(|slowness| view! { <Explanation slowness=slowness replicas=replicas /> })}
            }
            .into_any()
        }
    }
}

/// Sends a log with its configuration. The error is that of the browser.
async fn check_log(configuration: CheckRequest, file: web_sys::File) -> Result<Result<Answer, RequestError>, String> {
    let log = read_log(file).await?;
    let body = serde_json::to_string(&LogCheckRequest { configuration, log });
    let body = body.expect("a request is made of texts and numbers");
    let response = client::send::<LogCheck>("POST", api::path::CHECK_LOG, Body::Json(body)).await;
    Ok(response.map(|LogCheck { comparison, slowness }| Answer { comparison: Some(comparison), slowness }))
}

/// Range of a measurement. Values outside are mistyped, and no step has them.
const SMALLEST: f64 = 1e-6;
const LARGEST: f64 = 1e9;

/// Reads a measurement. `None` for an empty field.
///
/// # Errors
/// Returns the message for the field.
fn measured_number(text: &str) -> Result<Option<f64>, &'static str> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    match text.parse::<f64>() {
        Ok(value) if (SMALLEST..=LARGEST).contains(&value) => Ok(Some(value)),
        Ok(_) => Err("Enter a number above 0, from 0.000001 to 1,000,000,000."),
        Err(_) if text.contains(',') => {
            Err("Enter a number with a decimal point and without separators, for example 22.5.")
        }
        Err(_) => Err("Enter a number, for example 22.5."),
    }
}

/// Describes the relation of both times.
fn relation_text(slowness: &Slowness) -> String {
    let Slowness { measured_s, predicted_s, measured_mfu, predicted_mfu, relation, interval_s, .. } = slowness;
    let both = format!(
        "Measured {} per step, MFU {}; predicted {}, MFU {}.",
        format::seconds(*measured_s),
        format::percent(*measured_mfu),
        format::seconds(*predicted_s),
        format::percent(*predicted_mfu)
    );
    let differs = |word: &str| {
        let ratio = measured_s / predicted_s;
        // Above 100 %, a factor is easier to read.
        let difference = if ratio >= 2.0 {
            format!("A step takes {} times as long as predicted", format::three_digits(ratio))
        } else {
            format!("The run is {} {word} than predicted", format::percent((ratio - 1.0).abs()))
        };
        let interval = format!("({} to {})", format::seconds(interval_s.low), format::seconds(interval_s.high));
        if slowness.is_inside_interval() {
            format!(
                "{difference}, but inside the 80 % interval {interval}: the difference can be an error of the prediction."
            )
        } else {
            format!("{difference}, outside the 80 % interval {interval}.")
        }
    };
    let verdict = match relation {
        Relation::Impossible => {
            "This is above the peak of the devices: the measurement is of another job, or the unit is wrong. Check the number of devices, the global batch and the sequence length."
                .to_owned()
        }
        Relation::Faster => differs("faster"),
        Relation::AsPredicted => "The run is as fast as predicted, within 3 %.".to_owned(),
        Relation::Slower => differs("slower"),
    };
    format!("{both} {verdict}")
}

/// Names the phases that a cause changes: "Changes backward compute by +412 ms".
fn phase_text(cause: &Cause, replicas: u32) -> String {
    let shifts = cause.phases.iter().map(|shift| {
        format!("{} by {}", cause.phase_title(shift, replicas), format::seconds_difference(shift.seconds))
    });
    format!("Changes {}", shifts.collect::<Vec<_>>().join(", "))
}

/// Describes how much of the difference a cause explains.
fn share_text(share: f64) -> String {
    if share > 1.005 {
        format!("{} more than the difference", format::percent(share - 1.0))
    } else {
        format!("{} of the difference", format::percent(share))
    }
}

/// Describes a late phase and its gap.
fn late_text(late: &LatePhase) -> String {
    let unexplained = if late.has_cause { "" } else { " (no simulated cause changes it)" };
    format!("{} {}{unexplained}", late.phase, format::seconds_difference(late.seconds))
}

#[component]
fn Explanation(slowness: Slowness, replicas: u32) -> impl IntoView {
    let gap = slowness.measured_s - slowness.predicted_s;
    let text = relation_text(&slowness);
    let is_slower = slowness.relation == Relation::Slower;
    let rows = slowness.causes.iter().map(|cause: &Cause| {
        let share = share_text(cause.explains_s / gap);
        view! {
            <tr>
                <th scope="row">
                    {format::capitalised(&cause.marked_title())}
                    {(!cause.phases.is_empty()).then(|| view! { <small class="below">{phase_text(cause, replicas)}</small> })}
                    <small class="below">{cause.confirm.clone()}</small>
                </th>
                <td>{format::seconds(cause.explains_s)}<small class="below">{share}</small></td>
            </tr>
        }
    });
    let rows = rows.collect::<Vec<_>>();
    let has_rows = !rows.is_empty();
    let excluded =
        |title: &str, causes: &[String]| (!causes.is_empty()).then(|| format!("{title}: {}. ", causes.join("; ")));
    let excluded = [
        excluded("Effect too small", &slowness.too_small),
        excluded("Effect larger than the difference", &slowness.too_large),
        excluded("Contradicted by the timers", &slowness.contradicted),
        excluded("Contradicted by the memory of the log", &slowness.contradicted_by_memory),
    ];
    let late = slowness.late_phases.iter().map(late_text).collect::<Vec<_>>().join(", ");
    let advice = slowness
        .late_phases
        .iter()
        .filter_map(|late| Some(format!("{}: {}", format::capitalised(&late.phase), late.confirm.as_ref()?)));
    let advice: Vec<String> = advice.collect();
    let order = slowness.order.title();
    let partial = slowness.is_partial.then_some(" The time limit was reached before all causes were simulated.");
    view! {
        <p role="status">{text}</p>
        {(!late.is_empty()).then(|| view! { <p>{format!("Late phases: {late}.")}</p> })}
        {advice.into_iter().map(|text| view! { <p class="hint">{text}</p> }).collect_view()}
        {(is_slower && has_rows).then(|| view! {
            <div class="table-scroll" role="region" aria-label="Causes of a slower run" tabindex="0">
                <table class="figures check-causes" data-testid="check-causes">
                    <caption>{format!("Causes that can explain {}, each alone, {order}", format::seconds(gap))}</caption>
                    <thead><tr><th scope="col">"Cause and how to confirm it"</th><th scope="col">"Explains"</th></tr></thead>
                    <tbody>{rows}</tbody>
                </table>
            </div>
        })}
        {is_slower.then(|| view! {
            {excluded.map(|text| text.map(|text| view! { <p class="hint">{text}</p> }))}
            <p class="hint">
                "Not simulated: checkpoints, evaluation."
                {partial}
            </p>
        })}
    }
}

#[cfg(test)]
mod tests {
    use api::planner::certainty::Interval;
    use api::planner::fit::FieldChange;
    use api::planner::scenario::PlannerKind;
    use api::planner::slowness::{CauseOrder, PhaseShift, Plausibility};

    use super::*;

    fn slowness(measured_s: f64, relation: Relation) -> Slowness {
        Slowness {
            planner: PlannerKind::OneFOneB,
            measured_s,
            predicted_s: 13.4,
            measured_mfu: 0.4,
            predicted_mfu: 0.44,
            relation,
            interval_s: Interval { low: 11.7, high: 17.3 },
            causes: Vec::new(),
            order: CauseOrder::UsualStrength,
            too_small: Vec::new(),
            too_large: Vec::new(),
            contradicted: Vec::new(),
            contradicted_by_memory: Vec::new(),
            late_phases: Vec::new(),
            is_partial: false,
        }
    }

    #[test]
    fn a_difference_inside_the_interval_can_be_an_error_of_the_prediction() {
        let text = |measured, relation| relation_text(&slowness(measured, relation)).replace('\u{202f}', " ");
        let inside = text(14.9, Relation::Slower);
        assert!(
            inside.contains("11.2 % slower than predicted, but inside the 80 % interval (11.7 s to 17.3 s)"),
            "{inside}"
        );
        let outside = text(20.1, Relation::Slower);
        assert!(
            outside.ends_with("50.0 % slower than predicted, outside the 80 % interval (11.7 s to 17.3 s)."),
            "{outside}"
        );
        assert!(text(12.0, Relation::Faster).contains("10.4 % faster than predicted, but inside"));
        let factor = text(33.5, Relation::Slower);
        assert!(factor.contains("A step takes 2.50 times as long as predicted, outside"), "{factor}");
    }

    /// Exposed communication is in the timers of the passes, and is no computation.
    #[test]
    fn sentences_name_what_the_cause_changes() {
        let shift = |phase: &str, seconds| PhaseShift { phase: phase.to_owned(), seconds };
        let mut cause = Cause {
            title: String::new(),
            fields: vec![FieldChange { pointer: "/training/data_overlap".to_owned(), value: 0.0.into() }],
            iteration_s: 2.0,
            explains_s: 0.6,
            confirm: String::new(),
            is_tuned: false,
            plausibility: Plausibility::Possible,
            memory_gib: None,
            phases: vec![shift("forward compute", 0.12), shift("optimizer", -0.04)],
        };
        let text = |cause: &Cause| phase_text(cause, 8).replace('\u{202f}', " ");
        assert_eq!(
            text(&cause),
            "Changes exposed communication in the forward passes by +120 ms, optimizer by −40.0 ms"
        );
        "/cluster/device/peak_tflops".clone_into(&mut cause.fields[0].pointer);
        assert_eq!(text(&cause), "Changes forward compute by +120 ms, optimizer by −40.0 ms");
        let plain = |share| share_text(share).replace('\u{202f}', " ");
        assert_eq!(plain(1.02), "2.00 % more than the difference");
        assert_eq!(plain(0.98), "98.0 % of the difference");
        let late = LatePhase { phase: "optimizer".to_owned(), seconds: 0.412, has_cause: false, confirm: None };
        assert_eq!(late_text(&late).replace('\u{202f}', " "), "optimizer +412 ms (no simulated cause changes it)");
    }

    #[test]
    fn measurements_are_positive_numbers_with_a_point() {
        assert_eq!((measured_number(" "), measured_number(" 22.5 ")), (Ok(None), Ok(Some(22.5))));
        assert!(measured_number("22,5").unwrap_err().contains("decimal point"));
        assert_eq!(measured_number("abc"), Err("Enter a number, for example 22.5."));
        for wrong in ["0", "-3", "inf", "NaN", "1e300", "1e-300"] {
            assert!(measured_number(wrong).unwrap_err().starts_with("Enter a number above 0, from"), "{wrong}");
        }
    }
}
