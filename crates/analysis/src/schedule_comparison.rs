//! The schedule bench compares published schedules and user-supplied tables without a model.
//!
//! [`ScheduleRequest`] contains the sizes, the durations and the activation memory. [`answer`]
//! generates, validates and simulates all requested schedules. Times use an arbitrary unit;
//! timelines show a unit as a millisecond.

mod costs;
mod measure;
mod memory;
mod parse;
mod question;
mod report;
mod run;
mod validate;

pub use parse::{parse, parse_times};
pub use question::{ActionTimes, Activations, ImportedTable, Per, PerStage, SCHEMA, ScheduleRequest};
pub use report::{
    CapReport, ClosedFormReport, EntryOutcome, LimitViolation, RESPONSE_SCHEMA, Refusal, ScheduleEntry, ScheduleReport,
    ScheduleResponse,
};
pub use run::{respond, respond_while};
pub use validate::{Limits, ValidRequest};

#[cfg(test)]
mod tests;
