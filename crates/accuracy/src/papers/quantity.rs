//! Computed quantities that correspond to published values.

use planner::analysis::{RankMemoryMetrics, rank_memory};
use planner::outcome::{IterationMetrics, IterationStrategy, Planned};
use planner::scenario::PlannerKind;
use planner::timeline::Timeline;
use serde::Deserialize;

use super::plans::{Plans, Unavailable};
use super::published::PlanReference;
use super::studies::Explored;

const BYTES_PER_GIB: f64 = (1_u64 << 30) as f64;

/// Quantity derived from plans and studies, in the form used by papers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case", deny_unknown_fields)]
pub enum Quantity {
    /// Mean iteration time in s.
    Time {
        /// Evaluated plan.
        plan: PlanReference,
    },
    /// Model operations per iteration over all devices, in PFLOP.
    Operations {
        /// Evaluated plan.
        plan: PlanReference,
    },
    /// Model FLOPs utilisation (MFU), as a fraction.
    Utilisation {
        /// Evaluated plan.
        plan: PlanReference,
    },
    /// MFU loss relative to another plan, 1 - MFU / MFU(`over`), in percent.
    UtilisationLost {
        /// Evaluated plan.
        plan: PlanReference,
        /// Reference plan.
        over: PlanReference,
    },
    /// Throughput gain over another plan for the same batches, time(`over`) / time - 1, in percent.
    Gain {
        /// Evaluated plan.
        plan: PlanReference,
        /// Reference plan.
        over: PlanReference,
        /// First and last iteration to include, starting at 1. `None`: all iterations.
        #[serde(default)]
        iterations: Option<[u32; 2]>,
    },
    /// Throughput gain over the fastest of several planners for the same scenario, in percent.
    GainOverBest {
        /// Evaluated plan.
        plan: PlanReference,
        /// Planners to compare with. Planners that are not in the scenario are planned in addition.
        among: Vec<PlannerKind>,
    },
    /// Iteration time divided by that of another plan, also for another scenario.
    TimeRatio {
        /// Evaluated plan.
        plan: PlanReference,
        /// Reference plan.
        over: PlanReference,
    },
    /// Decrease in idle time per iteration relative to another plan, in percent.
    IdleReduction {
        /// Evaluated plan.
        plan: PlanReference,
        /// Reference plan.
        over: PlanReference,
    },
    /// Mean throughput of the stages relative to another plan, in percent more.
    StageThroughput {
        /// Evaluated plan.
        plan: PlanReference,
        /// Reference plan.
        over: PlanReference,
    },
    /// Standard deviation of the throughput of the stages, in percent of their mean.
    StageVariation {
        /// Evaluated plan.
        plan: PlanReference,
    },
    /// Mean difference between the estimate of a planner and the simulated time, in percent of the
    /// simulated time.
    EstimationError {
        /// Evaluated plan.
        plan: PlanReference,
    },
    /// Net speed-up of the adaptive correction of DFLOP in the second half of a run, in percent.
    Correction {
        /// Scenario name.
        scenario: String,
        /// Iterations in the run.
        iterations: u32,
        /// Fraction of all shapes that are slow.
        rate: f64,
        /// Extra time of a slow item, as a fraction of the longest stage.
        magnitude: f64,
    },
    /// Mean planning time of a batch on one thread, in ms.
    PlanningTime {
        /// Evaluated plan.
        plan: PlanReference,
    },
    /// Pipeline imbalance, 1 - fastest / slowest, averaged over the iterations.
    PipelineSpread {
        /// Evaluated plan.
        plan: PlanReference,
    },
    /// Time per iteration for strategy switches, averaged over the iterations, in s.
    SwitchTime {
        /// Evaluated plan.
        plan: PlanReference,
    },
    /// Increase in peak memory on the first rank relative to another plan, in percent.
    PeakMemory {
        /// Evaluated plan.
        plan: PlanReference,
        /// Reference plan.
        over: PlanReference,
    },
    /// Decrease in steady-state memory fluctuation on the first rank relative to another plan, in
    /// percent.
    SteadierMemory {
        /// Evaluated plan.
        plan: PlanReference,
        /// Reference plan.
        over: PlanReference,
    },
    /// Like `SteadierMemory`, with the fluctuation divided by the peak memory above the model
    /// state.
    EvenerMemory {
        /// Evaluated plan.
        plan: PlanReference,
        /// Reference plan.
        over: PlanReference,
    },
    /// Relative time difference of the slowest order found to the fastest order found for a
    /// sub-microbatch size, in percent.
    OrderGap {
        /// Scenario name.
        scenario: String,
        /// Minimum and maximum size to include. The result is the minimum difference among these
        /// sizes.
        sizes: [u32; 2],
        /// Rollouts per search.
        rollouts: u32,
    },
    /// Time increase of the fastest order relative to a different sub-microbatch size, in percent.
    SizePenalty {
        /// Scenario name.
        scenario: String,
        /// Evaluated size.
        size: u32,
        /// Reference size.
        over: u32,
        /// Rollouts per search.
        rollouts: u32,
    },
    /// Sub-microbatch size chosen by the partitioner, in items.
    ChosenSize {
        /// Scenario name.
        scenario: String,
        /// Rollouts per search.
        rollouts: u32,
    },
    /// Tree search time until the makespan is within `within` percent of the minimum makespan of
    /// all searches, in s.
    SearchTime {
        /// Scenario name.
        scenario: String,
        /// Tolerance in percent.
        within: f64,
        /// Rollouts per search.
        rollouts: u32,
    },
    /// Makespan increase of another search relative to the tree search, in percent.
    SearchBehind {
        /// Scenario name.
        scenario: String,
        /// Compared search strategy.
        explored: Explored,
        /// Rollouts per search.
        rollouts: u32,
    },
}

