//! URL paths.

/// Root of the API.
pub const ROOT: &str = "/api/v1";
/// Media type for timelines in columns.
pub const TIMELINE_MEDIA_TYPE: &str = "application/vnd.planscope.timeline";
/// Media type for what-if results.
pub const PLAN_PREVIEW_MEDIA_TYPE: &str = "application/vnd.planscope.what-if";
/// Media type for timeline overviews.
pub const OVERVIEW_MEDIA_TYPE: &str = "application/vnd.planscope.overview";
/// Media type for all errors.
pub const PROBLEM_MEDIA_TYPE: &str = "application/problem+json";

/// GET: version and health.
pub const HEALTH: &str = "/api/v1/health";
/// GET: readiness to store new content.
pub const READY: &str = "/api/v1/ready";
/// GET: metrics for Prometheus.
pub const METRICS: &str = "/metrics";
/// POST: messages of the Model Context Protocol.
pub const MCP: &str = "/mcp";
/// GET: the current actor. DELETE: log out.
pub const SESSION: &str = "/api/v1/session";
/// GET: named tokens. POST: create a token.
pub const TOKENS: &str = "/api/v1/tokens";
/// GET: the audit log.
pub const AUDIT: &str = "/api/v1/audit";
/// GET: models, clusters and distributions by name.
pub const PRESETS: &str = "/api/v1/presets";
/// GET: errors of predictions compared with published measurements.
pub const ACCURACY: &str = "/api/v1/accuracy";
/// GET: published figures compared with ours.
pub const PAPERS: &str = "/api/v1/papers";
/// GET: example scenarios.
pub const GALLERY: &str = "/api/v1/gallery";
/// GET: the first page with example scenarios and their figures.
pub const FRONT_PAGE: &str = "/api/v1/gallery/front-page";
/// GET: schedule kinds. POST: generate and run schedules with given times.
pub const SCHEDULES: &str = "/api/v1/schedules";
/// GET: stored datasets. POST: upload a dataset; the file is the body.
pub const DATASETS: &str = "/api/v1/datasets";
/// POST: store previews as one dataset.
pub const DATASET_PREVIEWS: &str = "/api/v1/datasets/previews";
/// POST: merge previews into one preview.
pub const DATASET_PREVIEWS_MERGE: &str = "/api/v1/datasets/previews/merge";
/// POST: required byte ranges for a Parquet file; the file footer is the body.
pub const DATASET_FOOTERS: &str = "/api/v1/datasets/footers";
/// POST: upload a tokenizer.json for later dataset uploads; the file is the body.
pub const TOKENIZERS: &str = "/api/v1/tokenizers";
/// GET: stored scenarios. PUT: store one.
pub const SCENARIOS: &str = "/api/v1/scenarios";
/// GET: drafts of this client.
pub const DRAFTS: &str = "/api/v1/scenarios?drafts=true";
/// POST: identifier of a scenario, and whether it is stored.
pub const SCENARIO_IDENTITY: &str = "/api/v1/scenarios/identity";

/// POST: convert a training configuration (the body) to a scenario. Stores nothing.
pub const JOB_CONFIGS: &str = "/api/v1/job-configs";

/// POST: check a training configuration. Stores nothing.
pub const CHECKS: &str = "/api/v1/checks";

/// POST: causes of a run that is slower than predicted. Stores nothing.
pub const CHECK_SLOWNESS: &str = "/api/v1/checks/slowness";
/// Comparison of a log with the prediction of a configuration.
pub const CHECK_LOG: &str = "/api/v1/checks/log";

/// POST: single changes of a training configuration, and the edits of its file. Stores nothing.
pub const CHECK_CHANGES: &str = "/api/v1/checks/changes";

