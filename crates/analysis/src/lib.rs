//! Analyses of scenarios, runs and traces: sweeps, comparisons, alignments.

pub mod analysis;
pub mod fit;
pub mod run_comparison;
pub mod schedule_comparison;
pub mod slowness;
pub mod sweep;
pub mod trace_alignment;
pub mod trace_comparison;
pub mod trace_prediction;
