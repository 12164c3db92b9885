//! Traces that are broken, hostile or odd.

use std::io::Write;

use api::trace::{TraceReport, UploadedTrace};
use flate2::Compression;
use flate2::write::GzEncoder;
use harness::{Settings, TestServer};
use serde_json::{Value, json};

use super::{event, list, uploaded, view};

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

#[tokio::test]
async fn invalid_traces_are_rejected_and_not_stored() {
    let server = TestServer::open().await;
    let nested = packed(&packed(b"[]"));
    let deep = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
    for (body, status, expected) in [
        (&b""[..], 422, "file is empty"),
        (b"\x89PNG\r\n\x1a\nxxxx", 415, "a PNG image"),
        (b"PK\x03\x04../../x", 415, "a zip archive"),
        (&nested, 415, "gzip archive inside another"),
        (&deep, 422, ""),
        (b"{\"other\": 1}", 422, "traceEvents"),
        (b"{\"traceEvents\": 7}", 422, "traceEvents"),
        (b"{\"traceEvents\": []}", 422, "no event"),
        (b"[{\"ph\":\"X\",\"ts\":1e30,\"dur\":1,\"pid\":0,\"tid\":0}]", 422, "no event"),
        (b"\xff\xfe[\x00", 415, "UTF-16"),
        (b"\x80\x04pickle", 415, "pickle"),
        // A Chakra file whose first length takes eleven bytes.
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 0, ""),
    ] {
        let reply = server.post(api::path::TRACES, body.to_vec()).await;
        let problem = reply.problem();
        assert!(
            if status == 0 { matches!(problem.status, 415 | 422) } else { problem.status == status },
            "{problem:?}"
        );
        assert!(problem.detail.contains(expected), "{expected}: {problem:?}");
    }
    assert!(list(&server, "").await.traces.is_empty());
    for query in ["?unit=s", "?planner=nobody", "?rank=-1", "?scenario=short"] {
        let reply = server.post(&format!("{}{query}", api::path::TRACES), "[]").await;
        assert!(matches!(reply.problem().status, 400 | 404), "{query}");
    }
}

#[tokio::test]
async fn uploads_have_a_size() {
    let server = TestServer::with(Settings {
        trace_limits: |limits| {
            limits.upload_mib = 1;
            limits.reading.bytes = 8 << 20;
        },
        ..Settings::default()
    })
    .await;
    // 32 MiB of blanks behind a bracket are 32 kB packed.
    let bomb = packed(&[&b"["[..], &vec![b' '; 32 << 20]].concat());
    assert!(bomb.len() < 1 << 16);
    let reply = server.post(api::path::TRACES, bomb).await;
    assert_eq!(reply.problem().status, 413);
    let reply = server.post(api::path::TRACES, vec![b' '; (1 << 20) + 1]).await;
    assert_eq!(reply.problem().status, 413);
    assert!(reply.problem().detail.contains("1 MiB"), "{reply:?}");
    assert_eq!(list(&server, "").await.largest_upload_mib, 1);
}

async fn report(server: &TestServer, body: impl Into<axum::body::Body>) -> (String, TraceReport) {
    let reply = server.post(api::path::TRACES, body).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    let UploadedTrace { trace, report } = reply.json();
    (trace.id, report)
}

#[tokio::test]
async fn a_file_that_breaks_off_is_read_as_far_as_it_goes() {
    let server = TestServer::open().await;
    let events: Vec<Value> =
        (0..500).map(|at| event(&format!("op{at}"), &json!(0), &json!(0), f64::from(at), 0.5)).collect();
    let complete = json!({"traceEvents": events}).to_string();
    let stream = packed(complete.as_bytes());
    let (id, read) = report(&server, stream[..stream.len() * 2 / 3].to_vec()).await;
    assert!(read.cut && read.used > 0 && read.used < 500, "{read:?}");
    assert_eq!(view(&server, &id, "").await.count.iter().map(|&count| u64::from(count)).sum::<u64>(), read.used);
    // Without the last bracket, with a comma too many, behind a byte order mark: everything is there.
    let array = json!(events).to_string();
    for text in
        [array[..array.len() - 1].to_owned(), format!("{},]", &array[..array.len() - 1]), format!("\u{feff}{array}")]
    {
        assert_eq!(report(&server, text).await.1.used, 500);
    }
}

