//! Stops servers during work and checks the recovery after a restart.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::process::{Client, Server, until};

fn plans(client: &Client, scenario: &str) -> String {
    let response = client.send("POST", &api::path::plan(scenario), "");
    assert_eq!(response.status, 202, "{response:?}");
    response.field("/id")
}

/// Number of batches per scenario. Large enough that a worker needs more time for six scenarios
/// than a busy machine needs for a request.
const ITERATIONS: u32 = 400;

/// Queues scenarios on a server with a single worker, so all but the first wait.
fn queue_scenarios(client: &Client, first_seed: u32) -> (Vec<String>, Vec<String>) {
    let scenarios: Vec<String> = (first_seed..first_seed + 6).map(|seed| client.stores(seed, ITERATIONS)).collect();
    let jobs = scenarios.iter().map(|scenario| plans(client, scenario)).collect();
    (scenarios, jobs)
}

fn is_answered(client: &Client, scenario: &str) -> bool {
    client.get(&api::path::outcome(scenario)).status == 200
}

#[test]
fn next_server_plans_jobs_from_a_killed_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--workers", "1"]);
    let (scenarios, jobs) = queue_scenarios(&server.client(), 0);
    server.kill();

    let server = Server::start(folder.path(), &["--workers", "1"]);
    let client = server.client();
    // The identifier is the same, so clients can still follow the job.
    let last = client.get(&api::path::job(jobs.last().unwrap()));
    assert!(last.status == 200 && ["queued", "running", "done"].contains(&&*last.field("/state/state")), "{last:?}");
    until(|| scenarios.iter().all(|scenario| is_answered(&client, scenario)));
    until(|| client.get(&api::path::job(jobs.last().unwrap())).field("/state/state") == "done");
    assert!(server.stop().0.success());

    // Finished jobs are not planned again.
    let server = Server::start(folder.path(), &[]);
    assert_eq!(server.client().get(&api::path::job(jobs.last().unwrap())).status, 404);
}

#[test]
fn a_cancelled_job_is_not_taken_up() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--workers", "1"]);
    let client = server.client();
    let mut seeds = (0..).step_by(6);
    let (scenarios, jobs) = loop {
        let (scenarios, jobs) = queue_scenarios(&client, seeds.next().unwrap());
        let cancelled = client.send("DELETE", &api::path::job(&jobs[5]), "");
        assert_eq!(cancelled.status, 200, "{cancelled:?}");
        // On a busy machine, the job may already have started. Retry with other scenarios.
        if cancelled.field("/state/state") == "cancelled" {
            break (scenarios, jobs);
        }
    };
    server.kill();
    let server = Server::start(folder.path(), &["--workers", "1"]);
    let client = server.client();
    assert_eq!(client.get(&api::path::job(&jobs[5])).status, 404);
    until(|| scenarios[..5].iter().all(|scenario| is_answered(&client, scenario)));
    assert!(!is_answered(&client, &scenarios[5]));
}

/// Opens an event stream and reads the head and the first event.
fn stream(server: &Server, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.origin.strip_prefix("http://").unwrap()).unwrap();
    stream.set_read_timeout(Some(super::process::PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n").unwrap();
    let mut head = Vec::new();
    while !head.windows(6).any(|bytes| bytes == b"data: ") {
        let mut byte = [0];
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&head));
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&head));
    stream
}

#[test]
fn server_with_open_streams_and_jobs_stops_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--workers", "1"]);
    let client = server.client();
    let (scenarios, jobs) = queue_scenarios(&client, 0);
    let run = client.send("POST", api::path::RUNS, "{}").field("/run");
    let mut streams: Vec<TcpStream> = (0..20).map(|_| stream(&server, &api::path::run_events(&run))).collect();
    streams.push(stream(&server, &api::path::job_events(jobs.last().unwrap())));
    let (status, took) = server.stop();
    assert_eq!(status.code(), Some(0));
    // The server closes streams in an orderly way. Aborting them requires ten seconds, and without
    // either they last as long as the job.
    assert!(took < Duration::from_secs(9), "{took:?}");
    for mut stream in streams {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        // The shutdown does not cancel the job.
        assert!(!String::from_utf8_lossy(&rest).contains("cancelled"), "{}", String::from_utf8_lossy(&rest));
    }

    let server = Server::start(folder.path(), &[]);
    let client = server.client();
    until(|| scenarios.iter().all(|scenario| is_answered(&client, scenario)));
}
