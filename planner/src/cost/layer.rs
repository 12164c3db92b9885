//! Time and memory of one transformer layer, and of what stands before the first and behind the last: sums over
//! the operator graph (docs/models.md, section 3).

use super::collective::Group;
use super::graph::{self, Operator, OperatorGraph, Phase, Repeat, Shape, Span};
use super::kernel::Kernel;
use super::load::ModuleLoad;
use super::operator::Rates;
use super::overrides::{Overrides, Stretches};
use crate::cluster::Cluster;
use crate::model::{Gradients, Module};
use crate::training::{AttentionKernel, Recompute, Training};
use crate::units::Seconds;

/// How much longer a product and a collective take when they run beside each other: measured on A100s by
/// Hetu-Galvatron (overlap coefficient).
pub(super) const OVERLAP_SLOWDOWN: f64 = 1.1256;
/// Bandwidth to the host's memory where the device does not say: PCIe 4.0 x16.
const HOST_GB_PER_S: f64 = 25.0;

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
    /// What is computed again, inside the gradient of the input.
    pub recomputed: Seconds,
    /// All communication of forward and backward, hidden or not.
    pub communication: Seconds,
    /// Time that the host needs to start the forward's operators.
    pub host_forward: Seconds,
    /// Time that the host needs to start the backward's operators.
    pub host_backward: Seconds,
    /// Kept from forward to backward, in bytes.
    pub activation: f64,
    /// Held during the backward only: gradients, and what recomputation brings back, in bytes.
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
            recomputed: self.recomputed * n,
            communication: self.communication * n,
            host_forward: self.host_forward * n,
            host_backward: self.host_backward * n,
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
            recomputed: self.recomputed + other.recomputed,
            communication: self.communication + other.communication,
            host_forward: self.host_forward + other.host_forward,
            host_backward: self.host_backward + other.host_backward,
            activation: self.activation + other.activation,
            transient: self.transient.max(other.transient),
        }
    }

    /// Of two ways to run a piece, the shorter times; no memory.
    #[must_use]
    pub(super) fn least(self, other: Self) -> Self {
        let least = |of: fn(&Self) -> Seconds| if of(&other) < of(&self) { of(&other) } else { of(&self) };
        Self {
            forward: least(|cost| cost.forward),
            input_grad: least(|cost| cost.input_grad),
            weight_grad: least(|cost| cost.weight_grad),
            host_forward: least(|cost| cost.host_forward),
            host_backward: least(|cost| cost.host_backward),
            ..Self::default()
        }
    }

    /// Forward and backward together, as the device or the host lets them pass, whichever is slower.
    pub fn total(&self) -> Seconds {
        self.forward.max(self.host_forward) + (self.input_grad + self.weight_grad).max(self.host_backward)
    }

    /// With ZeRO-3: weights gathered before forward and backward, gradients reduced behind; the overlapped share
    /// runs beside the computation as long as that lasts.
    #[must_use]
    pub fn with_sharding(mut self, (gather, reduce): (Seconds, Seconds), overlap: f64) -> Self {
        if gather + reduce > Seconds::ZERO {
            let stands = |traffic: Seconds, beside: Seconds| exposed(traffic, overlap, Some(beside));
            let forward = stands(gather, self.forward);
            self.forward += forward;
            self.exposed_forward += forward;
            self.communication += gather;
            let beside = self.input_grad + self.weight_grad;
            if beside == Seconds::ZERO && self.forward > forward {
                // A frozen stage has no backward to gather weights for.
                return self;
            }
            let backward = stands(gather + reduce, beside);
            self.input_grad += backward;
            self.exposed_backward += backward;
            self.communication += gather + reduce;
        }
        self
    }

    /// With the host's time where it is the longer: the device waits for its next operator. `microbatch` is what
    /// the host does once for a microbatch, a third of it before the forward.
    #[must_use]
    pub fn as_started(mut self, microbatch: Seconds) -> Self {
        if self.forward > Seconds::ZERO {
            self.forward = self.forward.max(self.host_forward + microbatch / 3.0);
        }
        let backward = self.input_grad + self.weight_grad;
        let host = self.host_backward + microbatch * (2.0 / 3.0);
        if host > backward && backward > Seconds::ZERO {
            let stretch = host.secs() / backward.secs();
            self.input_grad = self.input_grad * stretch;
            self.weight_grad = self.weight_grad * stretch;
        }
        self
    }
}

