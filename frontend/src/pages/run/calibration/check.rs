//! Compares a run with its plan before and after applying a profile.

use api::path;
use api::profile::ProfileCheck;
use api::run::Prediction;
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::factor_text;
use crate::client::{self, RequestError};
use crate::format;
use crate::runs::{Metric, use_run_monitor};

/// Comparison table. It is fetched when shown.
#[component]
pub(super) fn Check(profile: String) -> impl IntoView {
    let monitor = use_run_monitor();
    let response = RwSignal::new(None::<Result<ProfileCheck, RequestError>>);
    spawn_local(async move {
        let found = client::get::<ProfileCheck>(&path::profile_check(&profile, &monitor.feed.id())).await;
        response.try_set(Some(found));
    });
    move || match response.get() {
        None => view! { <p class="muted" role="status">"Checking the profile against this run…"</p> }.into_any(),
        Some(Err(error)) => {
            view! { <p class="muted">{format!("It could not be checked against this run. {}", error.detail())}</p> }
                .into_any()
        }
        Some(Ok(check)) => view! { <Table check=check /> }.into_any(),
    }
}

#[component]
fn Table(check: ProfileCheck) -> impl IntoView {
    let ProfileCheck { before, after, notes, .. } = check;
    let rows = before.into_iter().map(|old| {
        let metric = Metric::from_quantity(old.quantity);
        let new = after.iter().find(|prediction| prediction.quantity == old.quantity).cloned();
        let measured = old.measured.map_or_else(|| "–".to_owned(), |value| metric.text(value));
        view! {
            <tr data-quantity=metric.id()>
                <th scope="row">{metric.title()}</th>
                <td class="number">{measured}</td>
                <td class="number">{prediction_text(metric, Some(&old))}</td>
                <td class="number">{prediction_text(metric, new.as_ref())}</td>
            </tr>
        }
    });
    let rows = rows.collect_view();
    let notes = notes.into_iter().map(|note| view! { <li>{factor_text(&note)}</li> }).collect_view();
    view! {
        <div class="table-scroll" role="region" aria-label="Run compared with its plan, without and with the profile" tabindex="0">
            <table class="list figures" data-testid="profile-check">
                <thead>
                    <tr>
                        <th scope="col">"Figure"</th>
                        <th scope="col" class="number">"Measured median"</th>
                        <th scope="col" class="number">"Predicted before"</th>
                        <th scope="col" class="number">"Predicted with the profile"</th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
        <ul class="notes">{notes}</ul>
    }
}

/// Formats a predicted value and the relative error of the measurement: "1.52 s (+5.26 %)".
fn prediction_text(metric: Metric, prediction: Option<&Prediction>) -> String {
    let Some(prediction) = prediction else { return "–".to_owned() };
    let error = prediction.error.map(|error| format!(" ({})", format::signed_percent(error))).unwrap_or_default();
    format!("{}{error}", metric.text(prediction.band.value))
}

#[cfg(test)]
mod tests {
    use api::run::{PredictionBand, Quantity};

    use super::*;

    #[test]
    fn values_carry_their_difference() {
        let band = PredictionBand { value: 2.0, low: 1.9, high: 2.1, reason: String::new() };
        let prediction = Prediction {
            quantity: Quantity::StepTime,
            band,
            measured: Some(2.1),
            error: Some(0.05),
            inside: None,
            next: None,
        };
        assert_eq!(prediction_text(Metric::StepTime, Some(&prediction)).replace('\u{202f}', " "), "2.00 s (+5.00 %)");
        assert_eq!(prediction_text(Metric::StepTime, None), "–");
    }
}
