//! Types and units of Planscope: model, cluster, training settings, workload, stage graph, actions
//! and timeline. It depends on no other crate of the workspace.

pub mod action;
pub mod cluster;
pub mod host;
pub mod least_squares;
pub mod length_fit;
pub mod model;
pub mod optimality;
pub mod random;
pub mod stage_graph;
pub mod timeline;
pub mod training;
pub mod units;
pub mod workload;
