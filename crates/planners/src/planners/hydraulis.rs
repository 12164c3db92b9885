//! Concurrent pipelines with different parallel schemes, chosen per global batch (Hydraulis).
//!
//! A strategy is a set of pipelines, each with a <TP, PP, CP> scheme (Hydraulis Sec. 5.1).
//! [`propose`] computes candidate strategies for a dataset, once. Per global batch and strategy,
//! [`dispatch`] assigns the sequences to the pipelines and [`pack`] groups them into microbatches
//! within a pipeline.
//! [`assign`] runs both steps, and [`choose`] returns the strategy with the minimum time.
//! [`exchange`] computes the parameter and gradient traffic between the optimizer layout and the
//! strategy layout.

mod assignment;
mod branch;
mod disaggregation;
mod dispatch;
mod packing;
mod partition;
pub(crate) mod pipeline_costs;
pub(crate) mod planner;
mod proposal;
mod rounding;
mod scheme;
#[cfg(test)]
mod tests;

pub use assignment::{
    Assignment, CandidateResult, ExtraTime, StrategySelection, assign, choose, choose_with_extra_time,
};
pub use disaggregation::{
    Exchanged, LinkRate, Volumes, exchange, exposed_seconds, largest_reduce_scatter, switch_bytes,
};
pub use dispatch::{Dispatch, DispatchError, DispatchSettings, dispatch};
pub use packing::{Packing, PackingError, PackingSettings, pack};
pub use proposal::{Candidate, Proposal, ProposalError, ProposalSettings, Relaxed, propose};
pub use scheme::{SchemeCost, SchemeMemory};
