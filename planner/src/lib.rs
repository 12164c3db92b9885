//! Planner for the training of large multimodal models.
//!
//! The data flow is `Scenario -> planner -> Plan -> check -> simulate -> Timeline -> compare`,
//! implemented by [`engine::plan`]. The library is pure: no files, sockets, clocks, threads or
//! ambient randomness. For a given scenario, the output is byte-identical on all platforms,
//! including the browser.

pub mod action;
pub mod analysis;
pub mod calibration;
pub mod check;
pub mod cluster;
pub mod compare;
pub mod cost;
pub mod engine;
pub mod estimate;
pub mod exact;
pub mod execution_plan;
pub mod export;
pub mod host;
mod least_squares;
pub mod length_fit;
pub mod lower_bound;
pub mod model;
pub mod observer;
pub mod optimality;
pub mod outcome;
pub mod plan;
pub mod planners;
pub mod random;
pub mod run_comparison;
pub mod scenario;
pub mod schedule;
pub mod schedule_comparison;
pub mod simulate;
pub mod solve;
pub mod stage_graph;
pub mod sweep;
pub mod timeline;
pub mod trace_alignment;
pub mod training;
pub mod units;
pub mod workload;
