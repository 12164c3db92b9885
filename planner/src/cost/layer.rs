//! One transformer layer, and what stands before the first and behind the last (docs/models.md, section 3).

use super::collective::Group;
use super::load::ModuleLoad;
use super::memory;
use super::operator::{
    BF16, FUSED_ATTENTION_BACKWARD, UNFUSED_ATTENTION_BACKWARD, fused_attention, matmul, memory_bound,
    unfused_attention,
};
use crate::cluster::{Cluster, Device};
use crate::model::Module;
use crate::training::{AttentionKernel, Recompute, Training};
use crate::units::Seconds;

/// Time and activation memory of one piece of a module for one microbatch, on each device of the
/// tensor-parallel group. Communication is inside the times; `exposed_*` says how much of them it is.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LayerCost {
    /// Forward.
    pub forward: Seconds,
    /// Gradient of the input, with what is computed again before it.
    pub input_grad: Seconds,
    /// Gradient of the weights.
    pub weight_grad: Seconds,
    /// Communication inside the forward.
    pub exposed_forward: Seconds,
    /// Communication inside the backward.
    pub exposed_backward: Seconds,
    /// Kept from forward to backward, in bytes.
    pub activation: f64,
    /// Held during the backward only: what recomputation brings back, in bytes.
    pub transient: f64,
}

impl LayerCost {
    /// `count` equal layers after each other: times and kept activations add up, transient memory does not.
    #[must_use]
    pub fn times(self, count: u32) -> Self {
        let n = f64::from(count);
        Self {
            forward: self.forward * n,
            input_grad: self.input_grad * n,
            weight_grad: self.weight_grad * n,
            exposed_forward: self.exposed_forward * n,
            exposed_backward: self.exposed_backward * n,
            activation: self.activation * n,
            transient: if count > 0 { self.transient } else { 0.0 },
        }
    }

    /// Two pieces after each other.
    #[must_use]
    pub fn then(self, other: Self) -> Self {
        Self {
            forward: self.forward + other.forward,
            input_grad: self.input_grad + other.input_grad,
            weight_grad: self.weight_grad + other.weight_grad,
            exposed_forward: self.exposed_forward + other.exposed_forward,
            exposed_backward: self.exposed_backward + other.exposed_backward,
            activation: self.activation + other.activation,
            transient: self.transient.max(other.transient),
        }
    }

    /// Forward and backward together.
    pub fn total(&self) -> Seconds {
        self.forward + self.input_grad + self.weight_grad
    }
}

/// The layers of one module under one tensor-parallel degree.
#[derive(Debug, Clone)]
pub struct LayerModel<'a> {
    module: &'a Module,
    device: &'a Device,
    training: &'a Training,
    group: Group,
    /// Tensor-parallel degree, t.
    t: f64,
}

impl<'a> LayerModel<'a> {
    /// A module cut over `tensor` devices that stand next to each other.
    pub fn new(module: &'a Module, cluster: &'a Cluster, training: &'a Training, tensor: u32) -> Self {
        let group = Group::placed(cluster, tensor, 1);
        Self { module, device: &cluster.device, training, group, t: f64::from(tensor) }
    }

    /// One layer.
    pub fn layer(&self, load: ModuleLoad) -> LayerCost {
        if load.tokens <= 0.0 {
            return LayerCost::default();
        }
        let attention = self.attention(load);
        let (linear_forward, linear_input, linear_weight) = self.linear(load.tokens);
        let elementwise = self.elementwise(load.tokens);
        let communication = self.communication(load.tokens);
        let forward = linear_forward + attention.forward + elementwise + communication;
        let mut input_grad = linear_input + attention.backward + elementwise * 2.0 + communication;
        let mut exposed_backward = communication;
        match self.training.recompute {
            Recompute::None => {}
            Recompute::Selective => input_grad += attention.recomputed,
            Recompute::Full => {
                input_grad += forward;
                exposed_backward += communication;
            }
        }
        let memory = memory::layer(self.module, self.training, self.t, load);
        LayerCost {
            forward,
            input_grad,
            weight_grad: linear_weight,
            exposed_forward: communication,
            exposed_backward,
            activation: memory.kept,
            transient: memory.transient,
        }
    }

    /// What stands before the first layer: token embedding, or the projection of patches.
    pub fn input(&self, load: ModuleLoad) -> LayerCost {
        let n = load.tokens;
        if n <= 0.0 {
            return LayerCost::default();
        }
        let h = f64::from(self.module.hidden);
        let lookup = memory_bound(self.device, 2.0 * BF16 * n * h / self.t);
        let (forward, weight_grad) = match self.module.patch {
            Some(patch) => {
                let edge = f64::from(patch.patch_px);
                let pixels = 3.0 * edge * edge;
                (matmul(self.device, 1.0, n, pixels, h / self.t), matmul(self.device, 1.0, pixels, n, h / self.t))
            }
            None => (lookup, lookup),
        };
        let exposed = self.exposed(self.group.reduce_scatter(BF16 * n * h));
        LayerCost {
            forward: forward + exposed,
            weight_grad,
            exposed_forward: exposed,
            activation: memory::input(self.module, self.training, self.t, load),
            ..LayerCost::default()
        }
    }

