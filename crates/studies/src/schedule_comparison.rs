//! The schedule bench: [`respond`] generates, checks and simulates all requested schedules.

mod costs;
mod measure;
mod memory;
mod run;
#[cfg(test)]
mod tests;

pub use planscope_analysis::schedule_comparison::*;
pub use run::{respond, respond_while};
