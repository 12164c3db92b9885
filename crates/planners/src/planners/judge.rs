//! Validation and simulation of plans. All planners use the same simulator.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::planners::breakdown::{RankTotals, StageTimes};
use crate::planners::contents;
use crate::planners::dhp::group_costs;
use crate::planners::executed::{ReplicaRun, Runs, TestedPlan, equal_runs, run_iteration};
use crate::planners::execution_file::ExecutionFileError;
use crate::planners::hydraulis::pipeline_costs;
use crate::planners::hydraulis::pipeline_costs::{DeviceTotals, SchemeStages};
use crate::planners::module_layouts::module_costs;
use planscope_check::check::{self, Violation};
use planscope_core::host::{jobs_per_round, side_by_side};
use planscope_core::timeline::Timeline;
use planscope_core::units::{Nanos, Seconds};
use planscope_core::workload::PackedBatch;
use planscope_cost::cost::Pricing;
use planscope_pipeline::simulate::{StepEnd, assemble, peak_host_memory, peak_memory_over};
use planscope_plan::compare::{self, IterationTotals};
use planscope_plan::execution_file::ExecutionFile;
use planscope_plan::observer::{Cancelled, Observer, go_on};
use planscope_plan::outcome::{Gain, IterationMetrics, IterationStrategy, Layout, Planned, Provenance};
use planscope_plan::plan::{Arrangement, IterationPlan, Plan, ReplicaKind, ReplicaPlan, Strategy};
use planscope_plan::scenario::budget::Spans;
use planscope_plan::scenario::{FreeSetting, PlanSettings, PlannerKind, Scenario};

/// Execution plan file of an iteration, or the reason why there is none.
pub(crate) type Recording = Result<ExecutionFile, ExecutionFileError>;

/// A validated plan, its metrics and timelines. Only [`judge`] constructs it.
#[derive(Debug, Clone)]
pub struct EvaluatedPlan {
    planned: Planned,
    timelines: Vec<Timeline>,
    /// Execution plan file of the recorded iteration.
    recording: Option<Arc<Recording>>,
}

impl EvaluatedPlan {
    /// Spans of the stored timelines, which need no further simulation.
    pub(crate) fn stored_spans(&self) -> Spans {
        Spans { stored: self.timelines.iter().map(|timeline| timeline.len() as u64).sum(), simulated: 0 }
    }

    /// Mean iteration time in s.
    pub fn iteration_s(&self) -> f64 {
        self.planned.metrics.iteration_s
    }

    /// Records the values of the free settings. Layouts of modules choose their context-parallel degree themselves; if all
    /// modules have the same, it is that of the plan.
    #[must_use]
    pub(crate) fn with_settings(mut self, mut settings: PlanSettings) -> Self {
        let layouts = self.planned.placement.as_ref().map_or(&[][..], |placement| &placement.layouts);
        if let Some((first, rest)) = layouts.split_first()
            && rest.iter().all(|other| other.context == first.context)
        {
            settings.context_parallel = first.context;
        }
        self.planned.settings = Some(settings);
        self
    }

    /// Adds a sentence before the decisions of the planner.
    #[must_use]
    pub(crate) fn with_decision(mut self, decision: String) -> Self {
        self.planned.decisions.insert(0, decision);
        self
    }

    /// Adds the execution plan file.
    pub(crate) fn record(&mut self, recording: Recording) {
        self.recording = Some(Arc::new(recording));
    }

    /// Returns the execution plan file, if an iteration was recorded. The planner that made the plan is
    /// its source if the plan is presented by another.
    pub(crate) fn take_recording(&mut self, planner: PlannerKind) -> Option<Recording> {
        let recording = Arc::unwrap_or_clone(self.recording.take()?);
        let source = self.planned.source;
        Some(recording.map(|file| ExecutionFile { planner, source, ..file }))
    }

    /// Returns the peak of the host memory of a node in GiB.
    pub(crate) const fn host_memory_gib(&self) -> f64 {
        self.planned.metrics.host_memory_gib
    }

    /// Returns the degrees of the plan.
    pub(crate) const fn layout(&self) -> Layout {
        self.planned.layout
    }

    /// Returns the values of the free settings.
    pub(crate) const fn settings(&self) -> Option<PlanSettings> {
        self.planned.settings
    }

    /// Presents the plan of `source` as the best plan, with the gains of its ingredients, the lower bound over all
    /// layouts in s, and further decisions.
    #[must_use]
    pub(crate) fn into_best(
        mut self,
        source: PlannerKind,
        gains: Vec<Gain>,
        bound_s: f64,
        mut decisions: Vec<String>,
    ) -> Self {
        self.planned.source = Some(source);
        self.planned.gains = gains;
        self.planned.all_layouts_bound_s = Some(bound_s);
        decisions.append(&mut self.planned.decisions);
        self.planned.decisions = decisions;
        self
    }

