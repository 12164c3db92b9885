//! URL paths, in one place.

/// Root of the API.
pub const ROOT: &str = "/api/v1";
/// Media type of a timeline in columns.
pub const TIMELINE_MEDIA_TYPE: &str = "application/vnd.planscope.timeline";
/// Media type of the answer to a question that is only tried out.
pub const WHAT_IF_MEDIA_TYPE: &str = "application/vnd.planscope.what-if";
/// Media type of the first look at a timeline.
pub const OVERVIEW_MEDIA_TYPE: &str = "application/vnd.planscope.overview";
/// Media type of every error.
pub const PROBLEM_MEDIA_TYPE: &str = "application/problem+json";

/// GET: version and health.
pub const HEALTH: &str = "/api/v1/health";
/// GET: whether new content is taken.
pub const READY: &str = "/api/v1/ready";
/// GET: what is counted, as Prometheus reads it.
pub const METRICS: &str = "/metrics";
/// GET: who asks. DELETE: log out.
pub const SESSION: &str = "/api/v1/session";
/// GET: named tokens. POST: make one.
pub const TOKENS: &str = "/api/v1/tokens";
/// GET: the record of changes.
pub const AUDIT: &str = "/api/v1/audit";
/// GET: models, clusters and distributions by name.
pub const PRESETS: &str = "/api/v1/presets";
/// GET: how far predictions are from published measurements.
pub const ACCURACY: &str = "/api/v1/accuracy";
/// GET: figures of papers beside ours.
pub const PAPERS: &str = "/api/v1/papers";
/// GET: ready scenarios.
pub const GALLERY: &str = "/api/v1/gallery";
/// GET: the first page, a dozen ready scenarios with their figures.
pub const FRONT_PAGE: &str = "/api/v1/gallery/front-page";
/// GET: kinds of schedules. POST: make and run schedules with given times.
pub const SCHEDULES: &str = "/api/v1/schedules";
/// GET: stored datasets. POST: upload one, the file as the body.
pub const DATASETS: &str = "/api/v1/datasets";
/// POST: store previews as one dataset.
pub const DATASET_PREVIEWS: &str = "/api/v1/datasets/previews";
/// POST: merge previews into one preview.
pub const DATASET_PREVIEWS_MERGE: &str = "/api/v1/datasets/previews/merge";
/// POST: byte ranges of a Parquet file that are needed, the footer of the file as the body.
pub const DATASET_FOOTERS: &str = "/api/v1/datasets/footers";
/// POST: hold a tokenizer.json for uploads, the file as the body.
pub const TOKENIZERS: &str = "/api/v1/tokenizers";
/// GET: stored scenarios. PUT: store one.
pub const SCENARIOS: &str = "/api/v1/scenarios";
/// GET: drafts of this client.
pub const DRAFTS: &str = "/api/v1/scenarios?drafts=true";
/// POST: the identifier of a scenario, and whether it is stored.
pub const SCENARIO_IDENTITY: &str = "/api/v1/scenarios/identity";

/// POST: a configuration file of a training job, as the body, becomes a scenario. Nothing is stored.
pub const JOB_CONFIGS: &str = "/api/v1/job-configs";

/// GET: stored runs. POST: open one.
pub const RUNS: &str = "/api/v1/runs";
/// POST: a whole log file, as the body, becomes a run.
pub const RUN_IMPORT: &str = "/api/v1/runs/import";
/// POST: opens a live run that replays an example log.
pub const RUN_REPLAY: &str = "/api/v1/runs/replay";
/// GET: stored profiles. POST: upload files of measurements, one as the body.
pub const PROFILES: &str = "/api/v1/profiles";
/// GET: stored traces. POST: upload one, the file as the body.
pub const TRACES: &str = "/api/v1/traces";

/// GET: stored sweeps. POST: store one.
pub const SWEEPS: &str = "/api/v1/sweeps";

/// DELETE: revoke a named token.
pub fn token(name: &str) -> String {
    format!("{TOKENS}/{name}")
}

/// GET, PATCH, DELETE: one sweep.
pub fn sweep(id: &str) -> String {
    format!("{SWEEPS}/{id}")
}

/// POST: bring a deleted sweep back.
pub fn sweep_restore(id: &str) -> String {
    format!("{SWEEPS}/{id}/restore")
}

/// POST: plan the points that are missing.
pub fn sweep_start(id: &str) -> String {
    format!("{SWEEPS}/{id}/start")
}

