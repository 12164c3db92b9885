//! Answers of the tools as JSON with a schema, next to the text.

use api::check::{Certainty, Edit, Verdict};
use planner::fit::{Change, DeviceTable, FewestDevices};
use planner::outcome::{Layout, Planned, RunForecast};
use planner::slowness::{Cause, LatePhase, Relation, Slowness};
use rmcp::schemars::JsonSchema;
use serde::Serialize;

use crate::check_command::Report;

/// Whether a job fits, its memory, time and rates, and what was read.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct CheckAnswer {
    /// `fits`, `at_risk` or `does_not_fit`.
    verdict: &'static str,
    /// Peak memory per device in GiB, if it is known.
    peak_gib: Option<f64>,
    /// Available memory per device in GiB.
    limit_gib: f64,
    /// Probability of running out of memory, if the job fits.
    probability_out_of_memory: Option<f64>,
    /// Duration and cost of the run over `tokens`, if they are given.
    run: Option<RunAnswer>,
    /// Reason why no plan fits.
    reason: Option<String>,
    /// Prediction, if the job fits.
    prediction: Option<Prediction>,
    /// Memory per pipeline rank.
    ranks: Vec<RankNeed>,
    /// Changes that help most, best first.
    changes: Vec<ChangeAnswer>,
    /// Fewest devices of each type, if no change makes the job fit.
    fewest_devices: Option<DevicesAnswer>,
    /// Values that the files do not state.
    assumed: Vec<String>,
    /// Settings that are not simulated.
    not_modelled: Vec<String>,
    /// Why the framework does not start the job.
    refusals: Vec<String>,
    /// Keys that are not understood.
    not_understood: Vec<String>,
}

/// Time and rates of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct Prediction {
    /// Time of a step in s.
    step_s: f64,
    /// 80 % interval of the step time in s, lower and upper end, if it is known.
    step_interval_s: Option<[f64; 2]>,
    /// Peak memory per device in GiB.
    peak_gib: f64,
    /// 80 % interval of the memory that the framework reserves, in GiB, lower and upper end, if it is known.
    memory_interval_gib: Option<[f64; 2]>,
    /// Probability of running out of memory, if it is known.
    probability_out_of_memory: Option<f64>,
    /// Tokens per second and device.
    tokens_per_s_per_device: Option<f64>,
    /// Model TFLOP/s per device, without recomputation, with all attention scores.
    tflops_per_device: f64,
    /// Model FLOPs utilisation of the dense peak.
    mfu: f64,
    /// Tensor-parallel degree.
    tensor: u32,
    /// Pipeline-parallel degree.
    pipeline: u32,
    /// Data-parallel replicas.
    data: u32,
    /// Model chunks of a pipeline rank.
    chunks: u32,
    /// Sequences of a microbatch.
    microbatch: u32,
}

/// Fewest devices of each type.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct DevicesAnswer {
    /// Device types in ascending number of devices.
    rows: Vec<DeviceAnswer>,
    /// Number of device types to search. The table has fewer rows if the time limit was reached.
    types: u32,
    /// True if the time limit was reached.
    is_partial: bool,
}

/// Fewest devices of a type.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct DeviceAnswer {
    /// Identifier of the device type, for `device`.
    device: String,
    /// Number of devices; null if 1,024 nodes hold no plan.
    devices: Option<u32>,
    /// ZeRO stage, offload and expert parallelism.
    settings: String,
    /// Time of a step in s.
    step_s: Option<f64>,
    /// Peak memory per device in GiB.
    peak_gib: Option<f64>,
}

/// Duration and cost of a run over a number of tokens.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct RunAnswer {
    /// Number of steps.
    steps: f64,
    /// Days.
    days: f64,
    /// 80 % interval of the days, lower and upper end.
    days_interval: [f64; 2],
    /// Device hours.
    device_hours: f64,
    /// Cost; 0 without a price.
    cost: f64,
    /// 80 % interval of the cost, lower and upper end.
    cost_interval: [f64; 2],
}

/// Peak memory of a pipeline rank in GiB per device.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct RankNeed {
    /// Pipeline rank.
    rank: u32,
    /// Weights.
    weights_gib: f64,
    /// Gradients.
    gradients_gib: f64,
    /// Optimizer state.
    optimizer_gib: f64,
    /// Stored activations.
    activations_gib: f64,
    /// Temporary memory.
    temporary_gib: f64,
}

