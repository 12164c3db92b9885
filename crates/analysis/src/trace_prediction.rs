//! A profiler trace of a rank next to the prediction of its job: kernels by type against predicted operators, exposed
//! communication, and idle time by cause.
//!
//! Times are means per step. [`kernels`] assigns kernels to types by their names, [`predicted`] sums up the operators of
//! the plan, [`idle`] finds why the device waits.

mod idle;
mod kernels;
mod predicted;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::run_comparison::DeviceName;
use crate::trace_comparison::{DeviceSlice, Recorded, Usage};
use planscope_plan::outcome::Planned;
use planscope_plan::scenario::ValidScenario;

pub use idle::IdleCause;
pub use kernels::KernelType;

/// Smallest share of the predicted time that matrix products can take. Predictions are above half of the peak rate.
const MIN_SHARE: f64 = 0.5;
/// Largest multiple of the predicted time that matrix products can take. Slow clocks and small products explain less.
const MAX_MULTIPLE: f64 = 4.0;
/// Most kernels without a known type that are listed.
const MAX_UNASSIGNED: usize = 10;

/// Measured and predicted time of a type of kernels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KernelTypeTime {
    /// Type.
    pub kind: KernelType,
    /// Sum of kernel durations per step, in s.
    pub measured_s: f64,
    /// Kernels per step.
    pub kernels: f64,
    /// Sum of predicted operator times per step, in s; omitted if operators of this type are not predicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_s: Option<f64>,
}

impl KernelTypeTime {
    /// Measured minus predicted time in s.
    pub fn difference_s(&self) -> Option<f64> {
        Some(self.measured_s - self.predicted_s?)
    }
}

/// Part of a step in which the device computes, communicates or is idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum StepPart {
    /// Computation, also with concurrent communication.
    Compute,
    /// Communication without concurrent computation.
    ExposedCommunication,
    /// Copies without concurrent kernels.
    Copies,
    /// Neither kernel nor copy.
    Idle,
    /// The whole step.
    Step,
}

impl StepPart {
    /// Name in texts.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Compute => "computation",
            Self::ExposedCommunication => "exposed communication",
            Self::Copies => "copies",
            Self::Idle => "idle",
            Self::Step => "step",
        }
    }
}

/// Measured and predicted time of a part of a step. The parts add up to the step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PartTime {
    /// Part.
    pub part: StepPart,
    /// Measured time per step, in s.
    pub measured_s: f64,
    /// Predicted time per step, in s.
    pub predicted_s: f64,
}

/// Idle time with a cause.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct IdleTime {
    /// Cause.
    pub cause: IdleCause,
    /// Idle time per step, in s.
    pub time_s: f64,
    /// Number of gaps per step.
    pub gaps: f64,
    /// Longest gap in s.
    pub longest_s: f64,
}

/// A kernel whose name states no type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UnassignedKernel {
    /// Name without addresses.
    pub name: String,
    /// Sum of durations per step, in s.
    pub measured_s: f64,
}

/// A trace of a rank next to the prediction of its job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TracePrediction {
    /// File or trace.
    pub name: String,
    /// Rank of the trace.
    pub rank: u32,
    /// Pipeline rank of the plan.
    pub pipeline_rank: u32,
    /// Number of steps of the trace; times are means over them.
    pub steps: u64,
    /// Parts of a step; the last is the step.
    pub parts: Vec<PartTime>,
    /// Kernels by type, largest absolute difference first, then those without a prediction.
    pub kernels: Vec<KernelTypeTime>,
    /// Idle time by cause, longest first. The times add up to the measured idle time.
    pub idle: Vec<IdleTime>,
    /// Longest kernels of the type `unassigned`, 10 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unassigned: Vec<UnassignedKernel>,
    /// Reasons why the trace is of another job; empty if there are none. Times are then of no use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_job: Vec<String>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

impl TracePrediction {
    /// Measured duration of a step in s.
    pub fn step_s(&self) -> f64 {
        self.parts.iter().find(|part| part.part == StepPart::Step).map_or(0.0, |part| part.measured_s)
    }
}

