//! Labels in a row that tell series apart: run, process, model of reinforcement learning,
//! microbatch.

use serde_json::{Map, Value};

use super::text::{clip, float};

/// Models of reinforcement learning.
const ROLES: [&str; 10] =
    ["actor", "critic", "policy", "value", "reward", "reward_model", "rm", "ref", "reference", "rollout"];

/// Maximum length of a label key.
const KEY_BYTES: usize = 32;

/// Meaning of a label key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Run,
    /// Repetition of a training. The value may also belong to a single step, such as a random seed
    /// per step.
    Repetition,
    Rank,
    /// Host, worker or rank of one dimension.
    Process,
    PipelineRank,
    Role,
    Microbatch,
    /// Name of a workflow step, or of a run.
    Title,
}

fn kind(key: &str) -> Option<Kind> {
    if key.len() > KEY_BYTES {
        return None;
    }
    Some(match key.to_ascii_lowercase().as_str() {
        "run" | "run_name" | "run_id" | "run_uuid" | "run name" => Kind::Run,
        "trial" | "trial_id" | "trial_name" | "seed" | "fold" | "cv_fold" | "experiment" | "experiment_id"
        | "experiment_name" | "exp_name" | "job" | "job_id" | "job_name" | "variant" => Kind::Repetition,
        "rank" | "global_rank" | "world_rank" | "process_index" => Kind::Rank,
        "host"
        | "hostname"
        | "host_name"
        | "host_id"
        | "node"
        | "nodename"
        | "node_name"
        | "node_id"
        | "node_rank"
        | "worker"
        | "worker_id"
        | "pod"
        | "pod_name"
        | "machine"
        | "gpu_id"
        | "device_id"
        | "local_rank"
        | "replica_id"
        | "dp_rank"
        | "tp_rank"
        | "data_parallel_rank"
        | "tensor_parallel_rank" => Kind::Process,
        "pp_rank"
        | "pp_stage"
        | "pipeline_rank"
        | "pipeline_stage"
        | "pipeline_parallel_rank"
        | "pipeline_model_parallel_rank" => Kind::PipelineRank,
        "role" | "model" | "module" | "network" | "component" | "worker_type" => Kind::Role,
        "micro_step"
        | "microstep"
        | "micro_iter"
        | "micro_batch"
        | "microbatch"
        | "micro_batch_idx"
        | "microbatch_idx"
        | "micro_batch_id"
        | "microbatch_id"
        | "accum_step"
        | "accumulation_step"
        | "grad_accum_step"
        | "gradient_accumulation_step"
        | "accum_iter" => Kind::Microbatch,
        "name" | "title" | "task" | "action" | "command" | "description" | "step_name" | "event" => Kind::Title,
        _ => return None,
    })
}

/// Returns whether a name is an index of microbatches.
pub(super) fn is_microbatch(name: &str) -> bool {
    kind(name) == Some(Kind::Microbatch)
}

/// Returns whether a key names a run or a repetition.
pub(super) fn is_run(key: &str) -> bool {
    matches!(kind(key), Some(Kind::Run | Kind::Repetition))
}

/// Process that wrote a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Process {
    /// A rank, which stays the same for the complete run.
    Rank(u32),
    /// Host, worker or rank of one dimension. A restart can move a job to others.
    Named(String),
}

/// Labels in a row.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Labels {
    /// Run name.
    pub(super) run: Option<String>,
    /// Name of a repetition, such as `seed 3`.
    pub(super) repetition: Option<String>,
    pub(super) process: Option<Process>,
    /// Model of reinforcement learning.
    pub(super) role: Option<String>,
    /// True if the row belongs to a pipeline stage.
    pub(super) has_stage: bool,
    /// Name of the step or of the run.
    pub(super) title: Option<String>,
}

impl Labels {
    /// Reads the labels of a row.
    pub(super) fn read(row: &Map<String, Value>) -> Self {
        let mut labels = Self::default();
        let (mut rank, mut processes, mut repetitions) = (None, Vec::new(), Vec::new());
        for (key, value) in row {
            let Some(kind) = kind(key) else { continue };
            let Some(label) = label(value) else { continue };
            match kind {
                Kind::Run => labels.run = labels.run.or(Some(label)),
                Kind::Repetition => repetitions.push(format!("{key} {label}")),
                Kind::Rank => rank = rank.or_else(|| float(value).filter(|&rank| is_rank(rank))),
                Kind::Process => processes.push(format!("{key} {label}")),
                Kind::PipelineRank => {
                    labels.has_stage = true;
                    processes.push(format!("{key} {label}"));
                }
                Kind::Role => {
                    labels.role = labels.role.or(Some(label.to_ascii_lowercase()).filter(|role| is_role(role)));
                }
                Kind::Title => labels.title = labels.title.or(Some(label).filter(|_| value.is_string())),
                Kind::Microbatch => {}
            }
        }
        let joined = |parts: Vec<String>| (!parts.is_empty()).then(|| parts.join(", "));
        labels.repetition = joined(repetitions);
        labels.process = rank.map(|rank| Process::Rank(rank as u32)).or_else(|| joined(processes).map(Process::Named));
        labels
    }

    /// Returns whether a key is a label and not a metric of this row.
    pub(super) fn has(&self, key: &str) -> bool {
        match kind(key) {
            Some(Kind::Run) => self.run.is_some(),
            Some(Kind::Repetition) => self.repetition.is_some(),
            Some(Kind::Rank | Kind::Process | Kind::PipelineRank) => self.process.is_some(),
            _ => false,
        }
    }
}

fn is_rank(rank: f64) -> bool {
    rank.fract() == 0.0 && (0.0..1e7).contains(&rank)
}

fn is_role(role: &str) -> bool {
    ROLES.contains(&role)
}

/// Returns a label as text.
fn label(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(clip(text, 200)).filter(|name| !name.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
