//! Replays the attacks from an external security report and measures the latency for a second
//! client.
//!
//! Run `cargo bench --package planscope-server --bench attacks`. Pass `-- --seconds 20` to change
//! the duration per attack. The server uses default limits. The second client lists scenarios ten
//! times per second. For attacks limited by address, it has a different address than the attacker.
//! The program prints, for each attack, the 95th percentile latency and the server's peak memory so
//! far. It fails above 250 ms or 1.5 GiB, or if a list request gets no response.

#[path = "../tests/operations/bodies.rs"]
mod bodies;
mod program;
#[path = "../tests/operations/raw.rs"]
mod raw;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use api::path;
use bodies::{endless, expanding, packed};
use program::Server;
use raw::{sends, unended, unread};
use serde_json::json;

/// Limit for the 95th percentile latency, in ms.
const LISTS_MS: f64 = 250.0;
/// Limit for server memory in MB (1.5 GiB).
const MEMORY_MB: f64 = 1610.6;
/// Pause between two list requests.
const GLANCE: Duration = Duration::from_millis(100);
/// Maximum iterations for a pipeline of maximum size within the scenario limits.
const ITERATIONS: u32 = 10;

/// An attack: a repeated request, or a set of open connections.
struct Attack {
    name: &'static str,
    run: Run,
}

/// Attacks a server. Returns when the flag is set.
type Run = Box<dyn Fn(&Server, &AtomicBool) + Sync>;

/// Starts clients that send the same request in a loop.
fn repeated(name: &'static str, clients: usize, method: &'static str, path: String, body: Vec<u8>) -> Attack {
    let run = move |server: &Server, is_over: &AtomicBool| {
        thread::scope(|scope| {
            for _ in 0..clients {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        sends(&server.origin(), method, &path, &body);
                    }
                });
            }
        });
    };
    Attack { name, run: Box::new(run) }
}

fn wait(is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        thread::sleep(GLANCE);
    }
}

/// Opens connections and leaves them idle.
fn idle_connections<T: 'static>(name: &'static str, open: fn(&str, usize) -> Vec<T>, connections: usize) -> Attack {
    let run = move |server: &Server, is_over: &AtomicBool| {
        let opened = open(&server.origin(), connections);
        wait(is_over);
        drop(opened);
    };
    Attack { name, run: Box::new(run) }
}

/// Submits a sweep with scenarios at the limit.
fn sweep() -> Attack {
    let run = |server: &Server, is_over: &AtomicBool| {
        let values: Vec<u32> = (1..=64).collect();
        let scenario = endless(ITERATIONS);
        let sweep =
            json!({"schema": "sweep/1", "scenario": scenario, "axes": [{"pointer": "/seed", "values": values}]});
        let post = |path: &str, body: &str| {
            let request = ureq::post(format!("{}{path}", server.origin())).header("Content-Type", "application/json");
            request.send(body).and_then(|mut response| response.body_mut().read_to_string()).expect("an answer")
        };
        let stored: serde_json::Value = serde_json::from_str(&post(path::SWEEPS, &sweep.to_string())).expect("a sweep");
        let id = stored["id"].as_str().expect("an identifier").to_owned();
        post(&path::sweep_start(&id), "");
        wait(is_over);
        post(&path::sweep_cancel(&id), "");
    };
    Attack { name: "a sweep of scenarios at the limit", run: Box::new(run) }
}

fn attacks() -> Vec<Attack> {
    let preview_path = path::plan_preview(0);
    vec![
        Attack { name: "nothing", run: Box::new(|_, is_over| wait(is_over)) },
        repeated("1: scenarios without end", 4, "POST", preview_path.clone(), endless(1000).to_string().into_bytes()),
        repeated("1: what-ifs at the limit", 8, "POST", preview_path, endless(ITERATIONS).to_string().into_bytes()),
        sweep(),
        idle_connections("2: 300 readers that do not read", unread, 300),
        repeated("3: JSON that expands", 4, "POST", path::SCHEDULES.to_owned(), expanding("schedule/1", 16 << 20)),
        idle_connections("4: 60 bodies that do not end", unended, 60),
        repeated("4: a GiB packed, as a trace", 2, "POST", path::TRACES.to_owned(), packed(b' ')),
        repeated("4: a GiB packed, as a dataset", 2, "POST", path::DATASETS.to_owned(), packed(b'1')),
        repeated("4: a GiB packed, as a log", 2, "POST", path::RUN_IMPORT.to_owned(), packed(b'\n')),
    ]
}

/// Lists scenarios for the given time. Returns the latencies in ms and the failure count.
fn lists(server: &Server, time: Duration) -> (Vec<f64>, usize) {
    let url = format!("{}{}", server.origin(), path::SCENARIOS);
    let (mut took, mut failed) = (Vec::new(), 0);
    let start = Instant::now();
    while start.elapsed() < time {
        let sent_at = Instant::now();
        let body = ureq::get(&url).call().and_then(|mut response| response.body_mut().read_to_string());
        failed += usize::from(body.is_err());
        took.push(sent_at.elapsed().as_secs_f64() * 1e3);
        thread::sleep(GLANCE);
    }
    took.sort_by(f64::total_cmp);
    (took, failed)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let seconds = arguments.iter().position(|argument| argument == "--seconds");
    let seconds = seconds.and_then(|index| arguments.get(index + 1)).and_then(|value| value.parse().ok()).unwrap_or(15);
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path(), None);
    let mut is_within_limits = true;
    for attack in attacks() {
        let is_over = AtomicBool::new(false);
        let (took, failed) = thread::scope(|scope| {
            scope.spawn(|| (attack.run)(&server, &is_over));
            let measured = lists(&server, Duration::from_secs(seconds));
            is_over.store(true, Ordering::Relaxed);
            measured
        });
        let p95 = took[(took.len() * 95 / 100).min(took.len() - 1)];
        let (memory, peak) = (server.memory_mb(), server.peak_mb());
        println!(
            "{:>36}: {} lists, {failed} failed, 95 % {p95:.1} ms, most {:.1} ms; {memory:.0} MB, at most {peak:.0} MB so far",
            attack.name,
            took.len(),
            took[took.len() - 1]
        );
        is_within_limits &= failed == 0 && p95 <= LISTS_MS && peak <= MEMORY_MB;
    }
    if is_within_limits { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
