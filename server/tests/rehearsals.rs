//! Rehearsals and a running server: begun and ended there, streamed to it, and taken from it.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use api::rehearsal::StartedRehearsal;
use api::run::{RunDetail, RunList, RunState};
use planner::cost::{PipelineCosts, UniformTimes};
use planner::execution_plan::{Buffers, ExecutionPlan, PlanActionKind, compile};
use planner::schedule::one_f_one_b;
use planner::simulate::{StepEnd, assemble, execute};
use planner::units::Nanos;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// How long is waited for what takes seconds on an idle machine.
const PATIENCE: Duration = Duration::from_mins(3);

/// The token of the server.
const TOKEN: &str = "0123456789abcdef";

/// The server on a free port of this machine, until it is dropped.
struct Server {
    origin: String,
    running: Child,
}

impl Server {
    fn start(folder: &Path) -> Self {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let mut command = Command::new(env!("CARGO_BIN_EXE_planscope"));
        command.args(["serve", "--address", &address]).current_dir(folder).env_clear().env("PLANSCOPE_TOKEN", TOKEN);
        let running = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let server = Self { origin: format!("http://{address}"), running };
        until(|| server.text("GET", api::path::HEALTH, "").is_ok());
        server
    }

    /// The answer, or the status and text of a refusal.
    fn text(&self, method: &str, path: &str, body: &str) -> Result<String, (u16, String)> {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.origin))
            .header("Authorization", format!("Bearer {TOKEN}"))
            .header("Content-Type", "application/json");
        let answer = agent.run(request.body(body.to_owned()).unwrap());
        let mut answer = answer.map_err(|error| (0, error.to_string()))?;
        let status = answer.status();
        let text = answer.body_mut().read_to_string().unwrap();
        if status.is_success() { Ok(text) } else { Err((status.as_u16(), text)) }
    }

    fn json<T: DeserializeOwned>(&self, method: &str, path: &str, body: &str) -> T {
        serde_json::from_str(&self.text(method, path, body).unwrap()).unwrap()
    }

    fn run(&self, id: &str) -> RunDetail {
        self.json("GET", &api::path::run(id), "")
    }

    /// Stores and plans a scenario of four ranks; answers its identifier.
    fn plans(&self) -> String {
        let scenario = json!({
            "schema": "scenario/1",
            "model": {"preset": "llama-2-7b"},
            "cluster": {"preset": "a100-80gb", "nodes": 1},
            "workload": {
                "samples": {
                    "kind": "drawn",
                    "text_tokens": {"kind": "values", "values": [512, 1024, 2048, 4096]},
                    "images": {"kind": "constant", "value": 0}
                },
                "global_batch": 16, "context_length": 4096, "packing": "single"
            },
            "layout": {"tensor": 2, "pipeline": 4}, "planners": ["1f1b", "interleaved"], "seed": 3, "iterations": 8
        });
        let stored: Value = self.json("PUT", api::path::SCENARIOS, &scenario.to_string());
        let id = stored["id"].as_str().unwrap().to_owned();
        self.text("POST", &api::path::plan(&id), "").unwrap();
        until(|| self.text("GET", &api::path::outcome(&id), "").is_ok());
        id
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.running.kill());
        drop(self.running.wait());
    }
}

fn until(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "it did not come to be");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn rehearse(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_planscope"));
    command.arg("rehearse").args(arguments).env_clear().env("PLANSCOPE_TOKEN", TOKEN).output().unwrap()
}

/// Processes of this machine that have the token of a run, and those of them that have the server's token.
fn with_tokens(run: &str) -> (usize, usize) {
    let has = |bytes: &[u8], part: &str| String::from_utf8_lossy(bytes).contains(part);
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|process| {
        let command = std::fs::read(process.path().join("cmdline")).ok()?;
        let environment = std::fs::read(process.path().join("environ")).ok()?;
        (has(&command, run) && has(&environment, "PLANSCOPE_RUN_TOKEN=")).then_some(environment)
    });
    let environments: Vec<Vec<u8>> = processes.collect();
    (environments.len(), environments.iter().filter(|environment| has(environment, TOKEN)).count())
}

