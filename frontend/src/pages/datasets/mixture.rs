//! Mixes stored datasets by weight. The mixture opens as a new scenario.

use leptos::prelude::*;

use crate::catalogue::use_catalogue;
use crate::client;
use crate::deletion::Deletions;
use crate::format;
use crate::mixture::{WeightedDataset, shares, write_query};

/// Datasets with editable weights. The panel appears when at least two datasets exist.
#[component]
pub(super) fn MixPanel(
    /// Deleted datasets are not offered.
    deletions: Deletions,
) -> impl IntoView {
    let catalogue = use_catalogue();
    let parts = RwSignal::new(Vec::<WeightedDataset>::new());
    let can_mix = Memo::new(move |_| {
        catalogue.datasets.with(|datasets| datasets.as_ref().is_some_and(|datasets| datasets.len() > 1))
    });
    let dataset_name = move |id: &str| {
        let named = |datasets: &Vec<api::dataset::DatasetSummary>| {
            datasets.iter().find(|dataset| dataset.id == id).map(|dataset| dataset.name.clone())
        };
        catalogue
            .datasets
            .with(|datasets| datasets.as_ref().and_then(named))
            .unwrap_or_else(|| "deleted dataset".to_owned())
    };
    let choices = move || {
        let datasets = catalogue.datasets.get().unwrap_or_default();
        let is_offered = |dataset: &api::dataset::DatasetSummary| {
            !deletions.is_waiting(&dataset.id) && parts.with(|parts| parts.iter().all(|part| part.id != dataset.id))
        };
        let left = datasets.into_iter().filter(is_offered);
        left.map(|dataset| {
            let title = format!("{} ({})", dataset.name, format::count(dataset.samples));
            view! { <option value=dataset.id>{title}</option> }
        })
        .collect_view()
    };
    let add = move |event| {
        let id = event_target_value(&event);
        if !id.is_empty() {
            parts.update(|parts| parts.push(WeightedDataset { id, weight: 1.0 }));
        }
    };
    let ids = Memo::new(move |_| parts.with(|parts| parts.iter().map(|part| part.id.clone()).collect::<Vec<_>>()));
    let line = move |index: usize, id: String| {
        let name = dataset_name(&id);
        let share = move || {
            let weights: Vec<f64> = parts.with(|parts| parts.iter().map(|part| part.weight).collect());
            shares(&weights).get(index).copied().map(format::percent)
        };
        let weight = parts.with_untracked(|parts| parts.get(index).map_or(1.0, |part| part.weight));
        let change = move |event| {
            if let Ok(weight) = event_target_value(&event).trim().parse::<f64>()
                && weight.is_finite()
                && weight > 0.0
            {
                parts.update(|parts| {
                    if let Some(part) = parts.get_mut(index) {
                        part.weight = weight;
                    }
                });
            }
        };
        let remove = move |_| {
            parts.update(|parts| {
                if index < parts.len() {
                    parts.remove(index);
                }
            });
        };
        view! {
            <li>
                <span class="name">{name.clone()}</span>
                <input
                    type="number"
                    min="0.000001"
                    step="any"
                    value=weight.to_string()
                    aria-label=format!("Weight of {name}")
                    on:input=change
                />
                <span class="share">{share}</span>
                <button type="button" class="quiet" aria-label=format!("Remove {name}") on:click=remove>"Remove"</button>
            </li>
        }
    };
    let lines = move || ids.get().into_iter().enumerate().map(|(index, id)| line(index, id)).collect_view();
    let href = move || parts.with(|parts| format!("/new?mix={}", client::encode(&write_query(parts))));
    let is_mixture = Memo::new(move |_| parts.with(|parts| parts.len() > 1));
    view! {
        <Show when=move || can_mix.get()>
            <details class="mix" data-testid="mix">
                <summary>"Mix datasets"</summary>
                <p class="hint">"Each sample is drawn from one of the datasets, by weight. Weights need not sum to one."</p>
                <ul class="mix-parts">{lines}</ul>
                <div class="field picker">
                    <label for="mix-add">"Add a dataset"</label>
                    <select id="mix-add" data-testid="mix-add" on:change=add>
                        <option value="" prop:selected=move || { ids.track(); true }>"choose…"</option>
                        {choices}
                    </select>
                </div>
                <Show when=move || is_mixture.get()>
                    <p><a data-testid="mix-open" href=href>"Open a scenario with this mixture"</a></p>
                </Show>
            </details>
        </Show>
    }
}
