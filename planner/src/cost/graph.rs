//! The operator graph of one layer (or of what stands before the first and behind the last) for one microbatch.
//!
//! Nodes are operators and tensors. Operators stand in the order in which a device runs them, forward first, then
//! backward; a tensor lives from the operator that makes it to the last that reads it. Time is a sum over
//! operators ([`super::layer`]), memory a scan over lifetimes ([`OperatorGraph::lifetimes`]).

mod attention;
mod ends;
mod mlp;
mod transformer;

pub use transformer::layer;

pub use ends::{input, output};

use super::kernel::{Format, Kernel, MatMul, Operation, Product, Streaming, StreamingClass};
use super::load::ModuleLoad;
use crate::model::Module;
use crate::training::{Precision, Training};

/// Which part of a training step an operator belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Forward.
    Forward,
    /// Gradient of the input.
    InputGrad,
    /// Gradient of the weights.
    WeightGrad,
}

/// The devices that a collective spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// One device; not a collective.
    Device,
    /// The tensor-parallel group.
    Tensor,
    /// The context-parallel ring.
    Context,
    /// The expert-parallel group.
    Expert,
}

/// A node that takes time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Operator {
    /// What it does, for example "qkv".
    pub name: &'static str,
    /// When it runs.
    pub phase: Phase,
    /// What runs.
    pub kernel: Kernel,
    /// The devices it spans.
    pub span: Span,
    /// A collective that runs beside an operator of the device: that operator's index.
    pub beside: Option<u16>,
    /// Part of the attention core, which selective recomputation repeats.
    pub core: bool,
    /// Nobody needs it but gradients of weights, whatever phase it runs in.
    pub for_weights: bool,
}

/// A node that takes memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tensor {
    /// What it holds, for example "qkv".
    pub name: &'static str,
    /// Bytes on each device.
    pub bytes: f64,
    /// The operator that makes it; `None` for the input of the graph.
    pub made_by: Option<u16>,
    /// The last operator that reads it.
    pub last_read: Option<u16>,
}

/// Index of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorId(u16);

/// Operators and tensors of a piece of a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OperatorGraph {
    /// In running order.
    pub operators: Vec<Operator>,
    /// In the order of their making.
    pub tensors: Vec<Tensor>,
    /// Operators of the forward; the backward follows.
    pub forward_operators: usize,
}

/// What recomputation brings back before the backward.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// Nothing.
    Nothing,
    /// The attention core.
    Core,
    /// The whole piece, from its input.
    All,
}

/// Activation memory of a piece, in bytes on each device.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Lifetimes {
    /// From forward to backward.
    pub kept: f64,
    /// Largest sum of what lives beside that, during the backward.
    pub transient: f64,
}

impl OperatorGraph {
    /// Whether an operator of the forward runs again before the backward.
    pub fn repeats(&self, index: usize, repeat: Repeat) -> bool {
        index < self.forward_operators
            && match repeat {
                Repeat::Nothing => false,
                Repeat::Core => self.operators[index].core,
                Repeat::All => true,
            }
    }

    /// Which bytes live from forward to backward, and the largest sum that lives beside them.
    ///
    /// A tensor of the forward that the backward reads is kept, unless the operator that makes it runs again; then
    /// it lives, like gradients, until its last reader is done.
    pub fn lifetimes(&self, repeat: Repeat) -> Lifetimes {
        let mut kept = 0.0;
        // Changes of what lives at each operator of the backward.
        let backward = self.operators.len() - self.forward_operators;
        let mut change = [0.0_f64; MOST_OPERATORS];
        for tensor in &self.tensors {
            let Some(last) = tensor.last_read.map(usize::from).filter(|&last| last >= self.forward_operators) else {
                continue;
            };
            let made = tensor.made_by.map(usize::from);
            let again = made.is_some_and(|made| self.repeats(made, repeat));
            let first = made.map_or(0, |made| made.saturating_sub(self.forward_operators));
            if made.is_none_or(|made| made < self.forward_operators) && !again {
                kept += tensor.bytes;
            } else {
                change[first] += tensor.bytes;
                change[last - self.forward_operators + 1] -= tensor.bytes;
            }
        }
        let mut live = 0.0_f64;
        let mut transient = 0.0_f64;
        for delta in &change[..=backward] {
            live += delta;
            transient = transient.max(live);
        }
        Lifetimes { kept, transient }
    }
}

/// No piece of a model has more operators.
const MOST_OPERATORS: usize = 128;

