//! Common sweeps: fields by name, and scaling studies around the current values.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Axis, Sweep};
use planscope_core::workload::{Distribution, SampleSource};
use planscope_plan::scenario::{FieldError, Scenario};

/// Images per sample if a dataset defines the number.
const USUAL_IMAGES: u32 = 4;

/// A commonly swept field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UsualField {
    /// JSON pointer into the scenario.
    pub pointer: String,
    /// Display name.
    pub title: String,
    /// Value unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Current value in the scenario; null if the planner searches it.
    pub present: Value,
    /// Suggested values around the current value.
    pub values: Vec<Value>,
}

/// Returns commonly swept fields in a scenario, and values around the current ones.
pub fn usual_fields(scenario: &Scenario) -> Vec<UsualField> {
    let field = |pointer: &str, title: &str, unit: Option<&str>, present: Value, values: Vec<Value>| UsualField {
        pointer: pointer.to_owned(),
        title: title.to_owned(),
        unit: unit.map(str::to_owned),
        present,
        values,
    };
    let scaled_field = |pointer: &str, title: &str, unit: Option<&str>, present: u32| {
        field(pointer, title, unit, present.into(), around(present))
    };
    let degree = |pointer: &str, title: &str, present: Option<u32>| {
        let values = [1, 2, 4, 8].map(Value::from).to_vec();
        field(pointer, title, None, present.map_or(Value::Null, Value::from), values)
    };
    let factor = |pointer: &str, title: &str, unit: &str, present: f64| {
        let values = [0.25, 0.5, 1.0, 2.0, 4.0].map(|factor| Value::from(present * factor)).to_vec();
        field(pointer, title, Some(unit), present.into(), values)
    };
    let (cluster, workload, layout) = (&scenario.cluster, &scenario.workload, &scenario.layout);
    let mut fields = vec![
        scaled_field("/cluster/nodes", "nodes", None, cluster.nodes),
        scaled_field("/workload/context_length", "context length", Some("tokens"), workload.context_length),
        scaled_field("/workload/global_batch", "global batch", Some("samples"), workload.global_batch),
        factor("/cluster/device/memory_gib", "device memory", "GiB", cluster.device.memory_gib),
        factor("/cluster/device/peak_tflops", "peak of a device", "TFLOP/s", cluster.device.peak_tflops),
        factor("/cluster/inter_node/gb_per_s", "link between nodes", "GB/s", cluster.inter_node.gb_per_s),
        factor("/cluster/intra_node/gb_per_s", "link within a node", "GB/s", cluster.intra_node.gb_per_s),
        degree("/layout/tensor", "TP", layout.tensor),
        degree("/layout/pipeline", "PP", layout.pipeline),
        degree("/layout/microbatch", "sequences of a microbatch", layout.microbatch),
    ];
    if let SampleSource::Drawn { images: Distribution::Constant { value }, .. } = &scenario.workload.samples
        && scenario.model.images().is_some()
    {
        fields.push(scaled_field("/workload/samples/images/value", "images per sample", None, *value));
    }
    fields
}

/// A scaling study: a field in powers of two around its current value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ScalingSweep {
    /// Cluster nodes.
    Devices,
    /// Context length.
    ContextLength,
    /// Samples per global batch.
    GlobalBatch,
    /// Images per sample, equal for all samples.
    Images,
}

impl ScalingSweep {
    /// All studies.
    pub const ALL: [Self; 4] = [Self::Devices, Self::ContextLength, Self::GlobalBatch, Self::Images];

    /// Display name.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Devices => "nodes",
            Self::ContextLength => "context length",
            Self::GlobalBatch => "global batch",
            Self::Images => "images",
        }
    }

    /// Builds the sweep. `None` if the model reads no images, or the number of images is not
    /// configurable.
    pub fn sweep(self, scenario: &Scenario) -> Option<Result<Sweep, Vec<FieldError>>> {
        let mut base = serde_json::to_value(scenario).expect("a scenario has only text keys");
        let (pointer, title, unit, present) = match self {
            Self::Devices => ("/cluster/nodes", "nodes", None, scenario.cluster.nodes),
            Self::ContextLength => {
                ("/workload/context_length", "context length", Some("tokens"), scenario.workload.context_length)
            }
            Self::GlobalBatch => {
                ("/workload/global_batch", "global batch", Some("samples"), scenario.workload.global_batch)
            }
            Self::Images => {
                scenario.model.images()?;
                let present = match &scenario.workload.samples {
                    SampleSource::Drawn { images, .. } => middle(images),
                    SampleSource::Dataset { .. } => USUAL_IMAGES,
                    _ => return None,
                };
                base["workload"]["samples"]["images"] = json!({"kind": "constant", "value": present});
                ("/workload/samples/images/value", "images per sample, the same in all", None, present)
            }
        };
        let axis = Axis {
            pointer: pointer.to_owned(),
            title: Some(title.to_owned()),
            unit: unit.map(str::to_owned),
            values: around(present),
        };
        let name = scenario.title.as_deref().unwrap_or(&scenario.model.name);
        let title = format!("{}: {}", name.chars().take(150).collect::<String>(), self.title());
        Some(Sweep::new(Some(title), &base, vec![axis]))
    }
}

/// Returns five values, each twice the previous, starting at a quarter of `present`. If the quarter
/// is not an integer, they start at half or at `present` itself.
fn around(present: u32) -> Vec<Value> {
    if present == 0 {
        return [0, 1, 2, 4, 8].map(Value::from).to_vec();
    }
    let down = present.trailing_zeros().min(2);
    let first = present >> down;
    (0..5).filter_map(|doubling| first.checked_mul(1 << doubling)).map(Value::from).collect()
}

/// Returns a central value of a distribution, for samples with equal values.
fn middle(distribution: &Distribution) -> u32 {
    match distribution {
        Distribution::Constant { value } => *value,
        Distribution::Uniform { min, max } => min.midpoint(*max),
        Distribution::LogNormal { median, .. } => (median.round() as u32).max(1),
        Distribution::Histogram { edges, counts } => {
            let total: f64 = counts.iter().sum();
            let weighted = |(bin, count): (&[f64], &f64)| f64::midpoint(bin[0], bin[1]) * count;
            let sum: f64 = edges.windows(2).zip(counts).map(weighted).sum();
            if total > 0.0 { ((sum / total).round() as u32).max(1) } else { 1 }
        }
        Distribution::Values { values } => {
            let sum: u64 = values.iter().map(|value| u64::from(*value)).sum();
            (sum / (values.len() as u64).max(1)) as u32
        }
    }
}
