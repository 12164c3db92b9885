//! What timelines are worth: lower bounds, shares of the critical path, metrics.

mod bound;
mod critical_path;
mod metrics;

pub use bound::{lower_bound, work_bounds};
pub use critical_path::shares;
pub use metrics::{IterationTotals, metrics_of};
