//! Plans in formats that other programs read, beside those of `planner::export`: made for whoever asks, never stored.

pub(crate) mod chrome_trace;
pub(crate) mod megatron;
pub(crate) mod table;
