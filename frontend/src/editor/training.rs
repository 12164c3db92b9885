//! Training settings.

use leptos::prelude::*;

use super::field::{CheckField, NumberField, SelectField};
use super::section::Section;

/// Training settings.
#[component]
pub(super) fn TrainingSection() -> impl IntoView {
    view! {
        <Section title="Training" pointer="/training" note="">
            <SelectField
                pointer="/training/recompute"
                label="Recompute"
                options=&[("none", "None"), ("selective", "Attention"), ("full", "Whole layers")]
            />
            <SelectField pointer="/training/attention" label="Attention" options=&[("flash", "Fused (flash)"), ("unfused", "Unfused")] />
            <CheckField pointer="/training/sequence_parallel" label="Sequence parallel" />
            <CheckField pointer="/training/distributed_optimizer" label="Distributed optimizer (ZeRO-1)" />
            <NumberField pointer="/training/tensor_overlap" label="TP comm. hidden" unit="0 – 1" min=0.0 max=1.0 step=0.05 />
            <NumberField pointer="/training/data_overlap" label="DP comm. hidden" unit="0 – 1" min=0.0 max=1.0 step=0.05 />
            <NumberField pointer="/training/memory_reserve_gib" label="Memory reserve" unit="GiB" min=0.0 max=1024.0 step=0.5 />
        </Section>
    }
}
