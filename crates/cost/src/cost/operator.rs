//! Kernel times on a device (docs/models.md, section 3).

use super::attention_kernels::NamedCurve;
use super::kernel::{Attention, Format, Kernel, MatMul, Product, Streaming, StreamingClass};
use planscope_core::cluster::{AttentionCurve, Curves, Device, MatMulCurve, StreamingCurve};
use planscope_core::training::{Conversion, Training};
use planscope_core::units::Seconds;

/// Output tiles (rows x columns) in vendor libraries, in descending size.
const TILES: [(f64, f64); 6] =
    [(256.0, 128.0), (128.0, 256.0), (128.0, 128.0), (128.0, 64.0), (64.0, 128.0), (64.0, 64.0)];
/// Queries per thread block in a fused attention kernel.
const QUERY_BLOCK: f64 = 128.0;

/// Device rates, resolved once for many kernels.
#[derive(Debug, Clone)]
pub struct Rates {
    launch: f64,
    /// Peak matrix product rates by format, in operations per second.
    bf16: f64,
    fp8: f64,
    fp32: f64,
    attention_peak: f64,
    /// Data-sheet memory bandwidth, and the achieved streaming bandwidth.
    memory: f64,
    streams: f64,
    multiprocessors: f64,
    /// Conversion of the operands of fp8 products: forward, input gradient, weight gradient.
    conversions: Option<[Conversion; 3]>,
    matmul: MatMulCurve,
    attention: AttentionCurve,
    /// Named attention kernel, if the settings choose one and its rate on the device is known.
    named: Option<NamedCurve>,
    streaming: StreamingCurve,
    host: f64,
    host_microbatch: f64,
}

/// Returns the rate factor for operands whose rows do not start at multiples of 16 bytes. Tensor
/// cores then use narrower loads. Only feature dimensions count, not tokens: 16 bytes are 8
/// features in bf16. A known case is a vocabulary of 50,257. NVIDIA's guide to matrix products
/// shows the steps.
fn alignment(product: &MatMul) -> f64 {
    let features = match product.product {
        Product::Forward | Product::InputGrad => [product.k, product.n],
        Product::WeightGrad => [product.m, product.n],
    };
    let divides = |by: f64| features.iter().all(|&count| count.fract() > 0.0 || count % by == 0.0);
    if divides(8.0) {
        1.0
    } else if divides(4.0) {
        0.8
    } else if divides(2.0) {
        0.6
    } else {
        0.4
    }
}

impl Rates {
    /// Resolves the rates for a device. A device without curves uses typical curves.
    pub fn new(device: &Device) -> Self {
        let generic;
        let curves = if let Some(curves) = &device.curves {
            curves
        } else {
            generic = Curves::generic();
            &generic
        };
        let peak = device.peak().get() * curves.sustained;
        Self {
            launch: device.launch().secs(),
            bf16: peak * device.matmul_efficiency,
            fp8: device.fp8_tflops.map_or(peak, |tera| tera * 1e12 * curves.sustained) * device.matmul_efficiency,
            fp32: peak * 0.5 * device.matmul_efficiency,
            attention_peak: peak * device.attention_efficiency,
            memory: device.memory_gb_per_s * 1e9,
            streams: device.memory_gb_per_s * 1e9 * device.memory_efficiency,
            multiprocessors: f64::from(device.multiprocessors),
            conversions: None,
            matmul: curves.matmul,
            attention: curves.attention,
            named: None,
            streaming: curves.streaming,
            host: curves.host_us * 1e-6,
            host_microbatch: curves.host_microbatch_us * 1e-6,
        }
    }

    /// Resolves the rates for a device with the attention kernel and the host time of the training.
    pub fn for_training(device: &Device, training: &Training) -> Self {
        let rates = Self::new(device);
        let profile = training.profile();
        let host = profile.host_us.map_or(rates.host, |host_us| host_us * 1e-6);
        let conversions = training
            .used_recipe()
            .map(|recipe| recipe.conversions(training.framework, training.has_single_fp8_copy(device)));
        Self { host, conversions, named: NamedCurve::of(training.attention, device), ..rates }
    }

    /// Returns the time for a kernel on one device. Collectives are not supported here, because
    /// they need a placed [`Group`](super::Group).
    pub fn time(&self, kernel: &Kernel) -> Seconds {
        match kernel {
            Kernel::MatMul(product) => self.matmul(product),
            Kernel::Attention(attention) => self.attention(attention),
            Kernel::Streaming(stream) => self.streaming(*stream),
            Kernel::Collective(_) => Seconds::ZERO,
        }
    }

    /// Host time per operator in seconds.
    pub const fn host(&self) -> f64 {
        self.host
    }

    /// Host time per microbatch and stage, in addition to the operators.
    pub const fn host_microbatch(&self) -> Seconds {
        Seconds::from_secs(self.host_microbatch)
    }

