//! Interface between server and browser: paths, wire types, problem documents, timeline encoding.
//!
//! Scenario, outcome, timeline and schedule comparison use the planner's types
//! ([`planner::scenario`], [`planner::outcome`], [`planner::timeline`],
//! [`planner::schedule_comparison`]). This crate contains the other wire types.

pub mod access;
pub mod accuracy;
pub mod check;
pub mod contained;
pub mod dataset;
pub mod execution_plan;
pub mod front_page;
pub mod gallery;
pub mod job;
pub mod job_config;
pub mod listing;
pub mod papers;
pub mod path;
pub mod planner;
pub mod problem;
pub mod profile;
pub mod run;
pub mod scenario;
pub mod schedule;
pub mod sweep;
pub mod timeline;
pub mod trace;
pub mod what_if;
