//! The whole API, told as stories.

mod access;
mod accuracy;
mod browse;
mod comparison;
mod datasets;
mod deletion;
mod imports;
mod jobs;
mod links;
mod migrations;
mod openapi;
mod pages;
mod previews;
mod profiles;
mod room;
mod runs;
mod same_job;
mod scenarios;
mod schedules;
mod store;
mod story;
mod studies;
mod sweeps;
mod traces;
mod what_if;
mod words;
