//! Wait-free cyclic schedules: orders made for the microbatches at hand (after DynaPipe, Jiang et al., 2024).
//!
//! [`list`] walks through time: whenever a rank is free it takes whatever is ready, alternating forward and
//! backward, under a memory cap and a limit of activations in flight. Which microbatch enters first and how deep
//! the pipeline may fill decide how good that is; [`search`] tries a portfolio of both, the fixed orders of 1F1B and
//! of the interleaved schedule included, and then swaps microbatches while that helps. The result is therefore
//! never slower than the fixed orders under the same memory.

mod effort;
mod ground;
mod list;
mod search;
mod walk;

pub use effort::within_seconds;
pub use ground::Ground;
pub use list::{ForwardOrder, Found, Policy, Trail, list_schedule};
pub use search::{Choice, Effort, Entry, Order, TooLarge, search};
