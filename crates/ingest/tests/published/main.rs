//! Reads published files: configurations, logs, profiles and traces.

mod job_configs;
mod logs;
mod profiles;
mod traces;
