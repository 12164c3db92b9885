//! Parameter and gradient transfers between optimizer layout and strategies, and between phases.

use crate::planners::hydraulis::{
    LinkRate, SchemeCost, Volumes, exchange, exposed_seconds, largest_reduce_scatter, switch_bytes,
};
use planscope_core::units::{Nanos, Seconds};
use planscope_cost::cost::{Group, PipelineCosts};
use planscope_plan::plan::{Scheme, SchemedPipeline, Strategy};
use planscope_plan::scenario::Scenario;

/// Exchange with parallel pipelines when the optimizer is sharded across all devices.
///
/// If all pipelines are equal, collectives gather parameters and reduce-scatter gradients, as
/// without disaggregation (Hydraulis Sec. 5.2). Otherwise owners send slices to the devices that
/// need them, through the network if the nodes differ. Gradients are reduced by a collective, then
/// sent to the owners.
#[derive(Debug, Clone)]
pub(crate) struct Interaction {
    /// Parameters sent or received by the busiest device, in bytes.
    pub pull: f64,
    /// Gradients reduced and sent or received by the busiest device, in bytes.
    pub push: f64,
    flops: f64,
    overlap: f64,
    pipelines: Vec<Moved>,
}

/// Exchange of a pipeline.
#[derive(Debug, Clone, Copy)]
struct Moved {
    scheme: SchemeCost,
    /// Pull and push times in seconds.
    seconds: [f64; 2],
    /// FLOPs per token and stage: forward during the pull, and backward during the push.
    operations: [f64; 2],
}

impl Interaction {
    /// Computes the exchange of pipelines in device order, for a model of `parameters`.
    pub(crate) fn new(scenario: &Scenario, schemes: &[Scheme], parameters: f64) -> Self {
        let (cluster, training) = (&scenario.cluster, &scenario.training);
        let devices = cluster.devices();
        let costs: Vec<SchemeCost> = schemes.iter().map(|&scheme| degrees(scheme)).collect();
        let equal = schemes.iter().all(|scheme| *scheme == schemes[0]);
        let replicas: u32 = schemes.iter().map(|scheme| scheme.context).sum::<u32>().max(1);
        let group = Group::spread(cluster, replicas, (replicas / cluster.nodes).clamp(1, replicas));
        let (width, gradient) = (training.mean_weight_bytes(&scenario.model), training.gradients.bytes());
        let (mut pull, mut push) = (0.0_f64, 0.0_f64);
        let mut moved = |scheme: &SchemeCost, volumes: Option<&[Volumes]>| {
            let stage = parameters / f64::from(scheme.pp);
            let shard = stage / f64::from(scheme.tp);
            let reduced = gradient * largest_reduce_scatter(scheme, parameters, replicas);
            let reduce_scatter = group.reduce_scatter(gradient * shard).secs();
            let seconds = match volumes {
                None => {
                    pull = pull.max(width * shard * f64::from(replicas - 1) / f64::from(replicas));
                    push = push.max(reduced);
                    [group.all_gather(width * shard).secs(), reduce_scatter]
                }
                Some(volumes) => {
                    let largest = |bytes: fn(&Volumes) -> f64| volumes.iter().map(bytes).fold(0.0, f64::max);
                    let pulled = width * largest(|moved| moved.pull_receive.max(moved.pull_send));
                    let sent = gradient * largest(|moved| moved.push_send.max(moved.push_receive));
                    pull = pull.max(pulled);
                    push = push.max(reduced + sent);
                    [between_devices(scenario, pulled), reduce_scatter + between_devices(scenario, sent)]
                }
            };
            Moved { scheme: *scheme, seconds, operations: [2.0 * stage, 4.0 * stage] }
        };
        let pipelines = if equal {
            costs.iter().map(|scheme| moved(scheme, None)).collect()
        } else {
            let exchanged = exchange(&costs, parameters, devices);
            let mut devices = exchanged.devices.as_slice();
            let mut pipelines = Vec::with_capacity(costs.len());
            for scheme in &costs {
                let (own, others) = devices.split_at(scheme.devices() as usize);
                devices = others;
                pipelines.push(moved(scheme, Some(own)));
            }
            pipelines
        };
        Self { pull, push, flops: cluster.device.peak().get(), overlap: training.data_overlap, pipelines }
    }

    /// Exposed pull time of a pipeline with `tokens` in its first microbatch, in seconds.
    ///
    /// The settings define the fraction that may overlap with computation. The remainder after the
    /// matrix products of a microbatch is exposed (Hydraulis App. B.2, counting only bytes that
    /// really move instead of all parameters).
    pub(crate) fn pull_exposed(&self, pipeline: usize, tokens: f64) -> f64 {
        self.exposed(pipeline, 0, tokens)
    }

    /// Exposed push time of a pipeline with `tokens` in its last microbatch, in seconds.
    pub(crate) fn push_exposed(&self, pipeline: usize, tokens: f64) -> f64 {
        self.exposed(pipeline, 1, tokens)
    }

    fn exposed(&self, pipeline: usize, way: usize, tokens: f64) -> f64 {
        let Moved { scheme, seconds, operations } = &self.pipelines[pipeline];
        let seconds = seconds[way];
        if seconds <= 0.0 {
            return 0.0;
        }
        let rate = LinkRate { flops: self.flops, bytes: operations[way] / seconds };
        seconds * (1.0 - self.overlap) + exposed_seconds(operations[way], scheme, tokens, rate) * self.overlap
    }
}

