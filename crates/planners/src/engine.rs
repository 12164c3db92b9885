//! The planning pipeline: scenario, planners, validation, simulation and comparison.

mod best;
mod settings;
mod special_cases;
mod spent;

use std::sync::Mutex;

pub use planscope_plan::observer::{Cancelled, Observer, Unobserved};

use crate::planners::settings_search::Searcher;
use crate::planners::{
    Batches, ENDLESS, EvaluatedPlan, ExecutionFileError, JudgeError, MAX_SECONDS, NO_CEILING, NoPlan, PlanningContext,
    SearchError, TestedPlan, dflop, dhp, dynamic, execution_file, hydraulis, judge, module_layouts, pipeweaver,
    plan_spans, settings_search, static_3d,
};
use planscope_core::host::side_by_side;
use planscope_core::training::Recompute;
use planscope_core::workload::{GlobalBatch, PackedBatch, Packing, SampleShape, packing};
use planscope_cost::cost::{ContextSettings, DegreeSettings, Pricing};
use planscope_plan::execution_file::ExecutionFile;
use planscope_plan::observer::go_on;
use planscope_plan::outcome::{
    ENGINE, HistogramColumns, Outcome, PlanOutcome, PlannedTimeline, PlannerResult, Planning, WorkloadSummary,
    overrides,
};
use planscope_plan::scenario::{PlanSettings, PlannerFamily, PlannerKind, Sampler, Scenario, ValidScenario, budget};
use spent::{Budgeted, Spent};

/// Error for a planning run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Cancelled by the observer.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// The checker rejected a plan. This is a bug in the planner.
    #[error("the plan of {planner} was refused by the checker: {violation}")]
    Rejected {
        /// Planner title.
        planner: &'static str,
        /// Violation from the checker.
        violation: String,
    },
    /// The plans exceed the span limit of a response. Detected when the planners have chosen their
    /// layouts.
    #[error("the plans have {0}; ask for fewer iterations, planners or microbatches")]
    TooLarge(String),
    /// Planning exceeds the observer's memory limit, computed from the spans known so far.
    #[error("planning takes {} MiB or more", .bytes.div_ceil(1 << 20))]
    Outgrown {
        /// Peak memory in bytes, from the spans known so far.
        bytes: u64,
    },
}

/// Request for execution plan files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Planner; all planners of the scenario if `None`.
    pub planner: Option<PlannerKind>,
    /// Iteration, from 0.
    pub iteration: u32,
}

impl Record {
    /// Returns the iteration that `planner` records. The planner that chooses among the plans of others
    /// needs their files.
    fn iteration_of(self, planner: PlannerKind) -> Option<u32> {
        let is_needed = self.planner.is_none_or(|requested| requested == planner || requested == PlannerKind::Best);
        is_needed.then_some(self.iteration)
    }
}

/// Execution plan file of a planner's plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Planner.
    pub planner: PlannerKind,
    /// The file, or the reason why there is none.
    pub file: Result<ExecutionFile, ExecutionFileError>,
}

/// Plans a scenario with all requested planners.
pub fn plan(scenario: &ValidScenario, observer: &mut dyn Observer) -> Result<Planning, PlanError> {
    plan_recorded(scenario, None, observer).map(|(planning, _)| planning)
}

