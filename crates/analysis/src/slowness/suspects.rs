//! Properties of a run that make it slower than a scenario.

mod load;

use serde_json::{Value, json};

use crate::fit::FieldChange;
use planscope_core::training::{AttentionKernel, Precision, Recompute};
use planscope_plan::scenario::Scenario;

/// A property in several degrees, weakest first.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Suspect {
    pub degrees: Vec<Degree>,
    pub confirm: &'static str,
}

/// A degree of a property.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Degree {
    pub title: String,
    pub fields: Vec<FieldChange>,
    /// Steps with the property that have the tokens of a predicted step.
    pub steps: f64,
}

impl Degree {
    pub(super) fn new(title: String, changes: &[(&str, Value)]) -> Self {
        Self { title, fields: fields(changes), steps: 1.0 }
    }
}

pub(super) use load::HOST_MICROBATCH;

/// Shares of the bandwidth of a slower link.
const LINK_SHARES: [f64; 4] = [0.7, 0.5, 0.25, 0.1];
/// Shares of the rate of a device with lower clocks.
const CLOCK_SHARES: [f64; 4] = [0.9, 0.8, 0.65, 0.5];
/// Host time per kernel in µs. Eager kernels of a small model need 10 to 50 µs.
const HOST_US: [f64; 4] = [10.0, 20.0, 50.0, 100.0];

fn fields(fields: &[(&str, Value)]) -> Vec<FieldChange> {
    let field = |(pointer, value): &(&str, Value)| FieldChange { pointer: (*pointer).to_owned(), value: value.clone() };
    fields.iter().map(field).collect()
}

fn single(title: &str, changes: &[(&str, Value)], confirm: &'static str) -> Suspect {
    Suspect { degrees: vec![Degree::new(title.to_owned(), changes)], confirm }
}

/// Returns the properties that a scenario does not have yet. A smaller global batch explains a lower rate, but no longer
/// step: `is_rate` is true if a rate was measured.
pub(super) fn suspects(scenario: &Scenario, is_rate: bool) -> Vec<Suspect> {
    let mut all = settings(scenario);
    all.extend(links(scenario));
    all.extend(load::suspects(scenario, is_rate));
    let device = &scenario.cluster.device;
    let host = HOST_US.into_iter().filter(|&us| us > device.launch_us).map(|us| {
        let title = format!("{us:.0} µs of host time per kernel instead of {:.1}", device.launch_us);
        Degree::new(title, &[("/cluster/device/launch_us", json!(us))])
    });
    all.push(Suspect {
        degrees: host.collect(),
        confirm: "Look for gaps between kernels in a profiler trace while the CPU thread launches. Compile the model or use CUDA \
                  graphs, and check the number of CPU threads per process.",
    });
    let clocks = CLOCK_SHARES.into_iter().map(|share| {
        let title = format!("clocks at {:.0} % on all or on one device", 100.0 * share);
        let changes = [
            ("/cluster/device/peak_tflops", json!(share * device.peak_tflops)),
            ("/cluster/device/memory_gb_per_s", json!(share * device.memory_gb_per_s)),
        ];
        Degree::new(title, &changes)
    });
    all.push(Suspect {
        degrees: clocks.collect(),
        confirm: "Read clocks, power and throttle reasons of every device during a step (nvidia-smi -q -d CLOCK,PERFORMANCE). One \
                  slow device delays all others.",
    });
    all
}

/// Settings that the run may not have applied.
fn settings(scenario: &Scenario) -> Vec<Suspect> {
    let training = &scenario.training;
    let mut all = Vec::new();
    if training.attention != AttentionKernel::Unfused {
        all.push(single(
            "attention in separate kernels instead of a fused kernel",
            &[("/training/attention", json!(AttentionKernel::Unfused))],
            "Look for softmax kernels between two products in a profiler trace.",
        ));
    }
    if training.recompute != Recompute::Full {
        all.push(single(
            "recomputation of whole layers",
            &[("/training/recompute", json!(Recompute::Full)), ("/training/recompute_layers", Value::Null)],
            "Count the forward kernels of a layer in a profiler trace: twice per step means recomputation. Check the default of the \
             framework.",
        ));
    }
    match training.precision {
        Precision::Fp8 => all.push(single(
            "products in bf16 instead of fp8",
            &[("/training/precision", json!(Precision::Bf16))],
            "Look at the kernel names of the products in a profiler trace.",
        )),
        Precision::Bf16 => all.push(single(
            "products in fp32",
            &[("/training/precision", json!(Precision::Fp32))],
            "Look at the kernel names of the products in a profiler trace; check the autocast and the dtype of the weights.",
        )),
        Precision::Fp32 => {}
    }
    if training.data_overlap > 0.0 {
        all.push(single(
            "gradient communication without overlap",
            &[("/training/data_overlap", json!(0.0))],
            "Look for reduce-scatter and all-gather kernels without a concurrent product in a profiler trace.",
        ));
    }
    if training.tensor_overlap > 0.0 || training.overlapped_backward {
        all.push(single(
            "tensor-parallel communication without overlap",
            &[("/training/tensor_overlap", json!(0.0)), ("/training/overlapped_backward", json!(false))],
            "Set CUDA_DEVICE_MAX_CONNECTIONS as the framework requires; look at the streams in a profiler trace.",
        ));
    }
    if training.overlapped_sends {
        all.push(single(
            "blocking sends between pipeline stages",
            &[("/training/overlapped_sends", json!(false))],
            "Look for send and receive kernels without a concurrent product in a profiler trace.",
        ));
    }
    all
}

/// Slower links.
fn links(scenario: &Scenario) -> Vec<Suspect> {
    let cluster = &scenario.cluster;
    let slower = |name: &str, pointer: &'static str, rate: f64, confirm| {
        let degrees = LINK_SHARES.into_iter().map(|share| {
            let title = format!("{name} of {:.1} GB/s per device instead of {rate:.1}", share * rate);
            Degree::new(title, &[(pointer, json!(share * rate))])
        });
        Suspect { degrees: degrees.collect(), confirm }
    };
    let mut all = Vec::new();
    if cluster.nodes > 1 {
        all.push(slower(
            "a network",
            "/cluster/inter_node/gb_per_s",
            cluster.inter_node.gb_per_s,
            "Run all_reduce_perf and all_gather_perf of nccl-tests over all nodes, and check that NCCL uses the network cards \
             (NCCL_DEBUG=INFO).",
        ));
    }
    if cluster.devices_per_node > 1 {
        all.push(slower(
            "a link in a node",
            "/cluster/intra_node/gb_per_s",
            cluster.intra_node.gb_per_s,
            "Run all_reduce_perf of nccl-tests on one node, and check peer access (nvidia-smi topo -m).",
        ));
    }
    all
}