/// GET: stored runs. POST: open one.
pub const RUNS: &str = "/api/v1/runs";
/// POST: import a complete log file (the body) as a run.
pub const RUN_IMPORT: &str = "/api/v1/runs/import";
/// POST: opens a live run that replays an example log.
pub const RUN_REPLAY: &str = "/api/v1/runs/replay";
/// GET: stored profiles. POST: upload a measurement file; the file is the body.
pub const PROFILES: &str = "/api/v1/profiles";
/// GET: stored traces. POST: upload a trace; the file is the body.
pub const TRACES: &str = "/api/v1/traces";

/// GET: stored sweeps. POST: store one.
pub const SWEEPS: &str = "/api/v1/sweeps";

/// DELETE: revoke a named token.
pub fn token(name: &str) -> String {
    format!("{TOKENS}/{name}")
}

/// GET, PATCH, DELETE: a sweep.
pub fn sweep(id: &str) -> String {
    format!("{SWEEPS}/{id}")
}

/// POST: restore a deleted sweep.
pub fn sweep_restore(id: &str) -> String {
    format!("{SWEEPS}/{id}/restore")
}

/// POST: plan the missing points.
pub fn sweep_start(id: &str) -> String {
    format!("{SWEEPS}/{id}/start")
}

/// POST: stop planning.
pub fn sweep_cancel(id: &str) -> String {
    format!("{SWEEPS}/{id}/cancel")
}

/// GET: a page of sweep rows. POST: import rows planned elsewhere.
pub fn sweep_points(id: &str) -> String {
    format!("{SWEEPS}/{id}/points")
}

/// GET: all sweep rows as a file.
pub fn sweep_file(id: &str) -> String {
    format!("{SWEEPS}/{id}/points.jsonl")
}

/// GET: a chart for up to two sweep axes.
pub fn sweep_picture(id: &str, query: &str) -> String {
    format!("{SWEEPS}/{id}/picture?{query}")
}

/// GET: time and memory of all sweep points.
pub fn sweep_front(id: &str) -> String {
    format!("{SWEEPS}/{id}/front")
}

/// POST: store the scenario of a sweep point.
pub fn sweep_scenario(id: &str, point: u32) -> String {
    format!("{SWEEPS}/{id}/points/{point}/scenario")
}

/// GET: suggested sweeps for a scenario.
pub fn scenario_sweeps(id: &str) -> String {
    format!("{SCENARIOS}/{id}/sweeps")
}

/// GET, PATCH, DELETE: a run.
pub fn run(id: &str) -> String {
    format!("{RUNS}/{id}")
}

/// HEAD, PATCH, PUT: the log of a run. GET: the original log bytes.
pub fn run_log(id: &str) -> String {
    format!("{RUNS}/{id}/log")
}

/// GET: the bytes of a log file, numbered from 0.
pub fn run_log_file(id: &str, file: u32) -> String {
    format!("{RUNS}/{id}/log?file={file}")
}

/// POST: finish a run.
pub fn run_finish(id: &str) -> String {
    format!("{RUNS}/{id}/finish")
}

/// GET: server-sent events of a run.
pub fn run_events(id: &str) -> String {
    format!("{RUNS}/{id}/events")
}

/// GET: server-sent events of several runs in one stream, after a row per run.
pub fn runs_events(ids: &[&str], after: &[u64]) -> String {
    let after: Vec<String> = after.iter().map(u64::to_string).collect();
    format!("{RUNS}/events?runs={}&after={}", ids.join(","), after.join(","))
}

/// GET: points of a run after a row.
pub fn run_points(id: &str, after: u64, limit: u32) -> String {
    format!("{RUNS}/{id}/points?after={after}&limit={limit}")
}

/// GET: points of a run as a file, in `csv` or `json`.
pub fn run_export(id: &str, form: &str) -> String {
    format!("{RUNS}/{id}/export?form={form}")
}

/// POST: create a new log token; the old token becomes invalid.
pub fn run_token(id: &str) -> String {
    format!("{RUNS}/{id}/token")
}

/// POST: restore a deleted run.
pub fn run_restore(id: &str) -> String {
    format!("{RUNS}/{id}/restore")
}

