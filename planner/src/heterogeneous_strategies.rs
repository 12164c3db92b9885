//! Pipelines of different schemes side by side, chosen anew for every global batch: Hydraulis.
//!
//! A strategy is a set of pipelines, each with its own <TP, PP, CP>. [`propose`] finds the strategies worth having for a data
//! set, once. For every global batch and strategy [`dispatch`] deals the sequences to the pipelines and [`pack`] those of a
//! pipeline to its microbatches; [`assign`] does both, and [`choose`] takes the strategy that ends first. [`exchange`] counts what parameters and
//! gradients cost on their way between the optimizer's layout and the strategy's.

mod assignment;
mod branch;
mod disaggregation;
mod dispatch;
mod packing;
mod partition;
mod proposal;
mod rounding;
mod scheme;
#[cfg(test)]
mod tests;

pub use assignment::{Assignment, Beside, Choice, Considered, assign, choose, choose_beside};
pub use disaggregation::{Exchanged, LinkRate, Volumes, exchange, exposed_seconds, switch_bytes};
pub use dispatch::{Dispatch, DispatchError, DispatchSettings, dispatch};
pub use packing::{Packing, PackingError, PackingSettings, pack};
pub use proposal::{Candidate, Proposal, ProposalError, ProposalSettings, Relaxed, propose};
pub use scheme::{SchemeCost, SchemeMemory};
