//! Event engine: computes times, memory and a timeline from a schedule and its costs.
//!
//! Each rank runs its actions in order, and starts an action when the inputs have arrived. Sends
//! are sequential on a separate stream per rank. With a fixed order, the result is the critical
//! path through the action graph. It is computed in one pass: an action is processed when the
//! predecessor on the rank or the input is ready.

mod arrivals;
mod assemble;
mod execution;
mod memory;
mod rendezvous;
mod resume;
mod wait_cycle;

pub use assemble::{StepEnd, assemble};
pub use execution::{Deadlock, Execution, Start, execute};
pub use memory::{Peak, peak_composition, peak_host_memory, peak_memory, peak_memory_over};
pub use resume::{Checkpoint, Simulation};
pub use wait_cycle::{Placed, Wait, wait_cycle};