/// The layers of one module under one tensor-parallel degree.
#[derive(Debug, Clone)]
pub struct LayerModel<'a> {
    module: &'a Module,
    training: &'a Training,
    rates: Rates,
    tensor: Group,
    context: Group,
    expert: Group,
    /// Bytes per second to the host's memory.
    host: f64,
    /// Tensor-parallel degree, t.
    t: f64,
    /// Times that the user gives in place of the model's.
    overrides: Overrides<'a>,
    /// What the backward computes.
    gradients: Gradients,
}

/// The operators of a module's pieces with their predicted times.
#[derive(Debug, Clone)]
pub struct Predictions {
    /// One layer.
    pub layer: Vec<(Operator, Seconds)>,
    /// What stands before the first.
    pub input: Vec<(Operator, Seconds)>,
    /// What stands behind the last.
    pub output: Vec<(Operator, Seconds)>,
}

/// Which parts of the backward run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Backward {
    /// Gradients of inputs.
    inputs: bool,
    /// Gradients of weights.
    weights: bool,
}

impl Backward {
    const WHOLE: Self = Self { inputs: true, weights: true };
    const NONE: Self = Self { inputs: false, weights: false };

    const fn runs(self, operator: &Operator) -> bool {
        match operator.phase {
            Phase::Forward => true,
            Phase::InputGrad => self.inputs && (self.weights || !operator.for_weights),
            Phase::WeightGrad => self.weights,
        }
    }
}

/// What an operator takes.
#[derive(Debug, Clone, Copy)]
struct Taken {
    /// What it adds to its phase.
    time: Seconds,
    /// Of that, communication.
    exposed: Seconds,
    /// Its communication, hidden or not.
    communication: Seconds,
}

impl<'a> LayerModel<'a> {
    /// A module cut over `tensor` devices that stand next to each other.
    pub fn new(module: &'a Module, cluster: &Cluster, training: &'a Training, tensor: u32) -> Self {
        let context = training.context_parallel;
        Self {
            module,
            training,
            rates: Rates::of(&cluster.device),
            tensor: Group::placed(cluster, tensor, 1),
            context: Group::placed(cluster, context, tensor),
            expert: Group::placed(cluster, training.expert_parallel, tensor),
            host: cluster.device.host_gb_per_s.unwrap_or(HOST_GB_PER_S) * 1e9,
            t: f64::from(tensor),
            overrides: Overrides::of(training, module, tensor),
            gradients: Gradients::All,
        }
    }

    /// The same where some of the backward is not needed.
    #[must_use]
    pub fn with_gradients(self, gradients: Gradients) -> Self {
        Self { gradients, ..self }
    }

    /// The same where context-parallel groups of any size stand on as few nodes as hold them, instead of following each
    /// other in equal blocks.
    #[must_use]
    pub fn in_groups(self, cluster: &Cluster, tensor: u32) -> Self {
        Self { context: Group::compact(cluster, self.training.context_parallel, tensor), ..self }
    }

    /// One layer that recomputes what the settings say.
    pub fn layer(&self, load: ModuleLoad) -> LayerCost {
        self.layer_with(load, self.training.recompute)
    }

    /// One layer that keeps everything, for stages in which only some are recomputed.
    pub fn kept_layer(&self, load: ModuleLoad) -> LayerCost {
        self.layer_with(load, Recompute::None)
    }