    /// Returns the plan including metrics, and the timeline of the slowest replica per iteration.
    pub fn into_parts(self) -> (Planned, Vec<Timeline>) {
        (self.planned, self.timelines)
    }
}

/// Error of an evaluation.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub enum JudgeError {
    Cancelled(#[from] Cancelled),
    /// The checker rejects the plan. This is a bug in the planner.
    Rejected(#[from] Violation),
}

/// Validates a plan, simulates it on all batches and computes the metrics. Batches are simulated in
/// parallel.
///
/// # Errors
/// [`JudgeError::Cancelled`] on request by the observer, [`JudgeError::Rejected`] for the first
/// violation.
#[expect(clippy::too_many_lines, reason = "one pass over the batches: check, simulate, measure")]
pub fn judge(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    tested: &TestedPlan,
    batches: &[PackedBatch],
    observer: &dyn Observer,
) -> Result<EvaluatedPlan, JudgeError> {
    let (plan, workers) = (tested.plan(), observer.workers());
    check_placement(scenario, plan, batches)?;
    let arrangement = plan.arrangement();
    let limit = scenario.memory_limit();
    let mut totals = Vec::with_capacity(batches.len());
    let mut iterations = Vec::with_capacity(batches.len());
    let mut timelines = Vec::with_capacity(batches.len());
    let mut accounts = group_costs::Accounts::default();
    let mut stages =
        StageTimes::new(arrangement.as_ref().map_or(plan.partition.stages.len(), |arranged| arranged.cut.len()));
    let mut ranks = RankTotals::new(plan.ranks());
    let mut schemed = SchemeTotals::new(scenario);
    let mut ready = VecDeque::new();
    for (iteration, batch) in batches.iter().enumerate() {
        go_on(observer)?;
        let planned = &plan.iterations[iteration];
        if ready.is_empty() {
            let round = jobs_per_round(workers).min(batches.len() - iteration);
            ready.extend(side_by_side(workers, round, |offset| {
                let iteration = iteration + offset;
                checked_run(scenario, pricing, tested, iteration, &batches[iteration])
            }));
        }
        let runs = ready.pop_front().expect("a round has an iteration at least")?;
        let schemes = planned.replicas.first().and_then(ReplicaPlan::strategy);
        let mut end = match schemes {
            Some(strategy) => pipeline_costs::step_end(strategy, &runs[0].execution),
            None => StepEnd::from_executions(plan.ranks(), runs.iter().map(|run| &run.execution)),
        };
        if let Some(arrangement) = &arrangement {
            end.join(&arrangement.synchronised(&plan.modules));
        }
        let sizes = arrangement.as_ref().map(Arrangement::sizes);
        let equal = equal_runs(&runs);
        let total = iteration_totals(scenario, batch, planned, (&runs, &equal), sizes.as_deref(), &end);
        for &(index, count) in &equal {
            let (run, replica) = (&runs[index], &planned.replicas[index]);
            if let ReplicaKind::Strategy(strategy) = &replica.kind {
                for _ in 0..count {
                    schemed.stages.add(strategy, &run.costs);
                    schemed.devices.add(strategy, &replica.schedule, &run.execution, &run.costs, total.time);
                }
            } else {
                stages.add(&run.costs, count);
                stages.add_flops(&run.stage_flops, count);
                ranks.add(&replica.schedule, &run.execution, &run.costs, total.time, count);
            }
        }
        let slowest =
            (0..runs.len()).max_by_key(|&replica| (runs[replica].execution.makespan(), std::cmp::Reverse(replica)));
        let slowest = slowest.unwrap_or(0);
        let run = &runs[slowest];
        let is_grouped = planned.replicas[slowest].is_grouped();
        let work = is_grouped.then(|| group_costs::work(&planned.replicas[slowest].schedule, &run.costs));
        let group_statistics =
            work.as_ref().map(|work| accounts.next(&planned.replicas[slowest], &batch.sequences, work));
        let scheme_statistics = schemes.map(|strategy| {
            let plan = (&planned.replicas[0], strategy);
            pipeline_costs::iteration_strategy(scenario, pricing, batch, plan, &run.execution, &mut schemed.known)
        });
        let balance = match (&scheme_statistics, &work) {
            (Some(strategy), _) => Balance::from_pipelines(strategy),
            (None, Some(work)) => Balance::from_ranks(work),
            (None, None) => Balance::from_replicas(planned, &runs, slowest),
        };
        let drawn = observer
            .draws_timelines()
            .then(|| timeline(scenario, batch, plan, arrangement.as_ref(), (&planned.replicas[slowest], run, &end)));
        iterations.push(IterationMetrics {
            iteration_s: total.time.secs(),
            lower_bound_s: total.bound.secs(),
            bubble: total.bubble(),
            peak_memory_gib: total.peak.gib(),
            fastest_replica_s: balance.fastest.secs(),
            slowest_replica_s: Some(balance.slowest.secs()),
            slowest_replica: balance.slowest_index,
            microbatches: balance.microbatches,
            critical_path: drawn.as_ref().map(|drawn| compare::shares(drawn, &run.costs)).unwrap_or_default(),
            decision: planned.decision.clone(),
            strategy: scheme_statistics,
            groups: group_statistics,
        });
        totals.push(total);
        timelines.extend(drawn);
    }
    let planned = Planned {
        layout: plan.layout,
        stages: if plan.has_strategies() {
            schemed.stages.summaries(&scenario.model)
        } else {
            stages.summaries(plan, arrangement.as_ref(), &scenario.model, scenario.training.context_parallel)
        },
        ranks: if plan.has_strategies() {
            schemed.devices.summaries(scenario.training.memory_reserve_gib)
        } else {
            ranks.summaries(scenario.training.memory_reserve_gib)
        },
        metrics: compare::compute_metrics(&totals, &scenario.cluster, limit),
        iterations,
        provenance: Provenance {
            algorithm: plan.algorithm.clone(),
            seed: scenario.seed,
            status: plan.status,
            search: plan.search.clone(),
        },
        decisions: plan.decisions.clone(),
        placement: module_costs::placement(scenario, plan, batches),
        settings: None,
        source: None,
        gains: Vec::new(),
        all_layouts_bound_s: None,
    };
    Ok(EvaluatedPlan { planned, timelines, recording: None })
}

/// Assembles the timeline of a replica.
fn timeline(
    scenario: &Scenario,
    batch: &PackedBatch,
    plan: &Plan,
    arrangement: Option<&Arrangement>,
    (replica, run, end): (&ReplicaPlan, &ReplicaRun, &StepEnd),
) -> Timeline {
    let mut timeline = assemble(&replica.schedule, &run.execution, &run.costs, end);
    let contents = contents::microbatch_samples(scenario, batch, replica);
    if contents.len() == timeline.microbatches.len() {
        timeline.contents = contents;
    }
    // Pages compare stages of plans by number, which pipelines of different degrees do not share.
    if replica.strategy().is_none() {
        timeline.stage_layers = contents::stage_layers(plan, arrangement, replica);
    }
    timeline
}

/// Validates the static parts of a plan before simulation.
fn check_placement(scenario: &Scenario, plan: &Plan, batches: &[PackedBatch]) -> Result<(), Violation> {
    let (training, devices) = (&scenario.training, scenario.cluster.devices());
    if plan.modules.is_empty() {
        check::check_layers_per_stage(&plan.partition, &scenario.layers_per_stage)?;
        check::check_microbatch_sizes(plan, scenario.is_free(FreeSetting::Assignment))?;
        check::check_assignment(plan, &scenario.model, devices, training, batches)
    } else {
        check::check_modules(plan, &scenario.model, devices, training, batches)
    }
}

/// Simulates and validates the replicas of an iteration.
fn checked_run(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    tested: &TestedPlan,
    iteration: usize,
    batch: &PackedBatch,
) -> Result<Runs, Violation> {
    let plan = tested.plan();
    let runs = match tested.runs(iteration) {
        Some(runs) => runs.clone(),
        None => run_iteration(scenario, pricing, plan, iteration, batch)
            .map_err(|deadlock| Violation::Deadlock { waiting: deadlock.to_string() })?,
    };
    check_runs(scenario, plan, batch, (&plan.iterations[iteration], &runs))?;
    Ok(runs)
}

/// Validates the simulated replicas of an iteration.
fn check_runs(
    scenario: &Scenario,
    plan: &Plan,
    batch: &PackedBatch,
    (planned, runs): (&IterationPlan, &[Arc<ReplicaRun>]),
) -> Result<(), Violation> {
    let limit = scenario.memory_limit();
    for (index, _) in equal_runs(runs) {
        let (run, replica) = (&runs[index], &planned.replicas[index]);
        check::check_run(&replica.schedule, &run.execution, &run.costs, limit)?;
        if !plan.modules.is_empty() {
            let settings = (&scenario.model, &scenario.training);
            check::check_module_run(plan, settings, batch, replica, &run.execution, &run.costs)?;
        }
        if let ReplicaKind::Strategy(strategy) = &replica.kind {
            check::check_phases(strategy, &run.execution)?;
        }
    }
    Ok(())
}

/// Totals for an iteration with the runs `equal` (see [`equal_runs`]). `sizes` contains devices per rank for separate
/// module layouts.
fn iteration_totals(
    scenario: &Scenario,
    batch: &PackedBatch,
    planned: &IterationPlan,
    (runs, equal): (&[Arc<ReplicaRun>], &[(usize, u32)]),
    sizes: Option<&[u32]>,
    end: &StepEnd,
) -> IterationTotals {
    let devices = scenario.cluster.devices();
    let mut total = IterationTotals { tokens: batch.summary.tokens, ..IterationTotals::default() };
    for &(index, count) in equal {
        let (run, replica) = (&runs[index], &planned.replicas[index]);
        match (replica.strategy(), sizes) {
            (Some(strategy), _) => {
                total.add_blocks(&replica.schedule, &run.costs, &rank_devices(strategy), (devices, count));
            }
            (None, Some(sizes)) => total.add_blocks(&replica.schedule, &run.costs, sizes, (devices, count)),
            (None, None) => total.add_replica(&replica.schedule, &run.costs, count),
        }
        total.model_flops += run.flops * f64::from(count);
        total.time = total.time.max(end.iteration_end(&run.costs));
        total.bound = total.bound.max(match replica.strategy() {
            Some(strategy) => pipeline_costs::lower_bound(strategy, &run.costs),
            None => planscope_pipeline::lower_bound::lower_bound(&run.costs),
        });
        total.host_peak = total.host_peak.max(peak_host_memory(&replica.schedule, &run.costs).1);
        total.peak = total.peak.max(peak_memory_over(&replica.schedule, &run.execution, &run.costs).1);
    }
    // Use at least one clock tick, so that rates stay finite for free work on an ideal device.
    let tick = Nanos::new(1);
    (total.time, total.bound) = (total.time.max(tick), total.bound.max(tick));
    total
}

/// Fastest and slowest among parallel replicas, ranks or pipelines.
struct Balance {
    fastest: Nanos,
    slowest: Nanos,
    /// Index of the slowest.
    slowest_index: u32,
    /// Microbatches or groups of the slowest.
    microbatches: u32,
}

impl Balance {
    fn from_replicas(planned: &IterationPlan, runs: &[Arc<ReplicaRun>], slowest: usize) -> Self {
        let fastest = runs.iter().map(|run| run.execution.makespan()).min().unwrap_or(Nanos::ZERO);
        Self {
            fastest,
            slowest: runs[slowest].execution.makespan(),
            slowest_index: slowest as u32,
            microbatches: planned.replicas[slowest].microbatches.len() as u32,
        }
    }

    /// Compares ranks that are individual replicas by busy time. Element 1 of the tuple is the
    /// number of groups.
    fn from_ranks(work: &[(Nanos, usize)]) -> Self {
        let slowest_rank = (0..work.len()).max_by_key(|&rank| (work[rank].0, std::cmp::Reverse(rank))).unwrap_or(0);
        Self {
            fastest: work.iter().map(|entry| entry.0).min().unwrap_or(Nanos::ZERO),
            slowest: work[slowest_rank].0,
            slowest_index: slowest_rank as u32,
            microbatches: work[slowest_rank].1 as u32,
        }
    }

    /// Compares pipelines of individual schemes. The minimum is zero if a pipeline is idle.
    fn from_pipelines(strategy: &IterationStrategy) -> Self {
        let seconds = |index: usize| strategy.pipelines[index].simulated_s;
        let order = |a: &usize, b: &usize| seconds(*a).total_cmp(&seconds(*b)).then(b.cmp(a));
        let places = || 0..strategy.pipelines.len();
        let slowest_index = places().max_by(order).unwrap_or(0);
        let min_seconds = places().map(seconds).fold(f64::INFINITY, f64::min);
        let nanos = |seconds: f64| Seconds::from_secs(if seconds.is_finite() { seconds } else { 0.0 }).to_nanos();
        let slowest = strategy.pipelines.get(slowest_index);
        Self {
            fastest: nanos(min_seconds),
            slowest: nanos(slowest.map_or(0.0, |pipeline| pipeline.simulated_s)),
            slowest_index: slowest_index as u32,
            microbatches: slowest.map_or(0, |pipeline| pipeline.microbatches),
        }
    }
}

/// Totals across iterations that use pipeline schemes.
struct SchemeTotals {
    stages: SchemeStages,
    devices: DeviceTotals,
    /// Labels of the strategies so far.
    known: Vec<String>,
}

impl SchemeTotals {
    fn new(scenario: &Scenario) -> Self {
        let devices = DeviceTotals::new(scenario.cluster.devices());
        Self { stages: SchemeStages::new(), devices, known: Vec::new() }
    }
}

/// Devices per rank, for all pipelines.
fn rank_devices(strategy: &Strategy) -> Vec<u32> {
    let stage_device_counts = |pipeline: &planscope_plan::plan::SchemedPipeline| {
        let scheme = pipeline.scheme;
        std::iter::repeat_n(scheme.stage_devices(), scheme.pipeline as usize)
    };
    strategy.pipelines.iter().flat_map(stage_device_counts).collect()
}