#[tokio::test]
async fn odd_events_are_repaired_or_counted() {
    let server = TestServer::open().await;
    let good = r#"{"ph":"X","name":"ok","pid":0,"tid":0,"ts":"1712195495519689.012","dur":1}"#;
    for (odd, used, repaired, skipped) in [
        // A raw control character, a lone surrogate.
        ("{\"ph\":\"X\",\"name\":\"a\u{1}b\",\"pid\":0,\"tid\":0,\"ts\":1712195495519690,\"dur\":1}", 2, 1, 0),
        (r#"{"ph":"X","name":"\ud800","pid":0,"tid":0,"ts":1712195495519690,"dur":1}"#, 2, 1, 0),
        // Times that are none.
        (r#"{"ph":"X","name":"n","pid":0,"tid":0,"ts":null,"dur":1}"#, 1, 0, 1),
        (r#"{"ph":"X","name":"n","pid":0,"tid":0,"ts":-5,"dur":1}"#, 1, 0, 1),
        (r#"{"ph":"X","name":"n","pid":0,"tid":0,"ts":1712195495519690,"dur":-1}"#, 2, 1, 0),
        (r#"{"ph":"E","name":"n","pid":0,"tid":0,"ts":1712195495519690}"#, 1, 0, 1),
        (r#"{"ph":"B","name":"n","pid":0,"tid":0,"ts":1712195495519689}"#, 2, 1, 0),
    ] {
        let (_, read) = report(&server, format!("[{good},{odd}]")).await;
        assert_eq!((read.used, read.repaired, read.skipped), (used, repaired, skipped), "{odd}: {read:?}");
    }
    // Decimal times to the nanosecond.
    let body = format!("[{good},{}]", good.replace("689.012", "690.013"));
    let id = uploaded(&server, "", body).await;
    assert_eq!(view(&server, &id, "pixels=8000").await.start_ns, [0, 1001]);
}

#[tokio::test]
async fn every_process_and_thread_has_its_rows() {
    let server = TestServer::open().await;
    let pids = [json!(0), json!("0"), json!({"a": 1}), json!(-1), json!(u64::MAX)];
    let events: Vec<Value> = pids.iter().map(|pid| event("x", pid, &json!(0), 0.0, 1.0)).collect();
    let (id, _) = report(&server, json!(events).to_string()).await;
    let visible = view(&server, &id, "").await;
    assert_eq!(visible.count, [1; 5]);
    assert_eq!(visible.lanes, [0, 1, 2, 3, 4]);
    // Overlapping without nesting, and twice the same: a further lane, nothing dropped.
    let overlapping = json!([
        event("a", &json!(0), &json!(0), 0.0, 10.0),
        event("b", &json!(0), &json!(0), 5.0, 10.0),
        event("b", &json!(0), &json!(0), 5.0, 10.0)
    ]);
    let (id, read) = report(&server, overlapping.to_string()).await;
    assert!(read.overflowed >= 1);
    assert_eq!(view(&server, &id, "pixels=8000").await.count.iter().sum::<u32>(), 3);
}

#[tokio::test]
async fn names_are_text() {
    let server = TestServer::open().await;
    let evil = "<img src=x onerror=alert(1)>";
    let file = "..%2F..%2Fetc%2F%3C%2Fscript%3E%3Cscript%3E%E2%80%AE.json";
    let body = json!([event(evil, &json!(0), &json!(0), 0.0, 1.0)]).to_string();
    let id = uploaded(&server, &format!("?name={file}"), body).await;
    assert_eq!(view(&server, &id, "").await.names, [evil]);
    let reply = server.get_as(&format!("{}/view", api::path::trace(&id)), "application/json").await;
    assert_eq!(reply.header("content-type"), "application/json");
    assert_eq!(list(&server, "").await.traces[0].name, "script><script>.json");
    assert_eq!(reply.header("x-content-type-options"), "nosniff");
}

#[tokio::test]
async fn invalid_queries_are_reported() {
    let server = TestServer::open().await;
    let id = uploaded(&server, "", json!([event("a", &json!(0), &json!(0), 0.0, 1.0)]).to_string()).await;
    let at = api::path::trace(&id);
    for query in [
        "view?from_ns=5&to_ns=5",
        "view?pixels=0",
        "view?pixels=9000",
        "view?lanes=a",
        "view?lanes=3-1",
        "view?from_ns=-1",
        "slice?lane=0",
        "search?text=",
        "search",
        "counters?points=1",
        "timeline?speed=0",
        "timeline?speed=nan",
    ] {
        assert_eq!(server.get(&format!("{at}/{query}")).await.problem().status, 400, "{query}");
    }
    for query in ["actions", "timeline"] {
        assert_eq!(server.get(&format!("{at}/{query}")).await.problem().status, 422, "{query}");
    }
    assert_eq!(server.get(&format!("{at}/alignment")).await.problem().status, 409);
    for body in ["{", r#"{"names": 1}"#, r#"{"planner": "nobody"}"#] {
        assert_eq!(server.request("PATCH", &at, body).await.problem().status, 400, "{body}");
    }
    let unknown = "a".repeat(52);
    for path in ["", "/view", "/busy", "/actions", "/search?text=a"] {
        assert_eq!(server.get(&format!("{}{path}", api::path::trace(&unknown))).await.problem().status, 404, "{path}");
    }
    assert_eq!(server.post(&api::path::trace_restore(&unknown), "").await.problem().status, 404);
}
