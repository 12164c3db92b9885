//! Table of single changes, fastest first, each with a button that applies it to the scenario.

use api::planner::certainty;
use api::planner::fit::{Change, Fit};
use api::planner::scenario::Scenario;
use leptos::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use super::field_names;
use crate::explore::Explore;
use crate::{format, pointer};

/// Applies a change to the edited scenario as one step of undo.
fn apply(explore: Explore, change: &Change) {
    explore.edit(&format!("fit {}", change.title), |scenario| write(scenario, change));
}

fn write(scenario: &mut Value, change: &Change) {
    for field in &change.fields {
        if field.value.is_null() {
            pointer::remove(scenario, &field.pointer);
        } else {
            pointer::set(scenario, &field.pointer, field.value.clone());
        }
    }
}

/// Difference from the current time, for example "−1.20 s (−9.0 %)". `None` without a current plan.
fn time_difference(change: &Change) -> Option<String> {
    let difference = change.difference_s?;
    let before = change.result.iteration_s? - difference;
    Some(format!("{} ({})", format::seconds_difference(difference), format::signed_percent(difference / before)))
}

/// Smaller differences in GiB are not shown.
const ALIKE_GIB: f64 = 0.05;

/// Difference from the current peak, or from the need of the nearest miss. `None` if there is none.
fn memory_difference(fit: &Fit, change: &Change) -> Option<String> {
    let difference = change.result.peak_gib? - fit.base.peak_gib?;
    let sign = if difference < 0.0 { "−" } else { "+" };
    (difference.abs() >= ALIKE_GIB).then(|| format!("{sign}{}", format::gib(difference.abs())))
}

/// Text of the risk that a change runs out of memory, for example "! At risk: 33.0 %". `None` for a low risk.
fn risk(device_gib: f64, change: &Change) -> Option<String> {
    let probability = certainty::memory_certainty(change.result.peak_gib?, device_gib).probability_out_of_memory;
    (probability > certainty::RISK).then(|| format!("! At risk: {}", format::probability(probability)))
}

/// Table of the changes. Buttons have no effect while `is_stale`, because the figures are of another scenario.
#[component]
pub(super) fn Changes<'a>(
    fit: &'a Fit,
    /// The scenario that was studied.
    document: &'a Value,
    is_stale: Memo<bool>,
    explore: Explore,
    /// Receives the words of an applied change.
    applied: RwSignal<Option<String>>,
) -> impl IntoView + use<> {
    let device_gib =
        Scenario::deserialize(document).map_or(f64::INFINITY, |scenario| scenario.cluster.device.memory_gib);
    let row = |change: &Change| {
        let at_risk = risk(device_gib, change).map(|text| view! { <small class="below slower">{text}</small> });
        let lines = field_names::lines(change, document);
        // A change without words of the form has its title.
        let lines = if lines.is_empty() { vec![format::capitalised(&change.title)] } else { lines };
        let name = lines.join(", ");
        let label = format!("Apply {name}");
        let lines = lines.into_iter().map(|line| view! { <span class="fit-line">{line}</span> }).collect_view();
        let below = |text: Option<String>| text.map(|text| view! { <small class="below">{text}</small> });
        let (seconds, peak) =
            (change.result.iteration_s.unwrap_or(f64::NAN), change.result.peak_gib.unwrap_or(f64::NAN));
        let (time, memory) = (below(time_difference(change)), below(memory_difference(fit, change)));
        let (section, change) = (field_names::section(change.kind), change.clone());
        let press = move |_| {
            if !is_stale.get_untracked() {
                applied.set(Some(name.clone()));
                apply(explore, &change);
            }
        };
        view! {
            <tr>
                <th scope="row">{lines}<small class="below">{section}</small></th>
                <td data-value=seconds.to_string()>{format::seconds(seconds)}{time}</td>
                <td data-value=peak.to_string()>{format::gib(peak)}{memory}{at_risk}</td>
                <td><button aria-label=label aria-disabled=move || is_stale.get().then_some("true") on:click=press>"Apply"</button></td>
            </tr>
        }
    };
    let rows = fit.changes.iter().map(row).collect_view();
    view! {
        <div class="table-scroll" role="region" aria-label="Single changes, fastest first" tabindex="0">
            <table class="figures fit-changes" data-testid="fit-changes">
                <thead>
                    <tr>
                        <th scope="col">"Change"</th>
                        <th scope="col">"Step time"</th>
                        <th scope="col">"Peak memory"</th>
                        <th scope="col"><span class="visually-hidden">"Apply the change"</span></th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use api::planner::fit::{ChangeKind, FieldChange, FitResult};
    use serde_json::json;

    use super::*;

    fn result(iteration_s: Option<f64>, peak_gib: f64) -> FitResult {
        FitResult {
            layout: None,
            iteration_s,
            tokens_per_s_per_device: None,
            peak_gib: Some(peak_gib),
            stage_layers: Vec::new(),
            binding: None,
        }
    }

    fn change(difference_s: Option<f64>) -> Change {
        let field = |place: &str, value| FieldChange { pointer: place.to_owned(), value };
        Change {
            title: "full recomputation".to_owned(),
            kind: ChangeKind::Training,
            fields: vec![
                field("/training/recompute", json!("full")),
                field("/training/recompute_layers", Value::Null),
                field("/layout/tensor", json!(2)),
            ],
            result: result(Some(9.0), 60.0),
            difference_s,
            probability_faster: None,
        }
    }

    #[test]
    fn a_change_sets_and_removes_fields() {
        let mut scenario = json!({"training": {"recompute": "none", "recompute_layers": 4}});
        write(&mut scenario, &change(None));
        assert_eq!(scenario, json!({"training": {"recompute": "full"}, "layout": {"tensor": 2}}));
    }

    #[test]
    fn differences_have_signs() {
        let plain = |text: Option<String>| text.unwrap().replace('\u{202f}', " ");
        assert_eq!(plain(time_difference(&change(Some(-1.0)))), "−1.00 s (−10.0 %)");
        assert_eq!(time_difference(&change(None)), None, "nothing to compare with");
        let fit = Fit {
            planner: api::planner::scenario::PlannerKind::OneFOneB,
            base: result(None, 90.0),
            ranks: Vec::new(),
            limit_gib: 76.0,
            changes: Vec::new(),
            simulated: 0,
            rejected: 0,
            combination: None,
            is_partial: false,
        };
        assert_eq!(plain(memory_difference(&fit, &change(None))), "−30.0 GiB");
        let same = Fit { base: result(None, 60.01), ..fit };
        assert_eq!(memory_difference(&same, &change(None)), None);
    }
}
