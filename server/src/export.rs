//! Plans in formats for other programs, in addition to `planner::export`. They are generated on
//! request and never stored.

pub(crate) mod chrome_trace;
mod full_batch;
pub(crate) mod megatron;
pub(crate) mod table;
#[cfg(test)]
mod testing;
pub(crate) mod torchtitan;
