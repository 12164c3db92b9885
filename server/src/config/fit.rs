//! Arguments of `planscope fit`.

use std::path::PathBuf;

use clap::Args;
use planner::scenario::PlannerKind;

/// Exit codes, for the help.
pub(super) const EXIT_CODES: &str = "Exit codes: 0 if the scenario or a change of it fits, 1 for an error, 2 for an invalid scenario, 3 if nothing fits.";

/// Arguments of `planscope fit`.
#[derive(Debug, Clone, Args)]
pub struct FitArguments {
    /// Scenario file, or - for standard input.
    pub scenario: PathBuf,
    /// Planner of all figures, for example 1f1b. Default: the first planner of the scenario other than best.
    #[arg(long, value_parser = planner_kind)]
    pub planner: Option<PlannerKind>,
    /// Also find the fewest devices of each device type that hold the model.
    #[arg(long)]
    pub devices: bool,
    /// Write JSON.
    #[arg(long)]
    pub json: bool,
    /// Length file that the scenario references by content address; repeatable.
    #[arg(long = "dataset")]
    pub datasets: Vec<PathBuf>,
    /// Worker threads per search. Default: number of cores.
    #[arg(long, env = "PLANSCOPE_SEARCH_THREADS")]
    pub search_threads: Option<usize>,
}

pub(super) fn planner_kind(id: &str) -> Result<PlannerKind, String> {
    PlannerKind::from_id(id).ok_or_else(|| {
        let ids: Vec<&str> = PlannerKind::ALL.into_iter().map(PlannerKind::id).collect();
        format!("no such planner; known: {}", ids.join(", "))
    })
}
