//! Recorded traces: a chart of all threads and streams, and a comparison with a plan.
//!
//! [`layout`] (lane positions), [`hit`] and [`palette`] are pure functions with native tests.
//! [`paint`] only calls the canvas API. [`chart`] decides when to paint and fetches visible data.
//! [`viewer`] is the component. [`comparison`] has the tables of several traces.

mod alignment;
mod busy;
mod chart;
mod comparison;
mod counters;
mod hit;
mod layout;
mod link;
mod linking;
mod paint;
mod palette;
mod search;
mod selection;
mod upload;
mod viewer;
mod words;

pub(crate) use alignment::AlignmentCard;
pub(crate) use busy::ActiveTimeCard;
pub(crate) use comparison::{DifferenceCard, RanksCard};
pub(crate) use counters::CountersCard;
pub(crate) use upload::{TraceReportView, TraceUpload};
pub(crate) use viewer::Viewer;