/// POST: plan no further point.
pub fn sweep_cancel(id: &str) -> String {
    format!("{SWEEPS}/{id}/cancel")
}

/// GET: a page of the rows of a sweep. POST: take rows in that others have planned.
pub fn sweep_points(id: &str) -> String {
    format!("{SWEEPS}/{id}/points")
}

/// GET: all rows of a sweep as one file.
pub fn sweep_file(id: &str) -> String {
    format!("{SWEEPS}/{id}/points.jsonl")
}

/// GET: a picture of one or two axes of a sweep.
pub fn sweep_picture(id: &str, query: &str) -> String {
    format!("{SWEEPS}/{id}/picture?{query}")
}

/// GET: time against memory of all points of a sweep.
pub fn sweep_front(id: &str) -> String {
    format!("{SWEEPS}/{id}/front")
}

/// POST: store the scenario of a point.
pub fn sweep_scenario(id: &str, point: u32) -> String {
    format!("{SWEEPS}/{id}/points/{point}/scenario")
}

/// GET: what can be swept around a scenario.
pub fn scenario_sweeps(id: &str) -> String {
    format!("{SCENARIOS}/{id}/sweeps")
}

/// GET, PATCH, DELETE: one run.
pub fn run(id: &str) -> String {
    format!("{RUNS}/{id}")
}

/// HEAD, PATCH, PUT: the log of a run. GET: its bytes as they came.
pub fn run_log(id: &str) -> String {
    format!("{RUNS}/{id}/log")
}

/// GET: the bytes of one file of a run's log, numbered from 0.
pub fn run_log_file(id: &str, file: u32) -> String {
    format!("{RUNS}/{id}/log?file={file}")
}

/// POST: a run has ended.
pub fn run_finish(id: &str) -> String {
    format!("{RUNS}/{id}/finish")
}

/// GET: server-sent events of a run.
pub fn run_events(id: &str) -> String {
    format!("{RUNS}/{id}/events")
}

/// GET: server-sent events of several runs in one stream, from behind a row of each.
pub fn runs_events(ids: &[&str], after: &[u64]) -> String {
    let after: Vec<String> = after.iter().map(u64::to_string).collect();
    format!("{RUNS}/events?runs={}&after={}", ids.join(","), after.join(","))
}

/// GET: points of a run behind a row.
pub fn run_points(id: &str, after: u64, limit: u32) -> String {
    format!("{RUNS}/{id}/points?after={after}&limit={limit}")
}

/// GET: points of a run as a file, in `csv` or `json`.
pub fn run_export(id: &str, form: &str) -> String {
    format!("{RUNS}/{id}/export?form={form}")
}

/// POST: a new token for the log of a run; the old one ends.
pub fn run_token(id: &str) -> String {
    format!("{RUNS}/{id}/token")
}

/// POST: a deleted run comes back.
pub fn run_restore(id: &str) -> String {
    format!("{RUNS}/{id}/restore")
}

/// GET: a run beside the plan that it is held against, or beside another planner's of the same scenario.
pub fn run_comparison(id: &str, planner: Option<&str>) -> String {
    let planner = planner.map_or_else(String::new, |planner| format!("?planner={planner}"));
    format!("{RUNS}/{id}/comparison{planner}")
}

/// POST: a profile with the factors that bring prediction and measurement together.
pub fn run_calibration(id: &str) -> String {
    format!("{RUNS}/{id}/calibration")
}

/// POST: store the run's scenario with the corrections that make it the run's job, plan it and attach it.
pub fn run_correction(id: &str) -> String {
    format!("{RUNS}/{id}/correction")
}

/// GET, PATCH, DELETE: one profile.
pub fn profile(id: &str) -> String {
    format!("{PROFILES}/{id}")
}

/// POST: a deleted profile comes back.
pub fn profile_restore(id: &str) -> String {
    format!("{PROFILES}/{id}/restore")
}

/// POST: a scenario as it is with the profile; stored, its identifier answered.
pub fn profile_apply(id: &str) -> String {
    format!("{PROFILES}/{id}/apply")
}

/// GET: a run beside its plan, before and with the profile.
pub fn profile_check(id: &str, run: &str) -> String {
    format!("{PROFILES}/{id}/check?run={run}")
}

