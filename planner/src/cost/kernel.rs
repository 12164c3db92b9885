//! What runs on a device, by shape: the unit in which costs are measured, fitted and predicted.

/// One kernel or collective with its shape; what the device model prices and what profiles measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kernel {
    /// A matrix product, or a group of equal ones.
    MatMul(MatMul),
    /// A fused attention kernel.
    Attention(Attention),
    /// A kernel limited by memory.
    Streaming(Streaming),
    /// Communication of a group of devices.
    Collective(Collective),
}

/// Number format of a matrix product's inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Format {
    /// 16 bits; fp16 runs at the same rate.
    #[default]
    Bf16,
    /// 8 bits, accumulated in more.
    Fp8,
    /// 32 bits, as TF32 on the matrix units.
    Fp32,
}

/// Which of the three products of a linear layer it is.
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
    /// Products of that shape that run together: 1, the heads of a batch, or the experts of a device.
    pub batch: f64,
    /// Rows of the result: tokens, in a forward product.
    pub m: f64,
    /// Inner dimension.
    pub k: f64,
    /// Columns of the result.
    pub n: f64,
    /// Which of a linear layer's products.
    pub product: Product,
    /// Number format.
    pub format: Format,
}

impl MatMul {
    /// Operations: 2 x batch x m x k x n.
    pub fn flops(&self) -> f64 {
        2.0 * self.batch * self.m * self.k * self.n
    }
}

/// Fused attention over packed sequences.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Attention {
    /// Tokens of all sequences.
    pub tokens: f64,
    /// Sum over sequences of query length x key length.
    pub squared: f64,
    /// Query heads on this device.
    pub heads: f64,
    /// Key and value heads on this device.
    pub kv_heads: f64,
    /// Width of a query and key head.
    pub qk_dim: f64,
    /// Width of a value head.
    pub v_dim: f64,
    /// Whether a token sees only what stands before it.
    pub causal: bool,
    /// Backward pass: five products where the forward has two.
    pub backward: bool,
}

impl Attention {
    /// Operations that the mask leaves: forward 2 x heads x squared x (qk_dim + v_dim), half of it when causal;
    /// a fused backward 2.5 times as much.
    pub fn flops(&self) -> f64 {
        let seen = if self.causal { 0.5 } else { 1.0 };
        let passes = if self.backward { 2.5 } else { 1.0 };
        2.0 * self.heads * self.squared * (self.qk_dim + self.v_dim) * seen * passes
    }
}

/// What a memory-bound kernel does; each class has its own share of the bandwidth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StreamingClass {
    /// Layer or RMS norm.
    Norm,
    /// Residual addition, dropout.
    Elementwise,
    /// Activation function, rotary positions.
    Activation,
    /// Embedding lookup and its gradient.
    Embedding,
    /// Softmax over scores.
    Softmax,
    /// Cross entropy over the vocabulary.
    Loss,
    /// Moving tokens to and from experts' order.
    Permute,
    /// Optimizer step.
    Optimizer,
}

/// A kernel that is limited by memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Streaming {
    /// What it does.
    pub class: StreamingClass,
    /// Bytes read and written.
    pub bytes: f64,
}

/// What a group of devices does together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Every device ends with the sum.
    AllReduce,
    /// Every device ends with all parts.
    AllGather,
    /// Every device ends with its part of the sum.
    ReduceScatter,
    /// Every device sends a part to every other.
    AllToAll,
    /// Every device sends to the next of a ring, until what each had has come round: between two, one send.
    SendReceive,
}

/// A collective, or a send.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Collective {
    /// What it does.
    pub operation: Operation,
    /// Bytes of the whole vector: before a reduce-scatter, after an all-gather, sent by one device in an all-to-all or in all hops of a
    /// ring.
    pub bytes: f64,
    /// Devices of the group.
    pub ranks: u32,
    /// Of them on one node.
    pub ranks_per_node: u32,
}
