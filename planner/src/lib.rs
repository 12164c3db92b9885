//! Plans the training of large, multimodal models.
//!
//! The one road is `Scenario -> planner -> Plan -> check -> simulate -> Timeline -> compare`; [`engine::plan`]
//! walks it. The library is pure: no files, sockets, clocks, threads or ambient randomness, so the same
//! scenario gives the same bytes everywhere, in the browser too.

pub mod cluster;
pub mod engine;
pub mod model;
pub mod outcome;
pub mod scenario;
pub mod timeline;
pub mod training;
pub mod units;
pub mod workload;
