//! Properties of a run that make it slower than a scenario.

mod load;

use serde_json::{Value, json};

use super::{Advice, Plausibility};
use planscope_analysis::fit::FieldChange;
use planscope_core::training::{AttentionKernel, Execution, Precision, Recompute};
use planscope_plan::scenario::Scenario;

/// A property in several degrees, mildest first.
pub(super) struct Suspect {
    pub degrees: Vec<Degree>,
    /// Degrees between the listed ones. `None` if there are none.
    pub range: Option<Range>,
    pub confirm: String,
}

/// Continuous degrees of a property.
pub(super) struct Range {
    /// Value that has no effect.
    pub without_effect: f64,
    /// Creates the degree of a value.
    pub degree: Box<dyn Fn(f64) -> Degree>,
}

/// A degree of a property.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Degree {
    pub title: String,
    pub fields: Vec<FieldChange>,
    /// Steps with the property that have the tokens of a predicted step.
    pub steps: f64,
    /// Value in a range.
    pub value: f64,
    /// How usual the degree is.
    pub plausibility: Plausibility,
}

impl Degree {
    fn new(title: String, changes: &[(&str, Value)]) -> Self {
        Self { title, fields: fields(changes), steps: 1.0, value: 0.0, plausibility: Plausibility::Possible }
    }

    fn with_value(self, value: f64) -> Self {
        Self { value, ..self }
    }

    /// Sets how usual the degree is: `strength` up to the first limit is usual, up to the second one possible.
    fn with_strength(self, strength: f64, (usual, possible): (f64, f64)) -> Self {
        let plausibility = if strength <= usual {
            Plausibility::Usual
        } else if strength <= possible {
            Plausibility::Possible
        } else {
            Plausibility::Unusual
        };
        Self { plausibility, ..self }
    }
}

impl Suspect {
    fn listed(degrees: Vec<Degree>, confirm: impl Into<String>) -> Self {
        Self { degrees, range: None, confirm: confirm.into() }
    }

    /// Creates a suspect with the degrees of a grid, and any degree between them.
    fn continuous(
        without_effect: f64,
        grid: impl IntoIterator<Item = f64>,
        degree: impl Fn(f64) -> Degree + 'static,
        confirm: impl Into<String>,
    ) -> Self {
        let degrees = grid.into_iter().map(&degree).collect();
        Self { degrees, range: Some(Range { without_effect, degree: Box::new(degree) }), confirm: confirm.into() }
    }
}

// Limits of usual and of possible strengths.
/// Loss of clocks. Limits of power and temperature lower clocks by up to a third.
const CLOCK_LOSS: (f64, f64) = (0.35, 0.5);
/// Loss of bandwidth. Congestion and a missing card halve it; more needs another transport.
const LINK_LOSS: (f64, f64) = (0.5, 0.75);
/// Host time per kernel in µs.
const HOST_LIMITS_US: (f64, f64) = (20.0, 50.0);

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

fn single(title: &str, changes: &[(&str, Value)], confirm: &str) -> Suspect {
    Suspect::listed(vec![Degree::new(title.to_owned(), changes)], confirm)
}

/// Rounds to a multiple of 1 / `scale`.
fn rounded(value: f64, scale: f64) -> f64 {
    (value * scale).round() / scale
}

/// Rounds to one decimal for a title. A whole number has no decimal.
fn tenths(value: f64) -> f64 {
    rounded(value, 10.0)
}