/// A change of the job, simulated.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct ChangeAnswer {
    /// Description.
    title: String,
    /// Time of a step with the change in s.
    step_s: Option<f64>,
    /// Difference to the step time of the job in s, if the job fits.
    difference_s: Option<f64>,
    /// Peak memory per device with the change in GiB.
    peak_gib: Option<f64>,
    /// Edits of the files; empty if the format has no setting for the change.
    edits: Vec<EditAnswer>,
}

/// An edit of a file: a byte range and its replacement.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct EditAnswer {
    /// Index of the file: 0 for `text`, from 1 for `further`.
    file: u32,
    /// Line, from 1.
    line: u32,
    /// The setting in the syntax of the file, or the name of a removed setting.
    setting: String,
    /// Variable or expression of a script that the edit replaces.
    replaced: Option<String>,
    /// First byte of the range.
    start: u32,
    /// Byte after the range.
    end: u32,
    /// Replacement.
    replacement: String,
}

/// A measurement next to its prediction.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct SlowAnswer {
    /// The job.
    check: CheckAnswer,
    /// False if the log is of another job, or the job does not fit: there is no comparison.
    is_compared: bool,
    /// Differences between the log and the configuration, or the checks that agree.
    job: Option<String>,
    /// `impossible`, `faster`, `as_predicted` or `slower`.
    relation: Option<&'static str>,
    /// Measured time of a step in s.
    measured_s: Option<f64>,
    /// Predicted time of a step in s.
    predicted_s: Option<f64>,
    /// Measured and predicted time by phase, if the log has timers.
    phases: Vec<PhaseAnswer>,
    /// Causes that can explain a slower run, most likely first by the stated order. Each is simulated alone.
    causes: Vec<CauseAnswer>,
    /// Causes with a smaller effect than 3 % of the difference.
    too_small: Vec<String>,
    /// Causes with a larger effect than the difference.
    too_large: Vec<String>,
    /// Causes that the timers of the log contradict.
    contradicted: Vec<String>,
    /// Causes that the memory of the log contradicts.
    contradicted_by_memory: Vec<String>,
    /// Phases that are later than predicted, with the seconds, if the log has timers.
    late_phases: Vec<String>,
    /// Notes about the log: assumptions, contradictions, pauses, and why there is no comparison.
    notes: Vec<String>,
}

/// Time of a phase in s.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct PhaseAnswer {
    /// Phase.
    phase: String,
    /// Measured time.
    measured_s: f64,
    /// Predicted time, if it is predicted.
    predicted_s: Option<f64>,
}

/// A cause of a slower run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct CauseAnswer {
    /// Description.
    title: String,
    /// Seconds of the difference that it explains.
    explains_s: f64,
    /// How to confirm it.
    confirm: String,
}

impl CheckAnswer {
    pub(super) fn of(report: &Report) -> Self {
        let check = &report.check;
        let fit = &check.fit;
        let certainty = check.certainty.as_ref();
        let rank = |need: &planner::outcome::RankNeed| RankNeed {
            rank: need.rank,
            weights_gib: need.memory.weights_gib,
            gradients_gib: need.memory.gradients_gib,
            optimizer_gib: need.memory.optimizer_gib,
            activations_gib: need.memory.activations_gib,
            temporary_gib: need.memory.temporary_gib,
        };
        Self {
            verdict: match check.verdict {
                Verdict::Fits => "fits",
                Verdict::AtRisk => "at_risk",
                Verdict::DoesNotFit => "does_not_fit",
                Verdict::DoesNotStart => "does_not_start",
            },
            peak_gib: fit.base.peak_gib,
            limit_gib: fit.limit_gib,
            probability_out_of_memory: certainty.map(|certainty| certainty.memory.probability_out_of_memory),
            run: check.run.as_ref().map(RunAnswer::of),
            reason: fit.base.binding.clone(),
            prediction: check.plan.as_ref().map(|plan| Prediction::of(plan, certainty)),
            ranks: fit.ranks.iter().map(rank).collect(),
            changes: fit
                .changes
                .iter()
                .zip(report.edits())
                .map(|(change, edits)| ChangeAnswer::of(change, edits))
                .collect(),
            fewest_devices: report.fewest_devices.as_ref().map(DevicesAnswer::of),
            assumed: check.assumed.clone(),
            not_modelled: check.not_modelled.clone(),
            refusals: check.refusals.clone(),
            not_understood: check.unknown.clone(),
        }
    }
}

