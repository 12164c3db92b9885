//! Parameters of the correction study: five numbers and an optional run.

use api::path;
use api::run::{RunList, RunSummary};
use leptos::leptos_dom::helpers::TimeoutHandle;
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde_json::{Value, json};

use crate::client::{self, RequestError};
use crate::editor::field::NumberField;
use crate::field_errors::FieldErrors;
use crate::form::Form;
use crate::format;
use crate::pointer;

/// Delay between typing and the request.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(400);

/// Numeric parameter: JSON pointer, query key, label, unit, range, step.
struct Number {
    pointer: &'static str,
    query: &'static str,
    label: &'static str,
    unit: &'static str,
    min: f64,
    max: f64,
    step: f64,
    /// 100 for percentages, which the query expects as fractions; 1 for integer counts.
    scale: f64,
    default: f64,
}

const fn percent(
    pointer: &'static str,
    query: &'static str,
    label: &'static str,
    unit: &'static str,
    max: f64,
    default: f64,
) -> Number {
    Number { pointer, query, label, unit, min: 0.0, max, step: 0.5, scale: 100.0, default }
}

const fn count(pointer: &'static str, query: &'static str, label: &'static str, default: f64) -> Number {
    let (unit, min, max) = ("iterations", 1.0, 200.0);
    Number { pointer, query, label, unit, min, max, step: 1.0, scale: 1.0, default }
}

/// Parameters in query order. The defaults follow a DFLOP case: 3 % slow shapes, half the longest
/// stage, 4 % observation cost.
const NUMBERS: [Number; 5] = [
    percent("/correction/anomaly", "anomaly", "Slow shapes", "% of all", 100.0, 3.0),
    percent("/correction/slowdown", "slowdown", "An item takes longer by", "% of the longest stage", 1000.0, 50.0),
    percent("/correction/cost", "cost", "Watching costs", "% of throughput", 100.0, 4.0),
    count("/correction/window", "window", "Benefits averaged over", 20.0),
    count("/correction/iterations", "iterations", "Length of the run", 60.0),
];

fn defaults() -> Value {
    let mut document = json!({});
    for number in &NUMBERS {
        pointer::set(&mut document, number.pointer, json!(number.default));
    }
    document
}

/// Returns the query string, or the errors by field.
fn query(document: &Value, run: Option<&str>) -> Result<String, FieldErrors> {
    let mut errors = FieldErrors::default();
    let mut pairs = Vec::new();
    for Number { pointer, query, min: lower, max: upper, scale, .. } in &NUMBERS {
        let value = pointer::get(document, pointer).and_then(Value::as_f64);
        let is_count = scale.total_cmp(&1.0).is_eq();
        match value {
            Some(value) if !(*lower..=*upper).contains(&value) => {
                errors.set(pointer, Some(format!("out of range: {lower} to {upper}")));
            }
            Some(value) if is_count && value.fract() != 0.0 => {
                errors.set(pointer, Some("a whole number is needed here".to_owned()));
            }
            Some(value) => pairs.push(format!("{query}={}", value / scale)),
            None => errors.set(pointer, Some("a number is needed here".to_owned())),
        }
    }
    pairs.extend(run.map(|run| format!("run={run}")));
    if errors.any_under("") { Err(errors) } else { Ok(pairs.join("&")) }
}

/// Settings of the correction card.
#[derive(Clone, Copy)]
pub(crate) struct Settings {
    document: RwSignal<Value>,
    errors: RwSignal<FieldErrors>,
    unreadable: RwSignal<FieldErrors>,
    fields: RwSignal<std::collections::BTreeSet<String>>,
    run: RwSignal<Option<String>>,
    /// Last valid query string.
    requested_query: RwSignal<String>,
    timer: StoredValue<Option<TimeoutHandle>>,
}

impl Settings {
    /// Creates the default settings.
    pub(crate) fn new() -> Self {
        let document = defaults();
        let initial_query = query(&document, None).unwrap_or_default();
        Self {
            document: RwSignal::new(document),
            errors: RwSignal::default(),
            unreadable: RwSignal::default(),
            fields: RwSignal::default(),
            run: RwSignal::new(None),
            requested_query: RwSignal::new(initial_query),
            timer: StoredValue::new(None),
        }
    }

    /// Returns the last valid query string.
    pub(crate) fn query(self) -> String {
        self.requested_query.get()
    }

    fn form(self) -> Form {
        let change = Callback::new(move |(field_pointer, value): (String, Option<Value>)| {
            if let Some(value) = value {
                self.document.update(|document| pointer::set(document, &field_pointer, value));
                self.request_soon();
            }
        });
        let Self { document, errors, unreadable, fields, .. } = self;
        Form { document, errors, unreadable, fields, change }
    }

