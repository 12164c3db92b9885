//! The pages.

pub(crate) mod accuracy;
pub(crate) mod contained;
pub(crate) mod datasets;
pub(crate) mod explore;
pub(crate) mod gallery;
pub(crate) mod papers;
pub(crate) mod plans;
pub(crate) mod profile;
pub(crate) mod profiles;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod scenarios;
pub(crate) mod schedules;
pub(crate) mod trace;
pub(crate) mod traces;
