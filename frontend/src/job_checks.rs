//! Checks that a log and a plan are the same job.

use api::run::{JobCheck, JobQuantity};
use leptos::prelude::*;

use crate::format;

/// Table of checks with both values.
#[component]
pub(crate) fn Checks(checks: Vec<JobCheck>, label: &'static str) -> impl IntoView {
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
pub(crate) fn NotChecked(checks: Vec<JobCheck>) -> impl IntoView {
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

fn title(quantity: JobQuantity) -> String {
    format::capitalised(quantity.name())
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

    #[test]
    fn values_carry_their_units() {
        let plain = |quantity, value| text(quantity, value).replace('\u{202f}', " ");
        assert_eq!(plain(JobQuantity::FlopsPerStep, 1.5e17), "150 PFLOP");
        assert_eq!(plain(JobQuantity::GlobalBatch, 2048.2), "2,048");
        assert_eq!(plain(JobQuantity::PeakTflops, 312.0), "312 TFLOP/s");
    }
}
