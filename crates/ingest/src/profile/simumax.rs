//! SimuMax system description: measured efficiencies by shape.
//!
//! An efficiency is FLOP / (time x peak), so time = FLOP / (peak x efficiency). SimuMax's
//! measurement programs (simu_tools/efficency_test) count FLOP as follows:
//!
//! - matrix product: 2 b m k n. Layouts follow BLAS: TN is the forward product, NN the input
//!   gradient, NT the weight gradient; m, k and n belong to this product, with inner dimension k.
//!   The b sequences are rows of a single product (or part of its inner dimension, for a weight
//!   gradient), not a batch.
//! - grouped product: 2 ng M N K in all stages, with M tokens for each of ng experts, N outputs and
//!   K inputs in the forward product. The input gradient is (M x N) (N x K), the weight gradient (N
//!   x M) (M x K).
//! - attention: 2 batch s^2 heads (qk + v) forward, 2.5 times this value backward. The kernel is
//!   causal and computes only half, so efficiencies above 1 are valid. With factor 2.5 the fastest
//!   A100 backward pass reaches 157 TFLOP/s for unmasked work, equal to FlashAttention-2.

use std::collections::BTreeMap;

use planner::calibration::Sample;
use planner::cost::kernel::{Attention, Format as Number, Kernel, MatMul, Product};
use planner::units::Seconds;
use serde::Deserialize;

use super::json::{Leaf, Pairs};
use super::ledger::Ledger;
use super::refused::Rejection;
use super::{Format, Profile, ProfileError};

/// Maximum fraction of peak, with tolerance for clock variation and rounding.
const MAX_PEAK_FRACTION: f64 = 1.1;

#[derive(Debug, Deserialize)]
struct System {
    sys_name: Option<String>,
    accelerator: Accelerator,
    #[serde(default)]
    networks: Option<Pairs<Leaf>>,
}

#[derive(Debug, Deserialize)]
struct Accelerator {
    op: Pairs<Op>,
    #[serde(default)]
    bandwidth: Option<Pairs<Leaf>>,
}

#[derive(Debug, Deserialize)]
struct Op {
    tflops: Option<Leaf>,
    #[serde(default)]
    accurate_efficient_factor: Option<Pairs<Leaf>>,
}

/// Parses all efficiencies with a shape.
pub(super) fn read(text: &str) -> Result<Profile, ProfileError> {
    let System { sys_name, accelerator, networks } =
        serde_json::from_str(text).map_err(|error| ProfileError::Json { detail: error.to_string() })?;
    let mut ledger = Ledger::new(Format::SimuMax);
    ledger.assume("time = FLOP / (tflops x efficiency)");
    for (name, op) in accelerator.op.0 {
        let peak = op.tflops.unwrap_or(Leaf::Other("missing")).positive(|| format!("{name}.tflops"));
        let efficiencies = op.accurate_efficient_factor.unwrap_or_default().0;
        if efficiencies.is_empty() {
            let location = || format!("accelerator.op.{name}");
            ledger.take(location, Err(Rejection::new("an efficiency without a shape", location())))?;
        }
        for (key, efficiency) in efficiencies {
            let location = || format!("{name}, {}", key.chars().take(80).collect::<String>());
            let sample = peak.clone().and_then(|peak| {
                let efficiency = efficiency.positive(location)?;
                let kernel = Shape::read(&key).kernel(&name, &mut ledger).ok_or_else(|| unknown(&location()))?;
                timed(kernel, peak * 1e12, efficiency, &location)
            });
            ledger.take(location, sample)?;
        }
    }
    for (section, fits) in [("accelerator.bandwidth", accelerator.bandwidth), ("networks", networks)] {
        for (name, value) in fits.unwrap_or_default().0 {
            // Flags next to the fitted values are not measurements.
            if value == Leaf::OBJECT {
                let location = || format!("{section}.{name}");
                ledger.take(
                    location,
                    Err(Rejection::new("a bandwidth and a latency, not a measured time", location())),
                )?;
            }
        }
    }
    ledger.finish(sys_name)
}

fn unknown(location: &str) -> Rejection {
    Rejection::new("an operator or a shape that is not understood", location)
}

