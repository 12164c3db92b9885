//! Timeline comparison: lower bounds, critical path fractions and metrics.

mod critical_path;
mod metrics;

pub use critical_path::shares;
pub use metrics::{IterationTotals, compute_metrics};
