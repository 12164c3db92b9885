//! Sample source: picker and parameters.

use api::dataset::DatasetSummary;
use api::planner::workload::SampleSource;
use leptos::prelude::*;
use serde_json::{Value, json};

use super::distribution::{DistributionFields, Numbers};
use super::field::{FieldError, NumberField};
use super::mixture::{AddPart, MixtureFields};
use super::preset::{PresetOption, PresetPicker};
use super::slider::Slider;
use crate::catalogue::use_catalogue;
use crate::explore::creation::use_dataset;
use crate::explore::modalities::Modalities;
use crate::explore::use_explore;
use crate::{format, pointer};

/// JSON pointer of the sample source in a scenario.
pub(super) const SAMPLES: &str = "/workload/samples";
/// Prefix of picker options for uploaded datasets.
pub(super) const DATASET: &str = "dataset:";

/// Picker for sample presets and uploaded datasets.
#[component]
pub(super) fn SourcePicker() -> impl IntoView {
    let explore = use_explore();
    let catalogue = use_catalogue();
    let choices = Signal::derive(move || {
        let presets = catalogue.presets.get().map(|presets| presets.samples.clone()).unwrap_or_default();
        let datasets = catalogue.datasets.get().unwrap_or_default();
        let presets = presets.into_iter().map(|preset| PresetOption { id: preset.id, title: preset.title, group: "" });
        let datasets = datasets.into_iter().map(|dataset| PresetOption {
            id: format!("{DATASET}{}", dataset.id),
            title: titled(&dataset),
            group: "Uploaded",
        });
        presets.chain(datasets).collect::<Vec<_>>()
    });
    let samples = Memo::new(move |_| explore.scenario.with(|scenario| pointer::get(scenario, SAMPLES).cloned()));
    let selected = Memo::new(move |_| {
        let source: SampleSource = serde_json::from_value(samples.get()?).ok()?;
        if let SampleSource::Dataset { id, .. } = &source {
            let known = catalogue.datasets.get()?.iter().any(|dataset| dataset.id == *id);
            return known.then(|| format!("{DATASET}{id}"));
        }
        catalogue
            .presets
            .get()?
            .samples
            .iter()
            .find(|candidate| candidate.source == source)
            .map(|preset| preset.id.clone())
    });
    let choose = move |id: String| {
        if let Some(dataset) = id.strip_prefix(DATASET) {
            explore.edit(SAMPLES, |scenario| use_dataset(scenario, dataset));
            return;
        }
        let presets = catalogue.presets.get_untracked();
        let preset = presets.iter().flat_map(|presets| &presets.samples).find(|entry| entry.id == id);
        if let Some(source) = preset.and_then(|sample_preset| serde_json::to_value(&sample_preset.source).ok()) {
            explore.set(SAMPLES, source);
        }
    };
    view! { <PresetPicker test_id="samples-preset" label="Samples" other="Edited" choices=choices selected=selected on_choose=choose /> }
}

/// Title of a dataset. Includes the preprocessing, because one file with different preprocessing
/// gives several datasets.
pub(super) fn titled(dataset: &DatasetSummary) -> String {
    let samples = format::count(dataset.samples);
    match &dataset.shaped {
        Some(shaped) => format!("{} ({samples}, {})", dataset.name, shaped.preprocessing.title()),
        None => format!("{} ({samples})", dataset.name),
    }
}

/// Parameter fields of the sample source.
#[component]
pub(super) fn SourceFields() -> impl IntoView {
    let explore = use_explore();
    let kind = Memo::new(move |_| explore.scenario.with(|scenario| pointer::text(scenario, "/workload/samples/kind")));
    let count = move |list: &'static str| {
        Memo::new(move |_| {
            explore.scenario.with(|scenario| pointer::get(scenario, list).and_then(Value::as_array).map_or(0, Vec::len))
        })
    };
    let (parts, points) = (count("/workload/samples/parts"), count("/workload/samples/images"));
    move || {
        match kind.get().as_deref() {
        Some("drawn") => view! {
            <DistributionFields pointer="/workload/samples/text_tokens" title="Text tokens" unit="tokens" max_value=16_777_216.0 />
            <ItemFields images_absent=None />
            <TextPerItem />
            <AddPart label="Mix with" />
        }
        .into_any(),
        Some("dataset") => view! { <ItemFields images_absent=Some("As in the file") /><AddPart label="Mix with" /> }.into_any(),
        Some("mixture") => view! { <MixtureFields parts=parts /> }.into_any(),
        Some("phases") => view! { <PhaseFields points=points /> }.into_any(),
        _ => ().into_any(),
    }
    }
}

