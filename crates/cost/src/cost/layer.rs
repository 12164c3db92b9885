//! Time and memory for a transformer layer, an input block or an output block, summed from the
//! operator graph (docs/models.md, section 3).

mod timed;

pub use timed::TimedOperator;

use super::collective::Group;
use super::graph::{self, Operator, OperatorGraph, Phase, Repeat, Shape, Span};
use super::kernel::Kernel;
use super::load::ModuleLoad;
use super::operator::Rates;
use super::overrides::{Overrides, Stretches};
use planscope_core::cluster::Cluster;
use planscope_core::model::{Gradients, LayerKind, Module};
use planscope_core::training::{AttentionKernel, Recompute, RecomputedModules, Training};
use planscope_core::units::Seconds;

/// Slowdown factor for a compute kernel and a collective that run concurrently. Hetu-Galvatron
/// measured this overlap coefficient on A100s.
pub(super) const OVERLAP_SLOWDOWN: f64 = 1.1256;

/// Time and activation memory per microbatch for a layer, an input block or an output block, on
/// each tensor-parallel device. The times include communication; the `exposed_*` fields contain the
/// exposed part.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LayerCost {
    /// Forward time.
    pub forward: Seconds,
    /// Input gradient time, including recomputation.
    pub input_grad: Seconds,
    /// Weight gradient time.
    pub weight_grad: Seconds,
    /// Exposed communication in `forward`.
    pub exposed_forward: Seconds,
    /// Exposed communication in the backward.
    pub exposed_backward: Seconds,
    /// Recomputation time, included in `input_grad`.
    pub recomputed: Seconds,
    /// Total communication in forward and backward, hidden or exposed.
    pub communication: Seconds,
    /// Host time to launch the forward operators.
    pub host_forward: Seconds,
    /// Host time to launch the backward operators.
    pub host_backward: Seconds,
    /// Activation bytes stored between forward and backward.
    pub activation: f64,
    /// Activation bytes in host memory between forward and backward.
    pub offloaded: f64,
    /// Temporary bytes during the backward: gradients and recomputed activations.
    pub transient: f64,
}

/// Communication of a pass through a stage, with ZeRO 2 and 3.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ShardedTraffic {
    /// Time to gather all weights before the forward.
    pub gather: Seconds,
    /// Time to gather the weights of modules with a backward before it.
    pub gather_backward: Seconds,
    /// Time to reduce all gradients.
    pub reduce: Seconds,
    /// Units that are gathered and reduced one after the other.
    pub units: f64,
    /// Host time of all gathers before the forward.
    pub host: Seconds,
    /// Host time of all gathers before the backward.
    pub host_backward: Seconds,
}

impl LayerCost {
    /// Returns the cost of `count` equal layers in sequence. Times and activation memory are
    /// multiplied; temporary memory is not.
    #[must_use]
    pub fn times(self, count: u32) -> Self {
        Self { transient: if count > 0 { self.transient } else { 0.0 }, ..self.scaled(f64::from(count)) }
    }

