//! Kernel descriptions by shape: the unit for which costs are measured, fitted and predicted.

/// A kernel or collective with shape. The device model predicts its time, and profiles measure it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kernel {
    /// A matrix product, or a batch of equal products.
    MatMul(MatMul),
    /// A fused attention kernel.
    Attention(Attention),
    /// A memory-bound kernel.
    Streaming(Streaming),
    /// A collective or a send.
    Collective(Collective),
}

/// Number format for matrix product inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Format {
    /// 16 bits; fp16 runs at the same rate.
    #[default]
    Bf16,
    /// 8 bits, accumulated at higher precision.
    Fp8,
    /// 32 bits, run as TF32 on tensor cores.
    Fp32,
}

/// Product type in a linear layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Product {
    /// Y = X W.
    Forward,
    /// dX = dY W'.
    InputGrad,
    /// dW += X' dY, accumulated into the gradient.
    WeightGrad,
}

/// `batch` matrix products (m x k) (k x n).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MatMul {
    /// Products that run as one batch: 1, heads x sequences, or the experts on a device.
    pub batch: f64,
    /// Result rows; tokens in a forward product.
    pub m: f64,
    /// Inner dimension.
    pub k: f64,
    /// Result columns.
    pub n: f64,
    /// Product type in its linear layer.
    pub product: Product,
    /// Number format.
    pub format: Format,
}

impl MatMul {
    /// Returns the number of operations, 2 x batch x m x k x n.
    pub fn flops(&self) -> f64 {
        2.0 * self.batch * self.m * self.k * self.n
    }
}

/// Fused attention over packed sequences.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Attention {
    /// Tokens in all sequences.
    pub tokens: f64,
    /// Sum over sequences of query length x key length.
    pub squared: f64,
    /// Query heads per device.
    pub heads: f64,
    /// Key-value heads per device.
    pub kv_heads: f64,
    /// Width per query and key head.
    pub qk_dim: f64,
    /// Width per value head.
    pub v_dim: f64,
    /// True for a causal mask.
    pub causal: bool,
    /// True for the backward pass: five products instead of two.
    pub backward: bool,
}

impl Attention {
    /// Returns the number of operations without masked scores. Forward: 2 x heads x squared x
    /// (qk_dim + v_dim), half of it with a causal mask. A fused backward has 2.5 times as many.
    pub fn flops(&self) -> f64 {
        let seen = if self.causal { 0.5 } else { 1.0 };
        let passes = if self.backward { 2.5 } else { 1.0 };
        2.0 * self.heads * self.squared * (self.qk_dim + self.v_dim) * seen * passes
    }
}

/// Class of a memory-bound kernel. The achieved memory bandwidth depends on the class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StreamingClass {
    /// Layer norm or RMS norm.
    Norm,
    /// Residual addition, dropout.
    Elementwise,
    /// Activation function, rotary embedding.
    Activation,
    /// Embedding lookup and its gradient.
    Embedding,
    /// Softmax over attention scores.
    Softmax,
    /// Cross entropy over the vocabulary.
    Loss,
    /// Token permutation to and from expert order.
    Permute,
    /// Optimizer step.
    Optimizer,
}

/// A memory-bound kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Streaming {
    /// Kernel class.
    pub class: StreamingClass,
    /// Bytes read and written.
    pub bytes: f64,
}

/// Collective or send type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// All devices get the full sum.
    AllReduce,
    /// All devices get all shards.
    AllGather,
    /// A device gets one shard of the sum.
    ReduceScatter,
    /// Devices exchange different shards pairwise.
    AllToAll,
    /// Ring exchange in which all shards visit all devices. With two devices, a single send.
    SendReceive,
}

/// A collective or a send.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Collective {
    /// Operation type.
    pub operation: Operation,
    /// Full vector size in bytes: the input of a reduce-scatter, the output of an all-gather, the
    /// bytes that a device sends in an all-to-all, or the bytes sent over all hops of a ring.
    pub bytes: f64,
    /// Devices in the group.
    pub ranks: u32,
    /// Group devices per node.
    pub ranks_per_node: u32,
}
