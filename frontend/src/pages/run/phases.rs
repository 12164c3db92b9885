//! Measured and predicted time per step phase.

use api::run::PhaseResidual;
use leptos::prelude::*;

use crate::charts::{PhaseBar, PhaseBars};
use crate::phase_table::PhaseTable;
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
    view! {
        <Show when=move || phases.with(|phases| !phases.is_empty())>
            <section class="card" data-testid="card-phases">
                <header class="card-title"><h2>"Phases of a step"</h2><span class="muted">"medians, outliers excluded"</span></header>
                <div class="two-columns">
                    <PhaseBars phases=bars label=label />
                    {move || view! { <PhaseTable phases=phases.get() is_compared=is_same_job.get() /> }}
                </div>
            </section>
        </Show>
    }
}