/// GET: comparison of a run with its plan, or with the plan of another planner.
pub fn run_comparison(id: &str, planner: Option<&str>) -> String {
    let planner = planner.map_or_else(String::new, |planner| format!("?planner={planner}"));
    format!("{RUNS}/{id}/comparison{planner}")
}

/// POST: create a profile with correction factors from a run.
pub fn run_calibration(id: &str) -> String {
    format!("{RUNS}/{id}/calibration")
}

/// POST: store the corrected scenario of a run, plan it and attach it.
pub fn run_correction(id: &str) -> String {
    format!("{RUNS}/{id}/correction")
}

/// GET, PATCH, DELETE: a profile.
pub fn profile(id: &str) -> String {
    format!("{PROFILES}/{id}")
}

/// POST: restore a deleted profile.
pub fn profile_restore(id: &str) -> String {
    format!("{PROFILES}/{id}/restore")
}

/// POST: store a scenario with the profile; returns its identifier.
pub fn profile_apply(id: &str) -> String {
    format!("{PROFILES}/{id}/apply")
}

/// GET: comparison of a run with its plan, before and after a profile.
pub fn profile_check(id: &str, run: &str) -> String {
    format!("{PROFILES}/{id}/check?run={run}")
}

/// GET: DFLOP's adaptive correction in a run with slow shapes, or the shapes measured by a run.
pub fn correction_analysis(scenario: &str, query: &str) -> String {
    let query = if query.is_empty() { String::new() } else { format!("?{query}") };
    format!("{SCENARIOS}/{scenario}/studies/correction{query}")
}

/// GET, PATCH, DELETE: a trace.
pub fn trace(id: &str) -> String {
    format!("{TRACES}/{id}")
}

/// POST: restore a deleted trace.
pub fn trace_restore(id: &str) -> String {
    format!("{TRACES}/{id}/restore")
}

/// GET: slices between two times on these lanes ("0-7,12"), at the resolution of `pixels`.
pub fn trace_view(id: &str, from_ns: u64, to_ns: u64, pixels: u32, lanes: &str) -> String {
    format!("{TRACES}/{id}/view?from_ns={from_ns}&to_ns={to_ns}&pixels={pixels}&lanes={lanes}")
}

/// GET: the slice on a lane row at a time.
pub fn trace_slice(id: &str, lane: u32, row: u32, at_ns: u64) -> String {
    format!("{TRACES}/{id}/slice?lane={lane}&row={row}&at_ns={at_ns}")
}

/// GET: slice names that contain `text`, and the next matching slice.
pub fn trace_search(id: &str, text: &str, from_ns: u64) -> String {
    format!("{TRACES}/{id}/search?text={text}&from_ns={from_ns}")
}

/// GET: counter values, reduced to `points` intervals.
pub fn trace_counters(id: &str, points: u32) -> String {
    format!("{TRACES}/{id}/counters?points={points}")
}

/// GET: busy, communication and idle time per rank, for a trace or all traces of its run.
pub fn trace_time_breakdown(id: &str) -> String {
    format!("{TRACES}/{id}/busy")
}

/// GET: pipeline iterations in the traces of a run.
pub fn trace_actions(id: &str) -> String {
    format!("{TRACES}/{id}/actions")
}

/// GET: the timeline of an observed iteration.
pub fn trace_timeline(id: &str, iteration: u32) -> String {
    format!("{TRACES}/{id}/timeline?observed={iteration}")
}

/// GET: an observed iteration compared with a planned one. Defaults: the attached scenario, its
/// fastest planner, its first iteration.
pub fn trace_alignment(id: &str, measured: u32, iteration: u32) -> String {
    format!("{TRACES}/{id}/alignment?observed={measured}&iteration={iteration}")
}

/// GET: kernels of a rank by type against predicted operators, exposed communication, and idle time by cause.
pub fn trace_prediction(id: &str) -> String {
    format!("{TRACES}/{id}/prediction")
}