    fn layer_with(&self, load: ModuleLoad, recompute: Recompute) -> LayerCost {
        let repeat = match (recompute, self.training.attention) {
            // The fused backward recomputes the scores anyway; there is nothing left to recompute.
            (Recompute::None, _) | (Recompute::Selective, AttentionKernel::Flash) => Repeat::Nothing,
            (Recompute::Selective, AttentionKernel::Unfused) => Repeat::Core,
            (Recompute::Full, _) => Repeat::All,
        };
        let backward = match self.gradients {
            Gradients::All => Backward::WHOLE,
            Gradients::Inputs => Backward { weights: false, ..Backward::WHOLE },
            Gradients::None => Backward::NONE,
        };
        self.piece(load, (repeat, backward), graph::layer, Self::stretches)
    }

    /// What stands before the first layer: token embedding, or the projection of patches.
    pub fn input(&self, load: ModuleLoad) -> LayerCost {
        let backward = if self.gradients == Gradients::All { Backward::WHOLE } else { Backward::NONE };
        self.piece(load, (Repeat::Nothing, backward), graph::input, |_, _, _, _| Stretches::NONE)
    }

    /// What stands behind the last layer: final norm, output head, loss.
    pub fn output(&self, load: ModuleLoad) -> LayerCost {
        let trained = self.gradients == Gradients::All || self.module.has_projection();
        let backward = Backward { inputs: self.gradients != Gradients::None, weights: trained };
        self.piece(load, (Repeat::Nothing, backward), graph::output, |_, _, _, _| Stretches::NONE)
    }

    /// Every operator of the module's pieces with the time that the model predicts for it alone, overrides left out.
    pub fn predictions(&self, load: ModuleLoad) -> Predictions {
        let shape = Shape::new(self.module, self.training, self.t, load);
        let of_piece = |build: fn(&Shape<'_>) -> OperatorGraph| {
            build(&shape).operators.into_iter().map(|operator| (operator, self.predicted(&operator))).collect()
        };
        Predictions { layer: of_piece(graph::layer), input: of_piece(graph::input), output: of_piece(graph::output) }
    }

