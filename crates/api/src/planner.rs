//! Types of the planner in requests and responses. The modules have the paths of the crate `planner`; those that plan are
//! missing, so that the pages do not compile the planners (ADR 58).

pub use planscope_analysis::{
    analysis, fit, run_comparison, schedule_comparison, slowness, sweep, trace_alignment, trace_comparison,
    trace_prediction,
};
pub use planscope_core::{cluster, model, stage_graph, timeline, training, workload};
pub use planscope_cost::cost;
pub use planscope_pipeline::{execution_plan, schedule};
pub use planscope_plan::{certainty, observer, outcome, scenario, utilisation};
