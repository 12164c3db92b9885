//! Parameters and gradients on their way between the optimizer's layout and the strategies', and between phases.

use super::{Scheme, SchemedPipeline, Strategy};
use crate::cost::{Group, PipelineCosts};
use crate::heterogeneous_strategies::{LinkRate, SchemeCost, exchange, exposed_seconds, switch_bytes};
use crate::scenario::Scenario;
use crate::units::{Nanos, Seconds};

/// What moves to and from pipelines side by side, whose optimizer is cut over all devices.
///
/// Where all pipelines are equal the parameters are gathered and the gradients reduced and scattered by collectives, as without
/// disaggregation (section 5.2). Otherwise every slice is sent to each device that needs it, over the network where owner and
/// receiver stand on different nodes, and gradients are reduced by a collective and then sent to their owners.
#[derive(Debug, Clone)]
pub(in crate::plan) struct Interaction {
    /// Parameters that the busiest device receives or sends, in bytes.
    pub pull: f64,
    /// Gradients that the busiest device reduces and sends or receives, in bytes.
    pub push: f64,
    flops: f64,
    overlap: f64,
    pipelines: Vec<Moved>,
}

/// What moves to and from one pipeline.
#[derive(Debug, Clone, Copy)]
struct Moved {
    scheme: SchemeCost,
    /// Seconds to pull, and to push.
    seconds: [f64; 2],
    /// Operations a token on a stage beside the pull, forward, and beside the push, backward.
    operations: [f64; 2],
}

impl Interaction {
    /// Of pipelines in the order of their devices and `parameters` of the model.
    pub(in crate::plan) fn of(scenario: &Scenario, schemes: &[Scheme], parameters: f64) -> Self {
        let (cluster, training) = (&scenario.cluster, &scenario.training);
        let devices = cluster.devices();
        let costs: Vec<SchemeCost> = schemes.iter().map(|&scheme| degrees(scheme)).collect();
        let moved = exchange(&costs, parameters, devices);
        let equal = schemes.iter().all(|scheme| *scheme == schemes[0]);
        let replicas: u32 = schemes.iter().map(|scheme| scheme.context).sum::<u32>().max(1);
        let group = Group::spread(cluster, replicas, (replicas / cluster.nodes).clamp(1, replicas));
        let (width, gradient) = (training.width(), training.gradients.bytes());
        let mut seat = 0;
        let (mut pull, mut push) = (0.0_f64, 0.0_f64);
        let of = |scheme: &SchemeCost| {
            let seats = &moved.devices[seat..seat + scheme.devices() as usize];
            seat += scheme.devices() as usize;
            let most = |of: &dyn Fn(&crate::heterogeneous_strategies::Volumes) -> f64| {
                seats.iter().map(of).fold(0.0, f64::max)
            };
            let pulled = width * most(&|moved| moved.pull_receive.max(moved.pull_send));
            let sent = gradient * most(&|moved| moved.push_send.max(moved.push_receive));
            let reduced = gradient * most(&|moved| moved.reduce_scatter);
            let stage = parameters / f64::from(scheme.pp);
            let own = stage / f64::from(scheme.tp);
            let seconds = if equal {
                pull = pull.max(width * own * f64::from(replicas - 1) / f64::from(replicas));
                push = push.max(reduced);
                [group.all_gather(width * own).secs(), group.reduce_scatter(gradient * own).secs()]
            } else {
                pull = pull.max(pulled);
                push = push.max(reduced + sent);
                [
                    between_devices(scenario, pulled),
                    group.reduce_scatter(gradient * own).secs() + between_devices(scenario, sent),
                ]
            };
            Moved { scheme: *scheme, seconds, operations: [2.0 * stage, 4.0 * stage] }
        };
        let pipelines = costs.iter().map(of).collect();
        Self { pull, push, flops: cluster.device.peak().get(), overlap: training.data_overlap, pipelines }
    }

    /// What a pipeline waits for of its pull where its first microbatch has `tokens`, in seconds.
    ///
    /// Of the share that the settings let run beside computation, what the products of one microbatch do not cover is exposed
    /// (appendix B.2, with what is really moved in place of whole parameters).
    pub(in crate::plan) fn pull_exposed(&self, pipeline: usize, tokens: f64) -> f64 {
        self.exposed(pipeline, 0, tokens)
    }

