//! Log of a run next to a configuration: whether both are the same job, and the time by phase.

use api::check::{MAX_LOG_BYTES, NamedText};
use api::run::{Agreement, Comparison, JobCheck};
use leptos::prelude::*;
use wasm_bindgen_futures::JsFuture;

use crate::job_checks::{Checks, NotChecked, summary};
use crate::phase_table::PhaseTable;

/// Reads a log. The start of a larger file has the arguments of the job and its first steps.
pub(super) async fn read_log(file: web_sys::File) -> Result<NamedText, String> {
    let name = file.name();
    let unreadable = || format!("The browser cannot read {name}.");
    let start = file.slice_with_f64_and_f64(0.0, MAX_LOG_BYTES as f64).map_err(|_| unreadable())?;
    let text = JsFuture::from(start.text()).await.ok().and_then(|text| text.as_string()).ok_or_else(unreadable)?;
    // A cut inside a character becomes a replacement character, which is longer.
    let end = text.floor_char_boundary(MAX_LOG_BYTES);
    Ok(NamedText { name, text: text[..end].to_owned() })
}

/// Result of the checks that log and configuration are the same job, and the time by phase.
#[component]
pub(super) fn LogComparison(comparison: Comparison) -> impl IntoView {
    let Comparison { run: name, job, phases, notes, .. } = comparison;
    let is_comparable = job.is_comparable();
    let with = |wanted: &[Agreement]| -> Vec<JobCheck> {
        job.checks.iter().filter(|check| wanted.contains(&check.agreement)).cloned().collect()
    };
    let (same, unchecked) = (with(&[Agreement::Same]), with(&[Agreement::NotChecked]));
    let failed = with(&[Agreement::Different, Agreement::OtherLayout]);
    if !is_comparable {
        return view! {
            <section class="other-job" role="alert" data-testid="log-of-other-job">
                <h3>{format!("{name} differs from the configuration, so times are not compared")}</h3>
                <Checks checks=failed label="Mismatches" />
                <NotChecked checks=unchecked />
            </section>
        }
        .into_any();
    }
    let notes = notes.into_iter().map(|note| view! { <li>{note}</li> }).collect_view();
    view! {
        <p data-testid="log-of-same-job">{format!("{name}: {}", summary(&same, &unchecked))}</p>
        {(!phases.is_empty()).then(|| view! { <PhaseTable phases=phases is_compared=true /> })}
        <ul class="notes">{notes}</ul>
    }
    .into_any()
}