    /// Validates the input. If it is valid, the query changes after [`PAUSE`].
    fn request_soon(self) {
        let run = self.run.get_untracked();
        let found = self.document.with_untracked(|document| query(document, run.as_deref()));
        let timer = match found {
            Ok(query) => {
                self.errors.set(FieldErrors::default());
                set_timeout_with_handle(move || drop(self.requested_query.try_set(query)), PAUSE).ok()
            }
            Err(errors) => {
                self.errors.set(errors);
                None
            }
        };
        self.timer.update_value(|slot| {
            if let Some(old) = slot.take() {
                old.clear();
            }
            *slot = timer;
        });
    }

    /// Restores the defaults and removes the run.
    fn reset(self) {
        self.run.set(None);
        self.document.set(defaults());
        self.request_soon();
    }
}

/// Input fields for the settings.
#[component]
pub(crate) fn SettingsForm(
    /// Edited settings.
    settings: Settings,
    /// Scenario. Runs compared with it are listed first.
    #[prop(into)]
    scenario: Signal<Option<String>>,
) -> impl IntoView {
    provide_context(settings.form());
    let fields = NUMBERS.iter().map(|number| {
        let Number { pointer, label, unit, min: lower, max: upper, step, .. } = *number;
        view! { <NumberField pointer=pointer label=label unit=unit min=lower max=upper step=step /> }
    });
    view! {
        <div class="request-card-fields" data-testid="correction-settings">
            {fields.collect_view()}
            <RunField settings=settings scenario=scenario />
            <button class="quiet" on:click=move |_| settings.reset()>"Reset"</button>
        </div>
    }
}

/// Selects the run from which the slow shapes are estimated.
#[component]
fn RunField(settings: Settings, scenario: Signal<Option<String>>) -> impl IntoView {
    let runs = RwSignal::new(None::<Result<Vec<RunSummary>, RequestError>>);
    spawn_local(async move {
        let list = client::get::<RunList>(&format!("{}?limit=200", path::RUNS)).await;
        runs.try_set(Some(list.map(|list| list.runs)));
    });
    let options = move || {
        let current_scenario = scenario.get();
        let mut known = runs.get().and_then(Result::ok).unwrap_or_default();
        known.retain(|run| run.points > 0);
        known.sort_by_key(|run| run.scenario != current_scenario);
        let option = |run: RunSummary| {
            let origin = if run.scenario == current_scenario { "" } else { ", of another scenario" };
            let text = format!("{} ({} steps{origin})", run.name, format::count(run.points));
            let id = run.id.clone();
            view! {
                <option value=run.id prop:selected=move || settings.run.with(|selected_run| selected_run.as_ref() == Some(&id))>{text}</option>
            }
        };
        known.into_iter().map(option).collect_view()
    };
    let choose = move |event| {
        let id = event_target_value(&event);
        settings.run.set((!id.is_empty()).then_some(id));
        settings.request_soon();
    };
    let failed = move || {
        let error = runs.get().and_then(Result::err)?;
        Some(view! { <p class="field-error" role="alert">{format!("{}: no run can be chosen.", error.title())}</p> })
    };
    view! {
        <div class="field">
            <label for="field-correction-run">"Learn from a run"</label>
            <select id="field-correction-run" data-testid="correction-run" on:change=choose>
                <option value="" prop:selected=move || settings.run.with(Option::is_none)>"none, simulate alone"</option>
                {options}
            </select>
            {failed}
        </div>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_percent_and_the_server_takes_shares() {
        let default_query = query(&defaults(), None).unwrap();
        assert_eq!(default_query, "anomaly=0.03&slowdown=0.5&cost=0.04&window=20&iterations=60");
        assert!(query(&defaults(), Some("abc")).unwrap().ends_with("iterations=60&run=abc"));
    }

    #[test]
    fn invalid_values_are_reported_at_their_fields() {
        for (field_pointer, value, message) in [
            ("/correction/anomaly", json!(100.5), "out of range: 0 to 100"),
            ("/correction/cost", json!(-1), "out of range: 0 to 100"),
            ("/correction/slowdown", json!(1001), "out of range: 0 to 1000"),
            ("/correction/window", json!(0), "out of range: 1 to 200"),
            ("/correction/iterations", json!(2.5), "a whole number is needed here"),
            ("/correction/iterations", Value::Null, "a number is needed here"),
        ] {
            let mut document = defaults();
            pointer::set(&mut document, field_pointer, value);
            let errors = query(&document, Some("abc")).unwrap_err();
            assert_eq!(errors.at(field_pointer), Some(message));
        }
    }
}
