//! Planner for the training of large multimodal models.
//!
//! The data flow is `Scenario -> planner -> Plan -> check -> simulate -> Timeline -> compare`,
//! implemented by [`engine::plan`]. The library is pure: no files, sockets, clocks, threads or
//! ambient randomness. For a given scenario, the output is byte-identical on all platforms,
//! including the browser.

pub use planscope_analysis::{trace_alignment, trace_comparison, trace_prediction};
pub use planscope_check::check;
pub use planscope_core::{
    action, cluster, host, length_fit, model, optimality, random, stage_graph, timeline, training, units, workload,
};
pub use planscope_cost::{calibration, cost};
pub use planscope_pipeline::{execution_plan, export, lower_bound, schedule, simulate};
pub use planscope_plan::{
    certainty, compare, estimate, execution_file, observer, outcome, plan, scenario, utilisation,
};
pub use planscope_planners::{engine, planners};
pub use planscope_solve::{exact, solve};
pub use planscope_studies::{analysis, fit, run_comparison, schedule_comparison, slowness, sweep};
