//! The Planscope server: the dashboard's API over one SQLite file, and the commands of the same program.
//!
//! [`router`] shows every route at a glance, [`store`] holds every SQL statement, [`error`] every HTTP status,
//! [`config`] every flag and environment variable.

pub mod access;
pub mod app;
pub mod arrival;
pub mod backup_command;
pub mod calibrate_command;
pub mod cancel_work_command;
pub mod client;
pub mod clock;
pub mod config;
mod connections;
mod dataset_id;
mod document;
mod endpoint;
pub mod error;
pub mod estimate_command;
mod export;
pub mod forgetting;
mod gallery;
mod guarding;
pub mod health_command;
pub mod import_command;
pub mod imports;
pub mod jobs;
mod json_values;
mod label;
pub mod lengths_command;
pub mod live;
pub mod metrics;
mod observation;
mod open_files;
pub mod openapi;
pub mod overviews;
pub mod plan_command;
mod profiles;
pub mod remote;
pub mod replay;
pub mod resumption;
pub mod router;
pub mod schedule_command;
pub mod serve;
pub mod shares;
pub mod solve_command;
pub mod store;
pub mod studies;
pub mod sweep_command;
pub mod sweeps;
pub mod token_command;
mod trace_id;
pub mod traces;
pub mod turns;
pub mod web;
pub mod workers;