    /// Multiplies times and activation memory by `n`.
    fn scaled(self, n: f64) -> Self {
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
            offloaded: self.offloaded * n,
            transient: self.transient,
        }
    }

    /// Returns the cost of two components in sequence.
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
            offloaded: self.offloaded + other.offloaded,
            transient: self.transient.max(other.transient),
        }
    }

    /// Returns the cost without `part`, which is included in it. Temporary memory stays.
    #[must_use]
    pub(super) fn without(self, part: Self) -> Self {
        let rest = self.then(part.scaled(-1.0));
        Self { transient: self.transient, ..rest }
    }

    /// Moves a share of the activations to the host during the forward and back during the backward, at `host` bytes per
    /// second. Transfer time beyond these is exposed.
    #[must_use]
    pub(super) fn offload(mut self, share: f64, host: f64) -> Self {
        let away = self.activation * share;
        if away > 0.0 {
            (self.activation, self.offloaded) = (self.activation - away, away);
            let transfer = Seconds::from_secs(away / host);
            let wait = |computation: Seconds| Seconds::from_secs((transfer.secs() - computation.secs()).max(0.0));
            let (forward, backward) = (wait(self.forward), wait(self.input_grad + self.weight_grad));
            self.forward += forward;
            self.exposed_forward += forward;
            self.input_grad += backward;
            self.exposed_backward += backward;
            self.communication += transfer * 2.0;
        }
        self
    }

    /// Returns the minimum for each time. The memory fields are zero.
    #[must_use]
    pub(super) fn min_times(self, other: Self) -> Self {
        let min_time = |time: fn(&Self) -> Seconds| if time(&other) < time(&self) { time(&other) } else { time(&self) };
        Self {
            forward: min_time(|cost| cost.forward),
            input_grad: min_time(|cost| cost.input_grad),
            weight_grad: min_time(|cost| cost.weight_grad),
            host_forward: min_time(|cost| cost.host_forward),
            host_backward: min_time(|cost| cost.host_backward),
            ..Self::default()
        }
    }

    /// Returns the time for forward plus backward, using the slower side (device or host) for each.
    pub fn total(&self) -> Seconds {
        self.forward.max(self.host_forward) + (self.input_grad + self.weight_grad).max(self.host_backward)
    }

    /// Adds the communication of ZeRO 2 and 3: weight gathering before forward and backward, gradient reduction
    /// after the backward. The share `overlap` runs in parallel with computation, up to the
    /// computation time. Nothing runs before the first unit of a forward is gathered, or after the
    /// last unit of a backward is computed.
    #[must_use]
    pub fn with_sharding(mut self, traffic: ShardedTraffic, overlap: f64) -> Self {
        let ShardedTraffic { gather, gather_backward, reduce, units, host, host_backward } = traffic;
        let passes = if self.recomputed > Seconds::ZERO { 2.0 } else { 1.0 };
        self.host_forward += host;
        self.host_backward += host_backward * passes;
        let exposed_time = |alone: Seconds, traffic: Seconds, computation: Seconds| {
            let alone = alone / units.max(1.0);
            alone + exposed(Seconds::from_secs((traffic - alone).secs().max(0.0)), overlap, Some(computation))
        };
        let forward = exposed_time(gather, gather, self.forward);
        self.forward += forward;
        self.exposed_forward += forward;
        let after_forward = gather_backward + reduce;
        let backward = exposed_time(reduce, after_forward, self.input_grad + self.weight_grad);
        self.input_grad += backward;
        self.exposed_backward += backward;
        self.communication += gather + after_forward;
        self
    }

    /// Extends the times if the host is slower than the device. `microbatch` is the host time per
    /// microbatch; a third of it precedes the forward, the rest the backward.
    #[must_use]
    pub fn with_host_time(mut self, microbatch: Seconds) -> Self {
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

/// Returns the mean over all layers of a module, given the costs of its `kinds`.
pub(super) fn mean_layer(module: &Module, kinds: &[LayerKind], costs: &[LayerCost]) -> LayerCost {
    if let [cost] = costs {
        return *cost;
    }
    let counts = module.count_kinds(kinds, 0, module.layers);
    let all = costs.iter().zip(counts).map(|(cost, count)| cost.times(count));
    all.fold(LayerCost::default(), LayerCost::then).scaled(1.0 / f64::from(module.layers.max(1)))
}

/// Cost model for the layers of a module under a tensor-parallel degree.
#[derive(Debug, Clone)]
pub struct LayerModel<'a> {
    module: &'a Module,
    training: &'a Training,
    rates: Rates,
    tensor: Group,
    context: Group,
    expert: Group,
    /// Host memory bandwidth in bytes per second.
    host: f64,
    /// Tensor-parallel degree, t.
    t: f64,
    /// User-defined times that replace predictions.
    overrides: Overrides<'a>,
    /// Gradients that the backward computes.
    gradients: Gradients,
}

/// Operators of a module with predicted times.
#[derive(Debug, Clone)]
pub struct Predictions {
    /// Operators of a layer.
    pub layer: Vec<(Operator, Seconds)>,
    /// Operators of the input block.
    pub input: Vec<(Operator, Seconds)>,
    /// Operators of the output block.
    pub output: Vec<(Operator, Seconds)>,
}

/// Selects the gradients that the backward computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Backward {
    inputs: bool,
    weights: bool,
}

impl Backward {
    const FULL: Self = Self { inputs: true, weights: true };
    const NONE: Self = Self { inputs: false, weights: false };