/// Plans a scenario with all requested planners, and returns the execution plan files that `record` requests,
/// one per planner that has a plan.
pub fn plan_recorded(
    scenario: &ValidScenario,
    record: Option<Record>,
    observer: &mut dyn Observer,
) -> Result<(Planning, Vec<Recorded>), PlanError> {
    let request = scenario.scenario();
    let (min_bytes, max_bytes) = (budget::min_bytes(request, observer.workers().count()), observer.max_bytes());
    if min_bytes > max_bytes {
        return Err(PlanError::Outgrown { bytes: min_bytes });
    }
    let sampler = Sampler::new(scenario);
    let rule = request.workload.packing_rule();
    let pack = |batch: &GlobalBatch| packing::pack(&batch.samples, &request.model, &rule);
    let mut drawn: Vec<GlobalBatch> = Vec::with_capacity(request.iterations as usize);
    for iteration in 0..request.iterations {
        go_on(observer)?;
        drawn.push(sampler.evaluation(iteration));
    }
    let evaluated: Vec<PackedBatch> = drawn.iter().map(pack).collect();
    let sizing = pack(&sampler.sizing());
    let requests = |family| request.planners.iter().any(|planner| planner.family() == family);
    let has_strategies = requests(PlannerFamily::Strategies);
    let has_groups = has_strategies || requests(PlannerFamily::ContextParallel);
    let contexts = ContextSettings::up_to(&request.training, if has_groups { request.cluster.devices() } else { 0 });
    let degrees = if requests(PlannerFamily::ModuleLayouts) {
        module_layouts::degree_settings(request)
    } else {
        DegreeSettings::default()
    };
    let pricing = Pricing::new(&request.model, &request.cluster, &request.training);
    let pricing = pricing.with_contexts(&contexts).with_degrees(&degrees);
    let spent = Spent::new(max_bytes, budget::EvaluationSize::new(request.iterations, observer.workers().count()));
    let context = |planner, batches| {
        let recorded = record.and_then(|record| record.iteration_of(planner));
        PlanningContext { scenario: request, pricing: &pricing, planner, batches, ceiling: NO_CEILING, recorded }
    };
    // The draft needs no survey, so that the first plan of a large batch is early.
    let unsurveyed = Batches { survey: &[], sizing: &sizing, evaluated: &evaluated };
    let has_draft = requests(PlannerFamily::Best) && request.search.rollouts > 0;
    let draft_s = if has_draft { best::report_draft(context(PlannerKind::Best, unsurveyed), observer)? } else { None };
    // The best plan can be one of strategies.
    let surveys = if has_strategies || has_draft { SURVEYS } else { 0 };
    let survey = side_by_side(observer.workers(), surveys as usize, |number| pack(&sampler.survey(number as u32)));
    let batches = Batches { survey: &survey, ..unsurveyed };
    let inputs: Vec<PlanningContext<'_>> = request.planners.iter().map(|&planner| context(planner, batches)).collect();
    let candidates = settings_candidates(request, &pricing, batches, observer)?;
    let evaluations = match run_planners(&inputs, (&candidates, draft_s), &spent, observer) {
        Ok(evaluations) => evaluations,
        Err(PlanError::Cancelled(cancelled)) => {
            return Err(spent.excess().map_or(PlanError::Cancelled(cancelled), PlanError::from));
        }
        Err(error) => return Err(error),
    };
    let (mut timelines, mut files) = (Vec::new(), Vec::new());
    let mut results: Vec<PlannerResult> = request
        .planners
        .iter()
        .zip(evaluations)
        .map(|(&planner, mut evaluation)| {
            if let Evaluation::Planned(evaluated) = &mut evaluation
                && let Some(file) = evaluated.take_recording(planner)
            {
                let scenario = scenario.id().to_string();
                files.push(Recorded {
                    planner,
                    file: file.map(|file| ExecutionFile { scenario, ..file }.with_digests()),
                });
            }
            result_of(request, planner, evaluation, &mut timelines)
        })
        .collect();
    results.sort_by(|a, b| rank_key(a).total_cmp(&rank_key(b)));
    let outcome = Outcome {
        engine: ENGINE.to_owned(),
        scenario: scenario.id().to_string(),
        batches: evaluated.iter().map(|batch| batch.summary.clone()).collect(),
        workload: summarise(scenario, &drawn),
        results,
    };
    Ok((Planning { outcome, timelines }, files))
}

/// Result of a planner.
enum Evaluation {
    Planned(Box<EvaluatedPlan>),
    Infeasible(NoPlan),
}