    /// The same of its push, beside the backward of its last microbatch.
    pub(in crate::plan) fn push_exposed(&self, pipeline: usize, tokens: f64) -> f64 {
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

/// Seconds until a device has sent or received `bytes` whose other ends are spread evenly over all devices.
fn between_devices(scenario: &Scenario, bytes: f64) -> f64 {
    let cluster = &scenario.cluster;
    let across = f64::from(cluster.nodes - 1) / f64::from(cluster.nodes);
    let (near, far) = (cluster.intra_node.achieved_bandwidth().get(), cluster.inter_node.achieved_bandwidth().get());
    (bytes * across / far).max(bytes * (1.0 - across) / near)
}

/// What moves in an iteration, and what of it is waited for.
pub(super) struct Traffic {
    /// Parameters that the busiest device receives or sends, in bytes.
    pub pull: f64,
    /// Gradients that the busiest device reduces and pushes, in bytes.
    pub push: f64,
    /// Of every pipeline of the last phase, in the order of the strategy: what is exposed of both.
    exposed: Vec<Seconds>,
    /// Behind every phase but the last: the switch to the next.
    switches: Vec<Seconds>,
    /// Bytes that the busiest device receives in all switches.
    pub switched: f64,
}

impl Traffic {
    /// Of a strategy with `parameters` of the model; `tokens` are those of every microbatch. Parameters come for the first phase
    /// and gradients leave the last one; between them parameters and gradients move from device to device.
    pub(super) fn of(scenario: &Scenario, strategy: &Strategy, parameters: f64, tokens: &[f64]) -> Self {
        let training = &scenario.training;
        let last = strategy.phases().saturating_sub(1);
        let of_phase = |phase: u32| -> Vec<Scheme> {
            let own = strategy.pipelines.iter().filter(|pipeline| pipeline.phase == phase);
            own.map(|pipeline| pipeline.scheme).collect()
        };
        let ends = Interaction::of(scenario, &of_phase(last), parameters);
        let begins = if last == 0 { ends.clone() } else { Interaction::of(scenario, &of_phase(0), parameters) };
        let spans = |phase: u32| strategy.spans().filter(move |(pipeline, ..)| pipeline.phase == phase).enumerate();
        let token = |microbatch: Option<usize>| microbatch.and_then(|at| tokens.get(at)).copied().unwrap_or(0.0);
        let pull =
            |(place, (_, _, own)): Span<'_>| begins.pull_exposed(place, token((!own.is_empty()).then_some(own.start)));
        // Later phases wait for the slowest pull of the first.
        let begin = if last == 0 { 0.0 } else { spans(0).map(pull).fold(0.0, f64::max) };
        let exposed = spans(last).map(|(place, (pipeline, ranks, own))| {
            let push = ends.push_exposed(place, token(own.clone().last()));
            let pull = if last == 0 { pull((place, (pipeline, ranks, own))) } else { begin };
            Seconds::from_secs(pull + push)
        });
        let exposed = exposed.collect();
        let bytes = parameters * (training.width() + training.gradients.bytes());
        let costs = |phase: u32| -> Vec<SchemeCost> { of_phase(phase).into_iter().map(degrees).collect() };
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

    /// Puts it behind the last backward of every rank: the switch to the next phase, or what is exposed of both ends of an iteration
    /// and the optimizer's step, which stands there once.
    pub(super) fn expose(&self, strategy: &Strategy, costs: &mut PipelineCosts) {
        let mut exposed = self.exposed.iter();
        for (pipeline, ranks, _) in strategy.spans() {
            let switch = self.switches.get(pipeline.phase as usize);
            let own = if switch.is_none() { exposed.next() } else { None };
            for rank in ranks {
                costs.sync[rank] = switch.or(own).map_or(Nanos::ZERO, |time| time.to_nanos());
                if switch.is_some() {
                    costs.optimizer[rank] = Nanos::ZERO;
                }
            }
        }
    }

    /// The longest exposure of a pipeline, and all switches, in seconds.
    pub(super) fn seconds(&self) -> (f64, f64) {
        let exposed = self.exposed.iter().map(|time| time.secs()).fold(0.0, f64::max);
        (exposed, self.switches.iter().map(|time| time.secs()).fold(0.0, |sum, time| sum + time))
    }
}

/// A pipeline by its place among those of its phase, with its ranks and microbatches.
type Span<'a> = (usize, (&'a SchemedPipeline, std::ops::Range<usize>, std::ops::Range<usize>));

/// Only the degrees count for what moves.
const fn degrees(scheme: Scheme) -> SchemeCost {
    let Scheme { tensor: tp, pipeline: pp, context: cp } = scheme;
    SchemeCost { tp, pp, cp, a: 0.0, b: 0.0, c: 0.0, max_len: 0, util_len: 0 }
}
