//! Result of the checks that run and plan are the same job with the same layout, and the correction of the scenario where they are
//! not.

use api::run::{Agreement, Correction, JobCheck, JobQuantity};
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::RequestError;
use crate::format;
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
            let text = summary(&same, &unchecked);
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

#[component]
fn Checks(checks: Vec<JobCheck>, label: &'static str) -> impl IntoView {
    let has_consequences = checks.iter().any(|check| !check.consequence.is_empty());
    let row = move |check: JobCheck| {
        let named = |name: &str, value: Option<f64>| match value {
            _ if !name.is_empty() => name.to_owned(),
            Some(value) => text(check.quantity, value),
            None => "–".to_owned(),
        };
        let measured = named(&check.measured_name, check.measured);
        let planned = named(&check.planned_name, Some(check.planned));
        view! {
            <tr data-check=id(check.quantity)>
                <th scope="row">{title(check.quantity)}<small class="under">{check.derivation}</small></th>
                <td class="number">{measured}</td>
                <td class="number">{planned}</td>
                {has_consequences.then(|| view! { <td class="consequence">{check.consequence}</td> })}
            </tr>
        }
    };
    let rows = checks.into_iter().map(row).collect_view();
    view! {
        <div class="table-scroll" role="region" aria-label=label tabindex="0">
            <table class="list figures job-table">
                <thead>
                    <tr>
                        <th scope="col">"Quantity"</th>
                        <th scope="col" class="number">"Log"</th>
                        <th scope="col" class="number">"Plan"</th>
                        {has_consequences.then(|| view! { <th scope="col">"Consequence"</th> })}
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
}

/// Checks that could not run, with the missing log information.
#[component]
fn NotChecked(checks: Vec<JobCheck>) -> impl IntoView {
    (!checks.is_empty()).then(|| {
        let line = |check: JobCheck| {
            view! { <li><b>{title(check.quantity)}</b>": "{check.derivation}</li> }
        };
        view! {
            <p class="hint">"Not checked:"</p>
            <ul class="notes" data-testid="not-checked">{checks.into_iter().map(line).collect_view()}</ul>
        }
    })
}

/// Summarizes the checks in a line.
fn summary(same: &[JobCheck], unchecked: &[JobCheck]) -> String {
    let names = |checks: &[JobCheck]| checks.iter().map(|check| name(check.quantity)).collect::<Vec<_>>().join(", ");
    let agree = if same.is_empty() {
        "The log does not state enough to check that run and plan are the same job".to_owned()
    } else {
        format!("Same job by {}", names(same))
    };
    if unchecked.is_empty() { format!("{agree}.") } else { format!("{agree}. Not checked: {}.", names(unchecked)) }
}

const fn name(quantity: JobQuantity) -> &'static str {
    match quantity {
        JobQuantity::GlobalBatch => "global batch size",
        JobQuantity::TokensPerStep => "tokens per step",
        JobQuantity::Devices => "devices",
        JobQuantity::FlopsPerStep => "FLOPs per step",
        JobQuantity::PeakTflops => "peak of the device",
        JobQuantity::DeviceMemory => "memory of the device",
        JobQuantity::Layers => "layers of the model",
        JobQuantity::HiddenSize => "hidden size of the model",
        JobQuantity::FeedForwardSize => "feed-forward size of the model",
        JobQuantity::AttentionHeads => "attention heads of the model",
        JobQuantity::KvHeads => "key and value heads of the model",
        JobQuantity::Experts => "experts of a layer",
        JobQuantity::Vocabulary => "vocabulary of the model",
        JobQuantity::TrainedParameters => "trained parameters",
        JobQuantity::ProductBits => "format of products",
        JobQuantity::Device => "device",
        JobQuantity::Layout => "layout",
    }
}

fn title(quantity: JobQuantity) -> String {
    format::capitalised(name(quantity))
}

const fn id(quantity: JobQuantity) -> &'static str {
    match quantity {
        JobQuantity::GlobalBatch => "global-batch",
        JobQuantity::TokensPerStep => "tokens",
        JobQuantity::Devices => "devices",
        JobQuantity::FlopsPerStep => "flops",
        JobQuantity::PeakTflops => "peak",
        JobQuantity::DeviceMemory => "memory",
        JobQuantity::Layers => "layers",
        JobQuantity::HiddenSize => "hidden",
        JobQuantity::FeedForwardSize => "feed-forward",
        JobQuantity::AttentionHeads => "heads",
        JobQuantity::KvHeads => "kv-heads",
        JobQuantity::Experts => "experts",
        JobQuantity::Vocabulary => "vocabulary",
        JobQuantity::TrainedParameters => "trained-parameters",
        JobQuantity::ProductBits => "format",
        JobQuantity::Device => "device",
        JobQuantity::Layout => "layout",
    }
}

fn text(quantity: JobQuantity, value: f64) -> String {
    match quantity {
        JobQuantity::GlobalBatch
        | JobQuantity::TokensPerStep
        | JobQuantity::Devices
        | JobQuantity::Layers
        | JobQuantity::HiddenSize
        | JobQuantity::FeedForwardSize
        | JobQuantity::AttentionHeads
        | JobQuantity::KvHeads
        | JobQuantity::Layout
        | JobQuantity::Experts
        | JobQuantity::Vocabulary
        | JobQuantity::TrainedParameters => format::count(value.round().max(0.0) as u64),
        JobQuantity::FlopsPerStep => format!("{}\u{202f}PFLOP", format::three_digits(value / 1e15)),
        JobQuantity::PeakTflops => format!("{}\u{202f}TFLOP/s", format::three_digits(value)),
        JobQuantity::ProductBits => format!("{}\u{202f}bit", format::count(value.round().max(0.0) as u64)),
        JobQuantity::DeviceMemory | JobQuantity::Device => format!("{}\u{202f}GiB", format::three_digits(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(quantity: JobQuantity, agreement: Agreement) -> JobCheck {
        JobCheck {
            quantity,
            agreement,
            measured: None,
            planned: 1.0,
            derivation: String::new(),
            consequence: String::new(),
            measured_name: String::new(),
            planned_name: String::new(),
        }
    }

    #[test]
    fn summary_names_agreeing_and_unchecked_items() {
        let same =
            [check(JobQuantity::GlobalBatch, Agreement::Same), check(JobQuantity::FlopsPerStep, Agreement::Same)];
        let unchecked = [check(JobQuantity::Devices, Agreement::NotChecked)];
        assert_eq!(summary(&same, &unchecked), "Same job by global batch size, FLOPs per step. Not checked: devices.");
        assert!(summary(&[], &unchecked).starts_with("The log does not state enough"));
    }

    #[test]
    fn values_carry_their_units() {
        let plain = |quantity, value| text(quantity, value).replace('\u{202f}', " ");
        assert_eq!(plain(JobQuantity::FlopsPerStep, 1.5e17), "150 PFLOP");
        assert_eq!(plain(JobQuantity::GlobalBatch, 2048.2), "2,048");
        assert_eq!(plain(JobQuantity::PeakTflops, 312.0), "312 TFLOP/s");
    }
}
