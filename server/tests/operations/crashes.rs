//! Kills servers under load and checks that no acknowledged data is lost.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use super::process::{Client, Server, lengths, planscope, said, scenario, step};

/// Rounds per database. All data is checked after each round, so a new database limits the test
/// time.
const ROUNDS_PER_DATABASE: u32 = 10;

/// Data acknowledged by the server.
#[derive(Default)]
struct Acknowledged {
    /// Paths of stored items.
    paths: Vec<String>,
    /// The log of a run: identifier, token, sent text and stored length.
    log: Option<Log>,
    steps: u32,
}

struct Log {
    run: String,
    token: String,
    sent: String,
    stored: usize,
}

/// Stores scenarios in a loop.
fn scenarios(client: &Client, seeds: &AtomicU32, stop: &AtomicBool) -> Vec<String> {
    let mut paths = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let body = scenario(seeds.fetch_add(1, Ordering::Relaxed), 1);
        let Some(response) = client.asks("PUT", api::path::SCENARIOS, None, &body) else { break };
        assert_eq!(response.status, 201, "{response:?}");
        let id = response.field("/id");
        // Drafts can be evicted, saved scenarios cannot.
        let Some(saved) = client.asks("POST", &api::path::keep(&id), None, "") else { break };
        assert_eq!(saved.status, 200, "{saved:?}");
        paths.push(api::path::scenario(&id));
    }
    paths
}

/// Stores datasets in a loop.
fn datasets(client: &Client, numbers: &AtomicU32, stop: &AtomicBool) -> Vec<String> {
    let mut paths = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let file = lengths(numbers.fetch_add(1, Ordering::Relaxed), 500);
        let Some(response) = client.asks("POST", api::path::DATASETS, None, &file) else { break };
        assert_eq!(response.status, 201, "{response:?}");
        paths.push(api::path::dataset(&response.field("/dataset/id")));
    }
    paths
}

/// Sends a log in a loop, two steps per request, from the stored length.
fn trains(client: &Client, log: &mut Log, steps: &mut u32, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        log.sent += &step(*steps);
        log.sent += &step(*steps + 1);
        *steps += 2;
        let path = format!("{}?offset={}", api::path::run_log(&log.run), log.stored);
        let Some(response) = client.asks("PATCH", &path, Some(&log.token), &log.sent[log.stored..]) else { break };
        assert_eq!(response.status, 204, "{response:?}");
        log.stored = usize::try_from(response.offset.expect("the end of the log")).unwrap();
        assert_eq!(log.stored, log.sent.len());
    }
}

/// Checks that all acknowledged data exists, and updates the stored log length.
fn is_there(client: &Client, acknowledged: &mut Acknowledged) {
    for path in &acknowledged.paths {
        assert_eq!(client.get(path).status, 200, "{path}");
    }
    if let Some(log) = &mut acknowledged.log {
        let bytes = client.get(&api::path::run_log(&log.run)).text;
        assert!(bytes.len() >= log.stored, "{} of {} bytes of the log are there", bytes.len(), log.stored);
        assert!(log.sent.starts_with(&bytes), "the log is another one");
        // Data may be stored even if the acknowledgement was lost.
        log.stored = bytes.len();
    }
}

/// Runs a server under load for `life`, then kills it.
fn round(folder: &Path, acknowledged: &mut Acknowledged, numbers: &AtomicU32, life: Duration) {
    let server = Server::start(folder, &[]);
    let client = server.client();
    is_there(&client, acknowledged);
    let Acknowledged { paths, log, steps } = acknowledged;
    let log = log.get_or_insert_with(|| {
        let opened = client.send("POST", api::path::RUNS, "{}");
        Log { run: opened.field("/run"), token: opened.field("/ingest_token"), sent: String::new(), stored: 0 }
    });
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let asking = [
            scope.spawn(|| scenarios(&client, numbers, &stop)),
            scope.spawn(|| scenarios(&client, numbers, &stop)),
            scope.spawn(|| datasets(&client, numbers, &stop)),
        ];
        let training = scope.spawn(|| trains(&client, log, steps, &stop));
        std::thread::sleep(life);
        server.kill();
        stop.store(true, Ordering::Relaxed);
        for asking in asking {
            paths.extend(asking.join().expect("a writer that only meets broken connections"));
        }
        training.join().expect("a trainer that only meets broken connections");
    });
    let report = planscope(&["verify"], folder);
    assert!(report.status.success(), "{}", said(&report));
}

/// `PLANSCOPE_CRASHES=200` sets the number of rounds.
#[test]
fn nothing_acknowledged_is_lost_when_servers_are_killed_under_load() {
    let rounds: u32 =
        std::env::var("PLANSCOPE_CRASHES").ok().map_or(8, |rounds| rounds.parse().expect("a number of rounds"));
    let numbers = AtomicU32::new(0);
    let (mut folder, mut acknowledged) = (tempfile::tempdir().unwrap(), Acknowledged::default());
    let (mut things, mut bytes) = (0, 0);
    for number in 0..rounds {
        // From before the first response to slightly more than a second, evenly distributed in
        // pseudo-random order.
        let life = Duration::from_millis(5 + u64::from(number * 389 % 1009));
        round(folder.path(), &mut acknowledged, &numbers, life);
        if (number + 1) % ROUNDS_PER_DATABASE == 0 || number + 1 == rounds {
            let server = Server::start(folder.path(), &[]);
            is_there(&server.client(), &mut acknowledged);
            things += acknowledged.paths.len();
            bytes += acknowledged.log.as_ref().map_or(0, |log| log.stored);
            drop(server);
            folder = tempfile::tempdir().unwrap();
            acknowledged = Acknowledged::default();
        }
    }
    assert!(things > 0 && bytes > 0, "the servers were killed before anything happened");
    println!(
        "{rounds} servers killed: {things} scenarios and datasets and {bytes} bytes of logs were acknowledged, and are there"
    );
}
