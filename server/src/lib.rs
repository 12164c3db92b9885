//! The Planscope server: the dashboard's API over a single SQLite file, and the commands of the
//! same program.
//!
//! [`router`] lists all routes, [`store`] contains all SQL statements, [`error`] all HTTP error
//! statuses, and [`config`] all flags and environment variables.

pub mod access;
mod actor;
pub mod app;
pub mod arrival;
pub mod backup_command;
pub mod calibrate_command;
mod calibration;
pub mod cancel_work_command;
pub mod changes;
pub mod check_command;
mod checks;
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
pub mod fit_command;
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
pub mod mcp_command;
pub mod measure_command;
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
pub mod simulate_command;
pub mod solve_command;
pub mod store;
pub mod studies;
pub mod sweep_command;
pub mod sweeps;
pub mod token;
pub mod token_command;
pub mod trace_command;
mod trace_id;
pub mod traces;
pub mod turns;
pub mod web;
pub mod workers;
