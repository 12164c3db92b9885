//! Planners: methods that turn a scenario into plans.
//!
//! One folder per paper: [`dhp`], [`hydraulis`], [`dflop`], [`pipeweaver`]. [`module_layouts`] gives modules their own ranks,
//! `static_3d` and `dynamic` are the baselines. The judge executes and checks every plan.

mod batches;
mod breakdown;
mod contents;
mod context;
pub mod dflop;
pub mod dhp;
pub(crate) mod dynamic;
mod equal_replicas;
pub(crate) mod executed;
mod execution_file;
pub mod hydraulis;
mod infeasible;
mod judge;
mod layout_search;
mod layouts;
mod measured_layers;
pub mod module_layouts;
pub mod pipeweaver;
pub(crate) mod replica;
pub(crate) mod setting_choices;
pub(crate) mod settings_search;
mod stage_flops;
pub(crate) mod static_3d;

pub use judge::EvaluatedPlan;

pub(crate) use batches::plan_spans;
pub(crate) use context::{Batches, NO_CEILING, PlanningContext, SearchError};
pub use dflop::planner::shaped_items;
pub(crate) use executed::TestedPlan;
pub use execution_file::ExecutionFileError;
pub(crate) use execution_file::execution_file;
pub use judge::{JudgeError, judge};
pub(crate) use layout_search::{ENDLESS, MAX_SECONDS};
pub use pipeweaver::CutReplica;

use planscope_plan::outcome::{Layout, Search};
use planscope_plan::plan::describe;

/// Error for a planner that finds no plan.
#[derive(Debug, Clone, PartialEq)]
pub struct NoPlan {
    /// Binding constraint of the candidate that passed the largest number of checks.
    pub binding: String,
    /// Statistics for the candidate search.
    pub search: Search,
}

impl NoPlan {
    /// Error for a planner that does not apply to the scenario.
    pub(crate) fn inapplicable(binding: impl Into<String>) -> Self {
        Self { binding: binding.into(), search: Search::default() }
    }
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