/// Compares a trace with a plan of the scenario. `rank` replaces the rank of the trace.
pub fn compare(valid: &ValidScenario, planned: &Planned, recorded: &Recorded, rank: Option<u32>) -> TracePrediction {
    let rank = rank.unwrap_or(recorded.rank);
    let mut notes = Vec::new();
    let mut other_job = Vec::new();
    let devices = valid.scenario().cluster.devices();
    if rank >= devices {
        other_job
            .push(format!("The plan has {devices} devices and no rank {rank}. The first pipeline rank is compared."));
    }
    other_job.extend(other_cluster(valid, recorded));
    let pipeline_rank = pipeline_rank(devices, planned, rank, &mut notes);
    let steps = Steps::new(recorded, &mut notes);
    let count = steps.count as f64;
    let slices: Vec<&DeviceSlice> = recorded.slices.iter().filter(|slice| steps.has(slice)).collect();
    let of_plan = predicted::by_type(valid, planned, pipeline_rank, &mut notes);
    let mut measured: BTreeMap<KernelType, (u64, u64)> = BTreeMap::new();
    let mut unassigned: BTreeMap<&str, u64> = BTreeMap::new();
    for slice in &slices {
        let kind = kernels::kind(recorded, slice);
        let (time, kernels) = measured.entry(kind).or_default();
        *time += slice.duration_ns;
        *kernels += 1;
        if kind == KernelType::Unassigned {
            *unassigned.entry(kernels::name(recorded, slice)).or_default() += slice.duration_ns;
        }
    }
    let per_step = |ns: u64| ns as f64 * 1e-9 / count;
    let kinds: BTreeSet<KernelType> = measured.keys().chain(of_plan.keys()).copied().collect();
    let row = |kind: KernelType| {
        let (time, kernels) = measured.get(&kind).copied().unwrap_or_default();
        let predicted_s = of_plan.get(&kind).copied();
        KernelTypeTime { kind, measured_s: per_step(time), kernels: kernels as f64 / count, predicted_s }
    };
    let mut kernels: Vec<KernelTypeTime> = kinds.into_iter().map(row).collect();
    let size = |row: &KernelTypeTime| (row.predicted_s.is_some(), row.difference_s().unwrap_or(row.measured_s).abs());
    kernels.sort_by(|a, b| size(b).0.cmp(&size(a).0).then(size(b).1.total_cmp(&size(a).1)));
    let mut unassigned: Vec<UnassignedKernel> = unassigned
        .into_iter()
        .map(|(name, time)| UnassignedKernel { name: name.to_owned(), measured_s: per_step(time) })
        .collect();
    unassigned.sort_by(|a, b| b.measured_s.total_cmp(&a.measured_s));
    unassigned.truncate(MAX_UNASSIGNED);
    let products = kernels.iter().find(|row| row.kind == KernelType::Matmul);
    let products = products.and_then(|row| Some((row.measured_s, row.predicted_s?)));
    other_job.extend(products.and_then(|(measured, predicted)| product_mismatch(measured, predicted)));
    TracePrediction {
        name: recorded.name.clone(),
        rank,
        pipeline_rank,
        steps: steps.count,
        parts: parts(planned, pipeline_rank, &slices, (&steps, count)),
        kernels,
        idle: idle::by_cause(&slices, &recorded.host, steps.length_ns, count),
        unassigned,
        other_job,
        notes,
    }
}

/// States where number or model of the devices of the trace differ from those of the plan.
fn other_cluster(valid: &ValidScenario, recorded: &Recorded) -> Vec<String> {
    let cluster = &valid.scenario().cluster;
    let devices = cluster.devices();
    let world = recorded.world_size.filter(|&world| world != devices);
    let world = world.map(|world| format!("The trace is of a job with {world} ranks, the plan has {devices} devices."));
    let traced = recorded.model.as_deref().and_then(DeviceName::find);
    let model = traced.zip(DeviceName::find(&cluster.name)).filter(|(traced, planned)| traced != planned);
    let model = model.map(|(traced, planned)| format!("The trace is of a device {traced}, the plan is for {planned}."));
    world.into_iter().chain(model).collect()
}

