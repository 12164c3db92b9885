//! The independent judge.
//!
//! Nothing here is shared with schedule builders, planners or the simulator but the types of their results: what is
//! required of a plan is stated again, from the definitions. Every plan passes through here before it is
//! stored or drawn.

mod assignment;
mod execution_plan;
mod modules;
mod run;

pub use assignment::{check_assignment, check_phases};
pub use execution_plan::{At, ExecutionViolation, Replay, check_execution_plan};
pub use modules::{check_module_run, check_modules};
pub use run::check_run;

/// What is wrong with a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The degrees do not multiply to the devices.
    #[error("TP {tensor} x PP {pipeline} x DP {data} is not {devices} devices")]
    Devices {
        /// TP.
        tensor: u32,
        /// PP.
        pipeline: u32,
        /// DP.
        data: u32,
        /// Devices of the cluster.
        devices: u32,
    },
    /// A degree does not divide what it cuts.
    #[error("TP {tensor} does not divide {count} {what}")]
    Divisibility {
        /// TP.
        tensor: u32,
        /// What is cut.
        what: &'static str,
        /// How many of it there are.
        count: u32,
    },
    /// Devices that trade tokens for heads have no equal shares of the heads.
    #[error("CP {context} cannot trade {heads} heads, {shared} of keys and values, over TP {tensor}")]
    Trade {
        /// Devices that trade.
        context: u32,
        /// TP.
        tensor: u32,
        /// Query heads.
        heads: u32,
        /// Heads of keys and values.
        shared: u32,
    },
    /// A layer stands on no stage, on two, or out of order.
    #[error("stage {stage} does not continue the layers where the one before ends")]
    Layers {
        /// The stage.
        stage: usize,
    },
    /// Two pipelines of an iteration stand on one device at a time, or one stands where there is none.
    #[error("iteration {iteration}: pipeline {pipeline} stands on device {device}, which is not free")]
    Device {
        /// Iteration.
        iteration: usize,
        /// The pipeline.
        pipeline: usize,
        /// The device.
        device: u32,
    },
    /// Strategies that follow each other on the same devices overlap.
    #[error("phase {phase} starts at {start} ns, before the phases before it end at {ended} ns")]
    Phase {
        /// The phase.
        phase: u32,
        /// Its first start, in ns.
        start: u64,
        /// Last end of the phases before it, in ns.
        ended: u64,
    },
    /// A sequence is trained twice or not at all.
    #[error("sequence {sequence} of iteration {iteration} is assigned {times} times")]
    Sequence {
        /// Iteration.
        iteration: usize,
        /// Index in the packed batch.
        sequence: usize,
        /// How often it was assigned.
        times: u32,
    },
    /// An action stands on the wrong rank, or names a stage or microbatch that does not exist.
    #[error("rank {rank} runs {action}, which is not its own")]
    Foreign {
        /// The rank.
        rank: usize,
        /// The action in the torch grammar.
        action: String,
    },
    /// An action is there twice, or both as full and as split backward.
    #[error("rank {rank} runs {action} again")]
    Repeated {
        /// The rank.
        rank: usize,
        /// The action in the torch grammar.
        action: String,
    },
    /// Not every microbatch goes forward and backward through every stage.
    #[error("stage {stage} never finishes microbatch {microbatch}")]
    Incomplete {
        /// The stage.
        stage: usize,
        /// The microbatch.
        microbatch: usize,
    },
    /// An action starts before its input has arrived.
    #[error("rank {rank} starts {action} at {start} ns, before its input arrives at {input} ns")]
    Precedence {
        /// The rank.
        rank: usize,
        /// The action in the torch grammar.
        action: String,
        /// Its start.
        start: u64,
        /// When its input is there.
        input: u64,
    },
    /// Ranks wait for each other in a circle.
    #[error("{waiting}")]
    Deadlock {
        /// What every stuck rank waits at.
        waiting: String,
    },
    /// A rank sends before it has computed, or while it still sends something else.
    #[error("rank {rank} sends the result of {action} at {start} ns, before it can")]
    Send {
        /// The rank.
        rank: usize,
        /// The action in the torch grammar.
        action: String,
        /// Start of the send.
        start: u64,
    },
    /// The plan has not as many parts as its layout says.
    #[error("{what}: {found} where the layout says {expected}")]
    Shape {
        /// Which parts.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many there should be.
        expected: usize,
    },
    /// Two actions of a rank overlap, or an action does not last as long as its cost.
    #[error("rank {rank} cannot run {action} from {start} to {end} ns")]
    Exclusivity {
        /// The rank.
        rank: usize,
        /// The action in the torch grammar.
        action: String,
        /// Its start.
        start: u64,
        /// Its end.
        end: u64,
    },
    /// Ranks that work on something together begin at different times.
    #[error("rank {rank} starts {action} at {start} ns, others of its group at {first} ns")]
    Apart {
        /// The rank.
        rank: usize,
        /// The action in the torch grammar.
        action: String,
        /// Its start, in ns.
        start: u64,
        /// Start of another rank of the group, in ns.
        first: u64,
    },
    /// The modules of a layout cannot stand as it says.
    #[error("layout {layout}: {what}")]
    Standing {
        /// Number of the layout.
        layout: usize,
        /// What is wrong.
        what: String,
    },
    /// An instance of a module in a microbatch is in no part, in several, or does not exist.
    #[error("instance {instance} of module {module} in microbatch {microbatch} is in {times} parts")]
    Instance {
        /// The microbatch.
        microbatch: u32,
        /// The module.
        module: u32,
        /// The instance.
        instance: u32,
        /// Parts that hold it.
        times: u32,
    },
    /// A part of a module runs before what it is made from is there, or what fed it goes back before its gradient.
    #[error("part {part} and part {from} that feeds it: one starts at {start} ns, before the other ends at {input} ns")]
    Unfed {
        /// The part that is fed.
        part: usize,
        /// The part that feeds it.
        from: usize,
        /// Start of the one that waits, in ns.
        start: u64,
        /// When what it waits for is done, in ns.
        input: u64,
    },
    /// A rank holds more than it may.
    #[error("rank {rank} needs {needed_mib} MiB of {limit_mib} MiB")]
    Memory {
        /// The rank.
        rank: usize,
        /// What it holds at its peak, in MiB.
        needed_mib: u64,
        /// What it may hold, in MiB.
        limit_mib: u64,
    },
}
