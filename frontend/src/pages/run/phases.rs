//! Measured and predicted time per step phase.

use api::run::PhaseResidual;
use leptos::prelude::*;

use crate::charts::{PhaseBar, PhaseBars};
use crate::format;
use crate::runs::use_run_monitor;

/// Phase card. It is hidden if the log contains no timers.
#[component]
pub(super) fn Phases() -> impl IntoView {
    let monitor = use_run_monitor();
    let phases = Memo::new(move |_| {
        monitor
            .comparison
            .with(|comparison| comparison.as_ref().map(|comparison| comparison.phases.clone()).unwrap_or_default())
    });
    let is_same_job = Memo::new(move |_| {
        monitor
            .comparison
            .with(|comparison| comparison.as_ref().is_some_and(|comparison| comparison.job.is_comparable()))
    });
    let bars = Signal::derive(move || {
        let bar = |phase: PhaseResidual| PhaseBar {
            name: phase.phase,
            measured_s: phase.measured_s,
            predicted_s: phase.predicted_s,
        };
        phases.get().into_iter().map(bar).collect::<Vec<_>>()
    });
    let label =
        Signal::derive(move || format!("Measured and predicted time of {} phases of a step", phases.with(Vec::len)));
    let rows = move || {
        let row = |phase: PhaseResidual| {
            let difference = difference(&phase);
            let timers = phase.timers.join(", ");
            view! {
                <tr>
                    <th scope="row">{phase.phase}<small class="under">{timers}</small></th>
                    <td class="number">{format::seconds(phase.measured_s)}</td>
                    {is_same_job.get().then(|| view! {
                        <td class="number">{phase.predicted_s.map_or_else(|| "–".to_owned(), format::seconds)}</td>
                        <td class="number">{difference}</td>
                    })}
                </tr>
            }
        };
        phases.get().into_iter().map(row).collect_view()
    };
    view! {
        <Show when=move || phases.with(|phases| !phases.is_empty())>
            <section class="card" data-testid="card-phases">
                <header class="card-title"><h2>"Phases of a step"</h2><span class="muted">"medians, outliers excluded"</span></header>
                <div class="two-columns">
                    <PhaseBars phases=bars label=label />
                    <div class="table-scroll" role="region" aria-label="Phases of a step" tabindex="0">
                        <table class="list figures">
                            <thead>
                                <tr>
                                    <th scope="col">"Phase"</th>
                                    <th scope="col" class="number">"Measured"</th>
                                    <Show when=move || is_same_job.get()>
                                        <th scope="col" class="number">"Predicted"</th>
                                        <th scope="col" class="number">"Difference"</th>
                                    </Show>
                                </tr>
                            </thead>
                            <tbody>{rows}</tbody>
                        </table>
                    </div>
                </div>
            </section>
        </Show>
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
