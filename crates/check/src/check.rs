//! The independent checker.
//!
//! Schedule builders, planners and simulator share only result types with this module. The checker
//! implements all requirements again, directly from the definitions. Every plan is validated here;
//! only then is it stored or displayed.

mod assignment;
mod execution_file;
mod execution_plan;
mod modules;
mod run;

pub use assignment::{check_assignment, check_layers_per_stage, check_microbatch_sizes, check_phases};
pub use execution_file::{FileReplay, FileViolation, TableProblem, check_execution_file, check_run_lists};
pub use execution_plan::{At, ExecutionViolation, Replay, check_execution_plan};
pub use modules::{check_module_run, check_modules};
pub use run::check_run;

/// A violated requirement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// TP x CP x PP x DP differs from the device count.
    #[error("TP {tensor} x PP {pipeline} x DP {data} is not {devices} devices")]
    Devices {
        /// TP.
        tensor: u32,
        /// PP.
        pipeline: u32,
        /// DP.
        data: u32,
        /// Device count.
        devices: u32,
    },
    /// TP does not divide a head count.
    #[error("TP {tensor} does not divide {count} {dimension}")]
    Divisibility {
        /// TP.
        tensor: u32,
        /// Name of the indivisible quantity.
        dimension: &'static str,
        /// Value of this quantity.
        count: u32,
    },
    /// An all-to-all context-parallel group cannot split the heads equally.
    #[error("CP {context} cannot trade {heads} heads, {shared} of keys and values, over TP {tensor}")]
    Trade {
        /// CP.
        context: u32,
        /// TP.
        tensor: u32,
        /// Query heads.
        heads: u32,
        /// Key-value heads.
        shared: u32,
    },
    /// A layer is missing, duplicated or out of order.
    #[error("stage {stage} does not continue the layers where the one before ends")]
    Layers {
        /// The stage.
        stage: usize,
    },
    /// Two pipelines use the same device at a time, or a device does not exist.
    #[error("iteration {iteration}: pipeline {pipeline} stands on device {device}, which is not free")]
    Device {
        /// Iteration.
        iteration: usize,
        /// The pipeline.
        pipeline: usize,
        /// The device.
        device: u32,
    },
    /// Phases overlap in time.
    #[error("phase {phase} starts at {start} ns, before the phases before it end at {ended} ns")]
    Phase {
        /// The phase.
        phase: u32,
        /// First start in the phase, in ns.
        start: u64,
        /// Last end in the previous phases, in ns.
        ended: u64,
    },
    /// A sequence is not trained exactly once.
    #[error("sequence {sequence} of iteration {iteration} is assigned {times} times")]
    Sequence {
        /// Iteration.
        iteration: usize,
        /// Index in the packed batch.
        sequence: usize,
        /// Number of assignments.
        times: u32,
    },
    /// An action is on the wrong rank, or its stage or microbatch does not exist.
    #[error("rank {rank} runs {action}, which is not its own")]
    Foreign {
        /// The rank.
        rank: usize,
        /// Action in the torch grammar.
        action: String,
    },
    /// An action is duplicated, or exists both as full and as split backward.
    #[error("rank {rank} runs {action} again")]
    Repeated {
        /// The rank.
        rank: usize,
        /// Action in the torch grammar.
        action: String,
    },
    /// A microbatch lacks a forward or backward on a stage.
    #[error("stage {stage} never finishes microbatch {microbatch}")]
    Incomplete {
        /// The stage.
        stage: usize,
        /// The microbatch.
        microbatch: usize,
    },
    /// An action starts before the input is available.
    #[error("rank {rank} starts {action} at {start} ns, before its input arrives at {input} ns")]
    Precedence {
        /// The rank.
        rank: usize,
        /// Action in the torch grammar.
        action: String,
        /// Start in ns.
        start: u64,
        /// Time in ns at which the input is available.
        input: u64,
    },
    /// Ranks block each other in a cycle.
    #[error("{waiting}")]
    Deadlock {
        /// Blocking action per rank.
        waiting: String,
    },
    /// A send starts before its result is computed, or overlaps an earlier send on the rank.
    #[error("rank {rank} sends the result of {action} at {start} ns, before it can")]
    Send {
        /// The rank.
        rank: usize,
        /// Action in the torch grammar.
        action: String,
        /// Start of the send, in ns.
        start: u64,
    },
    /// The number of elements differs from the layout.
    #[error("{element}: {found} where the layout says {expected}")]
    Shape {
        /// Element name.
        element: &'static str,
        /// Actual number.
        found: usize,
        /// Expected number.
        expected: usize,
    },
    /// Actions on a rank overlap, or a duration differs from the cost.
    #[error("rank {rank} cannot run {action} from {start} to {end} ns")]
    Exclusivity {
        /// The rank.
        rank: usize,
        /// Action in the torch grammar.
        action: String,
        /// Start in ns.
        start: u64,
        /// End in ns.
        end: u64,
    },
    /// The ranks of a group start an action at different times.
    #[error("rank {rank} starts {action} at {start} ns, others of its group at {first} ns")]
    GroupStart {
        /// The rank.
        rank: usize,
        /// Action in the torch grammar.
        action: String,
        /// Start in ns.
        start: u64,
        /// Start on a different rank in the group, in ns.
        first: u64,
    },
    /// The placement of a module layout is invalid.
    #[error("layout {layout}: {problem}")]
    Placement {
        /// Layout index.
        layout: usize,
        /// Problem description.
        problem: String,
    },
    /// An instance is in no part or in several parts, or does not exist.
    #[error("instance {instance} of module {module} in microbatch {microbatch} is in {times} parts")]
    Instance {
        /// Microbatch index.
        microbatch: u32,
        /// The module.
        module: u32,
        /// The instance.
        instance: u32,
        /// Number of parts that contain this instance.
        times: u32,
    },
    /// A part runs although an input is missing, or runs backward although the gradient is missing.
    #[error("part {part} and part {from} that feeds it: one starts at {start} ns, before the other ends at {input} ns")]
    Unfed {
        /// The dependent part.
        part: usize,
        /// The input part.
        from: usize,
        /// Start of the dependent action, in ns.
        start: u64,
        /// End of the action that it depends on, in ns.
        input: u64,
    },
    /// A rank exceeds the memory limit.
    #[error("rank {rank} needs {needed_mib} MiB of {limit_mib} MiB")]
    Memory {
        /// The rank.
        rank: usize,
        /// Peak memory in MiB.
        needed_mib: u64,
        /// Memory limit in MiB.
        limit_mib: u64,
    },
}
