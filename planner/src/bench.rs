//! The schedule bench: published schedules, and tables of one's own, side by side with no model.
//!
//! [`ScheduleQuestion`] says the sizes, how long actions take and what they hold; [`answer`] makes, judges and runs every
//! schedule that was asked for. Times are in any one unit, which timelines show as a millisecond.

mod costs;
mod measure;
mod memory;
mod parse;
mod question;
mod report;
mod run;
mod validate;

pub use parse::{parse, parse_times};
pub use question::{ActionTimes, Activations, ImportedTable, Per, PerStage, SCHEMA, ScheduleQuestion};
pub use report::{
    ANSWER_SCHEMA, BrokenCap, CapReport, ClosedFormReport, EntryOutcome, Refusal, ScheduleAnswer, ScheduleEntry,
    ScheduleReport,
};
pub use run::{answer, answer_while};
pub use validate::{Limits, ValidQuestion};

#[cfg(test)]
mod tests;