    const fn runs(self, operator: &Operator) -> bool {
        match operator.phase {
            Phase::Forward => true,
            Phase::InputGrad => self.inputs && (self.weights || !operator.for_weights),
            Phase::WeightGrad => self.weights,
        }
    }
}

/// Time for an operator.
#[derive(Debug, Clone, Copy)]
struct OperatorTime {
    /// Time that the operator adds to its phase.
    time: Seconds,
    /// Exposed communication, included in `time`.
    exposed: Seconds,
    /// Communication time, hidden or exposed.
    communication: Seconds,
}

impl<'a> LayerModel<'a> {
    /// Creates a model for a module that is sharded across `tensor` adjacent devices.
    pub fn new(module: &'a Module, cluster: &Cluster, training: &'a Training, tensor: u32) -> Self {
        let context = training.context_parallel;
        Self {
            module,
            training,
            rates: Rates::for_training(&cluster.device, training),
            tensor: Group::placed(cluster, tensor, 1),
            context: Group::placed(cluster, context, tensor),
            expert: Group::placed(cluster, training.expert_parallel, training.expert_tensor(tensor)),
            host: cluster.host_rate().get(),
            t: f64::from(tensor),
            overrides: Overrides::new(training, module, tensor),
            gradients: Gradients::All,
        }
    }

    /// Selects the gradients that the backward computes.
    #[must_use]
    pub fn with_gradients(self, gradients: Gradients) -> Self {
        Self { gradients, ..self }
    }

    /// Places context-parallel groups of any size on the minimum number of nodes, instead of in
    /// consecutive equal blocks.
    #[must_use]
    pub fn in_groups(self, cluster: &Cluster, tensor: u32) -> Self {
        Self { context: Group::compact(cluster, self.training.context_parallel, tensor), ..self }
    }

    /// Returns the mean cost of a layer with the recomputation settings of the scenario.
    pub fn layer(&self, load: ModuleLoad) -> LayerCost {
        let kinds = self.module.layer_kinds();
        let costs: Vec<_> = kinds.iter().map(|&kind| self.kind_layer(kind, load)).collect();
        self.mean(&kinds, &costs)
    }

    /// Returns the mean over all layers, given the costs of the module's `kinds`.
    fn mean(&self, kinds: &[LayerKind], costs: &[LayerCost]) -> LayerCost {
        mean_layer(self.module, kinds, costs)
    }

    /// Returns the cost of a layer of kind `kind` with the recomputation settings of the scenario.
    pub fn kind_layer(&self, kind: LayerKind, load: ModuleLoad) -> LayerCost {
        self.layer_with(kind, load, self.training.recompute)
    }

    /// Returns the cost of a layer of kind `kind` without recomputation, for stages that recompute
    /// only some layers.
    pub fn kind_without_recomputation(&self, kind: LayerKind, load: ModuleLoad) -> LayerCost {
        self.layer_with(kind, load, Recompute::None)
    }

    fn layer_with(&self, kind: LayerKind, load: ModuleLoad, recompute: Recompute) -> LayerCost {
        self.piece((kind, load), (self.repeat(recompute), self.layer_backward()), graph::layer, Self::stretches)
    }

    /// Returns the operators of a layer that a recomputation setting repeats.
    fn repeat(&self, recompute: Recompute) -> Repeat {
        let modules = RecomputedModules::of(&self.training.recompute_modules);
        match (recompute, self.training.attention) {
            (Recompute::Selective, _) if !modules.is_empty() => Repeat::Modules(modules),
            (Recompute::Selective, AttentionKernel::Unfused) => Repeat::Core,
            // Frameworks without a list of modules do not recompute fused attention.
            (Recompute::None | Recompute::Selective, _) => Repeat::Nothing,
            (Recompute::Operators, _) => Repeat::Operators,
            (Recompute::Full, _) => Repeat::All,
        }
    }

    /// Returns the gradients that the backward of a layer computes.
    fn layer_backward(&self) -> Backward {
        match self.gradients {
            Gradients::All => Backward::FULL,
            Gradients::Inputs => Backward { weights: false, ..Backward::FULL },
            Gradients::None => Backward::NONE,
        }
    }