/// The shapes that everything in a layer is made of.
#[derive(Debug, Clone, Copy)]
pub struct Shape<'a> {
    /// The module.
    pub module: &'a Module,
    /// Training settings.
    pub training: &'a Training,
    /// Tensor-parallel degree, t.
    pub t: f64,
    /// Context-parallel degree.
    pub c: f64,
    /// Tokens on each device of the context-parallel group, n.
    pub n: f64,
    /// Sum of query length x key length on each of them.
    pub squared: f64,
    /// Length of a sequence, weighted by tokens.
    pub length: f64,
    /// Items (images, clips), for modulation and cross-attention.
    pub items: f64,
    /// Bytes of an activation, w.
    pub w: f64,
}

impl<'a> Shape<'a> {
    /// Of a module's load under the degrees of `training` and a tensor-parallel degree.
    pub fn new(module: &'a Module, training: &'a Training, t: f64, load: ModuleLoad) -> Self {
        let c = f64::from(training.context_parallel);
        let item = f64::from(module.tokens_per_item());
        Self {
            module,
            training,
            t,
            c,
            n: load.tokens / c,
            squared: load.squared / c,
            length: if load.tokens > 0.0 { load.squared / load.tokens } else { 0.0 },
            // Equal items follow from the tokens; clips of video differ in length.
            items: if item > 0.0 { load.tokens / item } else { load.items },
            w: training.width(),
        }
    }

    /// Width of the residual stream, h.
    fn h(&self) -> f64 {
        f64::from(self.module.hidden)
    }

    /// Over how many devices norms, dropout and residual additions are split.
    fn split(&self) -> f64 {
        if self.training.sequence_parallel { self.t } else { 1.0 }
    }

    /// Bytes of the residual stream on each device, w n h / split.
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
}

/// Builds a graph operator by operator.
struct Builder {
    graph: OperatorGraph,
    core: bool,
}

impl Builder {
    fn new() -> Self {
        let mut graph = OperatorGraph::default();
        graph.operators.reserve(48);
        graph.tensors.reserve(40);
        Self { graph, core: false }
    }

    /// A tensor that exists before the graph begins.
    fn given(&mut self, name: &'static str, bytes: f64) -> TensorId {
        self.graph.tensors.push(Tensor { name, bytes, made_by: None, last_read: None });
        TensorId(self.graph.tensors.len() as u16 - 1)
    }

    /// The last operator makes a tensor.
    fn makes(&mut self, name: &'static str, bytes: f64) -> TensorId {
        let made_by = Some(self.graph.operators.len() as u16 - 1);
        self.graph.tensors.push(Tensor { name, bytes, made_by, last_read: made_by });
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
        beside: Option<u16>,
        reads: &[TensorId],
    ) -> u16 {
        let index = self.graph.operators.len() as u16;
        debug_assert!(usize::from(index) + 1 < MOST_OPERATORS, "raise MOST_OPERATORS");
        self.graph.operators.push(Operator { name, phase, kernel, span, beside, core: self.core, for_weights: false });
        for tensor in reads {
            self.graph.tensors[usize::from(tensor.0)].last_read = Some(index);
        }
        index
    }

    /// What follows belongs to the backward.
    fn turn(&mut self) {
        self.graph.forward_operators = self.graph.operators.len();
    }

    /// A collective of the tensor-parallel group over `bytes`; nothing where the group is one device.
    fn tensor_collective(
        &mut self,
        shape: &Shape<'_>,
        name: &'static str,
        phase: Phase,
        operation: Operation,
        bytes: f64,
        beside: Option<u16>,
    ) {
        if shape.t > 1.0 {
            let ranks = shape.t as u32;
            let collective = super::kernel::Collective { operation, bytes, ranks, ranks_per_node: ranks };
            self.span(name, phase, Kernel::Collective(collective), Span::Tensor, beside, &[]);
        }
    }
}

/// A kernel limited by memory.
const fn stream(class: StreamingClass, bytes: f64) -> Kernel {
    Kernel::Streaming(Streaming { class, bytes })
}

/// A forward product of (m x k) and (k x n).
const fn product(m: f64, k: f64, n: f64, format: Format) -> MatMul {
    MatMul { batch: 1.0, m, k, n, product: Product::Forward, format }
}

/// The gradient of a forward product's input.
const fn input_grad(forward: MatMul) -> Kernel {
    Kernel::MatMul(MatMul { k: forward.n, n: forward.k, product: Product::InputGrad, ..forward })
}

/// The gradient of a forward product's weights.
const fn weight_grad(forward: MatMul) -> Kernel {
    Kernel::MatMul(MatMul { m: forward.k, k: forward.m, product: Product::WeightGrad, ..forward })
}
