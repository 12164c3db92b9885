//! Workload section: sample source and batch construction.

use api::dataset::Uploaded;
use api::planner::outcome::{HistogramColumns, WorkloadSummary};
use api::planner::scenario::FreeSetting;
use leptos::prelude::*;

use super::field::{FieldError, NumberField, SelectField};
use super::free::{SampleAssignment, is_free};
use super::section::Section;
use super::slider::Slider;
use super::source::{SAMPLES, SourceFields, SourcePicker};
use crate::catalogue::use_catalogue;
use crate::charts::Histogram;
use crate::explore::creation::use_dataset;
use crate::explore::modalities::Modalities;
use crate::explore::use_explore;
use crate::pointer;
use crate::upload::{ImportReportView, Upload};

/// Workload section.
#[component]
pub(super) fn WorkloadSection() -> impl IntoView {
    let explore = use_explore();
    let catalogue = use_catalogue();
    let report = Memo::new(move |_| {
        let id = explore.scenario.with(|scenario| pointer::text(scenario, "/workload/samples/id"))?;
        catalogue.datasets.with(|datasets| datasets.as_ref()?.iter().find(|dataset| dataset.id == id)?.report.clone())
    });
    let tokens = drawn(|workload| Some(workload.sample_tokens.clone()));
    view! {
        <Section title="Workload" pointer="/workload" note="">
            <SourcePicker />
            <FieldError pointer=SAMPLES.to_owned() />
            <FieldError pointer=format!("{SAMPLES}/id") />
            <Upload
                compact=true
                action="Use this dataset"
                on_uploaded=move |uploaded: Uploaded| {
                    catalogue.add(uploaded.dataset.clone());
                    explore.edit(SAMPLES, |scenario| use_dataset(scenario, &uploaded.dataset.id));
                }
            />
            {move || report.get().map(|report| view! { <ImportReportView report=report /> })}
            <SourceFields />
            <figure class="distribution">
                <figcaption>"Tokens per sample in the simulated batches (random draw)"</figcaption>
                <Histogram data=tokens unit="tokens" />
            </figure>
            <Notes />
            <Drawn title="Images per sample in the simulated batches" unit="images" histogram=|workload| workload.sample_images.clone() />
            <Drawn
                title="Audio clips per sample in the simulated batches"
                unit="clips"
                histogram=|workload| workload.sample_audio_clips.clone()
            />
            <Drawn title="Video per sample in the simulated batches" unit="s" histogram=|workload| workload.sample_video_s.clone() />
            <NumberField
                pointer="/workload/context_length"
                label="Context length"
                unit="tokens"
                min=128.0
                max=16_777_216.0
                step=128.0
                slider=Slider::BinaryExponents(9.0, 20.0)
            />
            <NumberField
                pointer="/workload/global_batch"
                label="Global batch"
                unit="samples"
                min=1.0
                max=1_048_576.0
                slider=Slider::BinaryExponents(0.0, 13.0)
            />
            <SelectField
                pointer="/workload/packing"
                label="Packing"
                options=&[("packed", "Packed, first fit"), ("single", "One per sequence"), ("padded", "Padded")]
                free=FreeSetting::Packing
            />
            <SampleAssignment />
            <LimitFields />
        </Section>
    }
}

/// Derives a histogram from the workload of the current outcome.
fn drawn(histogram: fn(&WorkloadSummary) -> Option<HistogramColumns>) -> Signal<Option<HistogramColumns>> {
    let explore = use_explore();
    Signal::derive(move || explore.result.with(|result| histogram(&result.as_ref()?.outcome.workload)))
}

/// Histogram of items. Empty if the model neither reads nor generates this item type.
#[component]
fn Drawn(
    title: &'static str,
    unit: &'static str,
    histogram: fn(&WorkloadSummary) -> Option<HistogramColumns>,
) -> impl IntoView {
    let columns = drawn(histogram);
    let known = Memo::new(move |_| columns.with(Option::is_some));
    view! {
        <Show when=move || known.get()>
            <figure class="distribution">
                <figcaption>{title}</figcaption>
                <Histogram data=columns unit=unit />
            </figure>
        </Show>
    }
}

/// Notes on the workload data.
#[component]
fn Notes() -> impl IntoView {
    let explore = use_explore();
    let notes = Memo::new(move |_| {
        explore
            .result
            .with(|result| result.as_ref().map(|result| result.outcome.workload.notes.clone()).unwrap_or_default())
    });
    move || {
        notes
            .get()
            .into_iter()
            .map(|note| view! { <p class="hint warning" data-testid="workload-note">{note}</p> })
            .collect_view()
    }
}

/// Limits per sequence in addition to the context length.
#[component]
fn LimitFields() -> impl IntoView {
    let explore = use_explore();
    // Planners that choose the packing obey the limit too.
    let packed = Memo::new(move |_| {
        explore.scenario.with(|scenario| {
            is_free(scenario, FreeSetting::Packing)
                || pointer::text(scenario, "/workload/packing").as_deref() == Some("packed")
        })
    });
    let video = Memo::new(move |_| explore.scenario.with(|scenario| Modalities::from_scenario(scenario).video));
    view! {
        <Show when=move || packed.get()>
            <NumberField pointer="/workload/max_samples" label="Most packed" unit="samples" min=1.0 max=1_048_576.0 placeholder="no limit" />
        </Show>
        <Show when=move || video.get()>
            <NumberField pointer="/workload/max_video_s" label="Longest video" unit="s" min=0.1 max=3600.0 step=0.1 placeholder="no limit" />
            <p class="hint">"Longer clips are cut. Packed sequences contain at most this much video."</p>
        </Show>
    }
}
