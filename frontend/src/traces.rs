//! Recorded traces: a chart of all threads and streams, and a comparison with a plan.
//!
//! [`layout`] (lane positions), [`hit`] and [`palette`] are pure functions with native tests.
//! [`paint`] only calls the canvas API. [`chart`] decides when to paint and fetches visible data.
//! [`viewer`] is the component. [`comparison`] has the tables of several traces, [`prediction`] those of a trace and a plan.

mod active_time;
mod alignment;
mod chart;
mod compared_plan;
mod comparison;
mod counters;
mod hit;
mod layout;
mod link;
mod link_sync;
mod paint;
mod palette;
mod prediction;
mod search;
mod selection;
mod span_text;
mod upload;
mod viewer;

pub(crate) use active_time::ActiveTimeCard;
pub(crate) use alignment::AlignmentCard;
pub(crate) use compared_plan::ComparedPlan;
pub(crate) use comparison::{DifferenceCard, RanksCard};
pub(crate) use counters::CountersCard;
pub(crate) use prediction::PredictionTables;
pub(crate) use upload::{TraceReportView, TraceUpload};
pub(crate) use viewer::Viewer;
