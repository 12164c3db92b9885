//! A distribution of whole numbers: its kind, and the figures of the kind.

use leptos::prelude::*;
use serde_json::{Value, json};

use super::field::{NumberField, Slider};
use crate::explore::use_explore;
use crate::pointer;

/// The kinds that are edited as figures; lists and histograms come from uploads and presets.
const KINDS: [(&str, &str); 3] = [("constant", "Constant"), ("uniform", "Uniform"), ("log_normal", "Log-normal")];

/// A distribution of another kind that keeps as much of the old one as fits.
fn converted(old: &Value, kind: &str) -> Value {
    let number = |names: &[&str], default: f64| {
        names.iter().find_map(|name| old.get(name).and_then(Value::as_f64)).unwrap_or(default)
    };
    let min = number(&["min", "value"], 0.0) as u32;
    let max = number(&["max", "value"], 32.0) as u32;
    match kind {
        "constant" => json!({"kind": kind, "value": number(&["value", "median", "max"], 1.0) as u32}),
        "log_normal" => {
            let median = number(&["median", "value"], (f64::from(max) / 4.0).max(1.0));
            json!({"kind": kind, "median": median.max(1.0), "sigma": number(&["sigma"], 1.0), "min": min, "max": max.max(1)})
        }
        _ => json!({"kind": "uniform", "min": min, "max": max}),
    }
}

/// The fields of a distribution.
#[component]
pub(super) fn DistributionFields(
    pointer: &'static str,
    title: &'static str,
    unit: &'static str,
    /// Largest value that makes sense.
    most: f64,
    #[prop(default = None, into)] slider: Option<Slider>,
    /// What it means where the scenario says nothing; such a distribution may be taken away again.
    #[prop(default = None, into)]
    absent: Option<&'static str>,
) -> impl IntoView {
    let explore = use_explore();
    let kind =
        Memo::new(move |_| explore.scenario.with(|scenario| pointer::text(scenario, &format!("{pointer}/kind"))));
    let change = move |event| {
        let chosen = event_target_value(&event);
        if chosen.is_empty() {
            explore.remove(pointer);
            return;
        }
        let old =
            explore.scenario.with_untracked(|scenario| pointer::get(scenario, pointer).cloned()).unwrap_or(Value::Null);
        explore.set(pointer, converted(&old, &chosen));
    };
    let id = format!("kind{}", pointer.replace('/', "-"));
    let options = KINDS.map(|(word, name)| view! { <option value=word prop:selected=move || kind.get().as_deref() == Some(word)>{name}</option> });
    let fixed = move || match kind.get().as_deref() {
        Some("histogram") => Some("Histogram"),
        Some("values") => Some("List of values"),
        None if absent.is_none() => Some("None"),
        _ => None,
    };
    let at = move |field: &str| format!("{pointer}/{field}");
    let fields = move || match kind.get().as_deref() {
        Some("constant") => {
            view! { <NumberField pointer=at("value") label="Value" unit=unit min=0.0 max=most slider=slider /> }
                .into_any()
        }
        Some("uniform") => view! {
            <NumberField pointer=at("min") label="Smallest" unit=unit min=0.0 max=most />
            <NumberField pointer=at("max") label="Largest" unit=unit min=0.0 max=most slider=slider />
        }
        .into_any(),
        Some("log_normal") => view! {
            <NumberField pointer=at("median") label="Median" unit=unit min=1.0 max=most />
            <NumberField pointer=at("sigma") label="Spread" unit="σ of ln" min=0.0 max=5.0 step=0.05 />
            <NumberField pointer=at("min") label="Smallest" unit=unit min=0.0 max=most />
            <NumberField pointer=at("max") label="Largest" unit=unit min=0.0 max=most slider=slider />
        }
        .into_any(),
        _ => ().into_any(),
    };
    view! {
        <div class="group">
            <div class="field picker">
                <label for=id.clone()>{title}</label>
                <select id=id on:change=change>
                    {absent.map(|name| view! { <option value="" prop:selected=move || kind.get().is_none()>{name}</option> })}
                    {move || fixed().map(|name| view! { <option selected=true disabled=true>{name}</option> })}
                    {options}
                </select>
            </div>
            {fields}
        </div>
    }
}

#[cfg(test)]
mod tests {
    use api::planner::workload::Distribution;

    use super::*;

    #[test]
    fn every_conversion_is_a_distribution() {
        let olds = [
            json!(null),
            json!({"kind": "constant", "value": 7}),
            json!({"kind": "uniform", "min": 2, "max": 9}),
            json!({"kind": "log_normal", "median": 4.5, "sigma": 0.7, "min": 1, "max": 99}),
            json!({"kind": "values", "values": [1, 2]}),
        ];
        for old in &olds {
            for (kind, _) in KINDS {
                let new: Distribution = serde_json::from_value(converted(old, kind)).expect("a distribution");
                drop(new);
            }
        }
        assert_eq!(converted(&olds[3], "uniform"), json!({"kind": "uniform", "min": 1, "max": 99}));
        assert_eq!(converted(&olds[1], "constant"), olds[1]);
    }
}
