//! Table of measured and predicted time by phase of a step.

use api::run::PhaseResidual;
use leptos::prelude::*;

use crate::format;

/// One row per phase. Predictions are shown if log and plan are the same job.
#[component]
pub(crate) fn PhaseTable(phases: Vec<PhaseResidual>, is_compared: bool) -> impl IntoView {
    let row = |phase: PhaseResidual| {
        let difference = difference(&phase);
        let timers = phase.timers.join(", ");
        view! {
            <tr>
                <th scope="row">{phase.phase}<small class="under">{timers}</small></th>
                <td class="number">{format::seconds(phase.measured_s)}</td>
                {is_compared.then(|| view! {
                    <td class="number">{phase.predicted_s.map_or_else(|| "–".to_owned(), format::seconds)}</td>
                    <td class="number">{difference}</td>
                })}
            </tr>
        }
    };
    view! {
        <div class="table-scroll" role="region" aria-label="Phases of a step" tabindex="0">
            <table class="list figures">
                <thead>
                    <tr>
                        <th scope="col">"Phase"</th>
                        <th scope="col" class="number">"Measured"</th>
                        {is_compared.then(|| view! {
                            <th scope="col" class="number">"Predicted"</th>
                            <th scope="col" class="number">"Difference"</th>
                        })}
                    </tr>
                </thead>
                <tbody>{phases.into_iter().map(row).collect_view()}</tbody>
            </table>
        </div>
    }
}

/// Formats (measured - predicted) / predicted with a sign. Empty if the predicted time is zero.
fn difference(phase: &PhaseResidual) -> String {
    match phase.predicted_s {
        Some(predicted) if predicted > 0.0 => format::signed_percent(phase.measured_s / predicted - 1.0),
        _ => "–".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_carry_their_sign_and_divide_by_no_zero() {
        let phase =
            |predicted_s| PhaseResidual { phase: "forward".into(), timers: vec![], measured_s: 0.9, predicted_s };
        assert_eq!(difference(&phase(Some(1.0))).replace('\u{202f}', " "), "−10.0 %");
        assert_eq!(difference(&phase(Some(0.0))), "–");
        assert_eq!(difference(&phase(None)), "–");
    }
}
