//! Replays the attacks that exhausted memory against a server with a memory limit. Exceeding the
//! limit ends the process.

use std::process::Command;

use serde_json::json;

use super::bodies::{endless, expanding, packed};
use super::process::{Server, planscope, said};
use super::raw::{sends, unended, unread};

/// Memory limit of the server in MiB, including code and thread stacks. Attack finding 1 used 6
/// GiB, finding 3 used 1.6 GB per request, finding 4 used 3.3 GiB.
const LIMIT_MIB: u64 = 1536;

/// Starts a server with a memory limit. `ulimit -d` limits writable memory, not reserved address
/// space.
fn limited(folder: &std::path::Path) -> Server {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -d \"$1\"; shift; exec \"$@\"", "sh", &(LIMIT_MIB << 10).to_string()]);
    command.args([env!("CARGO_BIN_EXE_planscope"), "serve", "--address", "127.0.0.1:0", "--workers", "2"]);
    Server::run(command, folder)
}

/// Peak memory of the server in MiB.
fn peak(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the peak");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}

/// Checks that the server responds and accepts new content.
fn is_well(server: &Server, after: &str) {
    let client = server.client();
    let health = client.asks("GET", api::path::HEALTH, None, "");
    assert!(health.is_some_and(|response| response.status == 200), "after {after} the server does not answer");
    println!("after {after}: at most {} MiB so far", peak(server));
}

/// Sends the same request several times in parallel.
fn at_once(server: &Server, times: usize, method: &str, path: &str, body: &[u8]) -> Vec<u16> {
    std::thread::scope(|scope| {
        let asking: Vec<_> = (0..times).map(|_| scope.spawn(|| sends(&server.origin, method, path, body))).collect();
        asking.into_iter().map(|asking| asking.join().expect("an answer")).collect()
    })
}

#[test]
fn no_request_takes_more_memory_than_the_server_has() {
    let folder = tempfile::tempdir().unwrap();
    let server = limited(folder.path());
    let client = server.client();
    let stored = api::path::scenario(&client.stores(1, 1));
    is_well(&server, "its start");

    let endless = endless(1000);
    let text = endless.to_string();
    assert_eq!(at_once(&server, 4, "POST", &api::path::plan_preview(0), text.as_bytes()), [422; 4]);
    assert_eq!(at_once(&server, 2, "PUT", api::path::SCENARIOS, text.as_bytes()), [422; 2]);
    let sweep = json!({"schema": "sweep/1", "scenario": endless, "axes": [{"pointer": "/seed", "values": [1, 2]}]});
    let sweep = client.send("POST", api::path::SWEEPS, &sweep.to_string());
    assert_eq!(sweep.status, 201, "{sweep:?}");
    assert_eq!(client.send("POST", &api::path::sweep_start(&sweep.field("/id")), "").status, 200);
    is_well(&server, "scenarios without end");

    let body = expanding("scenario/1", 1 << 20);
    assert_eq!(at_once(&server, 8, "POST", &api::path::plan_preview(0), &body), [422; 8]);
    let body = expanding("schedule/1", 16 << 20);
    for status in at_once(&server, 4, "POST", api::path::SCHEDULES, &body) {
        assert!([422, 503].contains(&status), "{status}");
    }
    let statuses = at_once(&server, 4, "POST", &api::path::plan_preview(0), &body);
    assert_eq!(statuses, [413; 4]);
    is_well(&server, "JSON that expands");

    for (path, byte) in [(api::path::TRACES, b' '), (api::path::DATASETS, b'1'), (api::path::RUN_IMPORT, b'\n')] {
        let status = sends(&server.origin, "POST", path, &packed(byte));
        assert!((400..500).contains(&status), "{path}: {status}");
        is_well(&server, &format!("a GiB packed, {path}"));
    }

    let unread = unread(&server.origin, 300);
    is_well(&server, "300 readers that do not read");
    let unended = unended(&server.origin, 40);
    is_well(&server, "40 bodies that do not end");
    drop((unread, unended));

    assert_eq!(client.get(&stored).status, 200);
    client.stores(2, 1);
    assert!(peak(&server) < LIMIT_MIB);
    assert!(server.stop().0.success());
    let report = planscope(&["verify"], folder.path());
    assert!(report.status.success(), "{}", said(&report));
}
