//! Log of a run next to a configuration: whether both are the same job, and the time by phase.

use api::check::{MAX_LOG_BYTES, NamedText};
use api::run::{Agreement, Comparison, JobCheck};
use leptos::prelude::*;
use wasm_bindgen_futures::JsFuture;

use crate::job_checks::{Checks, NotChecked};
use crate::phase_table::PhaseTable;

/// Reads a log. Of a larger file, the start is read: it has the arguments of the job and its first steps. The name says so.
pub(super) async fn read_log(file: web_sys::File) -> Result<NamedText, String> {
    let name = file.name();
    let is_cut = file.size() > MAX_LOG_BYTES as f64;
    let unreadable = || format!("The browser cannot read {name}.");
    let start = file.slice_with_f64_and_f64(0.0, MAX_LOG_BYTES as f64).map_err(|_| unreadable())?;
    let text = JsFuture::from(start.text()).await.ok().and_then(|text| text.as_string()).ok_or_else(unreadable)?;
    // A cut inside a character becomes a replacement character, which is longer.
    let end = text.floor_char_boundary(MAX_LOG_BYTES);
    let name = if is_cut { format!("{name} (first {} MiB)", MAX_LOG_BYTES >> 20) } else { name };
    Ok(NamedText { name, text: text[..end].to_owned() })
}

/// Result of the checks that log and configuration are the same job, and the time by phase.
#[component]
pub(super) fn LogComparison(comparison: Comparison) -> impl IntoView {
    let Comparison { run: name, job, phases, notes, .. } = comparison;
    let with = |wanted: &[Agreement]| -> Vec<JobCheck> {
        job.checks.iter().filter(|check| wanted.contains(&check.agreement)).cloned().collect()
    };
    if !job.is_comparable() {
        let failed = with(&[Agreement::Different, Agreement::OtherLayout]);
        return view! {
            <section class="other-job" role="alert" data-testid="log-of-other-job">
                <h3>{format!("{name} differs from the configuration, so times are not compared")}</h3>
                <Checks checks=failed label="Mismatches" />
                <NotChecked checks=with(&[Agreement::NotChecked]) />
            </section>
        }
        .into_any();
    }
    let notes = notes.into_iter().map(|note| view! { <li>{note}</li> }).collect_view();
    view! {
        <p data-testid="log-of-same-job">{format!("{name}: {}", job.summary())}</p>
        {(!phases.is_empty()).then(|| view! { <PhaseTable phases=phases is_compared=true /> })}
        <ul class="notes">{notes}</ul>
    }
    .into_any()
}
