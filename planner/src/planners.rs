//! Planners: methods that turn a scenario into plans.
//!
//! One folder per paper: [`dhp`], [`hydraulis`], [`dflop`], [`pipeweaver`]. [`module_layouts`] gives modules their own ranks,
//! `static_3d` and `dynamic` are the baselines. The judge executes and checks every plan.

mod batches;
mod breakdown;
mod contents;
pub mod dflop;
pub mod dhp;
mod dynamic;
mod executed;
pub mod hydraulis;
mod infeasible;
mod judge;
mod layout_search;
mod layouts;
mod measured_layers;
pub(crate) mod module_layouts;
pub mod pipeweaver;
mod replica;
mod stage_flops;
mod static_3d;

pub use judge::EvaluatedPlan;

pub(crate) use dflop::planner::{plan as plan_data_aware, shaped_items};
pub(crate) use dhp::planner::plan as plan_context_parallel;
pub(crate) use dynamic::plan as plan_dynamic;
pub(crate) use executed::TestedPlan;
pub(crate) use hydraulis::planner::{Batches, plan as plan_strategies};
pub(crate) use judge::judge;
pub(crate) use layout_search::{ENDLESS, MAX_SECONDS};
pub(crate) use module_layouts::plan as plan_heterogeneous;
pub(crate) use pipeweaver::{CutReplica, plan as plan_pipeweaver};
pub(crate) use static_3d::plan as plan_static;

use crate::outcome::{Layout, Search};
use crate::plan::describe;

/// Error for a planner that finds no plan.
#[derive(Debug, Clone, PartialEq)]
pub struct NoPlan {
    /// Binding constraint of the candidate that passed the largest number of checks.
    pub binding: String,
    /// Statistics for the candidate search.
    pub search: Search,
}

/// Describes why the layout was chosen.
fn fastest(layout: Layout, sequences: usize, failed_later: u32) -> String {
    let but = failed(failed_later);
    format!("{}: the fastest layout on a representative batch of {sequences} sequences{but}.", describe(layout))
}

/// Describes layouts that were faster on the sizing batch but failed on a later batch.
fn failed(failed_later: u32) -> String {
    match failed_later {
        0 => String::new(),
        1 => "; one faster layout fails on another batch".to_owned(),
        more => format!("; {more} faster layouts fail on other batches"),
    }
}
