//! Analyses that run planners or the checker. Each module also has the report types of the module of the same name in
//! `planscope-analysis`.

pub mod analysis;
pub mod fit;
pub mod run_comparison;
pub mod schedule_comparison;
pub mod slowness;
pub mod sweep;
