//! Converts untrusted input to typed data. Parsers have size limits, do not panic, and report
//! unread content.
//!
//! Formats are detected from content, never from the file name. This crate does no I/O.

pub mod configurations;
pub mod dataset;
pub mod execution_file;
mod gzip;
pub mod job_config;
mod json;
pub mod log;
pub mod profile;
mod protobuf;
mod sqlite;
pub mod trace;
