//! Layout search for a mode.

use std::collections::BTreeMap;

use super::estimates::{Estimate, Estimates};
use super::fill::{self, Filled, fill};
use super::report::describe;
use super::space::{Ground, Mode, Point, Space, anchor, space_by};
use super::{backbone_layout, nearest};
use crate::planners::infeasible::{BindingConstraint, Infeasibility};
use crate::planners::layout_search::{ENDLESS, MAX_SECONDS};
use crate::planners::{NO_CEILING, NoPlan, replica};
use planscope_core::host::{Cancellation, Workers, side_by_side};
use planscope_core::units::{Bytes, Nanos};
use planscope_core::workload::PackedBatch;
use planscope_cost::cost::{MicrobatchLoad, Partition, Pricing, ReplicaLayout};
use planscope_plan::observer::{Cancelled, Observer, go_on};
use planscope_plan::outcome::{Loser, NearestMiss, RejectionCount, Search};
use planscope_plan::plan::ModuleLayout;
use planscope_plan::scenario::{PlannerKind, Scenario};

/// Rejection text for layouts above the limit.
pub const BEYOND: &str = "over the limit on the number of layouts";
const MAX_STEPS: u64 = 100_000_000;
/// Points that a study simulates in parallel per round.
const ROUND: usize = 16;
/// A search below a ceiling ends at points whose estimate exceeds it by this ratio. The estimate is not a bound.
const UNLIKELY: f64 = 1.15;
/// Limit on reported losers.
const MAX_LOSERS: usize = 40;
/// Limit on rejected points whose peak memory is simulated if there is no plan.
const MEASURED: usize = 12;

/// Result for a point.
#[derive(Debug, Clone)]
pub(crate) enum Seen {
    Simulated {
        /// Sizing batch time in s.
        seconds: f64,
        /// Highest peak memory per rank.
        peak: Bytes,
        /// Idle fraction of the devices in use.
        bubble: f64,
        /// Exposed communication fraction.
        exposed: f64,
    },
    /// The point violates a rule or exceeds the memory limit.
    Rejected(Infeasibility),
}

/// A point that is not yet simulated.
struct Open {
    /// Lower bound (work per device) and estimate (with pipeline bubble), both in s.
    bound: f64,
    estimate: f64,
    point: Point,
}

/// Layout search for a mode.
pub(crate) struct Sweep<'a> {
    scenario: &'a Scenario,
    pricing: &'a Pricing<'a>,
    sizing: &'a PackedBatch,
    /// Sorted by estimate, in descending order.
    open: Vec<Open>,
    /// Points whose bound is not below the lowest time.
    pruned: Vec<Open>,
    pub(crate) seen: Vec<(Point, Seen)>,
    partitions: BTreeMap<Point, Partition>,
    /// Smallest microbatch size that exceeded memory, by mode and layouts.
    too_large: BTreeMap<(Mode, Vec<ModuleLayout>), (u32, Infeasibility)>,
    pub(crate) simulated: u32,
    /// Points with a bound above this time in s are not simulated.
    ceiling: f64,
    /// Simulation steps so far, updated ahead of each point.
    steps: u64,
    total: u32,
    /// Layouts above the limit.
    pub(crate) left_out: u64,
}

impl<'a> Sweep<'a> {
    /// Computes bounds and estimates of all points.
    pub(crate) fn new(scenario: &'a Scenario, pricing: &'a Pricing<'a>, mode: Mode, sizing: &'a PackedBatch) -> Self {
        let mut estimates = Estimates::new(scenario, pricing, sizing);
        let mut score = |point: &Point| estimates.of(point).map_or(f64::INFINITY, |found| found.estimate);
        let space = space_by(&Ground::from_scenario(scenario), mode, sizing.sequences.len() as u32, &mut score);
        Self::over(scenario, pricing, space, sizing)
    }