/// 1F1B of two ranks and three microbatches in which rank 0 waits for a gradient before it has sent anything.
fn deadlocked() -> ExecutionPlan {
    let four = Nanos::new(4_000_000);
    let times =
        UniformTimes { forward: four, input_grad: four, weight_grad: four, communication: Nanos::new(1_000_000) };
    let (schedule, costs) = (one_f_one_b(2, 3), PipelineCosts::uniform(2, 1, 3, times));
    let execution = execute(&schedule, &costs).unwrap();
    let timeline = assemble(&schedule, &execution, &costs, &StepEnd::of(2, std::iter::once(&execution)));
    let mut plan = compile(&timeline, Buffers::default()).unwrap();
    let list = &mut plan.ranks[0];
    let wait = list.iter().position(|one| one.action == PlanActionKind::WaitIrecv).unwrap();
    let wait = list.remove(wait);
    let first = list.iter().position(|one| one.action.computes()).unwrap();
    list.insert(first, wait);
    plan
}

#[test]
fn a_rehearsal_of_the_server_is_ended_from_outside_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let scenario = server.plans();
    // Eight iterations of 1.5 s at least.
    let started: StartedRehearsal =
        server.json("POST", &api::path::rehearsals(&scenario), &json!({"planner": "1f1b"}).to_string());
    assert_eq!((started.ranks, started.url.clone()), (4, api::path::run_page(&started.run)));
    // One at a time.
    assert_eq!(server.text("POST", &api::path::rehearsals(&scenario), "").unwrap_err().0, 503);
    until(|| server.run(&started.run).summary.points > 0);
    if cfg!(target_os = "linux") {
        assert_eq!(with_tokens(&started.run), (1, 0), "it has the token of its run alone");
    }
    server.text("DELETE", &api::path::rehearsal(&started.run), "").unwrap();
    until(|| server.run(&started.run).summary.exit_code.is_some());
    let run = server.run(&started.run).summary;
    let reason = run.end_reason.unwrap_or_default();
    assert_eq!((run.state, run.exit_code), (RunState::Ended, Some(130)));
    assert!(reason.starts_with("was ended by somebody after "), "{reason}");
    // What it did until then is kept, in its log and its trace.
    assert!(
        server.text("GET", &api::path::run_log(&started.run), "").unwrap().ends_with(&format!("rehearsal: {reason}\n"))
    );
    until(|| server.run(&started.run).summary.traces == 1);
    until(|| server.text("DELETE", &api::path::rehearsal(&started.run), "").is_err_and(|(status, _)| status == 404));
}

#[test]
fn a_plan_of_the_server_is_rehearsed_elsewhere_and_streamed_back() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let scenario = server.plans();
    let from = |more: &[&str]| {
        let arguments = [&["--server", server.origin.as_str(), "--scenario", &scenario[..12]], more].concat();
        rehearse(&arguments)
    };
    let output = from(&["--planner", "interleaved", "--iteration", "1", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["ranks"].as_array().unwrap().len(), 4);
    let list: RunList = server.json("GET", api::path::RUNS, "");
    let run = &list.runs[0];
    assert_eq!((run.state, run.points, run.traces, list.page.total), (RunState::Ended, 1, 1, 1));
    assert_eq!(
        (run.scenario.as_deref(), run.plan.map(planner::scenario::PlannerKind::id)),
        (Some(scenario.as_str()), Some("interleaved"))
    );

    for (more, expected) in [
        (&["--iteration", "8"][..], "there is no iteration 8: 8 were planned"),
        (&["--planner", "gpipe"], "planned by"),
    ] {
        let output = from(more);
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && told.contains(expected), "{told}");
    }
    let output = rehearse(&["--server", &server.origin, "--scenario", "aaaaaaaaaaaa"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("404"));
}

#[test]
fn why_a_plan_cannot_be_followed_stands_in_its_run() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let path = folder.path().join("plan.json");
    std::fs::write(&path, serde_json::to_vec(&deadlocked()).unwrap()).unwrap();
    let output = rehearse(&[path.to_str().unwrap(), "--speed", "0.02", "--patience", "2", "--to", &server.origin]);
    assert_eq!(output.status.code(), Some(1));
    let list: RunList = server.json("GET", api::path::RUNS, "");
    let run = &list.runs[0];
    assert_eq!((run.state, run.exit_code), (RunState::Crashed, Some(1)));
    let reason = run.end_reason.as_deref().unwrap();
    assert!(reason.starts_with("failed in iteration 1: ") && reason.contains("deadlock"), "{reason}");
    let log = server.text("GET", &api::path::run_log(&run.id), "").unwrap();
    // A line of the log is one line, whatever the reason is.
    assert!(log.ends_with(&server::rehearsal::remark(reason)) && reason.lines().count() > 1, "{log}");
    assert!(String::from_utf8(output.stderr).unwrap().contains(reason));
}
