//! Violations in an execution plan file.

use super::super::execution_plan::{At, ExecutionViolation};

/// A violation in an execution plan file, with its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileViolation {
    /// There are no runs.
    #[error("the file has no runs")]
    Empty,
    /// The number of devices differs.
    #[error("{part}: {found} devices, the file has {expected}")]
    Devices {
        /// Ranks or degrees.
        part: &'static str,
        /// Devices of the part.
        found: u64,
        /// Devices of the file.
        expected: u32,
    },
    /// A field contradicts another one, or its digest.
    #[error("{field}: {problem}")]
    Field {
        /// Path of the field.
        field: String,
        /// Description.
        problem: String,
    },
    /// The table of costs is invalid.
    #[error("run {run}: {problem}")]
    Table {
        /// Index of the run.
        run: usize,
        /// Description.
        problem: TableProblem,
    },
    /// The number of ranks differs from the number of memory peaks.
    #[error("run {run}: {found} ranks, the file has the peak memory of {expected}")]
    Ranks {
        /// Index of the run.
        run: usize,
        /// Ranks of the run.
        found: usize,
        /// Ranks of the file.
        expected: usize,
    },
    /// The action lists are invalid.
    #[error("run {run}, {violation}")]
    Actions {
        /// Index of the run.
        run: usize,
        /// First violation.
        violation: ExecutionViolation,
    },
    /// A start time differs.
    #[error("run {run}, {at}: starts at {found} ns, in the simulation at {simulated} ns")]
    Start {
        /// Index of the run.
        run: usize,
        /// The action.
        at: At,
        /// Time in the file, in ns.
        found: u64,
        /// Time in the simulation, in ns.
        simulated: u64,
    },
    /// A duration is missing, or differs from the costs.
    #[error("run {run}, {at}: its duration is {}, by the costs {expected} ns", describe(*found))]
    Duration {
        /// Index of the run.
        run: usize,
        /// The action.
        at: At,
        /// Duration in the file, in ns.
        found: Option<u64>,
        /// Duration by the costs, in ns.
        expected: u64,
    },
    /// Gradient synchronisation or optimizer step differ.
    #[error(
        "run {run}, {at}: gradient synchronisation and optimizer step do not follow at {start} ns as the costs say"
    )]
    Ending {
        /// Index of the run.
        run: usize,
        /// The action. Positions continue those of the actions.
        at: At,
        /// Start of the synchronisation in the simulation, in ns.
        start: u64,
    },
    /// The peak memory of a rank in a run differs.
    #[error("run {run}, rank {rank}: the peak memory is {found} bytes, by the actions {computed}")]
    Memory {
        /// Index of the run.
        run: usize,
        /// The rank.
        rank: usize,
        /// Bytes in the file.
        found: u64,
        /// Bytes by the actions.
        computed: u64,
    },
    /// The peak memory of a rank over all runs differs.
    #[error("rank {rank}: the peak memory is {found} bytes, by the runs {computed}")]
    Peak {
        /// The rank.
        rank: usize,
        /// Bytes in the file.
        found: u64,
        /// Bytes by the runs.
        computed: u64,
    },
    /// The iteration time differs.
    #[error("the iteration takes {found} ns, in the simulation {simulated} ns")]
    Iteration {
        /// Time in the file, in ns.
        found: u64,
        /// Time in the simulation, in ns.
        simulated: u64,
    },
    /// A replica is invalid.
    #[error("replica {replica}: {problem}")]
    Replica {
        /// Index of the replica.
        replica: usize,
        /// Description.
        problem: &'static str,
    },
    /// The parts of a sample do not add up to one sample.
    #[error("sample {sample}{}: its parts add up to {share} of 1000000 millionths", of_module(*module))]
    Sample {
        /// Sample index.
        sample: u32,
        /// Module of the sub-microbatches, if any.
        module: Option<u32>,
        /// Assigned share in millionths.
        share: u64,
    },
}

/// A problem in the table of costs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TableProblem {
    /// No replica has the run.
    #[error("no replica has this run")]
    Unused,
    /// The run has no ranks.
    #[error("there are no ranks")]
    NoRanks,
    /// A stage is on a rank that does not exist.
    #[error("stage {0} is on a rank that does not exist")]
    StageRank(usize),
    /// Layers of a stage are empty or reversed.
    #[error("a range of layers of stage {0} is empty")]
    Layers(usize),
    /// The columns of a microbatch differ in length, or visit stages that do not exist.
    #[error("the columns of microbatch {0} differ in length or visit stages that do not exist")]
    Columns(usize),
    /// Inputs of a microbatch are not ascending, or not before it.
    #[error("the inputs of microbatch {0} are not ascending microbatches before it")]
    Inputs(usize),
    /// Groups of ranks are numbered above the number of microbatches, mixed with pipelines, or have
    /// inputs.
    #[error("microbatch {0} has an invalid gang")]
    Gang(usize),
    /// The strategies of layers have other counts than the layers of their stage.
    #[error("microbatch {microbatch}: the layer strategies of stage {stage} are not as many as its layers")]
    Strategies {
        /// Microbatch.
        microbatch: usize,
        /// Stage.
        stage: usize,
    },
    /// An overlapped pair takes longer than both computations.
    #[error("overlapped_ppm is above 1000000")]
    Overlap,
    /// The sum of all times or of all memory is too large.
    #[error("the sum of all {0} exceeds 2^62")]
    Overflow(&'static str),
}

fn describe(found: Option<u64>) -> String {
    found.map_or_else(|| "missing".to_owned(), |ns| format!("{ns} ns"))
}

fn of_module(module: Option<u32>) -> String {
    module.map(|module| format!(" in module {module}")).unwrap_or_default()
}