    fn over(scenario: &'a Scenario, pricing: &'a Pricing<'a>, space: Space, sizing: &'a PackedBatch) -> Self {
        let Space { points, illegal, left_out } = space;
        let total = (points.len() + illegal.len()) as u32;
        let seen =
            illegal.into_iter().map(|(point, rule)| (point, Seen::Rejected(Infeasibility::rule(&rule)))).collect();
        let (partitions, simulated) = (BTreeMap::new(), 0);
        let mut sweep = Self {
            scenario,
            pricing,
            sizing,
            open: Vec::new(),
            pruned: Vec::new(),
            seen,
            partitions,
            too_large: BTreeMap::new(),
            simulated,
            ceiling: f64::INFINITY,
            steps: 0,
            total,
            left_out,
        };
        let mut estimates = Estimates::new(scenario, pricing, sizing);
        for point in points {
            match estimates.of(&point) {
                Ok(Estimate { bound, estimate }) if bound <= MAX_SECONDS => {
                    sweep.open.push(Open { bound, estimate, point });
                }
                Ok(_) => sweep.seen.push((point, Seen::Rejected(Infeasibility::rule(ENDLESS)))),
                Err(infeasibility) => sweep.seen.push((point, Seen::Rejected(infeasibility))),
            }
        }
        sweep.sort();
        sweep
    }

    /// Limits the search to points faster than `ceiling`.
    pub(crate) fn below(self, ceiling: Nanos) -> Self {
        Self { ceiling: if ceiling == NO_CEILING { f64::INFINITY } else { ceiling.secs() }, ..self }
    }

    fn sort(&mut self) {
        self.open.sort_by(|a, b| b.estimate.total_cmp(&a.estimate).then_with(|| b.point.cmp(&a.point)));
    }

    /// Simulates points sorted by estimate, until `most` points are simulated or no remaining bound
    /// is below the lowest time.
    pub(crate) fn run(&mut self, limit: u32, kind: PlannerKind, observer: &mut dyn Observer) -> Result<(), Cancelled> {
        // Points that cannot win are skipped. The search continues while there is no feasible
        // point.
        while if self.best().is_none() {
            self.steps < 4 * MAX_STEPS
        } else {
            self.simulated < limit && self.steps < MAX_STEPS
        } {
            let Some(open) = self.open.pop() else { break };
            if open.estimate > UNLIKELY * self.ceiling {
                self.pruned.push(open);
                break;
            }
            if open.bound >= self.best().map_or(self.ceiling, |(best, _)| best.min(self.ceiling)) {
                self.pruned.push(open);
                continue;
            }
            go_on(observer)?;
            observer.progress(kind, "searching layouts", self.total - self.open.len() as u32, self.total);
            self.simulate(open.point);
        }
        Ok(())
    }

    /// Simulates `most` points sorted by estimate, including points that cannot win, and visits at
    /// most eight times `most`. Returns true if the search was cancelled.
    ///
    /// Points are simulated in rounds of fixed size, so the result does not depend on the number of
    /// workers.
    pub(crate) fn explore(&mut self, limit: u32, (workers, cancellation): (&dyn Workers, &dyn Cancellation)) -> bool {
        let mut left = limit.saturating_mul(8);
        while self.simulated < limit && left > 0 && !self.open.is_empty() {
            if cancellation.is_over() {
                return true;
            }
            let mut round = Vec::new();
            while round.len() < ROUND.min((limit - self.simulated) as usize) && left > 0 {
                let Some(Open { point, .. }) = self.open.pop() else { break };
                left -= 1;
                match self.does_not_fit(&point) {
                    Some(infeasibility) => self.seen.push((point, Seen::Rejected(infeasibility))),
                    None => round.push(point),
                }
            }
            let this = &*self;
            let results = side_by_side(workers, round.len(), |job| this.try_out(&round[job]));
            for (point, result) in round.into_iter().zip(results) {
                self.note(point, result);
            }
        }
        false
    }

    fn simulate(&mut self, point: Point) {
        if let Some(infeasibility) = self.does_not_fit(&point) {
            self.seen.push((point, Seen::Rejected(infeasibility)));
            return;
        }
        self.steps += steps(&point, anchor(&self.scenario.model), self.sizing.sequences.len() as u64);
        let result = self.try_out(&point);
        self.note(point, result);
    }

