//! Operator graphs for a layer, an input block or an output block with one microbatch.
//!
//! The nodes are operators and tensors, as in SEMU (PipeWeaver Sec. 4.1). Operators are listed in
//! execution order: the forward, then the backward. A tensor is live from the producer to the last
//! reader. [`super::layer`] sums operator times. [`OperatorGraph::lifetimes`] computes memory from
//! lifetimes.

mod adapters;
mod attention;
mod ends;
mod latent;
mod linear;
mod mlp;
mod transformer;

pub use transformer::layer;

pub use ends::{input, loss, output, prediction};

use super::kernel::{Collective, Format, Kernel, MatMul, Operation, Product, Streaming, StreamingClass};
use super::load::ModuleLoad;
use planscope_core::model::{LayerKind, Mixer, MlpKind, Module, Moe};
use planscope_core::training::{Precision, RecomputedModule, RecomputedModules, Training};

/// Part of a training step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Forward pass.
    Forward,
    /// Gradient with respect to the input.
    InputGrad,
    /// Gradient with respect to the weights.
    WeightGrad,
}

/// Devices that an operator spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// A single device, for all operators except collectives.
    Device,
    /// The tensor-parallel group.
    Tensor,
    /// The context-parallel group.
    Context,
    /// The expert-parallel group.
    Expert,
}

/// An operator: a graph node with a run time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Operator {
    /// Operator name, for example "qkv".
    pub name: &'static str,
    /// Phase in which the operator runs.
    pub phase: Phase,
    /// Kernel or collective with its shape.
    pub kernel: Kernel,
    /// Devices that the operator spans.
    pub span: Span,
    /// Index of the compute operator that an overlapped collective runs in parallel with.
    pub overlapped_with: Option<u16>,
    /// True if the operator is part of the attention core, which selective recomputation repeats.
    pub core: bool,
    /// True if only weight gradients depend on the operator, in any phase.
    pub for_weights: bool,
    /// Modules to which a forward operator belongs.
    pub modules: RecomputedModules,
    /// Number of launches by the host. More than one in a loop over experts, which the kernel describes together.
    pub launches: f64,
}

impl Operator {
    /// True if the host reads the number of tokens of each expert before it launches the operator, so that the device
    /// waits for the host.
    pub fn waits_for_host(&self) -> bool {
        self.launches > 1.0 && self.phase == Phase::Forward
    }

    /// Returns the repeated share with recomputation by operator. Of the products in order (query,
    /// key, value, projection, gate, up, down), every second is repeated. The graph joins gate and
    /// up. Attention and reductions are stored.
    fn share_of_operators(&self) -> f64 {
        match (self.kernel, self.name) {
            (Kernel::Streaming(_), _) | (_, "projection" | "gather sequence") => 1.0,
            (_, "mlp up") => 0.5,
            _ => 0.0,
        }
    }
}

/// A tensor: a graph node with a memory size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tensor {
    /// Tensor name, for example "qkv".
    pub name: &'static str,
    /// Bytes per device.
    pub bytes: f64,
    /// Index of the producer; `None` for a graph input.
    pub producer: Option<u16>,
    /// Index of the last operator that reads the tensor.
    pub last_read: Option<u16>,
}

/// Index into [`OperatorGraph::tensors`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorId(u16);

/// Operators and tensors for a layer, an input block or an output block.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OperatorGraph {
    /// Operators in execution order.
    pub operators: Vec<Operator>,
    /// Tensors in creation order.
    pub tensors: Vec<Tensor>,
    /// Number of forward operators. The backward operators follow.
    pub forward_operators: usize,
}

/// Operators that recomputation repeats before the backward.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// No operators.
    Nothing,
    /// The attention core.
    Core,
    /// Memory-bound operators, the attention projection and every second product of the MLP.
    Operators,
    /// The operators of some modules.
    Modules(RecomputedModules),
    /// All forward operators.
    All,
}

/// Activation memory in bytes per device.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Lifetimes {
    /// Bytes stored for the backward.
    pub stored: f64,
    /// Peak temporary bytes during the backward, not including `stored`.
    pub transient: f64,
}