/// Time in seconds for a device to send or receive `bytes`, if peers are uniformly distributed
/// across all devices.
fn between_devices(scenario: &Scenario, bytes: f64) -> f64 {
    let cluster = &scenario.cluster;
    let across = f64::from(cluster.nodes - 1) / f64::from(cluster.nodes);
    let (near, far) = (cluster.intra_node.achieved_bandwidth().get(), cluster.inter_node.achieved_bandwidth().get());
    (bytes * across / far).max(bytes * (1.0 - across) / near)
}

/// Transfers for an iteration and their exposed times.
pub(crate) struct Traffic {
    /// Parameters sent or received by the busiest device, in bytes.
    pub pull: f64,
    /// Gradients reduced and pushed by the busiest device, in bytes.
    pub push: f64,
    /// Exposed pull plus push per pipeline in the last phase.
    exposed: Vec<Seconds>,
    /// Switch times between consecutive phases.
    switches: Vec<Seconds>,
    /// Bytes received by the busiest device in all switches.
    pub switched: f64,
}

impl Traffic {
    /// Computes the transfers of a strategy. `parameters` is the size of the model, and `tokens`
    /// contains the tokens per microbatch. Parameters are pulled at the start of the first phase,
    /// and gradients are pushed at the end of the last. Between phases, parameters and gradients
    /// move between devices.
    pub(crate) fn new(scenario: &Scenario, strategy: &Strategy, parameters: f64, tokens: &[f64]) -> Self {
        let training = &scenario.training;
        let last = strategy.phases().saturating_sub(1);
        let phase_schemes = |phase: u32| -> Vec<Scheme> {
            let pipelines = strategy.pipelines.iter().filter(|pipeline| pipeline.phase == phase);
            pipelines.map(|pipeline| pipeline.scheme).collect()
        };
        let ends = Interaction::new(scenario, &phase_schemes(last), parameters);
        let begins = if last == 0 { ends.clone() } else { Interaction::new(scenario, &phase_schemes(0), parameters) };
        let spans = |phase: u32| strategy.spans().filter(move |(pipeline, ..)| pipeline.phase == phase).enumerate();
        let token = |microbatch: Option<usize>| microbatch.and_then(|at| tokens.get(at)).copied().unwrap_or(0.0);
        let pull = |(index, (_, _, microbatches)): Span<'_>| {
            begins.pull_exposed(index, token((!microbatches.is_empty()).then_some(microbatches.start)))
        };
        // Later phases wait for the slowest pull of phase 0.
        let begin = if last == 0 { 0.0 } else { spans(0).map(pull).fold(0.0, f64::max) };
        let exposed = spans(last).map(|(index, (pipeline, ranks, microbatches))| {
            let push = ends.push_exposed(index, token(microbatches.clone().last()));
            let pull = if last == 0 { pull((index, (pipeline, ranks, microbatches))) } else { begin };
            Seconds::from_secs(pull + push)
        });
        let exposed = exposed.collect();
        let bytes = parameters * (training.mean_weight_bytes(&scenario.model) + training.gradients.bytes());
        let costs = |phase: u32| -> Vec<SchemeCost> { phase_schemes(phase).into_iter().map(degrees).collect() };
        let received: Vec<f64> = (0..last)
            .map(|phase| {
                let moved = switch_bytes(&costs(phase), &costs(phase + 1), bytes, scenario.cluster.devices());
                moved.into_iter().fold(0.0, f64::max)
            })
            .collect();
        Self {
            pull: begins.pull,
            push: ends.push,
            exposed,
            switches: received.iter().map(|&bytes| Seconds::from_secs(between_devices(scenario, bytes))).collect(),
            switched: received.iter().fold(0.0, |sum, bytes| sum + bytes),
        }
    }

    /// Sets the time after the last backward per rank: the switch to the next phase or, in the last
    /// phase, the exposed exchange and the optimizer step, which occurs once.
    pub(crate) fn expose(&self, strategy: &Strategy, costs: &mut PipelineCosts) {
        let mut exposed = self.exposed.iter();
        for (pipeline, ranks, _) in strategy.spans() {
            let switch = self.switches.get(pipeline.phase as usize);
            let exchange_time = if switch.is_none() { exposed.next() } else { None };
            for rank in ranks {
                costs.sync[rank] = switch.or(exchange_time).map_or(Nanos::ZERO, |time| time.to_nanos());
                if switch.is_some() {
                    costs.optimizer[rank] = Nanos::ZERO;
                }
            }
        }
    }

    /// Maximum exposed time of a pipeline and total switch time, in seconds.
    pub(crate) fn seconds(&self) -> (f64, f64) {
        let exposed = self.exposed.iter().map(|time| time.secs()).fold(0.0, f64::max);
        (exposed, self.switches.iter().map(|time| time.secs()).fold(0.0, |sum, time| sum + time))
    }
}

/// A pipeline's index in the phase, with rank and microbatch ranges.
type Span<'a> = (usize, (&'a SchemedPipeline, std::ops::Range<usize>, std::ops::Range<usize>));

/// Converts a scheme. The exchange depends only on the degrees.
const fn degrees(scheme: Scheme) -> SchemeCost {
    let Scheme { tensor: tp, pipeline: pp, context: cp } = scheme;
    SchemeCost { tp, pp, cp, a: 0.0, b: 0.0, c: 0.0, max_len: 0, util_len: 0 }
}
