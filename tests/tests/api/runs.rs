//! Runs: a log in pieces, the points of the whole; who may send, what is refused, what is found again.

mod access;
mod events;
mod keeping;
mod limits;
mod replays;
mod sending;

use std::collections::BTreeMap;

use api::run::{PointPage, RunDetail, RunPoint};
use axum::body::Body;
use axum::http::Request;
use harness::{Reply, TestServer};
use serde_json::{Value, json};

/// A log as Megatron-LM prints it: timers and memory follow the step, a launcher tags and colours lines, a progress bar
/// ends lines by carriage returns, two ranks tear a line, the job starts again from step 3, the last line has no end.
const LOG: &str = include_str!("runs/train.log");

/// A run that is being sent.
struct Trainer<'h> {
    server: &'h TestServer,
    run: String,
    token: String,
}

impl<'h> Trainer<'h> {
    /// A run of its own.
    async fn starts(server: &'h TestServer) -> Self {
        let reply = server.post(api::path::RUNS, json!({"name": "a job"}).to_string()).await;
        assert_eq!(reply.status, 201, "{reply:?}");
        let created: Value = reply.json();
        let text = |name: &str| created[name].as_str().expect("a text").to_owned();
        Self { server, run: text("run"), token: text("ingest_token") }
    }

    /// Sends bytes to a place of the log.
    async fn sends_to(&self, query: &str, bytes: impl Into<Body>) -> Reply {
        self.asks("PATCH", &format!("{}{query}", api::path::run_log(&self.run)), bytes).await
    }

    /// Sends bytes, which must be taken, and says how many are stored then.
    async fn sends(&self, offset: usize, bytes: &str) -> u64 {
        let reply = self.sends_to(&format!("?offset={offset}"), bytes.to_owned()).await;
        assert_eq!(reply.status, 204, "{reply:?}");
        reply.header(api::run::UPLOAD_OFFSET).parse().expect("a number")
    }

    /// A request with the token.
    async fn asks(&self, method: &str, path: &str, body: impl Into<Body>) -> Reply {
        let request =
            Request::builder().method(method).uri(path).header("authorization", format!("Bearer {}", self.token));
        self.server.send(request.body(body.into()).expect("a request")).await
    }

    async fn finishes(&self, exit_code: i32) {
        let body = json!({"exit_code": exit_code}).to_string();
        let reply = self.asks("POST", &api::path::run_finish(&self.run), body).await;
        assert_eq!(reply.status, 204, "{reply:?}");
    }

    async fn page(&self, after: u64, limit: u32) -> PointPage {
        self.server.get(&api::path::run_points(&self.run, after, limit)).await.json()
    }

    /// All points, by small pages.
    async fn points(&self) -> Vec<RunPoint> {
        let mut points = Vec::new();
        let mut after = 0;
        loop {
            let page = self.page(after, 2).await;
            points.extend(page.points);
            match page.next {
                Some(next) => after = next,
                None => return points,
            }
        }
    }

    async fn detail(&self) -> RunDetail {
        self.server.get(&api::path::run(&self.run)).await.json()
    }
}

/// The points of a log that comes in one piece.
async fn upload_log(log: &str) -> (Vec<RunPoint>, RunDetail) {
    let server = TestServer::open().await;
    let trainer = Trainer::starts(&server).await;
    trainer.sends(0, log).await;
    trainer.finishes(0).await;
    (trainer.points().await, trainer.detail().await)
}

#[tokio::test]
async fn a_job_is_watched_from_its_first_step_to_its_end() {
    let server = TestServer::open().await;
    let trainer = Trainer::starts(&server).await;
    let state = async || trainer.detail().await.summary.state.id();
    assert_eq!(state().await, "waiting");
    let end = trainer.asks("HEAD", &api::path::run_log(&trainer.run), "").await;
    assert_eq!((end.status, end.header("upload-offset"), end.header("upload-file")), (200, "0", "0"));

    trainer.sends(0, &LOG[..600]).await;
    assert_eq!(state().await, "live");
    trainer.sends(600, &LOG[600..]).await;
    trainer.finishes(0).await;

    let detail = trainer.detail().await;
    let summary = &detail.summary;
    assert_eq!((summary.state.id(), summary.exit_code, summary.bytes), ("ended", Some(0), LOG.len() as u64));
    assert_eq!((summary.last_step, summary.total_steps), (Some(5), Some(100)));
    // In order 2.0, 2.0, 2.1, 2.2, 2.5 and 9.0 s.
    assert_eq!((summary.points, summary.median_step_s), (6, Some(f64::midpoint(2.1, 2.2))));
    assert_eq!(detail.report.formats, ["Megatron-LM log"]);
    assert!(detail.report.skipped >= 1 && detail.report.first_problem.is_some(), "{:?}", detail.report);

    let points = trainer.points().await;
    let steps: Vec<(u64, u32, u64)> = points.iter().map(|point| (point.row, point.segment, point.step)).collect();
    // The restart from step 3 is another part of the run; both are there.
    assert_eq!(steps, [(1, 0, 1), (2, 0, 2), (3, 0, 3), (4, 0, 4), (5, 1, 3), (6, 1, 5)]);
    let first = &points[0];
    assert_eq!((first.step_s, first.loss, first.global_batch), (Some(2.0), Some(10.5), Some(256)));
    // 256 samples in 2 s; the largest of 30.5 and 61.25 GiB; 250 and 500 ms.
    assert_eq!((first.samples_per_s, first.memory_gib), (Some(128.0), Some(61.25)));
    let phases: BTreeMap<&str, f64> = first.phases.iter().map(|phase| (phase.name.as_str(), phase.time_s)).collect();
    assert_eq!(phases, BTreeMap::from([("backward-compute", 0.5), ("forward-compute", 0.25)]));
    assert_eq!((points[1].loss, &points[1].not_finite[..]), (None, &["lm loss".to_owned()][..]));
    // The last line has no end but that of the run.
    assert_eq!(points[5].step_s, Some(9.0));

    // As they came.
    let bytes = server.get(&api::path::run_log(&trainer.run)).await;
    assert_eq!((bytes.text(), bytes.header("content-type")), (LOG, "application/octet-stream"));
    assert!(bytes.header("content-disposition").starts_with("attachment"));
    let tail = server.get(&format!("{}?offset={}", api::path::run_log(&trainer.run), LOG.len() - 9)).await;
    assert_eq!(tail.text(), &LOG[LOG.len() - 9..]);
}
