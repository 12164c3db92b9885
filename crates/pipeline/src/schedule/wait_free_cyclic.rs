//! Wait-free cyclic schedules: orders generated for specific microbatches (after DynaPipe, Jiang et
//! al., 2024).
//!
//! [`list`] simulates time: a free rank runs any ready action, alternating forward and backward,
//! subject to a memory cap and a limit on activations in flight. The quality depends on the entry
//! order of microbatches and on the pipeline depth. [`search`] evaluates a portfolio of both,
//! including the fixed orders of 1F1B and the interleaved schedule, and then moves microbatches
//! while this improves the makespan. The fixed orders are therefore an upper bound for the same
//! memory.

mod effort;
mod ground;
mod list;
mod search;
mod walk;

pub use effort::within_seconds;
pub use ground::Ground;
pub use list::{ForwardOrder, Found, Policy, Trail, list_schedule};
pub use search::{Effort, Entry, Order, SearchResult, TooLarge, search};
