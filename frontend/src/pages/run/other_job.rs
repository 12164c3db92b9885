//! Result of the checks that run and plan are the same job with the same layout, and the correction of the scenario where they are
//! not.

use api::run::{Agreement, Correction, JobCheck};
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::RequestError;
use crate::job_checks::{Checks, NotChecked};
use crate::notice::ErrorNotice;
use crate::runs::use_run_monitor;

/// Check results: a warning with a correction if a check fails, otherwise a single line.
#[component]
pub(super) fn OtherJob() -> impl IntoView {
    let monitor = use_run_monitor();
    let job = Memo::new(move |_| {
        monitor.comparison.with(|comparison| comparison.as_ref().map(|comparison| comparison.job.clone()))
    });
    move || {
        let job = job.get().filter(|job| !job.checks.is_empty())?;
        let checks_with = |wanted: Agreement| -> Vec<JobCheck> {
            job.checks.iter().filter(|check| check.agreement == wanted).cloned().collect()
        };
        let (same, unchecked) = (checks_with(Agreement::Same), checks_with(Agreement::NotChecked));
        let (different, other_layout) = (checks_with(Agreement::Different), checks_with(Agreement::OtherLayout));
        let missing = view! { <NotChecked checks=unchecked.clone() /> };
        Some(if different.is_empty() && !other_layout.is_empty() {
            view! {
                <section class="other-job" role="alert" data-testid="other-layout">
                    <h3>"The plan has another layout than the run"</h3>
                    <p>"The job is the same. A difference of times would be that of two layouts, so none is shown."</p>
                    <Checks checks=other_layout label="Layouts" />
                    <Correct corrections=job.corrections />
                    {missing}
                </section>
            }
            .into_any()
        } else if different.is_empty() {
            let text = job.summary();
            view! {
                <details class="advanced job-checks" data-testid="same-job">
                    <summary>{text}</summary>
                    <Checks checks=same label="Checks that agree" />
                    {missing}
                </details>
            }
            .into_any()
        } else {
            view! {
                <section class="other-job" role="alert" data-testid="other-job">
                    <h3>"The log and the plan are different jobs"</h3>
                    <p>"Differences between them would say nothing about the run, so none are shown."</p>
                    <Checks checks=different label="Mismatches" />
                    <Correct corrections=job.corrections />
                    {missing}
                </section>
            }
            .into_any()
        })
    }
}

/// Button that corrects the scenario, or advice if no correction is known.
#[component]
fn Correct(corrections: Vec<Correction>) -> impl IntoView {
    let monitor = use_run_monitor();
    let is_pending = RwSignal::new(false);
    let last_error = RwSignal::new(None::<RequestError>);
    let correct = move |_| {
        is_pending.set(true);
        last_error.set(None);
        spawn_local(async move {
            let correction_error = monitor.correct().await.err();
            is_pending.try_set(false);
            last_error.try_set(correction_error);
        });
    };
    if corrections.is_empty() {
        return view! {
            <p>"Choose another scenario, or change its model, cluster or workload to those of the run."</p>
        }
        .into_any();
    }
    let text = corrections.into_iter().map(Correction::describe).collect::<Vec<_>>().join(", ");
    view! {
        <p class="actions">
            <button class="primary" data-testid="correct-scenario" disabled=move || is_pending.get() on:click=correct>
                "Correct the scenario"": "{text}
            </button>
        </p>
        <p class="hint">"Stores the corrected scenario as a draft, plans it and attaches it to this run. The scenario above does not change."</p>
        {move || last_error.get().map(|error| view! { <ErrorNotice error=error /> })}
    }
    .into_any()
}
