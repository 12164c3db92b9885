//! Plans the training of large, multimodal models.
//!
//! The one road is `Scenario -> planner -> Plan -> check -> simulate -> Timeline -> compare`; [`engine::plan`]
//! walks it. The library is pure: no files, sockets, clocks, threads or ambient randomness, so the same
//! scenario gives the same bytes everywhere, in the browser too.

pub mod aligned;
pub mod bench;
pub mod calibration;
pub mod check;
pub mod cluster;
pub mod compare;
pub mod context_groups;
pub mod cost;
pub mod data_aware;
pub mod engine;
pub mod estimate;
pub mod exact;
pub mod execution_plan;
pub mod export;
pub mod flow;
pub mod heterogeneous_strategies;
pub mod host;
pub mod model;
pub mod observed;
pub mod observer;
pub mod outcome;
pub mod plan;
pub mod proof;
pub mod random;
pub mod ranking;
pub mod scenario;
pub mod schedule;
pub mod simulate;
pub mod solve;
pub mod study;
pub mod sweep;
pub mod timeline;
pub mod training;
pub mod tuning;
pub mod units;
pub mod workload;