    /// True if the weights of the input and output block are trained.
    fn is_end_trained(&self) -> bool {
        self.gradients == Gradients::All && self.module.adapters.is_none()
    }

    fn input_backward(&self) -> Backward {
        if self.is_end_trained() { Backward::FULL } else { Backward::NONE }
    }

    fn output_backward(&self) -> Backward {
        let weights = self.is_end_trained() || self.module.has_projection();
        Backward { inputs: self.gradients != Gradients::None, weights }
    }

    /// Returns the cost of the input block: token embedding or patch projection.
    pub fn input(&self, load: ModuleLoad) -> LayerCost {
        self.piece(
            (self.module.main_kind(), load),
            (Repeat::Nothing, self.input_backward()),
            graph::input,
            |_, _, _, _| Stretches::NONE,
        )
    }

    /// Returns the cost of the output block: final norm, output head, loss, and the layers of
    /// multi-token prediction with an output head each.
    pub fn output(&self, load: ModuleLoad) -> LayerCost {
        let backward = self.output_backward();
        let kind = self.module.last_kind();
        let end = |build| self.piece((kind, load), (Repeat::Nothing, backward), build, |_, _, _, _| Stretches::NONE);
        let output = end(graph::output);
        if self.module.predicted_ahead == 0 {
            return output;
        }
        let ahead = end(graph::prediction).then(self.kind_layer(kind, load)).then(output);
        output.then(ahead.times(self.module.predicted_ahead))
    }

    /// Returns the cost of the loss, which is part of the output block.
    pub(super) fn loss(&self, load: ModuleLoad) -> LayerCost {
        let backward = Backward { inputs: self.gradients != Gradients::None, weights: false };
        let kind = self.module.last_kind();
        self.piece((kind, load), (Repeat::Nothing, backward), graph::loss, |_, _, _, _| Stretches::NONE)
    }

    /// Returns all operators of the module with predicted standalone times, without overrides.
    pub fn predictions(&self, load: ModuleLoad) -> Predictions {
        let shape = Shape::new(self.module, self.training, self.t, load);
        let piece_predictions = |build: fn(&Shape<'_>) -> OperatorGraph| {
            build(&shape).operators.into_iter().map(|operator| (operator, self.predicted(&operator))).collect()
        };
        Predictions {
            layer: piece_predictions(graph::layer),
            input: piece_predictions(graph::input),
            output: piece_predictions(graph::output),
        }
    }

