//! Observed training runs: point storage, live updates, downsampling, view state.
//!
//! [`metric`], [`plan_offers`], [`points`], [`thinning`], [`view`] and [`description`] have native tests.
//! [`feed`] communicates with the server; [`monitor`] contains the state of the run page.

mod commands;
mod description;
mod feed;
mod log_table;
mod metric;
mod monitor;
mod plan_choice;
mod plan_offers;
mod plan_search;
mod points;
mod report;
mod thinning;
mod token;
mod view;

pub(crate) use commands::SendingCommands;
pub(crate) use description::{
    StateBadge, ago, clock, has_ended_early, origin_text, progress_text, remaining_text, size,
};
pub(crate) use feed::FeedMode;
pub(crate) use log_table::{LogTableField, LogTableFile};
pub(crate) use metric::Metric;
pub(crate) use monitor::{RunMonitor, read_detail, use_run_monitor};
pub(crate) use plan_choice::PlanSelect;
pub(crate) use points::{Points, Sample, broken_at};
pub(crate) use report::LogReportView;
pub(crate) use thinning::{share_out, thin};
pub(crate) use token::store_token;
pub(crate) use view::RunView;