/// GET: time by kernel, phase and step. With `format=csv`, one table as CSV.
pub fn trace_times(id: &str) -> String {
    format!("{TRACES}/{id}/times")
}

/// GET: difference between two traces by kernel, phase and step.
pub fn trace_difference(before: &str, after: &str) -> String {
    format!("{TRACES}/difference?before={before}&after={after}")
}

/// GET: waits between ranks in collectives, and the straggler. `traces` is a list with commas.
pub fn trace_ranks(traces: &str) -> String {
    format!("{TRACES}/ranks?traces={traces}")
}

/// GET: the ranks on one axis.
pub fn trace_axis(traces: &str) -> String {
    format!("{TRACES}/axis?traces={traces}")
}

/// Page that compares traces.
pub const TRACE_COMPARISON_PAGE: &str = "/traces/compare";

/// Page of a trace.
pub fn trace_page(id: &str) -> String {
    format!("/traces/{id}")
}

/// Page of a run.
pub fn run_page(id: &str) -> String {
    format!("/runs/{id}")
}

/// GET: stored plans of all scenarios.
pub const PLANS: &str = "/api/v1/plans";

/// POST: restore a deleted dataset.
pub fn dataset_restore(id: &str) -> String {
    format!("{DATASETS}/{id}/restore")
}

/// POST: restore a deleted scenario by its full identifier.
pub fn scenario_restore(id: &str) -> String {
    format!("{SCENARIOS}/{id}/restore")
}

/// GET: a timeline as Chrome trace events.
pub fn timeline_trace(id: &str, planner: &str, iteration: u32) -> String {
    format!("{SCENARIOS}/{id}/traces/{planner}/{iteration}")
}

/// GET: Megatron-LM arguments for a plan.
pub fn megatron_arguments(id: &str, planner: &str) -> String {
    format!("{SCENARIOS}/{id}/megatron/{planner}")
}

/// GET: sections of a torchtitan job file for a plan.
pub fn torchtitan_job(id: &str, planner: &str) -> String {
    format!("{SCENARIOS}/{id}/torchtitan/{planner}")
}

/// GET: the ranked table of an outcome as a CSV file.
pub fn outcome_csv(id: &str) -> String {
    format!("{SCENARIOS}/{id}/outcome.csv")
}

/// GET, PATCH, DELETE: a dataset.
pub fn dataset(id: &str) -> String {
    format!("{DATASETS}/{id}")
}

/// GET, PATCH, DELETE: a scenario, by identifier or unique prefix with at least ten characters.
pub fn scenario(id: &str) -> String {
    format!("{SCENARIOS}/{id}")
}

/// POST: save a scenario in the list. DELETE: remove it from the list.
pub fn keep(id: &str) -> String {
    format!("{SCENARIOS}/{id}/keep")
}

/// POST: plan a scenario.
pub fn plan(id: &str) -> String {
    format!("{SCENARIOS}/{id}/plan")
}

/// GET: published figures for a scenario.
pub fn scenario_papers(id: &str) -> String {
    format!("{SCENARIOS}/{id}/papers")
}

/// GET: the stored outcome of a scenario.
pub fn outcome(id: &str) -> String {
    format!("{SCENARIOS}/{id}/outcome")
}

/// GET: outcomes of a scenario by engine version.
pub fn engine_answers(id: &str) -> String {
    format!("{SCENARIOS}/{id}/engines")
}

/// GET: the outcome of an engine version; its name is percent-encoded.
pub fn engine_outcome(id: &str, engine: &str) -> String {
    format!("{}?engine={engine}", outcome(id))
}

/// GET: a timeline from the outcome of an engine version; its name is percent-encoded.
pub fn engine_timeline(id: &str, planner: &str, iteration: u32, engine: &str) -> String {
    format!("{}?engine={engine}", timeline(id, planner, iteration))
}

/// GET: the timeline for a planner and an iteration.
pub fn timeline(id: &str, planner: &str, iteration: u32) -> String {
    format!("{SCENARIOS}/{id}/timelines/{planner}/{iteration}")
}

