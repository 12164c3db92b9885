//! Heterogeneous parallelism: modules with separate layouts and ranks (arXiv 2605.27678; ADR 15).
//!
//! The cluster is a single replica. A *rank* is a block of devices that work as a unit: the TP x CP
//! devices of a pipeline rank in a module copy. If modules with different rank sizes are colocated,
//! the block has the larger size and contains several copies of the smaller ranks. These copies
//! split the instances of a part as equally as possible, and the slowest split determines the time
//! of the part.

mod costs;
mod summary;

pub(crate) use costs::costs;
pub(crate) use costs::plan_costs;
pub(crate) use summary::{placed, placement};

#[cfg(test)]
pub mod tests;
