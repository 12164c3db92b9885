//! Parameters and gradients on their way between the optimizer's layout and the strategies', and between phases.

use super::{Scheme, Strategy};
use crate::cost::PipelineCosts;
use crate::heterogeneous_strategies::{LinkRate, SchemeCost, Volumes, exchange, exposed_seconds, switch_bytes};
use crate::scenario::Scenario;
use crate::units::{Nanos, Seconds};

/// What moves in an iteration whose optimizer is cut over all devices, and what of it is waited for.
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
    /// Of a strategy with `parameters` of the model; `tokens` are those of every microbatch.
    ///
    /// Parameters come for the first phase while the first microbatch is on its way forward, gradients leave the last one
    /// while the last microbatch is on its way back: of the share of the traffic that the settings let run beside computation,
    /// what a microbatch does not cover is exposed (appendix B.2). All of it goes at the rate of the slowest link there is.
    pub(super) fn of(scenario: &Scenario, strategy: &Strategy, parameters: f64, tokens: &[f64]) -> Self {
        let (cluster, training) = (&scenario.cluster, &scenario.training);
        let slowest = if cluster.nodes > 1 { &cluster.inter_node } else { &cluster.intra_node };
        let rate = LinkRate { flops: cluster.device.peak().get(), bytes: slowest.achieved_bandwidth().get() };
        let devices = cluster.devices();
        let last = strategy.phases().saturating_sub(1);
        let of_phase = |phase: u32| -> Vec<SchemeCost> {
            let own = strategy.pipelines.iter().filter(|pipeline| pipeline.phase == phase);
            own.map(|pipeline| degrees(pipeline.scheme)).collect()
        };
        let (width, gradient) = (training.width(), training.gradients.bytes());
        let (first, end) = (of_phase(0), of_phase(last));
        let ends = exchange(&end, parameters, devices);
        let begins = if last == 0 { ends.clone() } else { exchange(&first, parameters, devices) };
        let pulled = |moved: &Volumes| width * moved.pull_receive.max(moved.pull_send);
        let pushed = |moved: &Volumes| gradient * (moved.reduce_scatter + moved.push_send.max(moved.push_receive));
        let most = |devices: &[Volumes], of: &dyn Fn(&Volumes) -> f64| devices.iter().map(of).fold(0.0, f64::max);
        let waited = |bytes: f64, scheme: &SchemeCost, microbatch: Option<&f64>| {
            let covered = exposed_seconds(bytes, scheme, microbatch.copied().unwrap_or(0.0), rate);
            let overlap = training.data_overlap;
            bytes / rate.bytes * (1.0 - overlap) + covered * overlap
        };
        // The pull waits for the slowest pipeline of the first phase, whichever pipeline pushes in the end.
        let slowest_pull = |phase: u32| {
            let mut seat = 0;
            let mut slowest = 0.0_f64;
            for (pipeline, _, own) in strategy.spans().filter(|(pipeline, ..)| pipeline.phase == phase) {
                let scheme = degrees(pipeline.scheme);
                let bytes = most(&begins.devices[seat..seat + scheme.devices() as usize], &pulled);
                seat += scheme.devices() as usize;
                slowest = slowest.max(waited(bytes, &scheme, tokens.get(own.start)));
            }
            slowest
        };
        let begin = if last == 0 { 0.0 } else { slowest_pull(0) };
        let mut seat = 0;
        let mut exposed = Vec::new();
        for (pipeline, _, own) in strategy.spans().filter(|(pipeline, ..)| pipeline.phase == last) {
            let scheme = degrees(pipeline.scheme);
            let seats = seat..seat + scheme.devices() as usize;
            seat = seats.end;
            let push = waited(most(&ends.devices[seats.clone()], &pushed), &scheme, tokens[own.clone()].last());
            let pull = if last == 0 {
                waited(most(&begins.devices[seats], &pulled), &scheme, tokens.get(own.start))
            } else {
                begin
            };
            exposed.push(Seconds::from_secs(pull + push));
        }
        let received: Vec<f64> = (0..last)
            .map(|phase| {
                let moved =
                    switch_bytes(&of_phase(phase), &of_phase(phase + 1), parameters * (width + gradient), devices);
                moved.into_iter().fold(0.0, f64::max)
            })
            .collect();
        Self {
            pull: most(&begins.devices, &pulled),
            push: most(&ends.devices, &pushed),
            exposed,
            switches: received.iter().map(|bytes| Seconds::from_secs(bytes / rate.bytes)).collect(),
            switched: received.iter().sum(),
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
        (exposed, self.switches.iter().map(|time| time.secs()).sum())
    }
}

/// Only the degrees count for what moves.
fn degrees(scheme: Scheme) -> SchemeCost {
    let Scheme { tensor: tp, pipeline: pp, context: cp } = scheme;
    SchemeCost { tp, pp, cp, a: 0.0, b: 0.0, c: 0.0, max_len: 0, util_len: 0 }
}
