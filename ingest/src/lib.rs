//! Untrusted bytes to typed data: bounded, without panics, and with a report of what was not read.
//!
//! A format is recognised by content, never by file name. Nothing here does I/O.

pub mod configurations;
pub mod dataset;
mod gzip;
pub mod job_config;
mod json;
pub mod log;
pub mod profile;
mod protobuf;
pub mod trace;