/// GET: what the adaptive correction of DFLOP does in a run with slow shapes, or what a run says of its shapes.
pub fn correction_study(scenario: &str, query: &str) -> String {
    let query = if query.is_empty() { String::new() } else { format!("?{query}") };
    format!("{SCENARIOS}/{scenario}/studies/correction{query}")
}

/// GET, PATCH, DELETE: one trace.
pub fn trace(id: &str) -> String {
    format!("{TRACES}/{id}")
}

/// POST: a deleted trace comes back.
pub fn trace_restore(id: &str) -> String {
    format!("{TRACES}/{id}/restore")
}

/// GET: what ran between two times, on these lanes ("0-7,12"), as fine as so many pixels can show.
pub fn trace_view(id: &str, from_ns: u64, to_ns: u64, pixels: u32, lanes: &str) -> String {
    format!("{TRACES}/{id}/view?from_ns={from_ns}&to_ns={to_ns}&pixels={pixels}&lanes={lanes}")
}

/// GET: the slice on a row of a lane at a time.
pub fn trace_slice(id: &str, lane: u32, row: u32, at_ns: u64) -> String {
    format!("{TRACES}/{id}/slice?lane={lane}&row={row}&at_ns={at_ns}")
}

/// GET: names that hold `text`, made safe for a query, and the next slice of one of them.
pub fn trace_search(id: &str, text: &str, from_ns: u64) -> String {
    format!("{TRACES}/{id}/search?text={text}&from_ns={from_ns}")
}

/// GET: counters, in a stretch of time.
pub fn trace_counters(id: &str, points: u32) -> String {
    format!("{TRACES}/{id}/counters?points={points}")
}

/// GET: busy, communicating and idle time of every rank of a trace, or of all traces of its run.
pub fn trace_busy(id: &str) -> String {
    format!("{TRACES}/{id}/busy")
}

/// GET: iterations of the pipeline that a trace and the others of its run show.
pub fn trace_actions(id: &str) -> String {
    format!("{TRACES}/{id}/actions")
}

/// GET: the timeline of one of those iterations.
pub fn trace_timeline(id: &str, iteration: u32) -> String {
    format!("{TRACES}/{id}/timeline?observed={iteration}")
}

/// GET: one of those iterations beside a plan's; what is absent is the attached scenario, its fastest planner and its first
/// iteration.
pub fn trace_alignment(id: &str, observed: u32, iteration: u32) -> String {
    format!("{TRACES}/{id}/alignment?observed={observed}&iteration={iteration}")
}

/// The page that shows a trace.
pub fn trace_page(id: &str) -> String {
    format!("/traces/{id}")
}

/// The page that shows a run.
pub fn run_page(id: &str) -> String {
    format!("/runs/{id}")
}

/// GET: stored plans of all scenarios.
pub const PLANS: &str = "/api/v1/plans";

/// POST: a deleted dataset comes back.
pub fn dataset_restore(id: &str) -> String {
    format!("{DATASETS}/{id}/restore")
}

/// POST: a deleted scenario comes back, by its whole identifier.
pub fn scenario_restore(id: &str) -> String {
    format!("{SCENARIOS}/{id}/restore")
}

/// GET: a timeline as Chrome trace events.
pub fn timeline_trace(id: &str, planner: &str, iteration: u32) -> String {
    format!("{SCENARIOS}/{id}/traces/{planner}/{iteration}")
}

/// GET: arguments of Megatron-LM that run a plan.
pub fn megatron_arguments(id: &str, planner: &str) -> String {
    format!("{SCENARIOS}/{id}/megatron/{planner}")
}

/// GET: the ranked table of an outcome as a file.
pub fn outcome_csv(id: &str) -> String {
    format!("{SCENARIOS}/{id}/outcome.csv")
}

/// GET, PATCH, DELETE: one dataset.
pub fn dataset(id: &str) -> String {
    format!("{DATASETS}/{id}")
}

/// GET, PATCH, DELETE: one scenario, by identifier or unique prefix of at least ten characters.
pub fn scenario(id: &str) -> String {
    format!("{SCENARIOS}/{id}")
}

/// POST: save a scenario in the list. DELETE: take it out of the list.
pub fn keep(id: &str) -> String {
    format!("{SCENARIOS}/{id}/keep")
}

/// POST: plan a scenario.
pub fn plan(id: &str) -> String {
    format!("{SCENARIOS}/{id}/plan")
}

/// GET: what papers publish of a scenario that is one of their set-ups.
pub fn scenario_papers(id: &str) -> String {
    format!("{SCENARIOS}/{id}/papers")
}

