//! Tables of a measured device.

use std::path::Path;

use anyhow::{Context, bail};
use planner::calibration::Sample;
use planner::cluster::{Cluster, presets};
use planner::cost::kernel::{Attention, Format, Kernel, MatMul, Product, Streaming, StreamingClass};
use planner::units::Seconds;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A measured device with its tables.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) header: Value,
    /// Cluster of the preset with one device.
    pub(super) cluster: Cluster,
    pub(super) preset: &'static str,
    pub(super) products: Vec<ProductRow>,
    pub(super) experts: Vec<ExpertRow>,
    pub(super) attention: Vec<AttentionRow>,
    pub(super) pointwise: Vec<PointwiseRow>,
    pub(super) fp8: Vec<Fp8Row>,
    pub(super) optimizer: Vec<OptimizerRow>,
    pub(super) sustained: Vec<SustainedRow>,
    pub(super) launch: Vec<LaunchRow>,
    pub(super) contention: Vec<ContentionRow>,
    pub(super) memory: Vec<ModelRow>,
    pub(super) validation: Vec<ModelRow>,
    pub(super) kinds: Vec<KindRow>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct ProductRow {
    pub(super) product: String,
    pub(super) accumulate: String,
    pub(super) m: f64,
    pub(super) k: f64,
    pub(super) n: f64,
    pub(super) time_us: f64,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct ExpertRow {
    pub(super) function: String,
    pub(super) product: String,
    pub(super) batch: Option<f64>,
    pub(super) m: Option<f64>,
    pub(super) k: Option<f64>,
    pub(super) n: Option<f64>,
    pub(super) time_us: f64,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct AttentionRow {
    pub(super) backend: String,
    pub(super) causal: bool,
    pub(super) backward: bool,
    pub(super) heads: f64,
    pub(super) kv_heads: f64,
    pub(super) qk_dim: f64,
    pub(super) tokens: f64,
    pub(super) squared: f64,
    pub(super) queries: Option<f64>,
    pub(super) keys: Option<f64>,
    pub(super) time_us: f64,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct PointwiseRow {
    pub(super) op: String,
    pub(super) variant: String,
    pub(super) backward: bool,
    pub(super) bytes: f64,
    pub(super) time_us: f64,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Fp8Row {
    pub(super) op: String,
    pub(super) scales: String,
    pub(super) m: Option<f64>,
    pub(super) k: Option<f64>,
    pub(super) n: Option<f64>,
    pub(super) time_us: f64,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct OptimizerRow {
    pub(super) op: String,
    pub(super) parameters: f64,
    pub(super) tensors: u32,
    pub(super) time_us: f64,
    pub(super) device_us: Option<f64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct SustainedRow {
    pub(super) m: f64,
    pub(super) k: f64,
    pub(super) n: f64,
    pub(super) operands: String,
    pub(super) burst_us: f64,
    pub(super) time_us: f64,
    pub(super) sm_mhz: f64,
    pub(super) watts: f64,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct LaunchRow {
    pub(super) op: String,
    pub(super) call: String,
    pub(super) model: String,
    pub(super) variant: String,
    pub(super) forward_us: Option<f64>,
    pub(super) backward_us: Option<f64>,
    pub(super) layer_device_us: Option<f64>,
    pub(super) time_us: f64,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct ContentionRow {
    pub(super) measured: String,
    pub(super) background: String,
    pub(super) time_us: f64,
}

/// A layer, a training step, or the memory of a model.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct ModelRow {
    #[serde(default)]
    pub(super) op: String,
    pub(super) model: String,
    pub(super) hidden: u32,
    pub(super) ffn: u32,
    pub(super) heads: u32,
    pub(super) kv_heads: u32,
    pub(super) layers: Option<u32>,
    pub(super) vocabulary: Option<u32>,
    pub(super) batch: Option<u32>,
    pub(super) tokens: u32,
    #[serde(default)]
    pub(super) precision: String,
    #[serde(default)]
    pub(super) variant: String,
    #[serde(default)]
    pub(super) attention: String,
    #[serde(default)]
    pub(super) recompute: String,
    #[serde(default)]
    pub(super) optimizer: Option<bool>,
    #[serde(default)]
    pub(super) forward_device_us: Option<f64>,
    #[serde(default)]
    pub(super) backward_device_us: Option<f64>,
    #[serde(default)]
    pub(super) layer_device_us: Option<f64>,
    #[serde(default)]
    pub(super) time_us: Option<f64>,
    #[serde(default)]
    pub(super) start_mib: Option<f64>,
    #[serde(default)]
    pub(super) after_forward_mib: Option<f64>,
    pub(super) peak_allocated_mib: Option<f64>,
}

/// A layer of a current model, or training steps of a model of such layers.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct KindRow {
    pub(super) op: String,
    pub(super) model: String,
    pub(super) part: String,
    pub(super) batch: Option<u32>,
    pub(super) tokens: u32,
    pub(super) kernels: String,
    /// The module as in a scenario (JSON).
    pub(super) module: String,
    pub(super) forward_device_us: Option<f64>,
    pub(super) backward_device_us: Option<f64>,
    pub(super) layer_device_us: Option<f64>,
    pub(super) forward_us: f64,
    pub(super) backward_us: f64,
    pub(super) optimizer_us: Option<f64>,
    pub(super) time_us: f64,
    pub(super) start_mib: Option<f64>,
    pub(super) after_forward_mib: Option<f64>,
    pub(super) peak_allocated_mib: Option<f64>,
    pub(super) peak_reserved_mib: Option<f64>,
}

impl Device {
    /// Reads the tables of a folder. Its name starts with the identifier of a preset.
    pub(super) fn read(folder: &Path) -> anyhow::Result<Self> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let matching = presets::clusters().into_iter().filter(|preset| name.starts_with(preset.id));
        let Some(preset) = matching.max_by_key(|preset| preset.id.len()) else {
            bail!("{name} starts with the identifier of no device preset");
        };
        let path = folder.join("header.json");
        let header = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self {
            header: serde_json::from_str(&header).with_context(|| path.display().to_string())?,
            cluster: Cluster { nodes: 1, devices_per_node: 1, ..preset.cluster },
            preset: preset.id,
            products: table(folder, "products")?,
            experts: table(folder, "experts")?,
            attention: table(folder, "attention")?,
            pointwise: table(folder, "pointwise")?,
            fp8: table(folder, "fp8")?,
            optimizer: table(folder, "optimizer")?,
            sustained: table(folder, "sustained")?,
            launch: table(folder, "launch")?,
            contention: table(folder, "contention")?,
            memory: table(folder, "memory")?,
            validation: table(folder, "validation")?,
            kinds: if folder.join("kinds.csv").exists() { table(folder, "kinds")? } else { Vec::new() },
        })
    }

    /// Returns the attention kernel that PyTorch selects for layers.
    pub(super) fn selected_attention(&self) -> &str {
        self.validation.first().map_or("flash", |row| row.attention.as_str())
    }
}

fn table<T: DeserializeOwned>(folder: &Path, name: &str) -> anyhow::Result<Vec<T>> {
    let path = folder.join(name).with_extension("csv");
    let mut reader = csv::Reader::from_path(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let rows: Result<Vec<T>, csv::Error> = reader.deserialize().collect();
    rows.with_context(|| path.display().to_string())
}

fn sample(kernel: Kernel, time_us: f64) -> Sample {
    Sample { kernel, time: Seconds::from_secs(time_us * 1e-6) }
}

fn product(name: &str) -> Product {
    match name {
        "input_grad" => Product::InputGrad,
        "weight_grad" => Product::WeightGrad,
        _ => Product::Forward,
    }
}

impl ProductRow {
    pub(super) fn sample(&self) -> Sample {
        let Self { m, k, n, .. } = *self;
        let kernel = MatMul { batch: 1.0, m, k, n, product: product(&self.product), format: Format::Bf16 };
        sample(Kernel::MatMul(kernel), self.time_us)
    }

    /// Returns the tokens of the linear layer.
    pub(super) fn tokens(&self) -> f64 {
        if self.product == "weight_grad" { self.k } else { self.m }
    }

    /// Returns the smaller feature dimension of the linear layer.
    pub(super) fn width(&self) -> f64 {
        self.n.min(if self.product == "weight_grad" { self.m } else { self.k })
    }
}

impl ExpertRow {
    /// Returns the grouped product, `None` for steps of the router and for unequal groups.
    pub(super) fn sample(&self) -> Option<Sample> {
        let (Some(batch), Some(m), Some(k), Some(n)) = (self.batch, self.m, self.k, self.n) else { return None };
        let kernel = MatMul { batch, m, k, n, product: product(&self.product), format: Format::Bf16 };
        Some(sample(Kernel::MatMul(kernel), self.time_us))
    }

    /// Returns the rows of an expert.
    pub(super) fn rows(&self) -> Option<f64> {
        if self.product == "weight_grad" { self.k } else { self.m }
    }
}

impl AttentionRow {
    pub(super) fn kernel(&self) -> Attention {
        let Self { tokens, squared, heads, kv_heads, qk_dim, causal, backward, .. } = *self;
        Attention { tokens, squared, heads, kv_heads, qk_dim, v_dim: qk_dim, causal, backward }
    }

    pub(super) fn sample(&self) -> Sample {
        sample(Kernel::Attention(self.kernel()), self.time_us)
    }

    /// Returns the length if all sequences have as many queries as keys, and as many query heads as key heads.
    pub(super) fn plain_length(&self) -> Option<f64> {
        self.keys.filter(|keys| self.queries == Some(*keys) && self.heads.to_bits() == self.kv_heads.to_bits())
    }
}

impl PointwiseRow {
    pub(super) fn sample(&self) -> Sample {
        let class = match self.op.as_str() {
            "rms_norm" | "layer_norm" => StreamingClass::Norm,
            "swiglu" | "gelu" | "rope" => StreamingClass::Activation,
            "embedding" => StreamingClass::Embedding,
            "softmax" => StreamingClass::Softmax,
            "cross_entropy" => StreamingClass::Loss,
            _ => StreamingClass::Elementwise,
        };
        sample(Kernel::Streaming(Streaming { class, bytes: self.bytes }), self.time_us)
    }
}

impl Fp8Row {
    /// Returns the product, `None` for casts.
    pub(super) fn sample(&self) -> Option<Sample> {
        let (Some(m), Some(k), Some(n)) = (self.m, self.k, self.n) else { return None };
        let kernel = MatMul { batch: 1.0, m, k, n, product: Product::Forward, format: Format::Fp8 };
        Some(sample(Kernel::MatMul(kernel), self.time_us))
    }
}