/// Returns the properties that a scenario does not have yet. A smaller global batch explains a lower rate, but no longer
/// step: `is_rate` is true if a rate was measured.
pub(super) fn suspects(scenario: &Scenario, is_rate: bool) -> Vec<Suspect> {
    let advice = Advice::of(scenario);
    let mut all = Vec::new();
    let device = &scenario.cluster.device;
    let launch_us = device.launch_us;
    let host = move |us: f64| {
        let us = rounded(us, 10.0);
        let title = format!("{us} µs of host time per kernel instead of {}", tenths(launch_us));
        let changes = [("/cluster/device/launch_us", json!(us))];
        Degree::new(title, &changes).with_value(us).with_strength(us, HOST_LIMITS_US)
    };
    let (peak_tflops, memory_gb_per_s) = (device.peak_tflops, device.memory_gb_per_s);
    let clocks = move |share: f64| {
        let share = rounded(share, 100.0);
        let title = format!("clocks at {:.0} % on all or on one device", 100.0 * share);
        let changes = [
            ("/cluster/device/peak_tflops", json!(share * peak_tflops)),
            ("/cluster/device/memory_gb_per_s", json!(share * memory_gb_per_s)),
        ];
        Degree::new(title, &changes).with_value(share).with_strength(1.0 - share, CLOCK_LOSS)
    };
    all.push(Suspect::continuous(1.0, CLOCK_SHARES, clocks, advice.clocks()));
    all.extend(links(scenario, advice));
    let grid = HOST_US.into_iter().filter(move |&us| us > launch_us);
    all.push(Suspect::continuous(launch_us, grid, host, advice.host()));
    all.extend(load::suspects(scenario, is_rate, advice));
    all.extend(settings(scenario, advice));
    all
}

/// Settings that the run may not have applied.
fn settings(scenario: &Scenario, advice: Advice) -> Vec<Suspect> {
    let training = &scenario.training;
    let mut all = Vec::new();
    if training.attention != AttentionKernel::Unfused {
        all.push(single(
            "attention in separate kernels instead of a fused kernel",
            &[("/training/attention", json!(AttentionKernel::Unfused))],
            "Look for softmax kernels between two products in a profiler trace.",
        ));
    }
    if matches!(training.execution, Some(Execution::Compiled | Execution::CudaGraph)) {
        all.push(single(
            "memory-bound operators in separate kernels: not compiled, or fused kernels not active",
            &[("/training/execution", json!(Execution::Eager))],
            "Look for graph breaks and repeated compilation in the log (TORCH_LOGS=graph_breaks,recompiles), and for many short \
             elementwise kernels in a profiler trace.",
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
    if is_split(scenario.layout.tensor) && (training.tensor_overlap > 0.0 || training.overlapped_backward) {
        all.push(single(
            "tensor-parallel communication without overlap",
            &[("/training/tensor_overlap", json!(0.0)), ("/training/overlapped_backward", json!(false))],
            advice.tensor_overlap(),
        ));
    }
    if is_split(scenario.layout.pipeline) && training.overlapped_sends {
        all.push(single(
            "blocking sends between pipeline stages",
            &[("/training/overlapped_sends", json!(false))],
            "Look for send and receive kernels without a concurrent product in a profiler trace.",
        ));
    }
    all
}

/// True if a degree of parallelism is above 1 or free.
fn is_split(degree: Option<u32>) -> bool {
    degree.is_none_or(|degree| degree > 1)
}

/// Slower links.
fn links(scenario: &Scenario, advice: Advice) -> Vec<Suspect> {
    let cluster = &scenario.cluster;
    let slower = |name: &'static str, pointer: &'static str, rate: f64, confirm: &str| {
        let degree = move |share: f64| {
            let share = rounded(share, 1000.0);
            let title = format!("{name} of {} GB/s per device instead of {}", tenths(share * rate), tenths(rate));
            let changes = [(pointer, json!(share * rate))];
            Degree::new(title, &changes).with_value(share).with_strength(1.0 - share, LINK_LOSS)
        };
        Suspect::continuous(1.0, LINK_SHARES, degree, confirm)
    };
    let mut all = Vec::new();
    if cluster.nodes > 1 {
        all.push(slower("a network", "/cluster/inter_node/gb_per_s", cluster.inter_node.gb_per_s, advice.network()));
    }
    if cluster.devices_per_node > 1 {
        all.push(slower(
            "a link in a node",
            "/cluster/intra_node/gb_per_s",
            cluster.intra_node.gb_per_s,
            advice.node_link(),
        ));
    }
    all
}