impl OperatorGraph {
    /// Returns the share of operator `index` that recomputation repeats before the backward, 0 to 1.
    pub fn repeated_share(&self, index: usize, repeat: Repeat) -> f64 {
        if index >= self.forward_operators {
            return 0.0;
        }
        let operator = &self.operators[index];
        match repeat {
            Repeat::Nothing => 0.0,
            Repeat::Core => f64::from(u8::from(operator.core)),
            Repeat::Operators => operator.share_of_operators(),
            Repeat::Modules(modules) => f64::from(u8::from(operator.modules.intersects(modules))),
            Repeat::All => 1.0,
        }
    }

    /// Returns the matrix product that the tensor-parallel collective `index` can overlap chunk by chunk: the product that
    /// reads a gathered tensor, or that makes the partial sums of a reduction.
    pub fn chunked_with(&self, index: usize) -> Option<usize> {
        let collective = &self.operators[index];
        let is_neighbour = |&other: &usize| self.operators[other].phase == collective.phase;
        let neighbour = match collective.kernel {
            Kernel::Collective(Collective { operation: Operation::AllGather, .. }) if collective.for_weights => None,
            Kernel::Collective(Collective { operation: Operation::AllGather, .. }) => {
                (index + 1..self.operators.len()).find(is_neighbour)
            }
            _ => (0..index).rev().find(is_neighbour),
        };
        neighbour.filter(|&other| matches!(self.operators[other].kernel, Kernel::MatMul(_)))
    }

    /// Computes the stored bytes and the peak temporary bytes.
    ///
    /// The backward's inputs from the forward are stored. If the producer is recomputed, the tensor
    /// is temporary like a gradient, and live to the last reader.
    pub fn lifetimes(&self, repeat: Repeat) -> Lifetimes {
        let mut stored = 0.0;
        // Change of the live bytes at each backward operator.
        let backward = self.operators.len() - self.forward_operators;
        let mut change = [0.0_f64; MAX_OPERATORS];
        for tensor in &self.tensors {
            let Some(last) = tensor.last_read.map(usize::from).filter(|&last| last >= self.forward_operators) else {
                continue;
            };
            let producer = tensor.producer.map(usize::from);
            let again = producer.map_or(0.0, |index| self.repeated_share(index, repeat));
            let first = producer.map_or(0, |operator| operator.saturating_sub(self.forward_operators));
            let from_forward = producer.is_none_or(|producer_index| producer_index < self.forward_operators);
            let kept = if from_forward { tensor.bytes * (1.0 - again) } else { 0.0 };
            stored += kept;
            change[first] += tensor.bytes - kept;
            change[last - self.forward_operators + 1] -= tensor.bytes - kept;
        }
        let mut live = 0.0_f64;
        let mut transient = 0.0_f64;
        for delta in &change[..=backward] {
            live += delta;
            transient = transient.max(live);
        }
        Lifetimes { stored, transient }
    }
}

/// Upper limit on the operators in a graph.
const MAX_OPERATORS: usize = 192;

/// Shapes from which the operators of a layer are built.
#[derive(Debug, Clone, Copy)]
pub struct Shape<'a> {
    /// The module.
    pub module: &'a Module,
    /// Kind of the layer.
    pub kind: LayerKind,
    /// Training settings.
    pub training: &'a Training,
    /// Tensor-parallel degree, t.
    pub t: f64,
    /// Context-parallel degree.
    pub c: f64,
    /// Tokens per device after the context-parallel split, n.
    pub n: f64,
    /// Sum of query length x key length per device.
    pub squared: f64,
    /// Mean sequence length, weighted by tokens.
    pub length: f64,
    /// Item count (images, clips), for modulation and cross-attention.
    pub items: f64,
    /// Bytes per activation value, w.
    pub w: f64,
}

impl<'a> Shape<'a> {
    /// Computes the shapes for a module load, a tensor-parallel degree `t` and the remaining
    /// degrees in `training`. The layer is of the module's most frequent kind.
    pub fn new(module: &'a Module, training: &'a Training, t: f64, load: ModuleLoad) -> Self {
        Self::of_kind(module, module.main_kind(), (training, t), load)
    }

