//! Cluster section: preset and all cluster parameters.

use api::planner::cluster::Cluster;
use leptos::prelude::*;

use super::calibration::CalibrationStatus;
use super::field::NumberField;
use super::preset::{PresetOption, PresetPicker};
use super::section::{Advanced, Section};
use crate::catalogue::use_catalogue;
use crate::explore::use_explore;
use crate::pointer;

/// Cluster section.
#[component]
pub(super) fn ClusterSection() -> impl IntoView {
    let explore = use_explore();
    let catalogue = use_catalogue();
    let cluster = Memo::new(move |_| explore.scenario.with(|scenario| pointer::get(scenario, "/cluster").cloned()));
    // Presets contain one node, so the comparison ignores the node count.
    let selected = Memo::new(move |_| {
        let cluster: Cluster = serde_json::from_value(cluster.get()?).ok()?;
        let presets = catalogue.presets.get()?;
        let same = |preset: &Cluster| Cluster { nodes: cluster.nodes, ..preset.clone() } == cluster;
        presets.clusters.iter().find(|candidate| same(&candidate.cluster)).map(|preset| preset.id.clone())
    });
    let choices = Signal::derive(move || {
        let clusters = catalogue.presets.get().map(|presets| presets.clusters.clone()).unwrap_or_default();
        let option = |cluster: api::gallery::ClusterOption| PresetOption {
            id: cluster.id,
            title: cluster.cluster.name,
            group: "",
        };
        clusters.into_iter().map(option).collect::<Vec<_>>()
    });
    let choose = move |id: String| {
        let presets = catalogue.presets.get_untracked();
        let preset = presets.iter().flat_map(|presets| &presets.clusters).find(|candidate| candidate.id == id);
        if let Some(mut value) = preset.and_then(|cluster_preset| serde_json::to_value(&cluster_preset.cluster).ok()) {
            if let Some(nodes) = cluster.get_untracked().and_then(|cluster| cluster.get("nodes").cloned()) {
                pointer::set(&mut value, "/nodes", nodes);
            }
            explore.set("/cluster", value);
        }
    };
    view! {
        <Section title="Cluster" pointer="/cluster" note="">
            <PresetPicker test_id="cluster-preset" label="Device" other="Edited" choices=choices selected=selected on_choose=choose />
            <CalibrationStatus />
            <NumberField pointer="/cluster/nodes" label="Nodes" unit="" min=1.0 max=16_384.0 />
            <NumberField pointer="/cluster/devices_per_node" label="Devices per node" unit="" min=1.0 max=256.0 />
            <NumberField pointer="/cluster/device/memory_gib" label="Memory" unit="GiB" min=1.0 max=1024.0 />
            <NumberField pointer="/cluster/device/peak_tflops" label="Peak bf16" unit="TFLOP/s" min=1.0 max=100_000.0 />
            <NumberField pointer="/cluster/intra_node/gb_per_s" label="Link in a node" unit="GB/s" min=1.0 max=100_000.0 step=5.0 />
            <NumberField pointer="/cluster/inter_node/gb_per_s" label="Network" unit="GB/s" min=0.1 max=100_000.0 step=0.5 />
            <Advanced title="Efficiencies and latencies" prefixes=ADVANCED.map(str::to_owned).to_vec()>
                <NumberField pointer="/cluster/device/matmul_efficiency" label="Matrix product efficiency" unit="of peak" min=0.01 max=1.0 step=0.01 />
                <NumberField pointer="/cluster/device/attention_efficiency" label="Attention efficiency" unit="of peak" min=0.01 max=1.0 step=0.01 />
                <NumberField pointer="/cluster/device/memory_gb_per_s" label="Memory bandwidth" unit="GB/s" min=1.0 max=1_000_000.0 step=10.0 />
                <NumberField pointer="/cluster/device/memory_efficiency" label="Memory efficiency" unit="of bandwidth" min=0.01 max=1.0 step=0.01 />
                <NumberField pointer="/cluster/device/multiprocessors" label="Multiprocessors" unit="" min=1.0 max=4096.0 />
                <NumberField pointer="/cluster/device/launch_us" label="Kernel launch" unit="µs" min=0.0 max=1000.0 step=0.5 />
                <NumberField pointer="/cluster/device/fp8_tflops" label="Peak fp8" unit="TFLOP/s" min=0.1 max=100_000.0 placeholder="none" />
                <NumberField pointer="/cluster/device/host_gb_per_s" label="Host link" unit="GB/s" min=0.1 max=10_000.0 placeholder="25" />
                <NumberField pointer="/cluster/host_memory_gib" label="Host memory" unit="GiB per node" min=0.0 max=1_048_576.0 step=16.0 placeholder="automatic" />
                <NumberField pointer="/cluster/host_memory_gb_per_s" label="Host memory bandwidth" unit="GB/s per node" min=0.1 max=1_000_000.0 placeholder="automatic" />
                <NumberField pointer="/cluster/intra_node/efficiency" label="Node link efficiency" unit="of rate" min=0.01 max=1.0 step=0.01 />
                <NumberField pointer="/cluster/intra_node/latency_us" label="Node link latency" unit="µs" min=0.0 max=10_000.0 step=0.5 />
                <NumberField pointer="/cluster/inter_node/efficiency" label="Network efficiency" unit="of rate" min=0.01 max=1.0 step=0.01 />
                <NumberField pointer="/cluster/inter_node/latency_us" label="Network latency" unit="µs" min=0.0 max=10_000.0 step=0.5 />
            </Advanced>
        </Section>
    }
}

const ADVANCED: [&str; 14] = [
    "/cluster/device/matmul_efficiency",
    "/cluster/device/attention_efficiency",
    "/cluster/device/memory_gb_per_s",
    "/cluster/device/memory_efficiency",
    "/cluster/device/multiprocessors",
    "/cluster/device/launch_us",
    "/cluster/device/fp8_tflops",
    "/cluster/device/host_gb_per_s",
    "/cluster/host_memory_gib",
    "/cluster/host_memory_gb_per_s",
    "/cluster/intra_node/efficiency",
    "/cluster/intra_node/latency_us",
    "/cluster/inter_node/efficiency",
    "/cluster/inter_node/latency_us",
];