/// GET: the stored outcome of a scenario.
pub fn outcome(id: &str) -> String {
    format!("{SCENARIOS}/{id}/outcome")
}

/// GET: the answers that engines have given to a scenario.
pub fn engine_answers(id: &str) -> String {
    format!("{SCENARIOS}/{id}/engines")
}

/// GET: what one engine answered; its name is percent-encoded.
pub fn outcome_of(id: &str, engine: &str) -> String {
    format!("{}?engine={engine}", outcome(id))
}

/// GET: a timeline of what one engine answered; its name is percent-encoded.
pub fn timeline_of(id: &str, planner: &str, iteration: u32, engine: &str) -> String {
    format!("{}?engine={engine}", timeline(id, planner, iteration))
}

/// GET: the timeline of one planner and iteration.
pub fn timeline(id: &str, planner: &str, iteration: u32) -> String {
    format!("{SCENARIOS}/{id}/timelines/{planner}/{iteration}")
}

/// POST: plans a scenario and stores nothing; the timelines are those of the iteration.
pub fn what_if(iteration: u32) -> String {
    format!("/api/v1/what-if?iteration={iteration}")
}

/// The same without the searches that take long.
pub fn sketch(iteration: u32) -> String {
    format!("{}&sketch=true", what_if(iteration))
}

/// GET: the first look at a timeline.
pub fn overview(id: &str, planner: &str, iteration: u32) -> String {
    format!("{SCENARIOS}/{id}/timelines/{planner}/{iteration}/overview")
}

/// GET: the schedule of one planner and iteration in the torch action grammar.
pub fn schedule_csv(id: &str, planner: &str, iteration: u32) -> String {
    format!("{SCENARIOS}/{id}/schedules/{planner}/{iteration}")
}

/// GET: what one rank does in the execution plan of one planner and iteration, with so many buffers, 0 for any number.
pub fn execution_plan(id: &str, planner: &str, iteration: u32, rank: u32, buffers: Option<u32>) -> String {
    let buffers = buffers.map_or_else(String::new, |count| format!("&buffers={count}"));
    format!("{SCENARIOS}/{id}/execution-plans/{planner}/{iteration}?rank={rank}{buffers}")
}

/// GET: the whole execution plan as a file, in `csv` or `json`.
pub fn execution_plan_file(id: &str, planner: &str, iteration: u32, form: &str, buffers: Option<u32>) -> String {
    let buffers = buffers.map_or_else(String::new, |count| format!("&buffers={count}"));
    format!("{SCENARIOS}/{id}/execution-plans/{planner}/{iteration}/file?form={form}{buffers}")
}

/// GET: how the search of a PipeWeaver plan goes in one iteration, by three strategies.
pub fn search_study(id: &str, iteration: u32, rollouts: u32) -> String {
    format!("{SCENARIOS}/{id}/studies/search?iteration={iteration}&rollouts={rollouts}")
}

/// GET: every layout of a scenario's modules as a point.
pub fn layout_study(id: &str) -> String {
    format!("{SCENARIOS}/{id}/studies/layouts")
}

/// GET: one layout of a scenario's modules by its name, judged like a plan, with its timeline.
pub fn layout_plan(id: &str, layout: &str) -> String {
    format!("{SCENARIOS}/{id}/studies/layouts/{layout}")
}

/// GET: how long stages take in one iteration, and what they reach.
pub fn stage_study(id: &str, iteration: u32) -> String {
    format!("{SCENARIOS}/{id}/studies/stages?iteration={iteration}")
}

/// GET: what the size of sub-microbatches does in one iteration of a PipeWeaver plan.
pub fn sub_microbatch_study(id: &str, iteration: u32, rollouts: u32) -> String {
    format!("{SCENARIOS}/{id}/studies/sub-microbatches?iteration={iteration}&rollouts={rollouts}")
}

/// GET, DELETE: one planning job.
pub fn job(id: &str) -> String {
    format!("/api/v1/jobs/{id}")
}

/// GET: server-sent events of a planning job.
pub fn job_events(id: &str) -> String {
    format!("/api/v1/jobs/{id}/events")
}

/// The page of a paper.
pub fn paper_page(id: &str) -> String {
    format!("/papers/{id}")
}

/// The page that shows a scenario; `short` is a unique prefix of its identifier.
pub fn share(short: &str) -> String {
    format!("/s/{short}")
}
