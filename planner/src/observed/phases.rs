//! Phases of a step: what the timers of a trainer measure, and what the plan says of the same.
//!
//! Timers of Megatron-LM are of one rank each: `forward-compute` is the sum of all forwards of the rank's chunks in the step, their
//! tensor-parallel communication and the reading of batches inside; `backward-compute` the same of backwards, what is computed
//! again inside. The timers of sends and receives are how long the rank stands in them: until its neighbour is ready, and the
//! transfer. What a rank waits behind its last backward, until others are there, is inside its reduction of gradients or its
//! optimizer. Old logs print one rank, the last of the pipeline; newer ones the least and the most over all ranks, or a table.

use crate::outcome::{Planned, RankSummary};
use crate::timeline::{SpanKind, Timeline};

/// A part of a step that has timers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Forwards.
    Forward,
    /// Backwards.
    Backward,
    /// Sends and receives between pipeline ranks, and waiting in them.
    Pipeline,
    /// Reduction of gradients and gathering of weights over replicas.
    Reduction,
    /// Optimizer.
    Optimizer,
    /// Reading of batches; inside forwards.
    Data,
    /// Everything else.
    Other,
}

impl Phase {
    /// In words.
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

    /// The phase that a timer is of; `None` where it is no part of a step, or contains other phases.
    fn of_timer(name: &str) -> Option<Self> {
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
            // The sum of several phases, or outside steps.
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

/// Timers that contain others of their phase, which then count no second time: the name, and how those begin.
const CONTAINING: [(&str, &[&str]); 3] = [
    ("optimizer", &["optimizer-"]),
    ("backward-reduce-model-grads", &["backward-params-", "backward-layernorm-", "backward-embedding-"]),
    ("backward-gather-model-params", &["params-all-gather"]),
];

/// A timer of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timed<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its time in the step, in s.
    pub seconds: f64,
}

/// The timers of one phase of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseTimes {
    /// The phase.
    pub phase: Phase,
    /// Timers that were added up, in the order of the log.
    pub timers: Vec<String>,
    /// Their sum, in s.
    pub seconds: f64,
}

/// The timers of a step by phase, each time counted once; phases without timers are left out.
pub fn phase_times(timers: &[Timed<'_>]) -> Vec<PhaseTimes> {
    let mut phases: Vec<PhaseTimes> = Vec::new();
    let is_there = |name: &str| timers.iter().any(|timer| timer.name == name);
    for timer in timers.iter().filter(|timer| timer.seconds.is_finite() && timer.seconds >= 0.0) {
        let contained = CONTAINING.iter().any(|(whole, parts)| {
            *whole != timer.name && is_there(whole) && parts.iter().any(|part| timer.name.starts_with(part))
        });
        let Some(phase) = Phase::of_timer(timer.name).filter(|_| !contained) else { continue };
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

/// Whose timers a log prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Those of the last rank of the pipeline.
    LastRank,
    /// Of every timer the rank that takes longest.
    Slowest,
}

/// What a plan says of the phases of a step, in s; absent where it has no such phase, or it cannot be compared.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PredictedPhases {
    /// Forwards.
    pub forward_s: Option<f64>,
    /// Backwards.
    pub backward_s: Option<f64>,
    /// Time of the rank between its first and its last action in which it does nothing, and before the first.
    pub waiting_s: Option<f64>,
    /// Exposed reduction of gradients and gathering of weights.
    pub reduction_s: Option<f64>,
    /// Optimizer.
    pub optimizer_s: Option<f64>,
}

impl PredictedPhases {
    /// Of a phase.
    pub const fn of(&self, phase: Phase) -> Option<f64> {
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

/// What a plan says of the phases, as those timers count. `timeline` is of any one iteration; without it waiting is not told.
///
/// Forward and backward share the busy time of a rank as the mean times of its stages do. The sum of what the slowest ranks wait
/// in different timers is no time of any rank, so waiting is told of one rank only.
pub fn predicted_phases(planned: &Planned, whose: Whose, timeline: Option<&Timeline>) -> PredictedPhases {
    let last = planned.ranks.len().saturating_sub(1) as u32;
    let most = |of: &dyn Fn(&RankSummary) -> Option<f64>| match whose {
        Whose::LastRank => planned.ranks.last().and_then(of),
        Whose::Slowest => planned.ranks.iter().filter_map(of).max_by(f64::total_cmp),
    };
    let busy = |rank: &RankSummary| rank.time.compute_s + rank.time.recompute_s + rank.time.exposed_s;
    PredictedPhases {
        forward_s: most(&|rank| Some(busy(rank) * forward_share(planned, rank.rank)?)),
        backward_s: most(&|rank| Some(busy(rank) * (1.0 - forward_share(planned, rank.rank)?))),
        waiting_s: match whose {
            Whose::LastRank => timeline.and_then(|timeline| waiting(timeline, last)),
            Whose::Slowest => None,
        },
        reduction_s: most(&|rank| Some(rank.time.sync_s)),
        optimizer_s: most(&|rank| Some(rank.time.optimizer_s)),
    }
}

/// Share of the forwards in the busy time of a rank; of one without stages of its own, that of all stages.
fn forward_share(planned: &Planned, rank: u32) -> Option<f64> {
    let share = |own: bool| {
        let stages = || planned.stages.iter().filter(move |stage| !own || stage.rank == rank);
        let (forward, both) = stages().fold((0.0, 0.0), |(forward, both), stage| {
            (forward + stage.forward_ms, both + stage.forward_ms + stage.backward_ms)
        });
        (both > 0.0).then(|| forward / both)
    };
    share(true).or_else(|| share(false))
}

/// How long a rank does nothing before the end of its last forward or backward, in s.
fn waiting(timeline: &Timeline, rank: u32) -> Option<f64> {
    let lane = 2 * rank as usize;
    let (first, end) = (*timeline.lane_offsets.get(lane)? as usize, *timeline.lane_offsets.get(lane + 1)? as usize);
    let computes = |kind: u8| {
        matches!(
            SpanKind::from_index(kind),
            Some(SpanKind::Forward | SpanKind::Backward | SpanKind::InputGrad | SpanKind::WeightGrad)
        )
    };
    let (mut busy, mut last) = (0, 0);
    for span in (first..end).filter(|&span| computes(timeline.kind[span])) {
        busy += timeline.duration_ns[span];
        last = last.max(timeline.start_ns[span] + timeline.duration_ns[span]);
    }
    (last > 0).then(|| last.saturating_sub(busy) as f64 * 1e-9)
}
