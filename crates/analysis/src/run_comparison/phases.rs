//! Phases of a step: measured timers in training logs, and the matching predictions.
//!
//! Megatron-LM timers are per rank. `forward-compute` is the sum of all forward passes in the
//! rank's chunks, including tensor-parallel communication and batch loading. `backward-compute` is
//! the same for backward passes, including recomputation. Send and receive timers include the wait
//! for the neighbor and the transfer. The gradient reduction or the optimizer includes the wait
//! after the last backward pass. Old logs print the last pipeline rank. Newer logs print the
//! minimum and maximum over all ranks, or a table. Timers of DeepSpeed contain each other.

mod deepspeed;

use planscope_core::timeline::{SpanKind, Timeline};
use planscope_plan::outcome::{Planned, RankSummary};

/// A phase of a step that has timers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Forward passes.
    Forward,
    /// Backward passes.
    Backward,
    /// Sends and receives between pipeline ranks, including waits.
    Pipeline,
    /// Gradient reduction and weight gathering across replicas.
    Reduction,
    /// Optimizer step.
    Optimizer,
    /// Batch loading; part of the forward pass.
    Data,
    /// All other timers.
    Other,
}

impl Phase {
    /// Returns the display name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward compute",
            Self::Backward => "backward compute",
            Self::Pipeline => "pipeline communication and waiting",
            Self::Reduction => "gradient reduction",
            Self::Optimizer => "optimizer",
            Self::Data => "reading of batches",
            Self::Other => "other",
        }
    }

    /// Returns the phase for a timer name. `None` if the timer is not part of a step or includes
    /// several phases.
    fn from_timer(name: &str) -> Option<Self> {
        let name = name.trim();
        let is_travel = |name: &str| name.split('-').any(|word| word == "recv" || word == "send");
        let is_reduction = |name: &str| {
            ["all-reduce", "reduce-scatter", "all-gather", "grads-sync", "reduce-model-grads", "gather-model-params"]
                .iter()
                .any(|part| name.contains(part))
        };
        match name {
            "forward-compute" | "forward" => Some(Self::Forward),
            "backward-compute" | "backward" => Some(Self::Backward),
            // Sums of several phases, or timers outside the step.
            "forward-backward" | "interval-time" | "iteration-time" | "model-and-optimizer-setup" => None,
            _ if name.contains("checkpoint") || name.contains("setup") || name.starts_with("eval") => None,
            "batch-generator" => Some(Self::Data),
            _ if name == "optimizer" || name.starts_with("optimizer-") => Some(Self::Optimizer),
            _ if is_reduction(name) => Some(Self::Reduction),
            _ if is_travel(name) => Some(Self::Pipeline),
            _ => Some(Self::Other),
        }
    }
}

/// Timers that include other timers from the same phase, and the name prefixes of those. Included
/// timers are not added again.
const CONTAINING: [(&str, &[&str]); 3] = [
    ("optimizer", &["optimizer-"]),
    ("backward-reduce-model-grads", &["backward-params-", "backward-layernorm-", "backward-embedding-"]),
    ("backward-gather-model-params", &["params-all-gather"]),
];

/// Whether the forward timer of a log contains the reading of batches. The engine of DeepSpeed starts its timer after the batch is
/// read.
pub fn forward_contains_reading(timers: &[String]) -> bool {
    !timers.iter().any(|timer| deepspeed::is_forward(timer))
}

/// Whether a timer contains waits for slower ranks: the fastest rank waits longest, and the rank with the shortest time shows the
/// transfer.
pub fn contains_waits(timer: &str) -> bool {
    Phase::from_timer(timer) == Some(Phase::Reduction)
}

/// A timer value for a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timed<'a> {
    /// Timer name.
    pub name: &'a str,
    /// Time per step in seconds.
    pub seconds: f64,
}

/// Timers of a phase.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseTimes {
    /// Phase.
    pub phase: Phase,
    /// Names of the summed timers, in log order.
    pub timers: Vec<String>,
    /// Sum in seconds.
    pub seconds: f64,
}

/// Returns the timers grouped by phase; no time is added twice. Phases that have no timers are
/// omitted.
pub fn phase_times(timers: &[Timed<'_>]) -> Vec<PhaseTimes> {
    let timers: Vec<Timed<'_>> =
        timers.iter().copied().filter(|timer| timer.seconds.is_finite() && timer.seconds >= 0.0).collect();
    let is_there = |name: &str| timers.iter().any(|timer| timer.name == name);
    let mut phases = deepspeed::phase_times(&timers).unwrap_or_default();
    let is_deepspeed = !phases.is_empty();
    for timer in timers.iter().filter(|timer| !(is_deepspeed && deepspeed::is_timer(timer.name))) {
        let contained = CONTAINING.iter().any(|(container, parts)| {
            *container != timer.name && is_there(container) && parts.iter().any(|part| timer.name.starts_with(part))
        });
        let Some(phase) = Phase::from_timer(timer.name).filter(|_| !contained) else { continue };
        match phases.iter_mut().find(|known| known.phase == phase) {
            Some(known) => {
                known.seconds += timer.seconds;
                known.timers.push(timer.name.to_owned());
            }
            None => {
                phases.push(PhaseTimes { phase, timers: vec![timer.name.to_owned()], seconds: timer.seconds });
            }
        }
    }
    phases.sort_by_key(|times| times.phase);
    phases
}

/// Ranks whose timers a log prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimerRanks {
    /// The last pipeline rank.
    LastRank,
    /// The slowest rank for each timer.
    Slowest,
    /// The fastest rank for each timer.
    Fastest,
    /// The fastest rank for the gradient reduction, which contains waits on the others, and the slowest rank for other timers.
    Range,
}

