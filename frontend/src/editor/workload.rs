//! The workload: where samples come from and how a global batch is put together.

use api::dataset::Uploaded;
use api::planner::outcome::HistogramColumns;
use api::planner::workload::SampleSource;
use leptos::prelude::*;
use serde_json::Value;

use super::distribution::DistributionFields;
use super::field::{FieldError, NumberField, SelectField, Slider};
use super::preset::{Choice, PresetPicker};
use super::section::Section;
use crate::catalogue::use_catalogue;
use crate::charts::Histogram;
use crate::explore::opening::{has_vision_encoder, use_dataset};
use crate::explore::use_explore;
use crate::upload::{ImportReportView, Upload};
use crate::{format, pointer};

const SAMPLES: &str = "/workload/samples";
/// Marks the choices of the picker that are uploaded datasets.
const DATASET: &str = "dataset:";

/// The workload.
#[component]
pub(super) fn WorkloadSection() -> impl IntoView {
    let explore = use_explore();
    let catalogue = use_catalogue();
    let columns = move |images: bool| {
        Signal::derive(move || -> Option<HistogramColumns> {
            explore.result.with(|result| {
                let workload = &result.as_ref()?.outcome.workload;
                if images { workload.sample_images.clone() } else { Some(workload.sample_tokens.clone()) }
            })
        })
    };
    let (tokens, images) = (columns(false), columns(true));
    let has_images = Memo::new(move |_| images.with(Option::is_some));
    view! {
        <Section title="Workload" pointer="/workload" note="">
            <SourcePicker />
            <FieldError pointer=SAMPLES.to_owned() />
            <FieldError pointer=format!("{SAMPLES}/id") />
            <Upload
                compact=true
                on_uploaded=move |uploaded: Uploaded| {
                    catalogue.add(uploaded.dataset.clone());
                    explore.import.set(Some(uploaded.report));
                    explore.edit(SAMPLES, |scenario| use_dataset(scenario, &uploaded.dataset.id));
                }
            />
            {move || explore.import.get().map(|report| view! { <ImportReportView report=report /> })}
            <SourceFields />
            <figure class="distribution">
                <figcaption>"Tokens of a sample, as drawn"</figcaption>
                <Histogram data=tokens unit="tokens" />
            </figure>
            <Show when=move || has_images.get()>
                <figure class="distribution">
                    <figcaption>"Images of a sample, as drawn"</figcaption>
                    <Histogram data=images unit="images" />
                </figure>
            </Show>
            <NumberField
                pointer="/workload/context_length"
                label="Context length"
                unit="tokens"
                min=128.0
                max=16_777_216.0
                step=128.0
                slider=Slider::PowersOfTwo(9.0, 20.0)
            />
            <NumberField
                pointer="/workload/global_batch"
                label="Global batch"
                unit="samples"
                min=1.0
                max=65_536.0
                slider=Slider::PowersOfTwo(0.0, 13.0)
            />
            <SelectField
                pointer="/workload/packing"
                label="Packing"
                options=&[("packed", "Packed, first fit"), ("single", "One per sequence"), ("padded", "Padded")]
            />
        </Section>
    }
}

/// Presets and uploaded datasets.
#[component]
fn SourcePicker() -> impl IntoView {
    let explore = use_explore();
    let catalogue = use_catalogue();
    let choices = Signal::derive(move || {
        let presets = catalogue.presets.get().map(|presets| presets.samples.clone()).unwrap_or_default();
        let datasets = catalogue.datasets.get().unwrap_or_default();
        let presets = presets.into_iter().map(|choice| Choice { id: choice.id, title: choice.title, group: "" });
        let datasets = datasets.into_iter().map(|dataset| Choice {
            id: format!("{DATASET}{}", dataset.id),
            title: format!("{} ({})", dataset.name, format::count(dataset.samples)),
            group: "Uploaded",
        });
        presets.chain(datasets).collect::<Vec<_>>()
    });
    let samples = Memo::new(move |_| explore.scenario.with(|scenario| pointer::get(scenario, SAMPLES).cloned()));
    let chosen = Memo::new(move |_| {
        let source: SampleSource = serde_json::from_value(samples.get()?).ok()?;
        if let SampleSource::Dataset { id, .. } = &source {
            let known = catalogue.datasets.get()?.iter().any(|dataset| dataset.id == *id);
            return known.then(|| format!("{DATASET}{id}"));
        }
        catalogue.presets.get()?.samples.iter().find(|choice| choice.source == source).map(|choice| choice.id.clone())
    });
    let choose = move |id: String| {
        explore.import.set(None);
        if let Some(dataset) = id.strip_prefix(DATASET) {
            explore.edit(SAMPLES, |scenario| use_dataset(scenario, dataset));
            return;
        }
        let presets = catalogue.presets.get_untracked();
        let preset = presets.iter().flat_map(|presets| &presets.samples).find(|choice| choice.id == id);
        if let Some(source) = preset.and_then(|choice| serde_json::to_value(&choice.source).ok()) {
            explore.set(SAMPLES, source);
        }
    };
    view! { <PresetPicker test_id="samples-preset" label="Samples" other="Edited" choices=choices chosen=chosen on_choose=choose /> }
}

/// The figures of the source, as far as it has any.
#[component]
fn SourceFields() -> impl IntoView {
    let explore = use_explore();
    let kind = Memo::new(move |_| explore.scenario.with(|scenario| pointer::text(scenario, "/workload/samples/kind")));
    let parts = Memo::new(move |_| {
        explore.scenario.with(|scenario| {
            pointer::get(scenario, "/workload/samples/parts").and_then(Value::as_array).map_or(0, Vec::len)
        })
    });
    let reads_images = Memo::new(move |_| explore.scenario.with(has_vision_encoder));
    let images = move |absent: Option<&'static str>| {
        reads_images.get().then(|| {
            view! {
                <DistributionFields
                    pointer="/workload/samples/images"
                    title="Images"
                    unit="per sample"
                    most=4096.0
                    slider=Slider::Linear(0.0, 64.0)
                    absent=absent
                />
                <FieldError pointer="/workload/samples/images".to_owned() />
            }
        })
    };
    move || {
        match kind.get().as_deref() {
        Some("drawn") => view! {
            <DistributionFields pointer="/workload/samples/text_tokens" title="Text tokens" unit="tokens" most=16_777_216.0 />
            {move || images(None)}
        }
        .into_any(),
        Some("dataset") => (move || images(Some("As in the file"))).into_any(),
        Some("mixture") => (0..parts.get())
            .map(|part| {
                view! {
                    <NumberField
                        pointer=format!("/workload/samples/parts/{part}/weight")
                        label=format!("Weight of part {}", part + 1)
                        unit=""
                        min=0.0
                        max=1_000_000.0
                        step=0.05
                    />
                }
            })
            .collect_view()
            .into_any(),
        _ => ().into_any(),
    }
    }
}
