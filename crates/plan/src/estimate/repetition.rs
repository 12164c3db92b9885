//! Time and memory of a pipeline whose microbatches are equal.

use super::Inconsistent;
use super::memory::RankMemory;
use crate::compare::IterationTotals;
use planscope_core::action::Schedule;
use planscope_core::units::Bytes;
use planscope_cost::cost::PipelineCosts;
use planscope_pipeline::schedule::{Grouping, interleaved, one_f_one_b};
use planscope_pipeline::simulate::{StepEnd, execute, peak_composition, peak_host_memory};
use std::convert::Infallible;

/// A pipeline that runs the same microbatch again and again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Repetition<'a> {
    /// Costs of one microbatch.
    pub costs: &'a PipelineCosts,
    /// Chunks per rank. More than one: interleaved 1F1B.
    pub chunks: u32,
    /// Microbatches after which the pipeline is flushed.
    pub flush: Option<u32>,
}

/// Time and memory of a step.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    pub time: Time,
    /// Peak per rank.
    pub memory: Vec<RankMemory>,
    /// Largest peak of host memory of a device.
    pub host: Bytes,
}

/// Times of a step, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Time {
    pub end: f64,
    /// Sum across ranks.
    pub active: f64,
    /// Exposed communication, sum across ranks.
    pub exposed: f64,
}

/// Maximum stages x microbatches of a schedule that is always simulated whole. It needs less than
/// a millisecond.
const MAX_CELLS: u64 = 10_000;

/// The same for an interleaved schedule with groups of unequal size, whose periods differ. It needs
/// less than a tenth of a second.
const MAX_UNEQUAL_CELLS: u64 = 1_000_000;

/// Maximum stages x microbatches of a simulation, which needs less than three seconds.
const MAX_SIMULATED_CELLS: u64 = 20_000_000;

/// Periods that fill the pipeline.
const FILLING: u32 = 6;

impl Repetition<'_> {
    /// Computes a step of `microbatches`. After the pipeline is full, each further period adds the same time, and memory
    /// does not grow. The groups of an interleaved schedule with a remainder have unequal sizes, and the time of a
    /// period is a mean.
    pub(super) fn step(&self, microbatches: u32) -> Result<Step, Inconsistent> {
        let ranks = self.costs.ranks() as u32;
        // A schedule repeats after a flush, 1F1B after any microbatch, an interleaved one after a group.
        let period = self.flush.unwrap_or(ranks);
        let cells = self.costs.stages() as u64 * u64::from(microbatches);
        let is_unequal = self.flush.is_none() && self.chunks > 1 && !microbatches.is_multiple_of(ranks);
        let max_cells = if is_unequal { MAX_UNEQUAL_CELLS } else { MAX_CELLS };
        let filling = period.saturating_mul(FILLING).saturating_add(microbatches % period);
        if microbatches <= filling.saturating_add(period) || cells <= max_cells {
            return self.simulate(microbatches);
        }
        let (full, next) = (self.simulate(filling)?, self.simulate(filling + period)?);
        let periods = f64::from((microbatches - filling) / period);
        let extend = |full: f64, next: f64| full + periods * (next - full);
        let time = Time {
            end: extend(full.time.end, next.time.end),
            active: extend(full.time.active, next.time.active),
            exposed: extend(full.time.exposed, next.time.exposed),
        };
        Ok(Step { time, ..next })
    }

    fn simulate(&self, microbatches: u32) -> Result<Step, Inconsistent> {
        if self.costs.stages() as u64 * u64::from(microbatches) > MAX_SIMULATED_CELLS {
            let stages = self.costs.stages();
            return Err(Inconsistent(format!(
                "{microbatches} microbatches in {stages} stages are too many to simulate"
            )));
        }
        let costs = self.costs.repeated(microbatches as usize);
        let (ranks, chunks) = (costs.ranks(), self.chunks as usize);
        let order = |m| match chunks {
            1 => one_f_one_b(ranks, m),
            _ => interleaved(ranks, chunks, m, Grouping::Balanced),
        };
        let flush = self.flush.unwrap_or(microbatches) as usize;
        let Ok(schedule) = Schedule::flushed(microbatches as usize, flush, |m| Ok::<_, Infallible>(order(m)));
        let execution = execute(&schedule, &costs).map_err(|deadlock| Inconsistent(deadlock.to_string()))?;
        let mut totals = IterationTotals::default();
        totals.add_replica(&schedule, &costs, 1);
        let time = Time {
            end: StepEnd::from_executions(ranks, std::iter::once(&execution)).iteration_end(&costs).secs(),
            active: totals.active_time.secs(),
            exposed: totals.exposed.secs(),
        };
        let peak = |rank| RankMemory::from_peak(&costs, rank, &peak_composition(rank, &schedule, &execution, &costs));
        let memory = (0..ranks).map(peak).collect();
        Ok(Step { time, memory, host: peak_host_memory(&schedule, &costs).1 })
    }
}
