//! The planning pipeline: scenario, planners, validation, simulation and comparison.

mod spent;

use std::sync::Mutex;

pub use crate::observer::{Cancelled, Observer, Unobserved};

use crate::cost::{ContextSettings, DegreeSettings, Pricing};
use crate::host::{BatchClock, Workers, side_by_side};
use crate::observer::go_on;
use crate::outcome::{
    Answer, ENGINE, HistogramColumns, Outcome, PlannedTimeline, PlannerResult, Planning, WorkloadSummary,
};
use crate::planners::{
    Batches, ENDLESS, EvaluatedPlan, MAX_SECONDS, NoPlan, TestedPlan, judge, module_layouts, plan_context_parallel,
    plan_data_aware, plan_dynamic, plan_heterogeneous, plan_pipeweaver, plan_static, plan_strategies,
};
use crate::scenario::Sampler;
use crate::scenario::{PlannerKind, Scenario, ValidScenario, budget};
use crate::workload::{GlobalBatch, PackedBatch, Packing, SampleShape, packing};
use spent::{Budgeted, Spent};

/// Error for a planning run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Cancelled by the observer.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// The checker rejected a plan. This is a bug in the planner.
    #[error("the plan of {planner} was refused by the checker: {violation}")]
    Refused {
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

/// Plans a scenario with all requested planners.
pub fn plan(scenario: &ValidScenario, observer: &mut dyn Observer) -> Result<Planning, PlanError> {
    let question = scenario.scenario();
    let (least, most_bytes) = (budget::least_bytes(question, observer.workers().count()), observer.most_bytes());
    if least > most_bytes {
        return Err(PlanError::Outgrown { bytes: least });
    }
    let sampler = Sampler::new(scenario);
    let rule = question.workload.packing_rule();
    let pack = |batch: &GlobalBatch| packing::pack(&batch.samples, &question.model, &rule);
    let mut drawn: Vec<GlobalBatch> = Vec::with_capacity(question.iterations as usize);
    for iteration in 0..question.iterations {
        go_on(observer)?;
        drawn.push(sampler.judged(iteration));
    }
    let batches: Vec<PackedBatch> = drawn.iter().map(pack).collect();
    let sizing = pack(&sampler.sizing());
    let surveyed = question.planners.iter().any(|planner| planner.has_strategies());
    let survey: Vec<PackedBatch> =
        (0..if surveyed { SURVEYED } else { 0 }).map(|number| pack(&sampler.survey(number))).collect();
    let grouped = surveyed || question.planners.iter().any(|planner| planner.works_in_groups());
    let contexts = ContextSettings::up_to(&question.training, if grouped { question.cluster.devices() } else { 0 });
    let degrees = degree_settings(question);
    let pricing = Pricing::new(&question.model, &question.cluster, &question.training);
    let pricing = pricing.with_contexts(&contexts).with_degrees(&degrees);
    let all = Batches { survey: &survey, sizing: &sizing, judged: &batches };
    let spent = Spent::new(most_bytes, budget::EvaluationSize::new(question.iterations, observer.workers().count()));
    let answers = match answer_all(question, &pricing, all, (&spent, observer)) {
        Ok(answers) => answers,
        Err(cancelled) => return Err(spent.excess().map_or(PlanError::Cancelled(cancelled), PlanError::from)),
    };
    let mut results = Vec::new();
    let mut timelines = Vec::new();
    for (&planner, answer) in question.planners.iter().zip(answers) {
        results.push(result_of(planner, answer, &mut timelines)?);
    }
    results.sort_by(|a, b| rank_key(a).total_cmp(&rank_key(b)));
    let outcome = Outcome {
        engine: ENGINE.to_owned(),
        scenario: scenario.id().to_string(),
        batches: batches.iter().map(|batch| batch.summary.clone()).collect(),
        workload: summarise(scenario, &drawn),
        results,
    };
    Ok(Planning { outcome, timelines })
}

/// Runs all planners and returns their results in request order. Planners run in parallel if the
/// observer supplies a separate observer per planner.
fn answer_all(
    question: &Scenario,
    pricing: &Pricing<'_>,
    batches: Batches<'_>,
    (spent, observer): (&Spent, &mut dyn Observer),
) -> Result<Vec<JudgedOrNot>, Cancelled> {
    let planners = &question.planners;
    let apart = if planners.len() > 1 { observer.apart(planners) } else { None };
    let Some(apart) = apart else {
        let mut own = Budgeted::new(spent, observer);
        return planners.iter().map(|&planner| answer(question, pricing, planner, batches, &mut own)).collect();
    };
    let apart: Vec<Mutex<Box<dyn Observer + Send>>> = apart.into_iter().map(Mutex::new).collect();
    let answers = side_by_side(observer.workers(), planners.len(), |number| {
        let mut own = apart[number].lock().expect("every planner has an observer");
        answer(question, pricing, planners[number], batches, &mut Budgeted::new(spent, own.as_mut()))
    });
    answers.into_iter().collect()
}

/// Runs one planner.
fn answer(
    question: &Scenario,
    pricing: &Pricing<'_>,
    planner: PlannerKind,
    batches: Batches<'_>,
    observer: &mut Budgeted<'_>,
) -> Result<JudgedOrNot, Cancelled> {
    go_on(observer)?;
    observer.started(planner);
    let Batches { sizing, judged: own, .. } = batches;
    let plan = match planner {
        PlannerKind::DeepSpeed => {
            let answer = deep_speed(question, sizing, own, observer)?;
            observer.finished(planner);
            return Ok(answer);
        }
        PlannerKind::DflopLayout | PlannerKind::Dflop => {
            let answer = data_aware(question, pricing, planner, (sizing, own), observer)?;
            observer.finished(planner);
            return Ok(answer);
        }
        PlannerKind::WaitFreeCyclic => plan_dynamic(question, pricing, sizing, own, observer)?.map(TestedPlan::from),
        PlannerKind::PipeWeaverPartition
        | PlannerKind::PipeWeaverInterleaving
        | PlannerKind::PipeWeaverRanking
        | PlannerKind::PipeWeaver => {
            plan_pipeweaver(question, pricing, planner, sizing, own, observer)?.map(TestedPlan::from)
        }
        _ if planner.has_strategies() => plan_strategies(question, pricing, planner, batches, observer)?,
        _ if planner.lays_out_modules() => {
            plan_heterogeneous(question, pricing, planner, sizing, own, observer)?.map(TestedPlan::from)
        }
        _ if planner.works_in_groups() => plan_context_parallel(question, pricing, planner, sizing, own, observer)?,
        _ => plan_static(question, pricing, planner, sizing, own, observer)?,
    };
    let answer = judged(question, pricing, plan, own, observer)?;
    observer.finished(planner);
    Ok(answer)
}

/// Survey batches for the length distribution, in addition to the sizing batch.
const SURVEYED: u32 = 15;

type JudgedOrNot = Result<Result<EvaluatedPlan, NoPlan>, crate::check::Violation>;

fn judged(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    answer: Result<TestedPlan, NoPlan>,
    batches: &[PackedBatch],
    observer: &Budgeted<'_>,
) -> Result<JudgedOrNot, Cancelled> {
    let tried = match answer {
        Ok(tried) => tried,
        Err(none) => return Ok(Ok(Err(none))),
    };
    // Check the limit before timelines are stored.
    observer.spend(tried.plan().spans())?;
    let judged = judge(scenario, pricing, &tried, batches, observer)?;
    Ok(judged.map(|judged| {
        if judged.iteration_s() <= MAX_SECONDS {
            return Ok(judged);
        }
        Err(NoPlan { binding: ENDLESS.to_owned(), search: tried.plan().search.clone() })
    }))
}

/// Converts a planner's result and appends its timelines.
fn result_of(
    planner: PlannerKind,
    answer: JudgedOrNot,
    timelines: &mut Vec<PlannedTimeline>,
) -> Result<PlannerResult, PlanError> {
    let refused = |violation: crate::check::Violation| PlanError::Refused {
        planner: planner.title(),
        violation: violation.to_string(),
    };
    let answer = match answer.map_err(refused)? {
        Ok(judged) => {
            let (planned, drawn) = judged.into_parts();
            timelines.extend(drawn.into_iter().enumerate().map(|(iteration, timeline)| PlannedTimeline {
                planner,
                iteration: iteration as u32,
                timeline,
            }));
            Answer::Planned(Box::new(planned))
        }
        Err(none) => Answer::Infeasible { binding: none.binding, search: none.search },
    };
    Ok(PlannerResult { planner, title: planner.title().to_owned(), answer })
}

/// Plans DeepSpeed sequence parallelism: Ulysses with TP 1 and ZeRO-3, independent of the
/// scenario's settings.
fn deep_speed(
    question: &Scenario,
    sizing: &PackedBatch,
    batches: &[PackedBatch],
    observer: &mut Budgeted<'_>,
) -> Result<JudgedOrNot, Cancelled> {
    if question.layout.tensor.is_some_and(|tensor| tensor > 1) {
        let binding = "does not apply: it has no tensor parallelism, so TP must be 1".to_owned();
        return Ok(Ok(Err(NoPlan { binding, search: crate::outcome::Search::default() })));
    }
    let mut question = question.clone();
    question.training.zero = Some(3);
    question.layout.tensor = Some(1);
    let contexts = ContextSettings::up_to(&question.training, question.cluster.devices());
    let pricing = Pricing::new(&question.model, &question.cluster, &question.training).with_contexts(&contexts);
    let renamed = &mut Renamed { observer: &mut *observer, kind: PlannerKind::DeepSpeed };
    let answer = plan_context_parallel(&question, &pricing, PlannerKind::Ulysses, sizing, batches, renamed)?;
    judged(&question, &pricing, answer, batches, observer)
}

/// Plans DFLOP. The sequences in a microbatch are concatenated, so these planners never pad, even
/// if the scenario requests unpacked samples.
fn data_aware(
    question: &Scenario,
    pricing: &Pricing<'_>,
    planner: PlannerKind,
    (sizing, batches): (&PackedBatch, &[PackedBatch]),
    observer: &mut Budgeted<'_>,
) -> Result<JudgedOrNot, Cancelled> {
    let mut question = question.clone();
    if question.workload.packing == Packing::Single {
        question.workload.packing = Packing::Packed;
    }
    let answer = plan_data_aware(&question, pricing, planner, sizing, batches, observer)?;
    judged(&question, pricing, answer, batches, observer)
}

/// Returns the degrees for separate module layouts. Empty if no planner needs them.
fn degree_settings(question: &Scenario) -> DegreeSettings {
    if !question.planners.iter().any(|planner| planner.lays_out_modules()) {
        return DegreeSettings::default();
    }
    let (contexts, experts) = module_layouts::degrees(question);
    DegreeSettings::of(&question.training, &contexts, &experts)
}

/// Forwards progress under a different planner name.
struct Renamed<'a> {
    observer: &'a mut dyn Observer,
    kind: PlannerKind,
}