/// Predicted time per phase in seconds. `None` if the plan has no such phase, or it is not
/// comparable.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PredictedPhases {
    /// Forward passes.
    pub forward_s: Option<f64>,
    /// Backward passes.
    pub backward_s: Option<f64>,
    /// Idle time of the rank before the end of its last forward or backward pass.
    pub waiting_s: Option<f64>,
    /// Exposed gradient reduction and weight gathering.
    pub reduction_s: Option<f64>,
    /// Optimizer step.
    pub optimizer_s: Option<f64>,
}

impl PredictedPhases {
    /// Returns the prediction for a phase.
    pub const fn for_phase(&self, phase: Phase) -> Option<f64> {
        match phase {
            Phase::Forward => self.forward_s,
            Phase::Backward => self.backward_s,
            Phase::Pipeline => self.waiting_s,
            Phase::Reduction => self.reduction_s,
            Phase::Optimizer => self.optimizer_s,
            Phase::Data | Phase::Other => None,
        }
    }
}

/// Returns the predicted phase times for the ranks that the log prints. `timeline` is the timeline
/// of any iteration; if it is missing, the waiting time is `None`.
///
/// The busy time of a rank is split into forward and backward by the ratio of the mean stage times.
/// The sum of maximum waits for different timers is not the time of any rank, so the waiting time
/// is only returned for a single rank.
pub fn predicted_phases(planned: &Planned, whose: TimerRanks, timeline: Option<&Timeline>) -> PredictedPhases {
    let last = planned.ranks.len().saturating_sub(1) as u32;
    let fastest =
        |value: &dyn Fn(&RankSummary) -> Option<f64>| planned.ranks.iter().filter_map(value).min_by(f64::total_cmp);
    let select = |value: &dyn Fn(&RankSummary) -> Option<f64>| match whose {
        TimerRanks::LastRank => planned.ranks.last().and_then(value),
        TimerRanks::Slowest | TimerRanks::Range => planned.ranks.iter().filter_map(value).max_by(f64::total_cmp),
        TimerRanks::Fastest => fastest(value),
    };
    let sync_s = |rank: &RankSummary| Some(rank.time.sync_s);
    let active_s = |rank: &RankSummary| rank.time.compute_s + rank.time.recompute_s + rank.time.exposed_s;
    PredictedPhases {
        forward_s: select(&|rank| Some(active_s(rank) * forward_share(planned, rank.rank)?)),
        backward_s: select(&|rank| Some(active_s(rank) * (1.0 - forward_share(planned, rank.rank)?))),
        waiting_s: match whose {
            TimerRanks::LastRank => timeline.and_then(|timeline| waiting(timeline, last)),
            TimerRanks::Slowest | TimerRanks::Fastest | TimerRanks::Range => None,
        },
        reduction_s: if whose == TimerRanks::Range { fastest(&sync_s) } else { select(&sync_s) },
        optimizer_s: select(&|rank| Some(rank.time.optimizer_s)),
    }
}

/// Returns the forward fraction of a rank's busy time. If the rank has no stages, returns the
/// fraction for all stages.
fn forward_share(planned: &Planned, rank: u32) -> Option<f64> {
    let share = |is_rank_only: bool| {
        let stages = || planned.stages.iter().filter(move |stage| !is_rank_only || stage.rank == rank);
        let (forward, both) = stages().fold((0.0, 0.0), |(forward, both), stage| {
            (forward + stage.forward_ms, both + stage.forward_ms + stage.backward_ms)
        });
        (both > 0.0).then(|| forward / both)
    };
    share(true).or_else(|| share(false))
}

/// Returns the idle time of a rank before the end of its last forward or backward pass, in seconds.
fn waiting(timeline: &Timeline, rank: u32) -> Option<f64> {
    let lane = 2 * rank as usize;
    let (first, end) = (*timeline.lane_offsets.get(lane)? as usize, *timeline.lane_offsets.get(lane + 1)? as usize);
    let computes = |kind: u8| {
        matches!(
            SpanKind::from_index(kind),
            Some(SpanKind::Forward | SpanKind::Backward | SpanKind::InputGrad | SpanKind::WeightGrad)
        )
    };
    let (mut active_ns, mut last) = (0, 0);
    for span in (first..end).filter(|&span| computes(timeline.kind[span])) {
        active_ns += timeline.duration_ns[span];
        last = last.max(timeline.start_ns[span] + timeline.duration_ns[span]);
    }
    (last > 0).then(|| last.saturating_sub(active_ns) as f64 * 1e-9)
}