    /// Returns the time for a matrix product, or a batch: launch + max(tiles, traffic).
    ///
    /// Uses the tile with the minimum time. The model counts tile waves over the multiprocessors
    /// with a partially used last wave, the rate per tile, and the time to fill the pipeline once
    /// per tile.
    pub fn matmul(&self, product: &MatMul) -> Seconds {
        let &MatMul { batch, m, k, n, .. } = product;
        if batch <= 0.0 || m <= 0.0 || k <= 0.0 || n <= 0.0 {
            return Seconds::ZERO;
        }
        let curve = &self.matmul;
        let (peak, width): (f64, f64) = match product.format {
            Format::Bf16 => (self.bf16, 2.0),
            Format::Fp8 => (self.fp8, 1.0),
            Format::Fp32 => (self.fp32, 4.0),
        };
        let rates = [1.0, 1.0, curve.tile_128, curve.tile_64, curve.tile_64, curve.tile_small];
        let mut area = f64::INFINITY;
        for (&(rows, columns), rate) in TILES.iter().zip(rates) {
            let waves = batch * (m / rows).ceil() * (n / columns).ceil() / self.multiprocessors;
            let waves = if waves <= 1.0 { 1.0 } else { waves + curve.last_wave * (waves.ceil() - waves) };
            area = area.min(waves * rows * columns / rate);
        }
        let mut rate = match product.product {
            Product::Forward => peak,
            Product::InputGrad => peak * curve.input_grad,
            Product::WeightGrad => peak * curve.weight_grad,
        };
        rate *= alignment(product);
        if batch > 1.0 {
            rate *= curve.grouped;
        }
        let compute = area * self.multiprocessors * 2.0 * (k + curve.fill) / rate;
        // Long kernels reach the power limit.
        let long = curve.power_ms * 1e-3;
        let compute =
            if long > 0.0 { compute * (1.0 + curve.power_drop * compute / (compute + long)) } else { compute };
        // An accumulated weight gradient is read and written in fp32.
        let result = if product.product == Product::WeightGrad { 8.0 } else { width.max(2.0) };
        let bytes = batch * (width * (m * k + k * n) + result * m * n);
        let traffic = bytes / (self.memory * curve.traffic);
        Seconds::from_secs(self.launch + compute.max(traffic) + self.fp8_conversion(product))
    }

    /// Returns the time to convert the operands of a product to fp8, in seconds (docs/models.md, section 3).
    fn fp8_conversion(&self, product: &MatMul) -> f64 {
        let Some([forward, input_grad, weight_grad]) = self.conversions.filter(|_| product.format == Format::Fp8)
        else {
            return 0.0;
        };
        let Conversion { kernels, left_bytes, right_bytes } = match product.product {
            Product::Forward => forward,
            Product::InputGrad => input_grad,
            Product::WeightGrad => weight_grad,
        };
        let &MatMul { batch, m, k, n, .. } = product;
        let bytes = batch * k * (left_bytes * m + right_bytes * n);
        kernels * self.launch + bytes / (self.streams * self.streaming.elementwise)
    }

    /// Returns the time for a fused attention kernel: launch + operations / rate. The rate
    /// increases with parallel blocks and sequence length.
    pub fn attention(&self, attention: &Attention) -> Seconds {
        let flops = attention.flops();
        if flops <= 0.0 || attention.tokens <= 0.0 {
            return Seconds::ZERO;
        }
        if let Some(curve) = &self.named {
            return Seconds::from_secs(self.launch + flops / curve.rate(attention));
        }
        let curve = &self.attention;
        let blocks = attention.heads * attention.tokens / QUERY_BLOCK;
        let length = attention.squared / attention.tokens;
        let pass = if attention.backward { curve.backward } else { 1.0 };
        // The backward parallelizes over keys and queries and needs only a third of the blocks to
        // fill the device.
        let half_blocks = if attention.backward { curve.half_blocks / 3.0 } else { curve.half_blocks };
        let rate =
            self.attention_peak * pass * (blocks / (blocks + half_blocks)) * (length / (length + curve.half_length));
        Seconds::from_secs(self.launch + flops / rate)
    }

    /// Returns the time for a memory-bound kernel: launch + traffic.
    pub fn streaming(&self, stream: Streaming) -> Seconds {
        if stream.bytes <= 0.0 {
            return Seconds::ZERO;
        }
        let share = match stream.class {
            StreamingClass::Norm => self.streaming.norm,
            StreamingClass::Elementwise => self.streaming.elementwise,
            StreamingClass::Activation => self.streaming.activation,
            StreamingClass::Embedding => self.streaming.embedding,
            StreamingClass::Softmax => self.streaming.softmax,
            StreamingClass::Loss => self.streaming.loss,
            StreamingClass::Permute => self.streaming.permute,
            StreamingClass::Optimizer => self.streaming.optimizer,
        };
        Seconds::from_secs(self.launch + stream.bytes / (self.streams * share))
    }
}