    /// Returns the known misfit if the same layouts failed at this microbatch size or a smaller
    /// one.
    fn does_not_fit(&self, point: &Point) -> Option<Infeasibility> {
        let known = self.too_large.get(&(point.mode, point.modules.clone()));
        known.filter(|(size, _)| *size <= point.microbatch).map(|(_, infeasibility)| infeasibility.clone())
    }

    fn note(&mut self, point: Point, result: Result<(Filled, Partition), Infeasibility>) {
        let seen = match result {
            Ok((filled, partition)) => {
                self.simulated += 1;
                self.partitions.insert(point.clone(), partition);
                let Filled { peak, bubble, exposed, time, .. } = filled;
                Seen::Simulated { seconds: time.secs(), peak, bubble, exposed }
            }
            Err(infeasibility) => {
                if infeasibility.constraint.memory().is_some() {
                    let key = (point.mode, point.modules.clone());
                    let smallest =
                        self.too_large.entry(key).or_insert_with(|| (point.microbatch, infeasibility.clone()));
                    if point.microbatch < smallest.0 {
                        *smallest = (point.microbatch, infeasibility.clone());
                    }
                }
                Seen::Rejected(infeasibility)
            }
        };
        self.seen.push((point, seen));
    }

    fn try_out(&self, point: &Point) -> Result<(Filled, Partition), Infeasibility> {
        let sequences = fill::microbatches(point, anchor(&self.scenario.model), self.sizing);
        let loads = replica::loads(self.scenario, self.sizing, &sequences);
        let partition = fill::partition(self.scenario, self.pricing, point, &loads)?;
        self.states_fit(point, &partition, &loads)?;
        let filled = fill(self.scenario, self.pricing, (point, &partition), self.sizing)?;
        if filled.time.secs() > 2.0 * MAX_SECONDS {
            return Err(Infeasibility::rule(ENDLESS));
        }
        Ok((filled, partition))
    }

    /// Checks weights, gradients and optimizer state for all modules per rank. Colocated encoders
    /// have no pipeline stages and equal states on all ranks, so the maximum per layout is
    /// sufficient.
    fn states_fit(&self, point: &Point, partition: &Partition, loads: &[MicrobatchLoad]) -> Result<(), Infeasibility> {
        let mut sum = Bytes::ZERO;
        for layout in &point.modules {
            let layout_stages = partition.stages.iter().filter(|ranges| layout.modules().contains(&ranges[0].module));
            let local = Partition { stages: layout_stages.cloned().collect(), placement: partition.placement };
            let table = fill::prices(self.pricing, layout)?.table(layout.tensor, &loads[..1]);
            let position = ReplicaLayout { pipeline: layout.pipeline, data: layout.data, replica: 0 };
            let (rank, max_bytes) = table
                .static_memory(&local, position)
                .into_iter()
                .enumerate()
                .max_by_key(|entry| entry.1)
                .unwrap_or_default();
            sum = if point.mode == Mode::NonColocated { sum.max(max_bytes) } else { sum + max_bytes };
            if sum > self.scenario.memory_limit() {
                let reason = "weights, gradients and optimizer state exceed the memory".to_owned();
                return Err(Infeasibility { reason, constraint: BindingConstraint::State(sum, rank) });
            }
        }
        Ok(())
    }