/// A value, or an explanation for a missing value.
impl Quantity {
    /// Returns the named plans that the quantity needs.
    pub(super) fn plans(&self) -> Vec<PlanReference> {
        match self {
            Self::Time { plan }
            | Self::Operations { plan }
            | Self::Utilisation { plan }
            | Self::GainOverBest { plan, .. }
            | Self::StageVariation { plan }
            | Self::EstimationError { plan }
            | Self::PlanningTime { plan }
            | Self::PipelineSpread { plan }
            | Self::SwitchTime { plan } => vec![plan.clone()],
            Self::UtilisationLost { plan, over }
            | Self::Gain { plan, over, .. }
            | Self::TimeRatio { plan, over }
            | Self::IdleReduction { plan, over }
            | Self::StageThroughput { plan, over }
            | Self::PeakMemory { plan, over }
            | Self::SteadierMemory { plan, over }
            | Self::EvenerMemory { plan, over } => vec![over.clone(), plan.clone()],
            Self::Correction { scenario, .. } => {
                vec![PlanReference { scenario: scenario.clone(), planner: PlannerKind::Dflop }]
            }
            Self::OrderGap { .. }
            | Self::SizePenalty { .. }
            | Self::ChosenSize { .. }
            | Self::SearchTime { .. }
            | Self::SearchBehind { .. } => Vec::new(),
        }
    }

    /// Returns the plans of which the quantity takes the fastest.
    pub(super) fn opponents(&self) -> Vec<PlanReference> {
        let Self::GainOverBest { plan, among } = self else { return Vec::new() };
        let opponent = |&planner| PlanReference { scenario: plan.scenario.clone(), planner };
        among.iter().map(opponent).collect()
    }

