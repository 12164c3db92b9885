//! Editor for the parts of a sample mixture: weights, relative shares, and buttons to add and
//! remove parts.

use api::planner::workload::SampleSource;
use leptos::prelude::*;
use serde_json::{Value, json};

use super::field::NumberField;
use super::source::{DATASET, SAMPLES, titled};
use crate::catalogue::{Catalogue, use_catalogue};
use crate::explore::modalities::leave_out_unread;
use crate::explore::use_explore;
use crate::mixture::{shares, with_part, without_part};
use crate::{format, pointer};

/// Fields for the parts of the sample mixture.
#[component]
pub(super) fn MixtureFields(parts: Memo<usize>) -> impl IntoView {
    let explore = use_explore();
    let catalogue = use_catalogue();
    let weights = Memo::new(move |_| {
        explore.scenario.with(|scenario| {
            let parts = pointer::get(scenario, "/workload/samples/parts").and_then(Value::as_array);
            parts.into_iter().flatten().map(|part| part["weight"].as_f64().unwrap_or(0.0)).collect::<Vec<_>>()
        })
    });
    let part = move |index: usize| {
        let source = Memo::new(move |_| {
            explore.scenario.with(|scenario| {
                pointer::get(scenario, &format!("{SAMPLES}/parts/{index}/source")).cloned().unwrap_or_default()
            })
        });
        let name = Memo::new(move |_| named(&source.get(), catalogue).unwrap_or_else(|| format!("Part {}", index + 1)));
        let share = move || weights.with(|weights| shares(weights).get(index).copied().map(format::percent));
        let remove = move |_| {
            explore.edit(SAMPLES, |scenario| {
                let samples = without_part(scenario.pointer(SAMPLES).unwrap_or(&Value::Null), index);
                pointer::set(scenario, SAMPLES, samples);
            });
        };
        view! {
            <div class="mixture-part">
                <p class="mixture-name">
                    <span>{name}</span>
                    <span class="share" data-testid="mixture-share">{share}</span>
                    <button type="button" class="quiet" aria-label=move || format!("Remove {}", name.get()) on:click=remove>"Remove"</button>
                </p>
                <NumberField
                    pointer=format!("{SAMPLES}/parts/{index}/weight")
                    label=format!("Weight of part {}", index + 1)
                    unit=""
                    min=0.0
                    max=1_000_000.0
                    step=0.05
                />
            </div>
        }
    };
    view! {
        {move || (0..parts.get()).map(part).collect_view()}
        <AddPart label="Add to the mixture" />
    }
}

/// Picker that adds a dataset or a preset to the samples.
#[component]
pub(super) fn AddPart(label: &'static str) -> impl IntoView {
    let explore = use_explore();
    let catalogue = use_catalogue();
    let added = RwSignal::new(0_u32);
    let presets = move || {
        let presets = catalogue.presets.get().map(|presets| presets.samples.clone()).unwrap_or_default();
        presets.into_iter().map(|preset| view! { <option value=preset.id>{preset.title}</option> }).collect_view()
    };
    let datasets = move || {
        let option = |dataset: api::dataset::DatasetSummary| {
            view! { <option value=format!("{DATASET}{}", dataset.id)>{titled(&dataset)}</option> }
        };
        catalogue.datasets.get().unwrap_or_default().into_iter().map(option).collect_view()
    };
    let add = move |event| {
        let selected_source = event_target_value(&event);
        let source = match selected_source.strip_prefix(DATASET) {
            Some(id) => Some(json!({"kind": "dataset", "id": id})),
            None => preset(&selected_source, catalogue),
        };
        added.update(|added| *added += 1);
        let Some(source) = source else { return };
        explore.edit(SAMPLES, |scenario| {
            let samples = with_part(scenario.pointer(SAMPLES).unwrap_or(&Value::Null), source);
            pointer::set(scenario, SAMPLES, samples);
            leave_out_unread(scenario);
        });
    };
    view! {
        <div class="field picker">
            <label for="samples-add">{label}</label>
            <select id="samples-add" data-testid="samples-add" on:change=add>
                // Resets the picker after a selection.
                <option value="" prop:selected=move || { added.track(); true }>"choose…"</option>
                {presets}
                <optgroup label="Uploaded">{datasets}</optgroup>
            </select>
        </div>
    }
}

fn preset(id: &str, catalogue: Catalogue) -> Option<Value> {
    let presets = catalogue.presets.get_untracked()?;
    let preset = presets.samples.iter().find(|candidate| candidate.id == id)?;
    serde_json::to_value(&preset.source).ok()
}

/// Name of a source: the dataset name or the preset title.
fn named(source: &Value, catalogue: Catalogue) -> Option<String> {
    let source: SampleSource = serde_json::from_value(source.clone()).ok()?;
    if let SampleSource::Dataset { id, .. } = &source {
        return catalogue.datasets.get()?.iter().find(|dataset| dataset.id == *id).map(titled);
    }
    catalogue
        .presets
        .get()?
        .samples
        .iter()
        .find(|candidate| candidate.source == source)
        .map(|preset| preset.title.clone())
}