/// POST: plan a scenario without storing it; returns the timelines of the iteration.
pub fn plan_preview(iteration: u32) -> String {
    format!("/api/v1/what-if?iteration={iteration}")
}

/// POST: like [`plan_preview`], without the long searches.
pub fn sketch(iteration: u32) -> String {
    format!("{}&sketch=true", plan_preview(iteration))
}

/// GET: the overview of a timeline.
pub fn overview(id: &str, planner: &str, iteration: u32) -> String {
    format!("{SCENARIOS}/{id}/timelines/{planner}/{iteration}/overview")
}

/// GET: the schedule for a planner and an iteration in the torch action grammar.
pub fn schedule_csv(id: &str, planner: &str, iteration: u32) -> String {
    format!("{SCENARIOS}/{id}/schedules/{planner}/{iteration}")
}

/// GET: execution plan of a rank for a planner and an iteration. Zero buffers means unlimited.
pub fn execution_plan(id: &str, planner: &str, iteration: u32, rank: u32, buffers: Option<u32>) -> String {
    let buffers = buffers.map_or_else(String::new, |count| format!("&buffers={count}"));
    format!("{SCENARIOS}/{id}/execution-plans/{planner}/{iteration}?rank={rank}{buffers}")
}

/// GET: the complete execution plan as a `csv` or `json` file.
pub fn execution_plan_file(id: &str, planner: &str, iteration: u32, form: &str, buffers: Option<u32>) -> String {
    let buffers = buffers.map_or_else(String::new, |count| format!("&buffers={count}"));
    format!("{SCENARIOS}/{id}/execution-plans/{planner}/{iteration}/file?form={form}{buffers}")
}

/// GET: search progress of a PipeWeaver plan in an iteration, for three strategies.
pub fn search_analysis(id: &str, iteration: u32, rollouts: u32) -> String {
    format!("{SCENARIOS}/{id}/studies/search?iteration={iteration}&rollouts={rollouts}")
}

/// GET: all module layouts of a scenario as points.
pub fn layout_analysis(id: &str) -> String {
    format!("{SCENARIOS}/{id}/studies/layouts")
}

/// GET: one layout of a scenario's modules by its name, judged like a plan, with its timeline.
pub fn layout_plan(id: &str, layout: &str) -> String {
    format!("{SCENARIOS}/{id}/studies/layouts/{layout}")
}

/// GET: memory need of a scenario and the single changes that help most, for the first planner of the scenario or for
/// the given planner.
pub fn fit_analysis(id: &str, planner: Option<&str>) -> String {
    let query = planner.map_or_else(String::new, |planner| format!("?planner={planner}"));
    format!("{SCENARIOS}/{id}/studies/fit{query}")
}

/// GET: the fewest devices of every device type that hold a scenario.
pub fn fewest_devices(id: &str) -> String {
    format!("{SCENARIOS}/{id}/studies/fewest-devices")
}

/// GET: stage times and device utilization in an iteration.
pub fn stage_analysis(id: &str, iteration: u32) -> String {
    format!("{SCENARIOS}/{id}/studies/stages?iteration={iteration}")
}

/// GET: effect of the sub-microbatch size in an iteration of a PipeWeaver plan.
pub fn sub_microbatch_analysis(id: &str, iteration: u32, rollouts: u32) -> String {
    format!("{SCENARIOS}/{id}/studies/sub-microbatches?iteration={iteration}&rollouts={rollouts}")
}

/// GET, DELETE: a planning job.
pub fn job(id: &str) -> String {
    format!("/api/v1/jobs/{id}")
}

/// GET: server-sent events of a planning job.
pub fn job_events(id: &str) -> String {
    format!("/api/v1/jobs/{id}/events")
}

/// Page of a paper.
pub fn paper_page(id: &str) -> String {
    format!("/papers/{id}")
}

/// Page of a scenario. `short` is a unique prefix of its identifier.
pub fn share(short: &str) -> String {
    format!("/s/{short}")
}