/// States why the time of matrix products is not that of the job. Both times are in s.
fn product_mismatch(measured: f64, predicted: f64) -> Option<String> {
    if measured < MIN_SHARE * predicted {
        return Some(format!(
            "Matrix products take {:.0} % of the predicted time. Not even the peak rate of the device explains this: the trace is of \
             another job, or of a part of a step.",
            100.0 * measured / predicted
        ));
    }
    (measured > MAX_MULTIPLE * predicted).then(|| {
        format!(
            "Matrix products take {:.1} times the predicted time. Slow clocks do not explain this: the trace is of another job, or \
             its steps have more than one global batch.",
            measured / predicted
        )
    })
}

/// Steps of a trace that are compared.
struct Steps {
    numbers: BTreeSet<u64>,
    /// Number of steps, at least 1.
    count: u64,
    /// Sum of their durations; `None` without steps.
    length_ns: Option<u64>,
}

impl Steps {
    fn new(recorded: &Recorded, notes: &mut Vec<String>) -> Self {
        let with_slices: BTreeSet<u64> = recorded.slices.iter().filter_map(|slice| slice.step).collect();
        let chosen = recorded.steps.iter().filter(|step| with_slices.contains(&step.number));
        let (numbers, lengths): (BTreeSet<u64>, Vec<u64>) = chosen.map(|step| (step.number, step.duration_ns)).unzip();
        if numbers.is_empty() {
            notes.push("The trace marks no steps. It is read as one step.".to_owned());
            return Self { numbers, count: 1, length_ns: None };
        }
        let outside = recorded.slices.iter().filter(|slice| slice.step.is_none()).count();
        if outside > 0 {
            notes.push(format!("{outside} kernels and copies outside of the marked steps are left out."));
        }
        Self { count: numbers.len() as u64, length_ns: Some(lengths.iter().sum()), numbers }
    }

    fn has(&self, slice: &DeviceSlice) -> bool {
        self.numbers.is_empty() || slice.step.is_some_and(|step| self.numbers.contains(&step))
    }
}

/// Returns the pipeline rank of a global rank. Pipeline ranks are blocks of consecutive devices, as in Megatron-LM and
/// torchtitan.
fn pipeline_rank(devices: u32, planned: &Planned, rank: u32, notes: &mut Vec<String>) -> u32 {
    let ranks = planned.ranks.len().max(1) as u32;
    if ranks > 1 {
        notes.push(
            "Pipeline ranks are read as blocks of consecutive ranks, as in Megatron-LM and torchtitan.".to_owned(),
        );
    }
    if rank >= devices {
        return 0;
    }
    (rank / (devices / ranks).max(1)).min(ranks - 1)
}

fn parts(planned: &Planned, rank: u32, slices: &[&DeviceSlice], (steps, count): (&Steps, f64)) -> Vec<PartTime> {
    let usage = Usage::of(slices.iter().copied());
    let total = steps.length_ns.unwrap_or(usage.span).max(usage.busy);
    let time = planned.ranks.get(rank as usize).map(|rank| rank.time).unwrap_or_default();
    let compute_s = time.compute_s + time.recompute_s + time.optimizer_s;
    let exposed_s = time.exposed_s + time.sync_s;
    let copies = usage.busy - usage.compute - usage.exposed;
    let part =
        |part, measured: u64, predicted_s| PartTime { part, measured_s: measured as f64 * 1e-9 / count, predicted_s };
    vec![
        part(StepPart::Compute, usage.compute, compute_s),
        part(StepPart::ExposedCommunication, usage.exposed, exposed_s),
        part(StepPart::Copies, copies, 0.0),
        part(StepPart::Idle, total - usage.busy, time.bubble_s),
        part(StepPart::Step, total, compute_s + exposed_s + time.bubble_s),
    ]
}

#[cfg(test)]
mod tests;