    /// Returns the fastest of [`Self::opponents`], or `None` for other quantities.
    pub(super) fn opponent(&self, plans: &mut Plans<'_>) -> Result<Option<PlanReference>, Unavailable> {
        let mut best: Option<(f64, PlanReference)> = None;
        for opponent in self.opponents() {
            match plans.planned(&opponent) {
                Ok(planned) => {
                    let seconds = planned.metrics.iteration_s;
                    if best.as_ref().is_none_or(|(known, _)| seconds < *known) {
                        best = Some((seconds, opponent));
                    }
                }
                Err(Unavailable::Infeasible(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(best.map(|(_, opponent)| opponent))
    }

    /// True if the value is a wall-clock time, which differs between runs.
    pub(super) const fn is_wall_time(&self) -> bool {
        matches!(self, Self::SearchTime { .. } | Self::PlanningTime { .. })
    }

    /// True if the value is computed for several seeds. Wall times and studies of a search are computed for the seed of
    /// the scenario only.
    pub(super) const fn is_over_seeds(&self) -> bool {
        !self.is_wall_time()
            && !matches!(
                self,
                Self::OrderGap { .. } | Self::SizePenalty { .. } | Self::ChosenSize { .. } | Self::SearchBehind { .. }
            )
    }

    /// True if the value needs the timelines of its plans.
    pub(super) const fn needs_timelines(&self) -> bool {
        matches!(self, Self::PeakMemory { .. } | Self::SteadierMemory { .. } | Self::EvenerMemory { .. })
    }

    /// Computes the value.
    pub(super) fn value(&self, plans: &mut Plans<'_>) -> Result<f64, Unavailable> {
        match self {
            Self::Time { plan } => single(plans, plan, |planned, _| planned.metrics.iteration_s),
            Self::Operations { plan } => single(plans, plan, |planned, devices| {
                planned.metrics.tflops_per_device * devices * planned.metrics.iteration_s * 1e-3
            }),
            Self::Utilisation { plan } => single(plans, plan, |planned, _| planned.metrics.mfu),
            Self::PipelineSpread { plan } => strategies(plans, plan, |strategy| {
                let seconds = || strategy.pipelines.iter().map(|pipeline| pipeline.simulated_s);
                let slowest = seconds().fold(0.0, f64::max);
                1.0 - seconds().fold(slowest, f64::min) / slowest
            }),
            Self::SwitchTime { plan } => strategies(plans, plan, |strategy| strategy.switch_s),
            Self::UtilisationLost { plan, over } => {
                let utilisation = |planned: &Planned| Ok(planned.metrics.mfu);
                pair(plans, plan, over, utilisation, |mfu, over| 100.0 * (1.0 - mfu / over))
            }
            Self::Gain { plan, over, iterations } => {
                let iteration_time = |planned: &Planned| time(planned, *iterations);
                pair(plans, plan, over, iteration_time, |current, over| 100.0 * (over / current - 1.0))
            }
            Self::GainOverBest { plan, .. } => {
                let current = plans.planned(plan)?.metrics.iteration_s;
                let opponent = self
                    .opponent(plans)?
                    .ok_or_else(|| Unavailable::Infeasible("no other planner has a plan".to_owned()))?;
                Ok(100.0 * (plans.planned(&opponent)?.metrics.iteration_s / current - 1.0))
            }
            Self::TimeRatio { plan, over } => {
                pair(plans, plan, over, |planned| Ok(planned.metrics.iteration_s), |current, over| current / over)
            }
            Self::IdleReduction { plan, over } => {
                let idle = |planned: &Planned| {
                    let idle = planned.ranks.iter().map(|rank| rank.time.bubble_s).sum::<f64>();
                    Ok(idle / planned.ranks.len().max(1) as f64)
                };
                pair(plans, plan, over, idle, |current, over| 100.0 * (1.0 - current / over))
            }
            Self::StageThroughput { plan, over } => {
                let mean = |planned: &Planned| throughput(planned).map(|(mean, _)| mean);
                pair(plans, plan, over, mean, |current, over| 100.0 * (current / over - 1.0))
            }
            Self::StageVariation { plan } => {
                let (mean, deviation) = throughput(plans.planned(plan)?)?;
                Ok(100.0 * deviation / mean)
            }
            Self::EstimationError { plan } => {
                let iterations = &plans.planned(plan)?.iterations;
                let error = |iteration: &IterationMetrics| {
                    let estimated = iteration.groups.as_ref()?.estimated_s;
                    Some((estimated / iteration.iteration_s - 1.0).abs())
                };
                let errors: Option<Vec<f64>> = iterations.iter().map(error).collect();
                let errors = errors.filter(|errors| !errors.is_empty()).ok_or_else(|| "no estimate".to_owned())?;
                Ok(100.0 * errors.iter().sum::<f64>() / errors.len() as f64)
            }
            Self::Correction { scenario, iterations, rate, magnitude } => {
                let planned = plans.scenario(scenario)?;
                Ok(super::studies::corrected(&planned.valid, &planned.outcome, *iterations, *rate, *magnitude)?)
            }
            Self::PlanningTime { plan } => {
                let scenario = plans.scenario(&plan.scenario)?;
                scenario.planned(plan.planner)?;
                let seconds = scenario.clock.mean(plan.planner);
                Ok(1e3 * seconds.ok_or_else(|| "the planner plans no batches online".to_owned())?)
            }
            Self::PeakMemory { plan, over } => memory(plans, plan, over, |current, over| {
                let peak = |memory: &[Memory]| memory.iter().map(|entry| entry.metrics.peak_gib).fold(0.0, f64::max);
                Some(100.0 * (peak(current) / peak(over) - 1.0))
            }),
            Self::SteadierMemory { plan, over } => memory(plans, plan, over, |current, over| {
                let fluctuation = |memory: &Memory| memory.metrics.fluctuation_gib;
                Some(100.0 * (1.0 - mean(current, fluctuation)? / mean(over, fluctuation)?))
            }),
            Self::EvenerMemory { plan, over } => memory(plans, plan, over, |current, over| {
                let relative_fluctuation = |memory: &Memory| {
                    Some(memory.metrics.fluctuation_gib? / (memory.metrics.peak_gib - memory.state_gib))
                };
                Some(100.0 * (1.0 - mean(current, relative_fluctuation)? / mean(over, relative_fluctuation)?))
            }),
            Self::OrderGap { .. }
            | Self::SizePenalty { .. }
            | Self::ChosenSize { .. }
            | Self::SearchTime { .. }
            | Self::SearchBehind { .. } => self.search_value(plans),
        }
    }

    /// Computes a value of a study of a search.
    fn search_value(&self, plans: &mut Plans<'_>) -> Result<f64, Unavailable> {
        match self {
            Self::OrderGap { scenario, sizes: [from, to], rollouts } => {
                let sizes = plans.scenario(scenario)?.sizes(*rollouts)?;
                let within = sizes.points.iter().filter(|point| (*from..=*to).contains(&point.size));
                let gaps = within.filter_map(|point| point.ends).map(|ends| ends.worst_s / ends.best_s - 1.0);
                let min_gap = gaps.min_by(f64::total_cmp).ok_or_else(|| format!("no size from {from} to {to}"))?;
                Ok(100.0 * min_gap)
            }
            Self::SizePenalty { scenario, size, over, rollouts } => {
                let sizes = plans.scenario(scenario)?.sizes(*rollouts)?;
                let best = |size: u32| {
                    let point = sizes.points.iter().find(|point| point.size == size);
                    let ends = point.and_then(|point| point.ends);
                    ends.map(|ends| ends.best_s).ok_or_else(|| format!("no order at size {size}"))
                };
                Ok(100.0 * (best(*size)? / best(*over)? - 1.0))
            }
            Self::ChosenSize { scenario, rollouts } => {
                Ok(f64::from(plans.scenario(scenario)?.sizes(*rollouts)?.chosen))
            }
            Self::SearchTime { scenario, within, rollouts } => {
                Ok(super::studies::time_within(plans.scenario(scenario)?.search(*rollouts)?, *within)?)
            }
            Self::SearchBehind { scenario, explored, rollouts } => {
                Ok(super::studies::behind(plans.scenario(scenario)?.search(*rollouts)?, *explored)?)
            }
            _ => Err("the quantity is no study of a search".to_owned().into()),
        }
    }
}

fn single(
    plans: &mut Plans<'_>,
    plan: &PlanReference,
    value: impl FnOnce(&Planned, f64) -> f64,
) -> Result<f64, Unavailable> {
    let scenario = plans.scenario(&plan.scenario)?;
    let devices = f64::from(scenario.valid.scenario().cluster.devices());
    Ok(value(scenario.planned(plan.planner)?, devices))
}

/// Averages a value over the iterations of a plan with different pipeline schemes.
fn strategies(
    plans: &mut Plans<'_>,
    plan: &PlanReference,
    value: impl Fn(&IterationStrategy) -> f64,
) -> Result<f64, Unavailable> {
    let iterations = plans.planned(plan)?.iterations.iter();
    let values: Option<Vec<f64>> = iterations.map(|iteration| iteration.strategy.as_ref().map(&value)).collect();
    let values = values.filter(|values| !values.is_empty());
    let values = values.ok_or_else(|| "its pipelines have no schemes of their own".to_owned())?;
    Ok(values.iter().sum::<f64>() / values.len() as f64)
}

/// Computes a value of both plans and combines the values. An infeasible plan has priority over a
/// value that does not apply.
fn pair(
    plans: &mut Plans<'_>,
    plan: &PlanReference,
    over: &PlanReference,
    value: impl Fn(&Planned) -> Result<f64, String>,
    combine: impl FnOnce(f64, f64) -> f64,
) -> Result<f64, Unavailable> {
    let first = value(plans.planned(plan)?);
    let second = value(plans.planned(over)?);
    Ok(combine(first?, second?))
}

/// Memory of the first rank in an iteration.
struct Memory {
    metrics: RankMemoryMetrics,
    /// Weights, gradients and optimizer state in GiB.
    state_gib: f64,
}

/// Compares the memory of the first rank by iteration.
fn memory(
    plans: &mut Plans<'_>,
    plan: &PlanReference,
    over: &PlanReference,
    both: impl FnOnce(&[Memory], &[Memory]) -> Option<f64>,
) -> Result<f64, Unavailable> {
    let mut memory = |plan: &PlanReference| -> Result<Vec<Memory>, Unavailable> {
        let scenario = plans.scenario(&plan.scenario)?;
        let first_rank = |timeline: &Timeline| {
            let metrics = rank_memory(timeline, 0)?;
            Some(Memory { metrics, state_gib: timeline.memory.first()?.static_bytes as f64 / BYTES_PER_GIB })
        };
        scenario.planned(plan.planner)?;
        Ok(scenario.timelines(plan.planner).filter_map(first_rank).collect())
    };
    let (first, second) = (memory(plan)?, memory(over)?);
    Ok(both(&first, &second).ok_or_else(|| "no steady state".to_owned())?)
}

/// Averages over the iterations that have a steady state.
fn mean(memory: &[Memory], metric: impl Fn(&Memory) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = memory.iter().filter_map(metric).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Total time of all iterations, or of an inclusive range starting at 1, in s.
fn time(planned: &Planned, iterations: Option<[u32; 2]>) -> Result<f64, String> {
    let Some([first, last]) = iterations else { return Ok(planned.metrics.iteration_s) };
    let range = (first.max(1) as usize - 1)..last as usize;
    let selection = planned.iterations.get(range).filter(|slice| !slice.is_empty());
    let selected =
        selection.ok_or_else(|| format!("no iterations {first} to {last} of {}", planned.iterations.len()))?;
    Ok(selected.iter().map(|iteration| iteration.iteration_s).sum())
}

/// Mean and standard deviation of the throughput per device over the stages.
fn throughput(planned: &Planned) -> Result<(f64, f64), String> {
    let rates: Option<Vec<f64>> = planned.stages.iter().map(|stage| stage.tflops_per_device).collect();
    let rates = rates.filter(|rates| !rates.is_empty()).ok_or_else(|| "its stages have no throughput".to_owned())?;
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let variance = rates.iter().map(|rate| (rate - mean) * (rate - mean)).sum::<f64>() / rates.len() as f64;
    Ok((mean, variance.sqrt()))
}