    /// Time in seconds of the fastest simulated point, and the point.
    pub(crate) fn best(&self) -> Option<(f64, &Point)> {
        let simulated = self.seen.iter().filter_map(|(point, seen)| match seen {
            Seen::Simulated { seconds, .. } => Some((*seconds, point)),
            Seen::Rejected(_) => None,
        });
        simulated.min_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(b.1)))
    }

    pub(crate) fn winner(&self) -> Option<(Point, Partition)> {
        let (_, point) = self.best()?;
        Some((point.clone(), self.partitions.get(point)?.clone()))
    }

    /// Marks the fastest point as rejected because it failed on a batch of the run.
    pub(crate) fn reject_winner(&mut self, infeasibility: &Infeasibility) {
        let Some(point) = self.best().map(|(_, point)| point.clone()) else { return };
        let reason = format!("{} on another batch", infeasibility.reason);
        let simulated = |seen: &Seen| matches!(seen, Seen::Simulated { .. });
        if let Some((_, seen)) = self.seen.iter_mut().find(|(other, seen)| *other == point && simulated(seen)) {
            *seen = Seen::Rejected(Infeasibility { reason, constraint: infeasibility.constraint });
        }
        // Allow a further simulation as a replacement, including pruned points.
        self.simulated = self.simulated.saturating_sub(1);
        self.open.append(&mut self.pruned);
        self.sort();
    }

    /// Points that are not simulated and not rejected, and their lower bounds in s.
    pub(crate) fn unseen(&self) -> impl Iterator<Item = (&Point, f64)> {
        self.open.iter().chain(&self.pruned).map(|open| (&open.point, open.bound))
    }

    /// Returns the search statistics. Explains losers and rejections.
    pub(crate) fn report(&self) -> Search {
        let best = self.best().map(|(seconds, point)| (seconds, point.clone()));
        let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
        let mut losers: Vec<Loser> = Vec::new();
        for (point, seen) in &self.seen {
            match seen {
                Seen::Rejected(infeasibility) => *counts.entry(infeasibility.reason.as_str()).or_default() += 1,
                Seen::Simulated { seconds, peak, bubble, exposed } => {
                    let Some((best_time, winner)) = &best else { continue };
                    if point == winner {
                        continue;
                    }
                    let (idle, waits) = (100.0 * bubble, 100.0 * exposed);
                    losers.push(Loser {
                        layout: backbone_layout(self.scenario, point),
                        reason: format!(
                            "+{:.3} s: {}; {idle:.0} % idle, {waits:.0} % exposed communication",
                            seconds - best_time,
                            describe(&self.scenario.model, point)
                        ),
                        iteration_s: Some(*seconds),
                        peak_memory_gib: Some(peak.gib()),
                    });
                }
            }
        }
        losers.sort_by(|a, b| a.iteration_s.unwrap_or(0.0).total_cmp(&b.iteration_s.unwrap_or(0.0)));
        losers.truncate(MAX_LOSERS);
        let rejected = counts.values().sum();
        let mut rejections: Vec<RejectionCount> =
            counts.into_iter().map(|(reason, count)| RejectionCount { reason: reason.to_owned(), count }).collect();
        rejections.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.reason.cmp(&b.reason)));
        if self.left_out > 0 {
            // Not counted as candidates, because only the number is known.
            rejections
                .push(RejectionCount { reason: BEYOND.to_owned(), count: self.left_out.min(u32::MAX.into()) as u32 });
        }
        let (simulated, pruned) = (self.simulated, (self.open.len() + self.pruned.len()) as u32);
        Search { candidates: self.total, simulated, pruned, rejected, losers, rejections, nearest: None }
    }

    /// Explains why no point is feasible, based on the points with the smallest excess.
    pub(crate) fn no_plan(&self) -> NoPlan {
        let rejected = self.seen.iter().filter_map(|(point, seen)| match seen {
            Seen::Rejected(infeasibility) => Some((point, infeasibility)),
            Seen::Simulated { .. } => None,
        });
        let rejected: Vec<_> = rejected.collect();
        let mut lacking: Vec<_> = rejected
            .iter()
            .filter_map(|(point, infeasibility)| {
                Some((infeasibility.constraint.memory()?, *point, infeasibility.constraint))
            })
            .collect();
        lacking.sort_by(|a, b| a.0.1.cmp(&b.0.1).then_with(|| a.1.cmp(b.1)));
        let needs = lacking.iter().take(MEASURED).filter_map(|(_, point, _)| {
            Some((nearest::need(self.scenario, self.pricing, point, self.sizing)?, *point))
        });
        let need = needs.min_by(|a, b| a.0.bytes.cmp(&b.0.bytes).then_with(|| a.1.cmp(b.1)));
        let limit = self.scenario.memory_limit().gib();
        let mut search = self.report();
        if let Some((need, point)) = need {
            let (rank, needs) = (need.rank, need.bytes.gib());
            let at = describe(&self.scenario.model, point);
            let binding = format!("rank {rank} needs {needs:.1} GiB; {limit:.1} GiB available ({at})");
            search.nearest = Some(Box::new(NearestMiss {
                layout: backbone_layout(self.scenario, point),
                rank: rank as u32,
                needs_gib: needs,
                limit_gib: limit,
                ranks: need.ranks,
            }));
            return NoPlan { binding, search };
        }
        let binding = match (lacking.first(), rejected.first()) {
            (Some(((rank, needs), point, constraint)), _) => {
                let terms = match constraint {
                    BindingConstraint::State(..) => " for weights, gradients and optimizer alone",
                    _ => "",
                };
                let at = describe(&self.scenario.model, point);
                format!("rank {rank} needs {:.1} GiB{terms}; {limit:.1} GiB available ({at})", needs.gib())
            }
            (None, Some((_, infeasibility))) => infeasibility.reason.clone(),
            (None, None) => "no valid layout: the requested degrees do not divide the devices".to_owned(),
        };
        NoPlan { binding, search }
    }
}

