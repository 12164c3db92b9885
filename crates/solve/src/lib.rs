//! Single problems of the planners as JSON documents, and exact orders of small pipelines.

pub mod exact;
pub mod solve;