impl Observer for Renamed<'_> {
    fn started(&mut self, _: PlannerKind) {
        self.observer.started(self.kind);
    }

    fn progress(&mut self, _: PlannerKind, phase: &'static str, done: u32, total: u32) {
        self.observer.progress(self.kind, phase, done, total);
    }

    fn finished(&mut self, _: PlannerKind) {
        self.observer.finished(self.kind);
    }

    fn cancelled(&self) -> bool {
        self.observer.cancelled()
    }

    fn drafted(&self, spans: u64) {
        self.observer.drafted(spans);
    }

    fn most_bytes(&self) -> u64 {
        self.observer.most_bytes()
    }

    fn workers(&self) -> &dyn Workers {
        self.observer.workers()
    }

    fn batch_clock(&self) -> &dyn BatchClock {
        self.observer.batch_clock()
    }
}

/// Sort key: iteration time; infinity for planners without a plan.
fn rank_key(result: &PlannerResult) -> f64 {
    match &result.answer {
        Answer::Planned(planned) => planned.metrics.iteration_s,
        Answer::Infeasible { .. } => f64::INFINITY,
    }
}

fn summarise(valid: &ValidScenario, drawn: &[GlobalBatch]) -> WorkloadSummary {
    let model = &valid.scenario().model;
    let samples: Vec<SampleShape> =
        drawn.iter().flat_map(|batch| &batch.samples).map(|sample| sample.as_read_by(model)).collect();
    let of = |field: &dyn Fn(&SampleShape) -> u32| {
        HistogramColumns::of_values(&samples.iter().map(field).collect::<Vec<u32>>())
    };
    WorkloadSummary {
        sample_tokens: of(&|sample| sample.backbone_tokens(model)).expect("a valid scenario draws at least one sample"),
        sample_images: model.images().and_then(|_| of(&|sample| sample.images)),
        sample_audio_clips: model.sound().and_then(|_| of(&|sample| sample.audio_clips)),
        sample_video_s: model.video().and_then(|_| of(&|sample| sample.video_ms)).map(|ms| ms.in_units_of(1000.0)),
        notes: valid.datasets().filter_map(|dataset| dataset.shaped()?.misfit(model)).collect(),
    }
}
