//! Editor fields for a distribution: kind and parameters.

use leptos::prelude::*;
use serde_json::{Value, json};

use super::field::{FieldError, NumberField};
use super::slider::Slider;
use crate::explore::use_explore;
use crate::pointer;

/// Kinds with editable parameters. Lists and histograms come only from uploads and presets.
const KINDS: [(&str, &str); 3] = [("constant", "Constant"), ("uniform", "Uniform"), ("log_normal", "Log-normal")];

/// Number type of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbers {
    /// Integers.
    Integer,
    /// Real numbers with a step size of 0.1.
    Real,
}

impl Numbers {
    /// Converts a number to the JSON type of the scenario field.
    fn value(self, number: f64) -> Value {
        match self {
            Self::Integer => json!(number as u32),
            Self::Real => json!(number),
        }
    }

    const fn step(self) -> f64 {
        match self {
            Self::Integer => 1.0,
            Self::Real => 0.1,
        }
    }
}

/// Converts a distribution to another kind and reuses the matching parameters.
fn converted(old: &Value, kind: &str, numbers: Numbers) -> Value {
    let number = |names: &[&str], default: f64| {
        names.iter().find_map(|name| old.get(name).and_then(Value::as_f64)).unwrap_or(default)
    };
    let (min, max) = (number(&["min", "value"], 0.0), number(&["max", "value"], 32.0));
    let json_number = |number| numbers.value(number);
    match kind {
        "constant" => json!({"kind": kind, "value": json_number(number(&["value", "median", "max"], 1.0))}),
        "log_normal" => {
            let median = number(&["median", "value"], (max / 4.0).max(1.0)).max(numbers.step());
            json!({"kind": kind, "median": median, "sigma": number(&["sigma"], 1.0), "min": json_number(min), "max": json_number(max.max(1.0))})
        }
        _ => json!({"kind": "uniform", "min": json_number(min), "max": json_number(max)}),
    }
}

/// Editor fields of a distribution.
#[component]
pub(super) fn DistributionFields(
    pointer: &'static str,
    title: &'static str,
    unit: &'static str,
    /// Maximum value.
    max_value: f64,
    #[prop(default = Numbers::Integer)] numbers: Numbers,
    #[prop(default = None, into)] slider: Option<Slider>,
    /// Label for a missing distribution. If set, the user can also remove the distribution.
    #[prop(default = None, into)]
    absent: Option<&'static str>,
) -> impl IntoView {
    let explore = use_explore();
    let kind =
        Memo::new(move |_| explore.scenario.with(|scenario| pointer::text(scenario, &format!("{pointer}/kind"))));
    let change = move |event| {
        let selected_kind = event_target_value(&event);
        if selected_kind.is_empty() {
            explore.remove(pointer);
            return;
        }
        let old =
            explore.scenario.with_untracked(|scenario| pointer::get(scenario, pointer).cloned()).unwrap_or(Value::Null);
        explore.set(pointer, converted(&old, &selected_kind, numbers));
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
    let step = numbers.step();
    let fields = move || {
        match kind.get().as_deref() {
        Some("constant") => {
            view! { <NumberField pointer=at("value") label="Value" unit=unit min=0.0 max=max_value step=step slider=slider /> }
                .into_any()
        }
        Some("uniform") => view! {
            <NumberField pointer=at("min") label="Smallest" unit=unit min=0.0 max=max_value step=step />
            <NumberField pointer=at("max") label="Largest" unit=unit min=0.0 max=max_value step=step slider=slider />
        }
        .into_any(),
        Some("log_normal") => view! {
            <NumberField pointer=at("median") label="Median" unit=unit min=step max=max_value step=step />
            <NumberField pointer=at("sigma") label="Spread" unit="σ of ln" min=0.0 max=5.0 step=0.05 />
            <NumberField pointer=at("min") label="Smallest" unit=unit min=0.0 max=max_value step=step />
            <NumberField pointer=at("max") label="Largest" unit=unit min=0.0 max=max_value step=step slider=slider />
        }
        .into_any(),
        _ => ().into_any(),
    }
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
            <FieldError pointer=pointer.to_owned() />
        </div>
    }
}

#[cfg(test)]
mod tests {
    use api::planner::workload::{Distribution, RealDistribution};

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
                let integral: Result<Distribution, _> = serde_json::from_value(converted(old, kind, Numbers::Integer));
                let real: Result<RealDistribution, _> = serde_json::from_value(converted(old, kind, Numbers::Real));
                assert!(integral.is_ok() && real.is_ok(), "{old} as {kind}");
            }
        }
        assert_eq!(converted(&olds[3], "uniform", Numbers::Integer), json!({"kind": "uniform", "min": 1, "max": 99}));
        assert_eq!(converted(&olds[1], "constant", Numbers::Integer), olds[1]);
        let seconds = json!({"kind": "uniform", "min": 0.5, "max": 2.5});
        assert_eq!(converted(&seconds, "uniform", Numbers::Real), seconds);
        assert_eq!(converted(&json!({"kind": "constant", "value": 0.25}), "log_normal", Numbers::Real)["median"], 0.25);
    }
}
