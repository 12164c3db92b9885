//! The schedule bench compares published schedules and user-supplied tables without a model: requests and responses.
//!
//! [`ScheduleRequest`] contains the sizes, the durations and the activation memory. Times use an arbitrary unit; timelines
//! show a unit as a millisecond.

mod clock;
mod parse;
mod question;
mod report;
mod validate;

pub use clock::{Clock, UNIT_NS};
pub use parse::{parse, parse_times};
pub use question::{ActionTimes, Activations, ImportedTable, Per, PerStage, SCHEMA, ScheduleRequest};
pub use report::{
    CapReport, ClosedFormReport, EntryOutcome, LimitViolation, RESPONSE_SCHEMA, Refusal, ScheduleEntry, ScheduleReport,
    ScheduleResponse,
};
pub use validate::{Limits, MAX_NS, ValidRequest};