    fn piece(
        &self,
        (kind, load): (LayerKind, ModuleLoad),
        (repeat, backward): (Repeat, Backward),
        build: fn(&Shape<'_>) -> OperatorGraph,
        stretches: fn(&Self, &Shape<'_>, &OperatorGraph, &[OperatorTime]) -> Stretches,
    ) -> LayerCost {
        if load.tokens <= 0.0 {
            return LayerCost::default();
        }
        let shape = Shape::of_kind(self.module, kind, (self.training, self.t), load);
        let graph = build(&shape);
        let taken = self.taken(&shape, &graph, backward);
        let stretches = stretches(self, &shape, &graph, &taken);
        if backward == Backward::NONE {
            // Without a backward, no activations are stored.
            return self.time(&graph, (Repeat::Nothing, backward), &taken, stretches);
        }
        let mut cost = self.time(&graph, (repeat, backward), &taken, stretches);
        let lifetimes = graph.lifetimes(repeat);
        (cost.activation, cost.transient) = (lifetimes.stored, lifetimes.transient);
        cost.offload(self.training.activation_offload, self.host)
    }

    /// Returns the predicted time. For a collective, this is the standalone duration.
    fn predicted(&self, operator: &Operator) -> Seconds {
        let Kernel::Collective(collective) = operator.kernel else { return self.rates.time(&operator.kernel) };
        if operator.span == Span::Expert
            && self.training.dispatch_by_node
            && let Some(moe) = self.module.moe
        {
            return self.expert.dispatch(collective.bytes, f64::from(moe.top_k), moe.node_limit);
        }
        let group = match operator.span {
            Span::Device | Span::Tensor => &self.tensor,
            Span::Context => &self.context,
            Span::Expert => &self.expert,
        };
        group.time(collective.operation, collective.bytes)
    }

    /// Returns the time per operator, after overrides. For collectives, hidden time is subtracted.
    fn taken(&self, shape: &Shape<'_>, graph: &OperatorGraph, backward: Backward) -> Vec<OperatorTime> {
        let standalone: Vec<Seconds> = graph
            .operators
            .iter()
            .map(|operator| self.overrides.operator(shape, operator, self.predicted(operator)))
            .collect();
        let times = graph.operators.iter().enumerate().map(|(index, operator)| {
            let time = standalone[index];
            let Kernel::Collective(collective) = operator.kernel else {
                return OperatorTime { time, exposed: Seconds::ZERO, communication: Seconds::ZERO };
            };
            // An operator that is not executed cannot hide a collective.
            let concurrent =
                operator.overlapped_with.filter(|&other| backward.runs(&graph.operators[usize::from(other)]));
            let exposed = match concurrent {
                Some(other) => overlap_time(time, standalone[usize::from(other)]),
                None if operator.span == Span::Tensor => {
                    let product = graph.chunked_with(index).map(|product| standalone[product]);
                    self.in_chunks(time, collective.ranks, product)
                }
                None if operator.span == Span::Expert => time * (1.0 - self.training.expert_overlap),
                None => time,
            };
            OperatorTime { time: exposed, exposed, communication: time }
        });
        times.collect()
    }

    /// Returns the exposed time of a tensor-parallel collective that runs in one chunk per rank next to a product. The
    /// first chunk of a gather and the last of a reduction have nothing to overlap.
    fn in_chunks(&self, collective: Seconds, ranks: u32, product: Option<Seconds>) -> Seconds {
        let Some(product) = product else { return collective };
        let chunks = f64::from(ranks.max(1));
        let overlapped = collective * (self.training.tensor_overlap * (1.0 - 1.0 / chunks));
        collective - overlapped + overlap_time(overlapped, product)
    }

    /// Returns the scale factors from user-defined times for full layers.
    fn stretches(&self, shape: &Shape<'_>, graph: &OperatorGraph, taken: &[OperatorTime]) -> Stretches {
        self.overrides.stretches(shape, graph, |index| taken[index].time, Seconds::from_secs(self.rates.host()))
    }

    /// Sums the operator times.
    fn time(
        &self,
        graph: &OperatorGraph,
        (repeat, backward): (Repeat, Backward),
        taken: &[OperatorTime],
        stretches: Stretches,
    ) -> LayerCost {
        let mut cost = LayerCost::default();
        for (index, (operator, taken)) in graph.operators.iter().zip(taken).enumerate() {
            if !backward.runs(operator) {
                continue;
            }
            let again = graph.repeated_share(index, repeat);
            let stretch = stretches.for_phase(operator.phase);
            let host = Seconds::from_secs(self.rates.host() * operator.launches) * stretch.host;
            let exposed = taken.exposed * stretch.device;
            let wait = if operator.waits_for_host() { host } else { Seconds::ZERO };
            let time = taken.time * stretch.device + wait;
            cost.communication += taken.communication * stretch.device * (1.0 + again);
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
            cost.input_grad += time * again;
            cost.recomputed += (time - exposed) * again;
            cost.exposed_backward += exposed * again;
            cost.host_backward += host * again;
        }
        cost
    }
}

/// Returns the exposed time of a collective. The share `overlap` can run in parallel with
/// computation for at most `window`, or without limit if `window` is `None`. The hidden part still
/// slows the computation.
pub(super) fn exposed(collective: Seconds, overlap: f64, window: Option<Seconds>) -> Seconds {
    let share = collective.secs() * overlap;
    let hidden = window.map_or(share, |window| share.min(window.secs()));
    Seconds::from_secs(collective.secs() - hidden + hidden * (OVERLAP_SLOWDOWN - 1.0))
}

/// Returns the time that an overlapped collective adds to an operator: the excess duration, plus
/// the mutual slowdown.
fn overlap_time(collective: Seconds, operator: Seconds) -> Seconds {
    let (collective, operator) = (collective.secs(), operator.secs());
    let together = collective.min(operator);
    Seconds::from_secs((collective - operator).max(0.0) + together * (OVERLAP_SLOWDOWN - 1.0))
}

#[cfg(test)]
mod tests;
