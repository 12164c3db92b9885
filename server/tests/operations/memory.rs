//! A server under a limit of memory: the findings that took all memory, replayed. One that asks for more than it may have ends.

use std::io::Write;
use std::net::TcpStream;
use std::process::Command;

use flate2::{Compress, Compression, FlushCompress};
use serde_json::json;

use super::process::{Server, planscope, said};
use super::raw::{connected, head, sends};

/// What the server may have, code and stacks of threads included. Finding 1 took 6 GiB, finding 3 1.6 GB for each request,
/// finding 4 3.3 GiB.
const LIMIT_MIB: u64 = 1536;

/// A server that the system refuses more memory. `ulimit -d` counts what can be written to, not address space that is only reserved.
fn limited(folder: &std::path::Path) -> Server {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -d \"$1\"; shift; exec \"$@\"", "sh", &(LIMIT_MIB << 10).to_string()]);
    command.args([env!("CARGO_BIN_EXE_planscope"), "serve", "--address", "127.0.0.1:0", "--workers", "2"]);
    Server::run(command, folder)
}

/// The most memory that the server had, in MiB.
fn peak(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the peak");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}

/// It lives, answers and takes new content.
fn is_well(server: &Server, after: &str) {
    let client = server.client();
    let health = client.asks("GET", api::path::HEALTH, None, "");
    assert!(health.is_some_and(|answer| answer.status == 200), "after {after} the server does not answer");
    println!("after {after}: at most {} MiB so far", peak(server));
}

/// Finding 1: 900 bytes that ask for 537 million spans.
fn endless() -> serde_json::Value {
    json!({
        "schema": "scenario/1",
        "model": {"name": "m", "modules": [{
            "name": "b", "role": "backbone", "layers": 1024, "hidden": 1024, "heads": 16, "kv_heads": 16, "ffn": 4096,
            "gated": true, "mask": "causal", "norm": "rms", "bias": "none", "dropout": false, "vocab": 32000,
            "tied_embeddings": false, "learned_positions": 0
        }]},
        "cluster": {"preset": "a100-80gb", "nodes": 128},
        "workload": {
            "samples": {
                "kind": "drawn", "text_tokens": {"kind": "uniform", "min": 100, "max": 2048},
                "images": {"kind": "constant", "value": 0}
            },
            "global_batch": 262, "context_length": 2048, "packing": "single"
        },
        "layout": {"tensor": 1, "pipeline": 1024, "microbatch": 1},
        "planners": ["1f1b"], "seed": 1, "iterations": 1000
    })
}

/// Finding 3: objects of seven bytes that take hundreds in memory.
fn expanding(schema: &str, bytes: usize) -> Vec<u8> {
    let head = format!("{{\"schema\":\"{schema}\",\"x\":[");
    let values = "{\"\":0},".repeat((bytes - head.len() - 3) / 7);
    format!("{head}{values}0]}}").into_bytes()
}

/// A gzip stream of a GiB of one byte in about a MB: a piece that ends at a byte, again and again. Its checksum is wrong,
/// which is seen at its end only.
fn packed(byte: u8) -> Vec<u8> {
    let piece = vec![byte; 16 << 20];
    let mut deflate = Compress::new(Compression::fast(), false);
    let mut block = Vec::with_capacity(1 << 20);
    deflate.compress_vec(&piece, &mut block, FlushCompress::Full).unwrap();
    assert_eq!(deflate.total_in(), piece.len() as u64);
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    for _ in 0..64 {
        file.extend_from_slice(&block);
    }
    // The last block is empty; a checksum and a length.
    file.extend_from_slice(&[3, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    file
}

/// The same request several times at once.
fn at_once(server: &Server, times: usize, method: &str, path: &str, body: &[u8]) -> Vec<u16> {
    std::thread::scope(|scope| {
        let asking: Vec<_> = (0..times).map(|_| scope.spawn(|| sends(&server.origin, method, path, body))).collect();
        asking.into_iter().map(|asking| asking.join().expect("an answer")).collect()
    })
}

/// Connections that ask for much and read nothing (finding 2).
fn unread(server: &Server, connections: usize) -> Vec<TcpStream> {
    let request = "GET /api/v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(20);
    let asking = (0..connections).map(|_| {
        let mut stream = connected(&server.origin);
        stream.write_all(request.as_bytes()).unwrap();
        stream
    });
    asking.collect()
}

/// Connections whose bodies lack their last KiB (finding 4).
fn unended(server: &Server, connections: usize) -> Vec<TcpStream> {
    const BYTES: usize = 16 << 20;
    let body = vec![b'1'; BYTES - 1024];
    let asking = (0..connections).map(|_| {
        let mut stream = connected(&server.origin);
        stream.write_all(head("POST", api::path::DATASETS, BYTES).as_bytes()).unwrap();
        // What finds no room is refused, or waits: no more is sent then.
        stream.set_write_timeout(Some(std::time::Duration::from_millis(200))).unwrap();
        drop(stream.write_all(&body));
        stream
    });
    asking.collect()
}

#[test]
fn no_request_takes_more_memory_than_the_server_has() {
    let folder = tempfile::tempdir().unwrap();
    let server = limited(folder.path());
    let client = server.client();
    let stored = api::path::scenario(&client.stores(1, 1));
    is_well(&server, "its start");

    let endless = endless();
    let text = endless.to_string();
    assert_eq!(at_once(&server, 4, "POST", &api::path::what_if(0), text.as_bytes()), [422; 4]);
    assert_eq!(at_once(&server, 2, "PUT", api::path::SCENARIOS, text.as_bytes()), [422; 2]);
    let sweep = json!({"schema": "sweep/1", "scenario": endless, "axes": [{"pointer": "/seed", "values": [1, 2]}]});
    let sweep = client.send("POST", api::path::SWEEPS, &sweep.to_string());
    assert_eq!(sweep.status, 201, "{sweep:?}");
    assert_eq!(client.send("POST", &api::path::sweep_start(&sweep.field("/id")), "").status, 200);
    is_well(&server, "scenarios without end");

    let body = expanding("scenario/1", 1 << 20);
    assert_eq!(at_once(&server, 8, "POST", &api::path::what_if(0), &body), [422; 8]);
    let body = expanding("schedule/1", 16 << 20);
    for status in at_once(&server, 4, "POST", api::path::SCHEDULES, &body) {
        assert!([422, 503].contains(&status), "{status}");
    }
    let statuses = at_once(&server, 4, "POST", &api::path::what_if(0), &body);
    assert_eq!(statuses, [413; 4]);
    is_well(&server, "JSON that expands");

    for (path, byte) in [(api::path::TRACES, b' '), (api::path::DATASETS, b'1'), (api::path::RUN_IMPORT, b'\n')] {
        let status = sends(&server.origin, "POST", path, &packed(byte));
        assert!((400..500).contains(&status), "{path}: {status}");
        is_well(&server, &format!("a GiB packed, {path}"));
    }

    let unread = unread(&server, 300);
    is_well(&server, "300 readers that do not read");
    let unended = unended(&server, 40);
    is_well(&server, "40 bodies that do not end");
    drop((unread, unended));

    assert_eq!(client.get(&stored).status, 200);
    client.stores(2, 1);
    assert!(peak(&server) < LIMIT_MIB);
    assert!(server.stop().0.success());
    let verdict = planscope(&["verify"], folder.path());
    assert!(verdict.status.success(), "{}", said(&verdict));
}
