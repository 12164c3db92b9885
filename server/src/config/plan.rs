//! Arguments of `planscope plan`.

use std::path::PathBuf;

use clap::Args;
use planner::scenario::PlannerKind;
use planner::workload::preprocessing::Preprocessing;

use super::fit::planner_kind;
use crate::workers::Threads;

/// Exit codes, for the help.
pub(super) const EXIT_CODES: &str =
    "Exit codes: 0 if a planner has a plan, 1 for an error, 2 for an invalid scenario, 3 if no planner has a plan.";

/// Arguments of `planscope plan`.
#[derive(Debug, Clone, Args)]
pub struct PlanArguments {
    /// Scenario file, or - for standard input.
    pub scenario: PathBuf,
    /// Length file that the scenario references by content address; repeatable.
    #[arg(long = "dataset")]
    pub datasets: Vec<PathBuf>,
    /// Rule that maps media in these files to encoder items: llava-onevision, internvl, qwen-vl or
    /// qwen2-audio.
    #[arg(long, value_parser = super::preprocessing)]
    pub preprocessing: Option<Preprocessing>,
    /// Output folder for timelines, as JSON, one file per planner and iteration.
    #[arg(long)]
    pub timelines: Option<PathBuf>,
    /// Output file for the execution plan of one iteration, which `planscope simulate` reads.
    #[arg(long, value_name = "FILE")]
    pub execution_plan: Option<PathBuf>,
    /// Planner of the execution plan, for example 1f1b. Default: the planner of the fastest plan.
    #[arg(long, value_parser = planner_kind, requires = "execution_plan")]
    pub planner: Option<PlannerKind>,
    /// Iteration of the execution plan, from 0.
    #[arg(long, default_value_t = 0, requires = "execution_plan")]
    pub iteration: u32,
    /// Worker threads per search. Default: number of cores. The outcome does not depend on the
    /// thread count.
    #[arg(long, env = "PLANSCOPE_SEARCH_THREADS")]
    pub search_threads: Option<usize>,
}

impl PlanArguments {
    /// Worker threads per search.
    pub fn search_threads(&self) -> Threads {
        self.search_threads.map_or_else(Threads::all_cores, Threads::new)
    }
}
