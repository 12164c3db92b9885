//! The event engine: a schedule and its costs become times, memory and, for people, a timeline.
//!
//! Every rank runs its actions in order, each as soon as its inputs have arrived; sends run on a stream of their
//! own, one after the other per rank. With the order fixed this is the longest path through the graph of actions,
//! found in one pass over them: an action is looked at when the rank before it or its input becomes ready.

mod arrivals;
mod assemble;
mod execution;
mod memory;
mod rendezvous;
mod resume;
mod wait_cycle;

pub use assemble::{StepEnd, assemble};
pub use execution::{Deadlock, Execution, Start, execute};
pub use memory::{Peak, peak_composition, peak_memory, peak_memory_over};
pub use resume::{Checkpoint, Simulation};
pub use wait_cycle::{Placed, Wait, wait_cycle};