impl Prediction {
    pub(super) fn of(plan: &Planned, certainty: Option<&Certainty>) -> Self {
        let Layout { tensor, pipeline, data, chunks, microbatch, .. } = plan.layout;
        Self {
            step_s: plan.metrics.iteration_s,
            step_interval_s: certainty.map(|certainty| [certainty.step_s.low, certainty.step_s.high]),
            peak_gib: plan.metrics.peak_memory_gib,
            memory_interval_gib: certainty
                .map(|certainty| [certainty.memory.interval_gib.low, certainty.memory.interval_gib.high]),
            probability_out_of_memory: certainty.map(|certainty| certainty.memory.probability_out_of_memory),
            tokens_per_s_per_device: plan.metrics.tokens_per_s_per_device,
            tflops_per_device: plan.metrics.tflops_per_device,
            mfu: plan.metrics.mfu,
            tensor,
            pipeline,
            data,
            chunks,
            microbatch,
        }
    }
}

impl DevicesAnswer {
    fn of(table: &DeviceTable) -> Self {
        let row = |row: &FewestDevices| DeviceAnswer {
            device: row.preset.clone(),
            devices: row.devices,
            settings: row.settings.clone(),
            step_s: row.result.iteration_s,
            peak_gib: row.result.peak_gib,
        };
        Self { rows: table.rows.iter().map(row).collect(), types: table.types, is_partial: table.is_partial }
    }
}

impl RunAnswer {
    fn of(run: &RunForecast) -> Self {
        Self {
            steps: run.steps,
            days: run.expected.days,
            days_interval: [run.low.days, run.high.days],
            device_hours: run.expected.device_hours,
            cost: run.expected.money,
            cost_interval: [run.low.money, run.high.money],
        }
    }
}

impl ChangeAnswer {
    fn of(change: &Change, edits: &[Edit]) -> Self {
        let edit = |edit: &Edit| EditAnswer {
            file: edit.file,
            line: edit.line,
            setting: edit.setting.clone(),
            replaced: edit.replaced.clone(),
            start: edit.start,
            end: edit.end,
            replacement: edit.text.clone(),
        };
        Self {
            title: change.title.clone(),
            step_s: change.result.iteration_s,
            difference_s: change.difference_s,
            peak_gib: change.result.peak_gib,
            edits: edits.iter().map(edit).collect(),
        }
    }
}

impl SlowAnswer {
    pub(super) fn of(report: &Report) -> Self {
        let slowness = report.slowness.as_ref();
        let log = report.log.as_ref();
        let relation = |slowness: &Slowness| match slowness.relation {
            Relation::Impossible => "impossible",
            Relation::Faster => "faster",
            Relation::AsPredicted => "as_predicted",
            Relation::Slower => "slower",
        };
        let cause = |cause: &Cause| CauseAnswer {
            title: cause.title.clone(),
            explains_s: cause.explains_s,
            confirm: cause.confirm.clone(),
        };
        let phases = log.map(|log| log.phases.as_slice()).unwrap_or_default().iter().map(|phase| PhaseAnswer {
            phase: phase.phase.clone(),
            measured_s: phase.measured_s,
            predicted_s: phase.predicted_s,
        });
        let titles = |titles: fn(&Slowness) -> &Vec<String>| slowness.map(|it| titles(it).clone()).unwrap_or_default();
        Self {
            check: CheckAnswer::of(report),
            is_compared: slowness.is_some(),
            job: log.map(|log| log.job.summary()),
            relation: slowness.map(relation),
            measured_s: slowness.map(|it| it.measured_s),
            predicted_s: slowness.map(|it| it.predicted_s),
            phases: phases.collect(),
            causes: slowness.map(|it| it.causes.iter().map(cause).collect()).unwrap_or_default(),
            too_small: titles(|it| &it.too_small),
            too_large: titles(|it| &it.too_large),
            contradicted: titles(|it| &it.contradicted),
            contradicted_by_memory: titles(|it| &it.contradicted_by_memory),
            late_phases: slowness.map(|it| it.late_phases.iter().map(LatePhase::text).collect()).unwrap_or_default(),
            notes: log.map(|log| log.notes.clone()).unwrap_or_default(),
        }
    }
}

/// The best plan of a job.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct PlanAnswer {
    /// The job as configured.
    check: CheckAnswer,
    /// Prediction of the best plan; null if none fits.
    best: Option<Prediction>,
}

impl PlanAnswer {
    pub(super) fn of(report: &Report) -> Self {
        Self {
            check: CheckAnswer::of(report),
            best: report.best_plan().map(|(plan, certainty)| Prediction::of(plan, Some(certainty))),
        }
    }
}

/// Two jobs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct CompareAnswer {
    /// First job.
    pub(super) a: CheckAnswer,
    /// Second job.
    pub(super) b: CheckAnswer,
    /// Probability that the first processes more tokens/s, if both fit and are the same job.
    pub(super) probability_a_faster: Option<f64>,
}