/// Estimates the simulation steps of a point. Each cell needs pricing and a choice among all ranks.
fn steps(point: &Point, main: usize, sequences: u64) -> u64 {
    let backbone = point.modules.iter().find(|layout| layout.modules().contains(&main));
    let (copies, copies_per_rank) = backbone.map_or((1, 1), |layout| (layout.pipelines(), layout.copies_per_rank));
    let microbatches = sequences.div_ceil(u64::from(point.microbatch * copies_per_rank));
    let each = |layout: &ModuleLayout| u64::from(layout.pipelines().div_ceil(copies)) * u64::from(layout.pipeline);
    let ranks: u64 = point.modules.iter().map(|layout| u64::from(layout.pipelines() * layout.pipeline)).sum();
    microbatches * point.modules.iter().map(each).sum::<u64>() * (50 + ranks / 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planners::module_layouts::space::{degree_settings, space};
    use planscope_core::workload::packing;
    use planscope_plan::observer::Unobserved;
    use planscope_plan::scenario::Sampler;
    use planscope_plan::scenario::validate::NoDatasets;
    use planscope_plan::scenario::{ValidScenario, parse};

    /// With layouts above the limit, each visited layout occurs once in the sweep and can fail on
    /// the run once.
    #[test]
    fn visited_layouts_occur_once() {
        let scenario = serde_json::json!({
            "schema": "scenario/1", "model": { "preset": "vlm-s" }, "cluster": { "preset": "h100", "nodes": 1 },
            "workload": {
                "samples": {
                    "kind": "drawn", "text_tokens": { "kind": "constant", "value": 1000 },
                    "images": { "kind": "constant", "value": 4 }
                },
                "global_batch": 16, "context_length": 8192, "packing": "single"
            },
            "training": { "recompute": "full" }, "planners": ["homogeneous"], "seed": 3
        });
        let valid = ValidScenario::new(parse(&scenario.to_string()).unwrap(), &NoDatasets).unwrap();
        let scenario = valid.scenario();
        let degrees = degree_settings(scenario);
        let pricing = Pricing::new(&scenario.model, &scenario.cluster, &scenario.training).with_degrees(&degrees);
        let sizing = Sampler::new(&valid).sizing();
        let sizing = packing::pack(&sizing.samples, &scenario.model, &scenario.workload.packing_rule());
        let mut space = space(&Ground::from_scenario(scenario), Mode::Homogeneous, 16);
        space.left_out = 7;
        let mut sweep = Sweep::over(scenario, &pricing, space, &sizing);
        sweep.run(u32::MAX, PlannerKind::Homogeneous, &mut Unobserved).unwrap();
        let mut points: Vec<&Point> =
            sweep.seen.iter().map(|(point, _)| point).chain(sweep.unseen().map(|entry| entry.0)).collect();
        let all = points.len();
        points.sort();
        points.dedup();
        assert_eq!((points.len(), sweep.total as usize), (all, all));
        for left in (0..sweep.simulated).rev() {
            sweep.reject_winner(&Infeasibility::rule("too large"));
            // Disable replacements for failed points.
            (sweep.open, sweep.pruned) = (Vec::new(), Vec::new());
            assert_eq!(sweep.simulated, left);
        }
        assert!(sweep.winner().is_none());
        let search = sweep.report();
        assert!(search.rejections.iter().any(|known| known.reason.contains("over the limit") && known.count == 7));
    }
}