    /// What stands behind the last layer: final norm, output head, loss.
    pub fn output(&self, load: ModuleLoad) -> LayerCost {
        let n = load.tokens;
        if n <= 0.0 {
            return LayerCost::default();
        }
        let (h, v) = (f64::from(self.module.hidden), f64::from(self.module.vocab));
        let norm = memory_bound(self.device, 2.0 * BF16 * n * h / self.sequence_split());
        if v == 0.0 {
            let activation = memory::output(self.module, self.training, self.t, load);
            return LayerCost { forward: norm, input_grad: norm * 2.0, activation, ..LayerCost::default() };
        }
        let loss = memory_bound(self.device, 3.0 * 4.0 * n * v / self.t);
        let exposed = self.exposed(self.group.all_gather(BF16 * n * h));
        LayerCost {
            forward: norm + matmul(self.device, 1.0, n, h, v / self.t) + loss + exposed,
            input_grad: norm * 2.0 + matmul(self.device, 1.0, n, v / self.t, h) + loss + exposed,
            weight_grad: matmul(self.device, 1.0, h, n, v / self.t),
            exposed_forward: exposed,
            exposed_backward: exposed,
            activation: memory::output(self.module, self.training, self.t, load),
            transient: 0.0,
        }
    }

    fn sequence_split(&self) -> f64 {
        if self.training.sequence_parallel { self.t } else { 1.0 }
    }

    fn exposed(&self, communication: Seconds) -> Seconds {
        communication * (1.0 - self.training.tensor_overlap)
    }

    /// Forward, input gradient and weight gradient of the linear parts.
    fn linear(&self, n: f64) -> (Seconds, Seconds, Seconds) {
        let module = self.module;
        let (h, f, t) = (f64::from(module.hidden), f64::from(module.ffn), self.t);
        let qkv = (h + 2.0 * f64::from(module.kv_width())) / t;
        let up = if module.gated { 2.0 * f / t } else { f / t };
        // Rows that each expert sees when the router is balanced.
        let (experts, rows) = match module.moe {
            Some(moe) => (f64::from(moe.experts), n * f64::from(moe.top_k) / f64::from(moe.experts)),
            None => (1.0, n),
        };
        let router = module.moe.map(|moe| (1.0, n, h, f64::from(moe.experts)));
        let products = [(1.0, n, h, qkv), (1.0, n, h / t, h), (experts, rows, h, up), (experts, rows, f / t, h)];
        let mut sums = (Seconds::ZERO, Seconds::ZERO, Seconds::ZERO);
        for (batch, m, k, out) in products.into_iter().chain(router) {
            sums.0 += matmul(self.device, batch, m, k, out);
            sums.1 += matmul(self.device, batch, m, out, k);
            sums.2 += matmul(self.device, batch, k, m, out);
        }
        sums
    }

    /// Norms, residual additions and the activation function, forward; the backward moves twice as much.
    fn elementwise(&self, n: f64) -> Seconds {
        let (h, f) = (f64::from(self.module.hidden), f64::from(self.module.ffn));
        let norm = memory_bound(self.device, 2.0 * BF16 * n * h / self.sequence_split());
        let residual = memory_bound(self.device, 3.0 * BF16 * n * h / self.sequence_split());
        let routed = self.module.moe.map_or(1.0, |moe| f64::from(moe.top_k));
        let streams = if self.module.gated { 3.0 } else { 2.0 };
        let activation = memory_bound(self.device, streams * BF16 * n * routed * f / self.t);
        norm * 2.0 + residual * 2.0 + activation
    }

    /// Two all-reduces of the residual stream a pass, or the same volume as all-gather and reduce-scatter under
    /// sequence parallelism.
    fn communication(&self, n: f64) -> Seconds {
        self.exposed(self.group.all_reduce(BF16 * n * f64::from(self.module.hidden)) * 2.0)
    }

    fn attention(&self, load: ModuleLoad) -> AttentionCost {
        let flops = self.module.layer_attention_flops(load.squared) / self.t;
        match self.training.attention {
            AttentionKernel::Flash => {
                let length = load.squared / load.tokens;
                let forward = fused_attention(self.device, flops, length);
                let backward = fused_attention(self.device, flops * FUSED_ATTENTION_BACKWARD, length);
                // The fused backward recomputes the scores anyway; there is nothing left to recompute.
                AttentionCost { forward, backward, recomputed: Seconds::ZERO }
            }
            AttentionKernel::Unfused => {
                let scores = f64::from(self.module.heads) / self.t * load.squared;
                // Separate kernels compute the whole score matrix, whatever the mask.
                let full = crate::units::Flops::new(4.0 * f64::from(self.module.hidden) * load.squared / self.t);
                let forward = unfused_attention(self.device, full, scores);
                let backward = unfused_attention(self.device, full * UNFUSED_ATTENTION_BACKWARD, 2.0 * scores);
                AttentionCost { forward, backward, recomputed: forward }
            }
        }
    }
}

struct AttentionCost {
    forward: Seconds,
    backward: Seconds,
    recomputed: Seconds,
}