    fn piece(
        &self,
        load: ModuleLoad,
        (repeat, backward): (Repeat, Backward),
        build: fn(&Shape<'_>) -> OperatorGraph,
        stretches: fn(&Self, &Shape<'_>, &OperatorGraph, &[Taken]) -> Stretches,
    ) -> LayerCost {
        if load.tokens <= 0.0 {
            return LayerCost::default();
        }
        let shape = Shape::new(self.module, self.training, self.t, load);
        let graph = build(&shape);
        let taken = self.taken(&shape, &graph, backward);
        let stretches = stretches(self, &shape, &graph, &taken);
        if backward == Backward::NONE {
            // Nothing is kept for a backward that does not come.
            return self.time(&graph, (Repeat::Nothing, backward), &taken, stretches);
        }
        let mut cost = self.time(&graph, (repeat, backward), &taken, stretches);
        let lifetimes = graph.lifetimes(repeat);
        let away = lifetimes.kept * self.training.activation_offload;
        (cost.activation, cost.transient) = (lifetimes.kept - away, lifetimes.transient);
        if away > 0.0 {
            self.offload(&mut cost, away);
        }
        cost
    }

    /// Moving `bytes` to the host beside the forward and back beside the backward; what does not fit is exposed.
    fn offload(&self, cost: &mut LayerCost, bytes: f64) {
        let transfer = Seconds::from_secs(bytes / self.host);
        let wait = |beside: Seconds| Seconds::from_secs((transfer.secs() - beside.secs()).max(0.0));
        let (forward, backward) = (wait(cost.forward), wait(cost.input_grad + cost.weight_grad));
        cost.forward += forward;
        cost.exposed_forward += forward;
        cost.input_grad += backward;
        cost.exposed_backward += backward;
        cost.communication += transfer * 2.0;
    }

    /// What the model predicts for an operator; for a collective its own duration.
    fn predicted(&self, operator: &Operator) -> Seconds {
        let Kernel::Collective(collective) = operator.kernel else { return self.rates.time(&operator.kernel) };
        let group = match operator.span {
            Span::Device | Span::Tensor => &self.tensor,
            Span::Context => &self.context,
            Span::Expert => &self.expert,
        };
        group.time(collective.operation, collective.bytes)
    }

    /// What the operators of a graph take, as predicted or as the user says; of collectives, what is not hidden.
    fn taken(&self, shape: &Shape<'_>, graph: &OperatorGraph, backward: Backward) -> Vec<Taken> {
        let mut taken: Vec<Taken> = Vec::with_capacity(graph.operators.len());
        for operator in &graph.operators {
            let alone = self.overrides.operator(shape, operator, self.predicted(operator));
            taken.push(if matches!(operator.kernel, Kernel::Collective(_)) {
                // What does not run hides nothing.
                let beside_which = operator.beside.filter(|&other| backward.runs(&graph.operators[usize::from(other)]));
                let stands = match beside_which {
                    Some(other) => beside(alone, taken[usize::from(other)].time),
                    None if operator.span == Span::Tensor => alone * (1.0 - self.training.tensor_overlap),
                    None => alone,
                };
                Taken { time: stands, exposed: stands, communication: alone }
            } else {
                Taken { time: alone, exposed: Seconds::ZERO, communication: Seconds::ZERO }
            });
        }
        taken
    }

    /// How the user's times of whole layers stretch this one.
    fn stretches(&self, shape: &Shape<'_>, graph: &OperatorGraph, taken: &[Taken]) -> Stretches {
        self.overrides.stretches(shape, graph, |index| taken[index].time, Seconds::from_secs(self.rates.host()))
    }

    /// Sums over the operators of a graph.
    fn time(
        &self,
        graph: &OperatorGraph,
        (repeat, backward): (Repeat, Backward),
        taken: &[Taken],
        stretches: Stretches,
    ) -> LayerCost {
        let mut cost = LayerCost::default();
        for (index, (operator, taken)) in graph.operators.iter().zip(taken).enumerate() {
            if !backward.runs(operator) {
                continue;
            }
            let again = graph.repeats(index, repeat);
            let stretch = stretches.of(operator.phase);
            let host = Seconds::from_secs(self.rates.host()) * stretch.host;
            let (time, exposed) = (taken.time * stretch.device, taken.exposed * stretch.device);
            cost.communication += taken.communication * stretch.device * if again { 2.0 } else { 1.0 };
            match operator.phase {
                Phase::Forward => {
                    cost.forward += time;
                    cost.exposed_forward += exposed;
                    cost.host_forward += host;
                }
                Phase::InputGrad => {
                    cost.input_grad += time;
                    cost.exposed_backward += exposed;
                    cost.host_backward += host;
                }
                Phase::WeightGrad => {
                    cost.weight_grad += time;
                    cost.host_backward += host;
                }
            }
            if again {
                cost.input_grad += time;
                cost.recomputed += time - exposed;
                cost.exposed_backward += exposed;
                cost.host_backward += host;
            }
        }
        cost
    }
}

/// What is exposed of a collective of which the share `overlap` may run beside computation, as long as that lasts
/// (for ever, without a window); what is hidden still slows the computation.
pub(super) fn exposed(collective: Seconds, overlap: f64, window: Option<Seconds>) -> Seconds {
    let share = collective.secs() * overlap;
    let hidden = window.map_or(share, |window| share.min(window.secs()));
    Seconds::from_secs(collective.secs() - hidden + hidden * (OVERLAP_SLOWDOWN - 1.0))
}

/// What a collective adds to the operator it runs beside: what is longer than it, and the slowdown of both.
fn beside(collective: Seconds, operator: Seconds) -> Seconds {
    let (collective, operator) = (collective.secs(), operator.secs());
    let together = collective.min(operator);
    Seconds::from_secs((collective - operator).max(0.0) + together * (OVERLAP_SLOWDOWN - 1.0))
}

#[cfg(test)]
mod tests;