/// Image, audio and video fields for modalities that the model reads or generates.
#[component]
fn ItemFields(
    /// Label for a source without images. If set, the user can also remove the image distribution.
    images_absent: Option<&'static str>,
) -> impl IntoView {
    let explore = use_explore();
    let reads = Memo::new(move |_| explore.scenario.with(Modalities::from_scenario));
    // For models that read audio but no images, images count as clips. The field is shown if the
    // scenario sets it.
    let as_clips = Memo::new(move |_| {
        let none = json!({"kind": "constant", "value": 0});
        explore
            .scenario
            .with(|scenario| pointer::get(scenario, "/workload/samples/images").is_some_and(|images| *images != none))
    });
    let images = move || {
        let Modalities { images, sound, .. } = reads.get();
        if !(images || (sound && as_clips.get())) {
            return view! { <FieldError pointer="/workload/samples/images".to_owned() /> }.into_any();
        }
        view! {
            <DistributionFields
                pointer="/workload/samples/images"
                title=if images { "Images" } else { "Further clips" }
                unit="per sample"
                max_value=4096.0
                slider=Slider::Linear(0.0, 64.0)
                absent=images_absent
            />
            <FieldError pointer="/workload/samples/images".to_owned() />
        }
        .into_any()
    };
    let sound = move || {
        if !reads.get().sound {
            return view! { <FieldError pointer="/workload/samples/audio_clips".to_owned() /> }.into_any();
        }
        view! {
            <DistributionFields
                pointer="/workload/samples/audio_clips"
                title="Clips of sound"
                unit="per sample"
                max_value=4096.0
                slider=Slider::Linear(0.0, 64.0)
                absent=if images_absent.is_some() { "As in the file" } else { "None" }
            />
            <FieldError pointer="/workload/samples/audio_clips".to_owned() />
        }
        .into_any()
    };
    let video = move || {
        reads.get().video.then(|| {
            view! {
                <DistributionFields
                    pointer="/workload/samples/video_s"
                    title="Video"
                    unit="s per sample"
                    max_value=3600.0
                    numbers=Numbers::Real
                    slider=Slider::Linear(0.0, 64.0)
                    absent="None"
                />
                <FieldError pointer="/workload/samples/video_s".to_owned() />
            }
        })
    };
    view! {
        {images}
        {sound}
        {video}
    }
}

/// Field for text per item.
#[component]
fn TextPerItem() -> impl IntoView {
    let explore = use_explore();
    let any = Memo::new(move |_| explore.scenario.with(|scenario| Modalities::from_scenario(scenario).any()));
    view! {
        <Show when=move || any.get()>
            <DistributionFields
                pointer="/workload/samples/text_per_item"
                title="Further text"
                unit="tokens per item"
                max_value=1_000_000.0
                numbers=Numbers::Real
                absent="None"
            />
            <p class="hint">"For every image, clip of sound and second of video of a sample, drawn once a sample."</p>
        </Show>
    }
}

/// Bounds for the image count over the iterations.
#[component]
fn PhaseFields(points: Memo<usize>) -> impl IntoView {
    let rows = move || {
        let row = |point: usize| {
            let at = move |field: &str| format!("/workload/samples/images/{point}/{field}");
            view! {
                <NumberField pointer=at("iteration") label=format!("Point {}", point + 1) unit="iteration" min=0.0 max=99_999.0 />
                <NumberField pointer=at("min") label="Fewest images" unit="per sample" min=0.0 max=4096.0 />
                <NumberField pointer=at("max") label="Most images" unit="per sample" min=0.0 max=4096.0 />
            }
        };
        (0..points.get()).map(row).collect_view()
    };
    let explore = use_explore();
    let drawn = Memo::new(move |_| {
        let kind = explore.scenario.with(|scenario| pointer::text(scenario, "/workload/samples/source/kind"));
        kind.as_deref() == Some("drawn")
    });
    view! {
        <Show when=move || drawn.get()>
            <DistributionFields pointer="/workload/samples/source/text_tokens" title="Text tokens" unit="tokens" max_value=16_777_216.0 />
        </Show>
        <NumberField pointer="/workload/samples/period" label="Begins again" unit="after iterations" min=1.0 max=100_000.0 />
        {rows}
    }
}