fn timed(kernel: Kernel, peak: f64, efficiency: f64, location: &dyn Fn() -> String) -> Result<Sample, Rejection> {
    // For attention, the count includes masked work.
    let (flops, counted) = match &kernel {
        Kernel::MatMul(product) => (product.flops(), 1.0),
        Kernel::Attention(attention) => (attention.flops(), 2.0),
        Kernel::Streaming(_) | Kernel::Collective(_) => return Err(unknown(&location())),
    };
    if efficiency > counted * MAX_PEAK_FRACTION {
        return Err(Rejection::new(
            "faster than the peak that the file gives",
            format!("{}: {efficiency}", location()),
        ));
    }
    let time = Seconds::from_secs(flops * counted / (peak * efficiency));
    Ok(Sample { kernel, time })
}

/// A key such as "b=1, m=4096, k=5120, n=1536, layout=TN, accumulate=False, out_dtype=bf16".
#[derive(Debug)]
struct Shape<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Shape<'a> {
    fn read(key: &'a str) -> Self {
        Self(key.split(',').filter_map(|part| part.trim().split_once('=')).collect())
    }

    fn size(&self, name: &str) -> Option<f64> {
        let size: u32 = self.0.get(name)?.parse().ok()?;
        (size > 0).then_some(f64::from(size))
    }

    fn kernel(&self, operator: &str, ledger: &mut Ledger) -> Option<Kernel> {
        match operator {
            "matmul" => self.product(Number::Bf16, ledger),
            "fp8_matmul" => self.product(Number::Fp8, ledger),
            "group_matmul" => self.grouped(Number::Bf16, ledger),
            "fp8_group_matmul" => self.grouped(Number::Fp8, ledger),
            "sdp_fwd" => self.attention(false, ledger),
            "sdp_bwd" => self.attention(true, ledger),
            _ => None,
        }
    }

    fn product(&self, format: Number, ledger: &mut Ledger) -> Option<Kernel> {
        let [b, m, k, n] = [self.size("b")?, self.size("m")?, self.size("k")?, self.size("n")?];
        let (product, m, k) = match *self.0.get("layout")? {
            "TN" => (Product::Forward, b * m, k),
            "NN" => (Product::InputGrad, b * m, k),
            "NT" => (Product::WeightGrad, m, b * k),
            _ => return None,
        };
        ledger.assume("layout TN is the forward product, NN the input gradient, NT the weight gradient");
        if b > 1.0 {
            ledger.assume("b multiplies the tokens of one product; it is no batch of products");
        }
        Some(Kernel::MatMul(MatMul { batch: 1.0, m, k, n, product, format }))
    }

    fn grouped(&self, format: Number, ledger: &mut Ledger) -> Option<Kernel> {
        let [batch, tokens, outputs, inputs] = [self.size("ng")?, self.size("M")?, self.size("N")?, self.size("K")?];
        let (product, m, k, n) = match *self.0.get("stage")? {
            "fwd" => (Product::Forward, tokens, inputs, outputs),
            "bwd_grad_act" => (Product::InputGrad, tokens, outputs, inputs),
            "bwd_grad_w" => (Product::WeightGrad, outputs, tokens, inputs),
            _ => return None,
        };
        ledger.assume("a grouped product counts 2 ng M N K operations in every stage, M tokens of each of ng experts");
        Some(Kernel::MatMul(MatMul { batch, m, k, n, product, format }))
    }

    fn attention(&self, backward: bool, ledger: &mut Ledger) -> Option<Kernel> {
        let [batch, sequence] = [self.size("batch")?, self.size("seq_len")?];
        ledger.assume(
            "attention is causal, but efficiencies count the whole score matrix: 2 batch s^2 heads (qk + v) forward, 2.5 times that backward",
        );
        Some(Kernel::Attention(Attention {
            tokens: batch * sequence,
            squared: batch * sequence * sequence,
            heads: self.size("head_num")?,
            kv_heads: self.size("kv_head_num")?,
            qk_dim: self.size("qk_head_dim")?,
            v_dim: self.size("v_head_dim")?,
            causal: true,
            backward,
        }))
    }
}
