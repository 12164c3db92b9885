//! Pipeline schedules, their simulator and lower bounds, and the files that hold a schedule.

pub mod execution_plan;
pub mod export;
pub mod lower_bound;
pub mod schedule;
pub mod simulate;
