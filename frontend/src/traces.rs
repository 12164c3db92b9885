//! Observed traces: the chart of what ran on every thread and stream, and the same beside a plan.
//!
//! [`layout`] (which lane stands where), [`hit`] and [`palette`] are pure and tested natively; [`paint`] only calls the canvas,
//! [`chart`] decides when, and fetches what is in view; [`viewer`] is the component.

mod alignment;
mod busy;
mod chart;
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
pub(crate) use busy::BusyCard;
pub(crate) use counters::CountersCard;
pub(crate) use upload::{TraceReportView, TraceUpload};
pub(crate) use viewer::Viewer;