    /// Computes the shapes for a layer of kind `kind`.
    pub fn of_kind(module: &'a Module, kind: LayerKind, (training, t): (&'a Training, f64), load: ModuleLoad) -> Self {
        let c = f64::from(training.context_parallel);
        let item = f64::from(module.tokens_per_item());
        Self {
            module,
            kind,
            training,
            t,
            c,
            n: load.tokens / c,
            squared: load.squared / c,
            length: if load.tokens > 0.0 { load.squared / load.tokens } else { 0.0 },
            // Items with a fixed length follow from the token count. Video clips have different
            // lengths.
            items: if item > 0.0 { load.tokens / item } else { load.items },
            w: training.width(),
        }
    }

    fn h(&self) -> f64 {
        f64::from(self.module.hidden)
    }

    /// Returns the experts of the layer, if it has any.
    fn moe(&self) -> Option<Moe> {
        self.module.moe.filter(|_| self.kind.mlp == Some(MlpKind::Experts))
    }

    /// Returns the shape of the routed experts. Without tensor parallelism of their own, the devices of a tensor-parallel
    /// group have a share of the tokens each, and whole experts.
    fn at_experts(&self) -> Self {
        if self.training.expert_tensor(2) == 1 && self.t > 1.0 {
            Self { t: 1.0, n: self.n / self.t, ..*self }
        } else {
            *self
        }
    }

    /// Sum of query length x attended keys per device, for the layer's mixer.
    fn attended_squared(&self) -> f64 {
        match self.kind.mixer {
            Some(mixer) if mixer != Mixer::Attention => {
                self.module.attended(mixer, self.n * self.c, self.squared * self.c) / self.c
            }
            _ => self.squared,
        }
    }

    /// Number of devices that share norms, dropout and residual additions (sequence parallelism).
    fn split(&self) -> f64 {
        if self.training.sequence_parallel { self.t } else { 1.0 }
    }

    /// Residual stream bytes per device, w n h / split.
    fn stream(&self) -> f64 {
        self.w * self.n * self.h() / self.split()
    }

    fn format(&self) -> Format {
        match self.training.precision {
            Precision::Bf16 => Format::Bf16,
            Precision::Fp8 => Format::Fp8,
            Precision::Fp32 => Format::Fp32,
        }
    }

    /// Number format of products that frameworks leave out of fp8: input and output blocks, routers and adapters.
    fn wide_format(&self) -> Format {
        match self.format() {
            Format::Fp8 => Format::Bf16,
            format => format,
        }
    }
}

struct Builder {
    graph: OperatorGraph,
    core: bool,
    /// Launches of the next operators.
    launches: f64,
    /// Tensors that eager norms store, by the name of the norm.
    norm_copies: Vec<(&'static str, TensorId)>,
}

impl Builder {
    fn new() -> Self {
        let mut graph = OperatorGraph::default();
        graph.operators.reserve(48);
        graph.tensors.reserve(40);
        Self { graph, core: false, launches: 1.0, norm_copies: Vec::new() }
    }

    /// Adds a tensor that exists before the first operator.
    fn given(&mut self, name: &'static str, bytes: f64) -> TensorId {
        self.graph.tensors.push(Tensor { name, bytes, producer: None, last_read: None });
        TensorId(self.graph.tensors.len() as u16 - 1)
    }

    /// Adds a tensor produced by the last operator.
    fn makes(&mut self, name: &'static str, bytes: f64) -> TensorId {
        let producer = Some(self.graph.operators.len() as u16 - 1);
        self.graph.tensors.push(Tensor { name, bytes, producer, last_read: producer });
        TensorId(self.graph.tensors.len() as u16 - 1)
    }

    /// Returns the tensor that the weight gradient of a product with input `input` reads: a copy in fp8 if the framework
    /// stores one. Frozen weights have no gradient, and adapters read the input itself.
    fn product_input(&mut self, shape: &Shape<'_>, input: TensorId) -> TensorId {
        if shape.module.adapters.is_some() || !shape.training.stores_fp8_inputs() {
            return input;
        }
        self.fp8_copy(shape, input)
    }

    /// Returns the tensor that the gradient of an activation function with input `input` reads.
    fn activation_input(&mut self, shape: &Shape<'_>, input: TensorId) -> TensorId {
        if shape.training.stores_fp8_activation_input() { self.fp8_copy(shape, input) } else { input }
    }

    /// Adds a copy in fp8, which recomputation repeats with its original.
    fn fp8_copy(&mut self, shape: &Shape<'_>, original: TensorId) -> TensorId {
        let tensor = self.graph.tensors[usize::from(original.0)];
        let copy = Tensor { name: "fp8 copy", bytes: tensor.bytes / shape.w, last_read: tensor.producer, ..tensor };
        self.graph.tensors.push(copy);
        TensorId(self.graph.tensors.len() as u16 - 1)
    }