/// Returns the settings among which every planner chooses. Empty if the scenario fixes all of them.
fn settings_candidates(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    batches: Batches<'_>,
    observer: &mut dyn Observer,
) -> Result<Vec<PlanSettings>, Cancelled> {
    if scenario.has_free_settings() {
        let requested = &scenario.planners;
        let is_best = requested.contains(&PlannerKind::Best);
        let first = requested.first().copied().unwrap_or(PlannerKind::OneFOneB);
        let reported = if is_best { PlannerKind::Best } else { first };
        let searcher = Searcher { reference: PlannerKind::OneFOneB, reported };
        settings_search::candidates(scenario, pricing, batches, searcher, observer)
    } else {
        Ok(Vec::new())
    }
}

/// Runs all planners and returns their results in request order. [`PlannerKind::Best`] runs last, because it
/// uses the results of the others. `draft_s` is the time of the draft of [`PlannerKind::Best`].
fn run_planners(
    contexts: &[PlanningContext<'_>],
    (candidates, draft_s): (&[PlanSettings], Option<f64>),
    spent: &Spent,
    observer: &mut dyn Observer,
) -> Result<Vec<Evaluation>, PlanError> {
    let is_best = |context: &&PlanningContext<'_>| context.planner == PlannerKind::Best;
    let others: Vec<PlanningContext<'_>> = contexts.iter().filter(|context| !is_best(context)).copied().collect();
    let mut evaluations = run_others(&others, candidates, spent, observer)?;
    if let Some(position) = contexts.iter().position(|context| context.planner == PlannerKind::Best) {
        let context = contexts[position];
        let own = [PlanSettings::from_scenario(context.scenario)];
        let candidates = if candidates.is_empty() { &own } else { candidates };
        let results: Vec<(PlannerKind, &Evaluation)> =
            others.iter().map(|other| other.planner).zip(&evaluations).collect();
        let mut budgeted = Budgeted::new(spent, observer);
        budgeted.started(PlannerKind::Best);
        let evaluation = best::plan(context, (candidates, draft_s), &results, &mut budgeted)?;
        if let Evaluation::Planned(evaluated) = &evaluation {
            budgeted.spend(evaluated.stored_spans())?;
        }
        budgeted.finished(PlannerKind::Best);
        evaluations.insert(position, evaluation);
    }
    Ok(evaluations)
}

/// Runs planners that do not use results of others, in parallel if the observer supplies a separate observer per
/// planner.
fn run_others(
    contexts: &[PlanningContext<'_>],
    candidates: &[PlanSettings],
    spent: &Spent,
    observer: &mut dyn Observer,
) -> Result<Vec<Evaluation>, PlanError> {
    let planners: Vec<PlannerKind> = contexts.iter().map(|context| context.planner).collect();
    let separate = if planners.len() > 1 { observer.split(&planners) } else { None };
    let Some(separate) = separate else {
        let mut budgeted = Budgeted::new(spent, observer);
        return contexts.iter().map(|&context| run_planner(context, candidates, &mut budgeted)).collect();
    };
    let separate: Vec<Mutex<Box<dyn Observer + Send>>> = separate.into_iter().map(Mutex::new).collect();
    let evaluations = side_by_side(observer.workers(), contexts.len(), |number| {
        let mut observer = separate[number].lock().expect("every planner has an observer");
        run_planner(contexts[number], candidates, &mut Budgeted::new(spent, observer.as_mut()))
    });
    evaluations.into_iter().collect()
}

/// Runs one planner and reports its start and end.
fn run_planner(
    context: PlanningContext<'_>,
    candidates: &[PlanSettings],
    observer: &mut Budgeted<'_>,
) -> Result<Evaluation, PlanError> {
    go_on(observer)?;
    observer.started(context.planner);
    let evaluation = if candidates.is_empty() {
        plan_fixed(context, observer)?
    } else {
        let own = settings::plan_free(context, candidates, observer)?;
        special_cases::fastest_free(context, candidates, own, observer)?
    };
    observer.finished(context.planner);
    Ok(evaluation)
}

/// Plans with the settings of the scenario and those that the method prescribes.
fn plan_fixed(context: PlanningContext<'_>, observer: &mut Budgeted<'_>) -> Result<Evaluation, PlanError> {
    if context.scenario.layers_per_stage.len() > 1 && !context.planner.follows_layers_per_stage() {
        let binding = "does not apply: the scenario fixes the layers per stage, and this planner has stages of its own";
        return Ok(Evaluation::Infeasible(NoPlan::inapplicable(binding)));
    }
    if context.scenario.training.microbatches_per_flush.is_some() && !context.planner.follows_flushes() {
        let binding = "does not apply: the pipeline of the scenario is flushed several times per step";
        return Ok(Evaluation::Infeasible(NoPlan::inapplicable(binding)));
    }
    let own = match prescribed(context.planner, context.scenario) {
        Prescribed::Unchanged => evaluate(context, observer),
        Prescribed::Workload(scenario) => evaluate(PlanningContext { scenario: &scenario, ..context }, observer),
        Prescribed::Training(scenario) => {
            let contexts = ContextSettings::up_to(&scenario.training, scenario.cluster.devices());
            let pricing = context.pricing.for_training(&scenario.training).with_contexts(&contexts);
            evaluate(PlanningContext { scenario: &scenario, pricing: &pricing, ..context }, observer)
        }
        Prescribed::Alternatives(scenarios) => evaluate_alternatives(context, &scenarios, observer),
        Prescribed::Inapplicable(binding) => return Ok(Evaluation::Infeasible(NoPlan::inapplicable(binding))),
    };
    // Special cases have the settings of the scenario, not those that the method prescribes.
    special_cases::fastest(context, own?, observer)
}

/// Plans under each of the `scenarios`, and returns the fastest plan.
fn evaluate_alternatives(
    context: PlanningContext<'_>,
    scenarios: &[Scenario],
    observer: &mut Budgeted<'_>,
) -> Result<Evaluation, PlanError> {
    let (mut fastest, mut infeasible): (Option<Box<EvaluatedPlan>>, _) = (None, None);
    for scenario in scenarios {
        let pricing = context.pricing.for_training(&scenario.training);
        // The time of a plan on the run is no ceiling for the times of layouts on the sizing batch.
        let alternative = PlanningContext { scenario, pricing: &pricing, ..context };
        match evaluate_apart(alternative, observer)? {
            Evaluation::Planned(plan) => {
                if fastest.as_ref().is_none_or(|fastest| plan.iteration_s() < fastest.iteration_s()) {
                    fastest = Some(plan);
                }
            }
            Evaluation::Infeasible(none) => {
                infeasible.get_or_insert(none);
            }
        }
    }
    match fastest {
        Some(plan) => {
            observer.spend(plan.stored_spans())?;
            Ok(Evaluation::Planned(plan))
        }
        None => Ok(Evaluation::Infeasible(infeasible.unwrap_or_else(|| NoPlan::inapplicable("no settings to try")))),
    }
}

/// Changes to the settings of a scenario.
enum Prescribed {
    Unchanged,
    /// The samples change, operator costs do not.
    Workload(Box<Scenario>),
    /// Operator costs change.
    Training(Box<Scenario>),
    /// The method chooses among these settings.
    Alternatives(Vec<Scenario>),
    /// The scenario contradicts the method, for the given reason.
    Inapplicable(&'static str),
}

/// Returns the settings that the method of the planner prescribes.
fn prescribed(planner: PlannerKind, scenario: &Scenario) -> Prescribed {
    match planner {
        // Ulysses with TP 1 and ZeRO-3, independent of the scenario's settings.
        PlannerKind::DeepSpeed if scenario.layout.tensor.is_some_and(|tensor| tensor > 1) => {
            Prescribed::Inapplicable("does not apply: it has no tensor parallelism, so TP must be 1")
        }
        PlannerKind::DeepSpeed => {
            let mut scenario = Box::new(scenario.clone());
            scenario.training.zero = Some(3);
            scenario.layout.tensor = Some(1);
            Prescribed::Training(scenario)
        }
        // The sequences in a microbatch are concatenated, so DFLOP never pads, even if the scenario
        // requests unpacked samples.
        PlannerKind::DflopLayout | PlannerKind::Dflop if scenario.workload.packing == Packing::Single => {
            let mut scenario = Box::new(scenario.clone());
            scenario.workload.packing = Packing::Packed;
            Prescribed::Workload(scenario)
        }
        // It chooses the strategies of layers, so its plan does not depend on the recomputation of the scenario. Stages are
        // cut, and orders start, without and with full recomputation.
        PlannerKind::PipeWeaver if scenario.search.rollouts > 0 => {
            let own = PlanSettings::from_scenario(scenario);
            let alternatives = [Recompute::None, Recompute::Full];
            let recomputing = |recompute| scenario.with_settings(&own.with_recompute(recompute, None));
            Prescribed::Alternatives(alternatives.map(recomputing).to_vec())
        }
        _ => Prescribed::Unchanged,
    }
}

/// Survey batches for the length distribution, in addition to the sizing batch.
const SURVEYS: u32 = 15;

/// Plans with the method of the planner.
fn plan_family(context: PlanningContext<'_>, observer: &mut dyn Observer) -> Result<TestedPlan, SearchError<NoPlan>> {
    match context.planner.family() {
        PlannerFamily::Best => unreachable!("`run_planners` handles the planner that uses the others"),
        PlannerFamily::Static => static_3d::plan(context, observer),
        PlannerFamily::WaitFree => dynamic::plan(context, observer).map(TestedPlan::from),
        PlannerFamily::PipeWeaver => pipeweaver::plan(context, observer).map(TestedPlan::from),
        PlannerFamily::ContextParallel => dhp::planner::plan(context, observer),
        PlannerFamily::Strategies => hydraulis::planner::plan(context, observer),
        PlannerFamily::ModuleLayouts => module_layouts::plan(context, observer).map(TestedPlan::from),
        PlannerFamily::Dflop => dflop::planner::plan(context, observer),
    }
}

/// Plans with the method of the planner, then checks and simulates the plan.
fn evaluate(context: PlanningContext<'_>, observer: &mut Budgeted<'_>) -> Result<Evaluation, PlanError> {
    let tested = match plan_family(context, observer) {
        Ok(tested) => tested,
        Err(error) => return Ok(Evaluation::Infeasible(error.reason()?)),
    };
    // Check the limit before timelines are stored.
    observer.spend(plan_spans(tested.plan()))?;
    judged(context, &tested, observer)
}

/// Plans with the method of the planner and a memory budget of its own.
fn evaluate_apart(context: PlanningContext<'_>, observer: &mut dyn Observer) -> Result<Evaluation, PlanError> {
    apart(context, observer, evaluate)
}

/// Calls `plan` with a memory budget of its own: of several such plans, one is stored. A plan that exceeds the budget is
/// infeasible.
fn apart(
    context: PlanningContext<'_>,
    observer: &mut dyn Observer,
    plan: impl FnOnce(PlanningContext<'_>, &mut Budgeted<'_>) -> Result<Evaluation, PlanError>,
) -> Result<Evaluation, PlanError> {
    go_on(observer)?;
    let size = budget::EvaluationSize::new(context.batches.evaluated.len() as u32, observer.workers().count());
    let spent = Spent::new(observer.max_bytes(), size);
    let found = plan(context, &mut Budgeted::new(&spent, observer));
    go_on(observer)?;
    match found {
        Err(PlanError::Cancelled(_) | PlanError::Outgrown { .. }) => {
            Ok(Evaluation::Infeasible(NoPlan::inapplicable("the plan exceeds the limits of an answer")))
        }
        other => other,
    }
}

/// Checks and simulates a plan.
fn judged(context: PlanningContext<'_>, tested: &TestedPlan, observer: &dyn Observer) -> Result<Evaluation, PlanError> {
    let PlanningContext { scenario, pricing, planner, batches, recorded, .. } = context;
    let mut evaluated = judge(scenario, pricing, tested, batches.evaluated, observer).map_err(|error| match error {
        JudgeError::Cancelled(cancelled) => PlanError::Cancelled(cancelled),
        JudgeError::Rejected(violation) => {
            PlanError::Rejected { planner: planner.title(), violation: violation.to_string() }
        }
    })?;
    if let Some(reason) = scenario.cluster.host_excess(evaluated.host_memory_gib()) {
        return Ok(Evaluation::Infeasible(NoPlan { binding: reason, search: tested.plan().search.clone() }));
    }
    if let Some(iteration) = recorded {
        evaluated.record(execution_file(scenario, pricing, planner, tested, iteration as usize, batches.evaluated));
    }
    Ok(if evaluated.iteration_s() <= MAX_SECONDS {
        Evaluation::Planned(Box::new(evaluated))
    } else {
        Evaluation::Infeasible(NoPlan { binding: ENDLESS.to_owned(), search: tested.plan().search.clone() })
    })
}

/// Converts a planner's result and appends its timelines.
fn result_of(
    scenario: &Scenario,
    planner: PlannerKind,
    evaluation: Evaluation,
    timelines: &mut Vec<PlannedTimeline>,
) -> PlannerResult {
    let answer = match evaluation {
        Evaluation::Planned(evaluated) => {
            let (mut planned, drawn) = evaluated.into_parts();
            let overrides = overrides(scenario, planner, &planned);
            if !overrides.is_empty() {
                planned
                    .decisions
                    .push(format!("Differs from the fixed settings of the scenario: {}.", overrides.join("; ")));
            }
            timelines.extend(drawn.into_iter().enumerate().map(|(iteration, timeline)| PlannedTimeline {
                planner,
                iteration: iteration as u32,
                timeline,
            }));
            PlanOutcome::Planned(Box::new(planned))
        }
        Evaluation::Infeasible(none) => PlanOutcome::Infeasible { binding: none.binding, search: none.search },
    };
    PlannerResult { planner, title: planner.title().to_owned(), answer }
}

/// Sort key: iteration time; infinity for planners without a plan.
fn rank_key(result: &PlannerResult) -> f64 {
    match &result.answer {
        PlanOutcome::Planned(planned) => planned.metrics.iteration_s,
        PlanOutcome::Infeasible { .. } => f64::INFINITY,
    }
}

fn summarise(valid: &ValidScenario, drawn: &[GlobalBatch]) -> WorkloadSummary {
    let model = &valid.scenario().model;
    let samples: Vec<SampleShape> =
        drawn.iter().flat_map(|batch| &batch.samples).map(|sample| sample.as_read_by(model)).collect();
    let histogram = |field: &dyn Fn(&SampleShape) -> u32| {
        HistogramColumns::from_values(&samples.iter().map(field).collect::<Vec<u32>>())
    };
    WorkloadSummary {
        sample_tokens: histogram(&|sample| sample.backbone_tokens(model))
            .expect("a valid scenario draws at least one sample"),
        sample_images: model.images().and_then(|_| histogram(&|sample| sample.images)),
        sample_audio_clips: model.sound().and_then(|_| histogram(&|sample| sample.audio_clips)),
        sample_video_s: model.video().and_then(|_| histogram(&|sample| sample.video_ms)).map(|ms| ms.in_unit(1000.0)),
        notes: valid.datasets().filter_map(|dataset| dataset.shaped()?.mismatch(model)).collect(),
    }
}
