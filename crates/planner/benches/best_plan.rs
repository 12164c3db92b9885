//! Benchmark of the planner `best`: time to the first plan, whole planning time, gap to the bound over all layouts,
//! and gain over the fastest plan of a single planner.
//!
//! Without arguments it plans three text jobs of 64, 1,024 and 32,768 devices. With scenario files as arguments
//! (`cargo bench --bench best_plan -- FILE...`) it plans each file with all settings free and prints one row per file.
//! `--as-written` plans with the free settings of the file, `--verbose` prints the time of each step.

#[path = "shared/threads.rs"]
mod threads;

use std::time::{Duration, Instant};

use planner::engine::{Observer, plan};
use planner::host::Workers;
use planner::observer::BestSoFar;
use planner::outcome::PlanOutcome;
use planner::scenario::validate::NoDatasets;
use planner::scenario::{FreeSetting, PlannerKind, Scenario, ValidScenario, parse};
use planner::training::LayoutRequest;
use threads::Threads;

/// Search threads, as on a server with two cores.
const THREADS: usize = 2;

/// Records the time of each improvement.
struct Improvements {
    threads: Threads,
    start: Instant,
    is_verbose: bool,
    found: Vec<(Duration, BestSoFar)>,
}

impl Observer for Improvements {
    fn started(&mut self, _: PlannerKind) {}
    fn progress(&mut self, planner: PlannerKind, phase: &'static str, done: u32, total: u32) {
        if self.is_verbose {
            println!("  {:.2} s: {}, {phase}, {done} of {total}", self.start.elapsed().as_secs_f64(), planner.id());
        }
    }
    fn improved(&mut self, best: BestSoFar) {
        self.found.push((self.start.elapsed(), best));
    }
    fn finished(&mut self, _: PlannerKind) {}
    fn cancelled(&self) -> bool {
        false
    }
    fn workers(&self) -> &dyn Workers {
        &self.threads
    }
}

/// Measurements of one planning run.
struct Row {
    first: Duration,
    whole: Duration,
    winner: String,
    iteration_s: f64,
    /// Time of the plan over the bound over all layouts, minus 1.
    gap: f64,
    /// Product of the gains over the fastest plan of a single planner, minus 1.
    gain: f64,
    steps: u32,
    /// Layout, settings, shares of idle time and exposed communication.
    description: String,
}

/// Plans `scenario` with `best` only.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures")]
fn measure(mut scenario: Scenario, is_verbose: bool) -> Option<Row> {
    scenario.planners = vec![PlannerKind::Best];
    let valid = ValidScenario::new(scenario, &NoDatasets).ok()?;
    let mut improvements =
        Improvements { threads: Threads(THREADS), start: Instant::now(), is_verbose, found: Vec::new() };
    let outcome = plan(&valid, &mut improvements).expect("not cancelled").outcome;
    let whole = improvements.start.elapsed();
    let first = improvements.found.first().map_or(whole, |&(time, _)| time);
    let PlanOutcome::Planned(planned) = &outcome.results[0].answer else { return None };
    let iteration_s = planned.metrics.iteration_s;
    let bound_s = planned.all_layouts_bound_s.expect("a plan of `best`");
    let is_own = |ingredient: &str| ingredient.starts_with("swaps") || ingredient.ends_with("refined settings");
    let own = planned.gains.iter().filter(|gain| is_own(&gain.ingredient));
    let ratio: f64 = own.map(|gain| gain.opponent_s / gain.iteration_s).product();
    Some(Row {
        first,
        whole,
        winner: planned.source.map_or("", PlannerKind::short_title).to_owned(),
        iteration_s,
        gap: iteration_s / bound_s - 1.0,
        gain: ratio - 1.0,
        steps: improvements.found.last().map_or(0, |(_, best)| best.step),
        description: format!(
            "TP {} PP {} VPP {} DP {} MB {}; {}; idle {:.1} %, exposed communication {:.1} %, {:.1} of {:.1} GiB",
            planned.layout.tensor,
            planned.layout.pipeline,
            planned.layout.chunks,
            planned.layout.data,
            planned.layout.microbatch,
            planned.settings.map_or_else(String::new, |settings| settings.to_string()),
            100.0 * planned.metrics.bubble,
            100.0 * planned.metrics.exposed_communication,
            planned.metrics.peak_memory_gib,
            planned.metrics.memory_limit_gib,
        ),
    })
}

/// Llama-3 8B or 70B with 8,192 tokens on nodes of eight H100. All settings are free.
fn text_job(nodes: u32) -> Scenario {
    let model = if nodes > 8 { "llama-3-70b" } else { "llama-3-8b" };
    let json = serde_json::json!({
        "schema": "scenario/1", "model": { "preset": model }, "cluster": { "preset": "h100", "nodes": nodes },
        "workload": {
            "samples": {
                "kind": "drawn", "text_tokens": { "kind": "constant", "value": 8192 },
                "images": { "kind": "constant", "value": 0 }
            },
            "global_batch": (nodes * 16).max(256), "context_length": 8192, "packing": "single"
        },
        "planners": ["best"], "iterations": 1
    });
    let mut scenario = parse(&json.to_string()).expect("the scenario is well-formed");
    scenario.free = FreeSetting::ALL.to_vec();
    scenario
}

fn main() {
    let has_flag = |flag: &str| std::env::args().any(|argument| argument == flag);
    let is_verbose = has_flag("--verbose");
    // `cargo bench` passes `--bench`.
    let files: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    println!(
        "scenario | devices | first plan | all steps | planner | iteration | over the bound | gain over one planner | last improvement at step"
    );
    let mut jobs: Vec<(String, Scenario)> = Vec::new();
    if files.is_empty() {
        jobs.extend([8, 128, 4096].map(|nodes| (format!("{}_devices", 8 * nodes), text_job(nodes))));
    }
    for file in &files {
        let text = std::fs::read_to_string(file).expect("a scenario file");
        let Ok(mut scenario) = parse(&text) else { continue };
        if !has_flag("--as-written") {
            scenario.free = FreeSetting::ALL.to_vec();
        }
        scenario.layout = LayoutRequest::default();
        jobs.push((file.clone(), scenario));
    }
    for (name, scenario) in jobs {
        let devices = scenario.cluster.devices();
        let Some(row) = measure(scenario, is_verbose) else {
            println!("{name} | {devices} | no plan");
            continue;
        };
        println!(
            "{name} | {devices} | {:.0} ms | {:.2} s | {} | {:.4} s | {:.1} % | {:.2} % | {}",
            row.first.as_secs_f64() * 1e3,
            row.whole.as_secs_f64(),
            row.winner,
            row.iteration_s,
            100.0 * row.gap,
            100.0 * row.gain,
            row.steps,
        );
        if is_verbose {
            println!("  {}", row.description);
        }
        if files.is_empty() {
            println!("measured first_plan_{name}: {:.1} ms", row.first.as_secs_f64() * 1e3);
            println!("measured all_steps_{name}: {:.1} ms", row.whole.as_secs_f64() * 1e3);
        }
    }
}