    fn run(&mut self, name: &'static str, phase: Phase, kernel: Kernel, reads: &[TensorId]) -> u16 {
        self.span(name, phase, kernel, Span::Device, None, reads)
    }

    fn span(
        &mut self,
        name: &'static str,
        phase: Phase,
        kernel: Kernel,
        span: Span,
        overlapped_with: Option<u16>,
        reads: &[TensorId],
    ) -> u16 {
        let index = self.graph.operators.len() as u16;
        debug_assert!(usize::from(index) + 1 < MAX_OPERATORS, "raise MAX_OPERATORS");
        self.graph.operators.push(Operator {
            name,
            phase,
            kernel,
            span,
            overlapped_with,
            core: self.core,
            for_weights: false,
            modules: RecomputedModules::default(),
            launches: self.launches,
        });
        for tensor in reads {
            self.graph.tensors[usize::from(tensor.0)].last_read = Some(index);
        }
        index
    }

    /// Assigns the forward operators of a layer to modules.
    fn mark_modules(&mut self, has_experts: bool) {
        let operators = &mut self.graph.operators;
        let place = |operators: &[Operator], name: &str| operators.iter().position(|operator| operator.name == name);
        let count = operators.len();
        let mlp = place(operators, "mlp norm").map_or(count, |norm| norm + 1);
        let router = place(operators, "router").unwrap_or(count);
        let end = place(operators, "mlp residual").unwrap_or(count);
        for (index, operator) in operators.iter_mut().enumerate() {
            let is_in_mlp = (mlp..end).contains(&index);
            let mut add = |module: RecomputedModule, belongs: bool| {
                if belongs {
                    operator.modules = operator.modules.with(module);
                }
            };
            let name = operator.name;
            add(RecomputedModule::CoreAttn, operator.core);
            add(RecomputedModule::MlaUpProj, matches!(name, "query up" | "key-value up" | "rotary positions"));
            add(RecomputedModule::Layernorm, matches!(name, "input norm" | "mlp norm"));
            add(RecomputedModule::Mlp, is_in_mlp && !has_experts);
            add(RecomputedModule::Moe, is_in_mlp && has_experts);
            add(RecomputedModule::MoeAct, name == "activation" && has_experts && index > router);
            add(RecomputedModule::SharedExperts, is_in_mlp && has_experts && index < router);
        }
        // Rotary positions are part of the up-projection only in latent attention.
        if place(operators, "query up").is_none() && place(operators, "key-value up").is_none() {
            for operator in operators {
                operator.modules = operator.modules.without(RecomputedModule::MlaUpProj);
            }
        }
    }

    /// Starts the backward: all operators added later belong to it.
    fn turn(&mut self) {
        self.graph.forward_operators = self.graph.operators.len();
    }

    /// Adds a tensor-parallel collective over `bytes`, if the group has several devices.
    fn tensor_collective(
        &mut self,
        shape: &Shape<'_>,
        name: &'static str,
        phase: Phase,
        operation: Operation,
        bytes: f64,
        overlapped_with: Option<u16>,
    ) {
        if shape.t > 1.0 {
            let ranks = shape.t as u32;
            let collective = Collective { operation, bytes, ranks, ranks_per_node: ranks };
            self.span(name, phase, Kernel::Collective(collective), Span::Tensor, overlapped_with, &[]);
        }
    }
}

/// Returns a memory-bound kernel.
const fn stream(class: StreamingClass, bytes: f64) -> Kernel {
    Kernel::Streaming(Streaming { class, bytes })
}

/// Returns the forward product (m x k) (k x n).
const fn product(m: f64, k: f64, n: f64, format: Format) -> MatMul {
    MatMul { batch: 1.0, m, k, n, product: Product::Forward, format }
}

/// Returns the input gradient product for a forward product.
const fn input_grad(forward: MatMul) -> Kernel {
    Kernel::MatMul(MatMul { k: forward.n, n: forward.k, product: Product::InputGrad, ..forward })
}

/// Returns the weight gradient product for a forward product.
const fn weight_grad(forward: MatMul) -> Kernel {
    Kernel::MatMul(MatMul { m: forward.k, k: forward.m, product: Product::WeightGrad, ..forward })
}
