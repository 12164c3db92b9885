//! Lists, names, files: what is kept of runs, how it goes and comes back.

use std::io::Write;
use std::time::Duration;

use api::run::{RunDetail, RunList, RunOrigin};
use harness::{Settings, TestServer, test_server};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use server::store::{RunRow, StoreError};

use super::{LOG, Trainer, upload_log};

async fn list(server: &TestServer, query: &str) -> RunList {
    server.get(&format!("{}{query}", api::path::RUNS)).await.json()
}

async fn change(server: &TestServer, run: &str, change: Value) -> harness::Reply {
    server.request("PATCH", &api::path::run(run), change.to_string()).await
}

#[tokio::test]
async fn runs_are_found_by_text_tag_state_and_page() {
    let server = TestServer::open().await;
    let mut runs = Vec::new();
    for name in ["alpha 100%", "beta", "gamma"] {
        let created: Value = server.post(api::path::RUNS, json!({"name": name}).to_string()).await.json();
        assert_eq!(created["url"], api::path::run_page(created["run"].as_str().unwrap()));
        runs.push(created["run"].as_str().unwrap().to_owned());
        server.clock.advance(Duration::from_secs(1));
    }
    let changed = change(&server, &runs[1], json!({"note": " slow node ", "tags": ["night", "a_b", "night"]})).await;
    let changed: RunDetail = changed.json();
    assert_eq!(
        (changed.summary.note.as_deref(), &changed.summary.tags[..]),
        (Some("slow node"), &["a_b".to_owned(), "night".to_owned()][..])
    );

    let names = async |query: &str| -> Vec<String> {
        list(&server, query).await.runs.into_iter().map(|run| run.name).collect()
    };
    assert_eq!(names("").await, ["gamma", "beta", "alpha 100%"]);
    assert_eq!(names("?search=A%20100%25").await, ["alpha 100%"]);
    // Signs of patterns are letters like any other.
    assert_eq!(names("?search=%25").await, ["alpha 100%"]);
    assert_eq!(names("?search=a_b").await, ["beta"]);
    assert_eq!(names("?search=slow").await, ["beta"]);
    assert_eq!((names("?tag=night").await, names("?tag=nigh").await.len()), (vec!["beta".to_owned()], 0));
    assert_eq!((names("?state=waiting").await.len(), names("?state=live&origin=live").await.len()), (3, 0));
    assert_eq!(server.get("/api/v1/runs?state=asleep").await.problem().status, 400);
    let first = list(&server, "?limit=2").await;
    assert_eq!(
        (first.page.total, first.runs.len(), &first.page.tags[..]),
        (3, 2, &["a_b".to_owned(), "night".to_owned()][..])
    );
    let rest = list(&server, &format!("?limit=2&after={}", first.page.next.unwrap())).await;
    assert_eq!((rest.runs[0].name.as_str(), rest.page.next, rest.page.total), ("alpha 100%", None, 3));

    let wrong = change(&server, &runs[0], json!({"name": "\u{200b}", "tags": ["ok", ""]})).await;
    assert_eq!((wrong.status, wrong.pointers()), (422, vec!["/name".to_owned(), "/tags/1".to_owned()]));
    assert_eq!(change(&server, &runs[0], json!({"colour": 1})).await.problem().status, 400);
    assert_eq!(change(&server, "unknown", json!({})).await.problem().status, 404);
    let cleared: RunDetail = change(&server, &runs[1], json!({"note": "", "tags": []})).await.json();
    assert_eq!((cleared.summary.note, cleared.summary.tags.len()), (None, 0));
}

#[tokio::test]
async fn attached_scenario_must_exist() {
    let server = TestServer::open().await;
    let scenario = server.store(&test_server::scenario()).await;
    let open = async |body: Value| server.post(api::path::RUNS, body.to_string()).await;
    for (body, pointer) in [
        (json!({"scenario": "aaaaaaaaaaaa"}), "/scenario"),
        (json!({"scenario": "x"}), "/scenario"),
        (json!({"plan": "1f1b"}), "/plan"),
        (json!({"scenario": scenario, "plan": "gpipe"}), "/plan"),
    ] {
        let reply = open(body.clone()).await;
        // A planner that there is not at all is no planner of any scenario.
        assert!(reply.status == 422 && reply.pointers() == [pointer] || reply.status == 400, "{body} {reply:?}");
    }
    let created: Value = open(json!({"scenario": scenario[..12], "plan": "interleaved"})).await.json();
    let run = created["run"].as_str().unwrap();
    let detail: RunDetail = server.get(&api::path::run(run)).await.json();
    assert_eq!(
        (detail.summary.scenario.as_deref(), detail.summary.name.as_str()),
        (Some(scenario.as_str()), "Run of 2026-01-01 00:00")
    );
    assert_eq!(json!(detail.summary.plan), json!("interleaved"));
    assert_eq!(list(&server, &format!("?scenario={}", &scenario[..10])).await.page.total, 1);

    let other: RunDetail = change(&server, run, json!({"plan": "1f1b"})).await.json();
    assert_eq!((json!(other.summary.plan), other.summary.scenario.is_some()), (json!("1f1b"), true));
    // A scenario without a planner is held by its fastest, and a planner that another scenario does not have goes.
    let fastest: RunDetail = change(&server, run, json!({"scenario": scenario})).await.json();
    assert_eq!((fastest.summary.scenario.as_ref(), fastest.summary.plan), (Some(&scenario), None));
    change(&server, run, json!({"plan": "interleaved"})).await;
    let mut gpipe = test_server::scenario();
    gpipe["planners"] = json!(["gpipe"]);
    let gpipe = server.store(&gpipe).await;
    let moved: RunDetail = change(&server, run, json!({"scenario": gpipe, "name": "moved"})).await.json();
    assert_eq!((moved.summary.scenario, moved.summary.plan), (Some(gpipe), None));
    let renamed: RunDetail = change(&server, run, json!({"plan": "gpipe"})).await.json();
    let renamed_again: RunDetail = change(&server, run, json!({"name": "b"})).await.json();
    assert_eq!((json!(renamed.summary.plan), renamed_again.summary.plan), (json!("gpipe"), renamed.summary.plan));
    let detached: RunDetail = change(&server, run, json!({"scenario": ""})).await.json();
    assert_eq!((detached.summary.scenario, detached.summary.plan), (None, None));
    assert_eq!(change(&server, run, json!({"plan": "1f1b"})).await.pointers(), ["/plan"]);
}

#[tokio::test]
async fn a_deleted_run_comes_back_until_its_days_are_over() {
    let server = TestServer::open().await;
    let (retained, gone) = (Trainer::starts(&server).await, Trainer::starts(&server).await);
    for trainer in [&retained, &gone] {
        trainer.sends(0, LOG).await;
        trainer.finishes(0).await;
        assert_eq!(server.delete(&api::path::run(&trainer.run)).await.status, 204);
        let problem = server.get(&api::path::run(&trainer.run)).await.problem();
        assert_eq!((problem.status, problem.kind.as_str()), (410, "/problems/deleted"));
    }
    assert_eq!(server.delete(&api::path::run(&retained.run)).await.status, 410);
    assert_eq!(retained.sends_to("?offset=0", LOG).await.status, 410);
    let listed = list(&server, "").await;
    assert_eq!(
        (listed.page.total, listed.page.stored_bytes, listed.page.retention_days),
        (0, 2 * LOG.len() as u64, 30)
    );

    let restored: RunDetail = server.post(&api::path::run_restore(&retained.run), "").await.json();
    assert_eq!(restored.summary.bytes, LOG.len() as u64);
    assert_eq!(retained.points().await, upload_log(LOG).await.0);
    // Again is no harm.
    assert_eq!(server.post(&api::path::run_restore(&retained.run), "").await.status, 200);

    server.clock.advance(Duration::from_hours(24 * 30));
    let forget = async || {
        let before = server.app.live.limits().deleted_before(server.app.clock.now());
        server.store.writer().forget_runs(before).await.unwrap()
    };
    assert_eq!(forget().await, 0);
    server.clock.advance(Duration::from_secs(1));
    assert_eq!(forget().await, 1);
    assert_eq!(forget().await, 0);
    for reply in
        [server.post(&api::path::run_restore(&gone.run), "").await, server.get(&api::path::run(&gone.run)).await]
    {
        assert_eq!(reply.problem().status, 410);
    }
    let listed = list(&server, "").await;
    assert_eq!((listed.page.total, listed.page.stored_bytes), (1, LOG.len() as u64));
    assert_eq!(retained.points().await.len(), 6);
}

/// Whoever brings a run back while it is being forgotten gets all of it, or hears that it is gone.
#[tokio::test]
async fn run_is_restored_completely_or_not_at_all() {
    let server = TestServer::open().await;
    let trainer = Trainer::starts(&server).await;
    trainer.sends(0, LOG).await;
    trainer.finishes(0).await;
    assert_eq!(server.delete(&api::path::run(&trainer.run)).await.status, 204);
    server.clock.advance(Duration::from_secs(1));
    let now = server.app.clock.now();
    // Writers are served in the order of their coming, so that this one comes behind the first step of forgetting.
    let first = server.store.writer().begin().await.unwrap();
    let (writer, run) = (server.store.writer().clone(), trainer.run.clone());
    let forgetting = tokio::spawn(async move { writer.forget_runs(now).await });
    tokio::task::yield_now().await;
    let writer = server.store.writer().clone();
    let restoring = tokio::spawn(async move { writer.restore_run(&run).await });
    tokio::task::yield_now().await;
    first.commit().await.unwrap();
    forgetting.await.unwrap().unwrap();
    match restoring.await.unwrap() {
        Ok(()) => {
            assert_eq!(server.get(&api::path::run_log(&trainer.run)).await.text(), LOG);
            assert_eq!(trainer.points().await.len(), 6);
        }
        Err(error) => assert!(matches!(error, StoreError::Gone { can_return: false, .. }), "{error}"),
    }
}

fn imported(id: &str, origin: RunOrigin) -> RunRow {
    let name = "a run".to_owned();
    RunRow {
        id: id.to_owned(),
        name,
        origin,
        scenario: None,
        planner: None,
        token: [0; 32],
        key: None,
        log_table: None,
    }
}

#[tokio::test]
async fn half_an_import_is_no_run() {
    let server = TestServer::open().await;
    let ready: Value = server.get(api::path::READY).await.json();
    let quota = ready["used_bytes"].as_u64().unwrap() + (5 << 20);
    let server = server.restarted(Settings { quota: Some(quota), ..Settings::default() }).await;
    // Its first bytes are stored, not all of them.
    let log = format!("{LOG}\n{}", "nothing that is a step\n".repeat(300_000));
    assert_eq!(server.post(api::path::RUN_IMPORT, log).await.problem().kind, "/problems/quota-reached");
    assert_eq!(list(&server, "?deleted=true").await.page.total, 0);
    // Not even the moment of a slip is waited for.
    assert_eq!(server.store.writer().forget_runs(Timestamp::from_second(1).unwrap()).await.unwrap(), 1);
}

#[tokio::test]
async fn active_import_is_retained_and_interrupted_import_is_deleted() {
    let server = TestServer::open().await;
    let (now, run) = (server.app.clock.now(), imported("an-imported-run1", RunOrigin::Imported));
    let later = now + SignedDuration::from_hours(1);
    server.store.writer().open_run(&run, Some(now), now).await.unwrap();
    assert_eq!(server.store.writer().forget_runs(later).await.unwrap(), 0);
    assert_eq!(server.post(&api::path::run_restore(&run.id), "").await.problem().deleted.unwrap().restore, None);
    let server = server.restarted(Settings::default()).await;
    server::resumption::end_interrupted(&server.app).await.unwrap();
    assert_eq!(server.store.writer().forget_runs(later).await.unwrap(), 1);
}

/// The server that looked after it is gone, whether it stopped or died.
#[tokio::test]
async fn a_rehearsal_ends_with_its_server() {
    let server = TestServer::open().await;
    let run = imported("a-rehearsal-run1", RunOrigin::Rehearsal);
    server.store.writer().open_run(&run, None, server.app.clock.now()).await.unwrap();
    let log = axum::body::Bytes::from_static(LOG.as_bytes());
    server.app.live.append(&run.id, None, 0, &log).await.unwrap();
    let detail = async |server: &TestServer| server.get(&api::path::run(&run.id)).await.json::<RunDetail>().summary;
    assert_eq!(detail(&server).await.state.id(), "live");
    let server = server.restarted(Settings::default()).await;
    server::resumption::end_interrupted(&server.app).await.unwrap();
    let ended = detail(&server).await;
    assert_eq!((ended.state.id(), ended.exit_code), ("crashed", Some(137)));
    // The last line has no end but that of the run.
    assert_eq!((ended.end_reason.as_deref(), ended.points), (Some("the server ended"), 6));
}

#[tokio::test]
async fn complete_file_becomes_a_finished_run() {
    let server = TestServer::open().await;
    let (points, detail) = upload_log(LOG).await;
    let reply = server.post("/api/v1/runs/import?name=logs%2Ftrain.log", LOG).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    let imported: RunDetail = reply.json();
    let run = imported.summary.id.as_str();
    assert_eq!(reply.header("location"), api::path::run(run));
    assert_eq!((imported.summary.name.as_str(), imported.summary.state.id()), ("train.log", "ended"));
    assert_eq!(json!(imported.summary.origin), json!("imported"));
    assert_eq!((imported.report, imported.files), (detail.report, detail.files));
    assert_eq!((imported.summary.median_step_s, imported.summary.last_step), (detail.summary.median_step_s, Some(5)));
    let page: api::run::PointPage = server.get(&api::path::run_points(run, 0, 5000)).await.json();
    assert_eq!((page.points, page.open), (points, None));
    assert_eq!(server.get(&api::path::run_log(run)).await.text(), LOG);
    assert_eq!(
        server.post(&api::path::run_finish(run), r#"{"exit_code": 1}"#).await.problem().kind,
        "/problems/not-live"
    );

    // Other formats, and packed ones; the bytes are kept as they came.
    let history =
        "{\"_step\": 1, \"train/loss\": 2.5, \"_timestamp\": 1700000000.0}\n{\"_step\": 2, \"train/loss\": 2.0}\n";
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(history.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    let imported: RunDetail = server.post("/api/v1/runs/import", packed.clone()).await.json();
    assert_eq!((imported.summary.points, imported.report.formats), (2, vec!["JSON lines (W&B history)".to_owned()]));
    assert_eq!(server.get(&api::path::run_log(&imported.summary.id)).await.body, packed);

    for (path, body, status, expected) in [
        ("/api/v1/runs/import", &b""[..], 422, "file is empty"),
        ("/api/v1/runs/import", b"hello\nworld\n", 422, "no step of a known trainer"),
        ("/api/v1/runs/import", b"\x80\x04\x95", 422, "pickles are never opened"),
        ("/api/v1/runs/import?plan=nothing", LOG.as_bytes(), 422, "no planner"),
    ] {
        let problem = server.post(path, body.to_vec()).await.problem();
        assert!(problem.status == status && problem.detail.contains(expected), "{problem:?}");
    }
    assert_eq!(list(&server, "").await.page.total, 2);
}

/// A user's table describes lines that no reader knows; a wrong one is refused with its line, and nothing is stored.
#[tokio::test]
async fn pattern_table_is_sent_with_a_file() {
    let server = TestServer::open().await;
    let log = "STEP 7 dt 1500 loss=2.5\nSTEP 8 dt 1400 loss=2.25\n";
    let table = "schema = \"log-table/1\"\n[[line]]\nname = \"Our trainer\"\npattern = '^STEP (?P<step>[0-9]+) dt (?P<dt>[0-9]+)(?P<pairs>.*)'\nfields = { dt = \"step_time ms\" }\n";
    let path = |table: &str| {
        let encoded = table.bytes().map(|byte| format!("%{byte:02X}")).collect::<Vec<_>>().concat();
        format!("/api/v1/runs/import?table={encoded}")
    };
    for (wrong, expected) in [
        (table.replace("step_time ms", "step_time kg"), "line 2 of the log table: \"kg\" is no unit of step_time"),
        (
            table.replace("[0-9]+)(?P<pairs>.*)", "(a{1000}){1000})"),
            "line 4 of the log table: the pattern is too large",
        ),
        ("hello".to_owned(), "of the log table"),
    ] {
        let problem = server.post(&path(&wrong), log).await.problem();
        let text = format!("{problem:?}");
        assert!(problem.status == 422 && text.contains("/table") && problem.detail.contains(expected), "{text}");
    }
    assert_eq!(list(&server, "").await.page.total, 0);
    let imported: RunDetail = server.post(&path(table), log).await.json();
    assert_eq!((imported.summary.points, imported.report.formats), (2, vec!["Our trainer".to_owned()]));
    let page: api::run::PointPage = server.get(&api::path::run_points(&imported.summary.id, 0, 5000)).await.json();
    let seen: Vec<_> = page.points.iter().map(|point| (point.step, point.step_s, point.loss)).collect();
    let steps = [(7, Some(1.5), Some(2.5)), (8, Some(1.4), Some(2.25))];
    assert_eq!(seen, steps);

    // A live run reads its lines with the same table, also after the server was restarted.
    let opening = |table: &str| json!({"log_table": table}).to_string();
    let problem = server.post(api::path::RUNS, opening("hello")).await.problem();
    assert!(problem.status == 422 && format!("{problem:?}").contains("/log_table"), "{problem:?}");
    let run: api::run::CreatedRun = server.post(api::path::RUNS, opening(table)).await.json();
    let (first, rest) = log.split_at(10);
    let trainer = Trainer { server: &server, run: run.run, token: run.ingest_token };
    trainer.sends(0, first).await;
    let Trainer { run, token, .. } = trainer;
    let server = server.restarted(Settings::default()).await;
    let trainer = Trainer { server: &server, run, token };
    trainer.sends(10, rest).await;
    trainer.finishes(0).await;
    let seen: Vec<_> = trainer.points().await.iter().map(|point| (point.step, point.step_s, point.loss)).collect();
    assert_eq!(seen, steps);
}

/// Timers are named by whoever writes the log.
#[tokio::test]
async fn files_hold_every_point_and_no_formula() {
    let server = TestServer::open().await;
    let trainer = Trainer::starts(&server).await;
    let log = " iteration 1/ 10 | elapsed time per iteration (ms): 1000.0 | =HYPERLINK(0): nan | lm loss: -1.5E+00 |\n\
               time (ms) | =1+cmd: 5.0 | @x: 6.0 | plain, with comma: 7.0\n";
    trainer.sends(0, log).await;
    trainer.finishes(0).await;
    let export = server.get(&api::path::run_export(&trainer.run, "csv")).await;
    assert_eq!(export.header("content-type"), "text/csv; charset=utf-8");
    assert!(export.header("content-disposition").starts_with("attachment"));
    let lines: Vec<&str> = export.text().lines().collect();
    assert!(lines[0].starts_with("row,segment,step,time,step_s,"), "{lines:?}");
    assert!(lines[0].ends_with(",'=1+cmd (s),'@x (s),\"plain, with comma (s)\""), "{lines:?}");
    // A negative number stays a number.
    assert!(lines[1].starts_with("1,0,1,,1,") && lines[1].contains(",-1.5,"), "{lines:?}");
    assert!(lines[1].contains(",'=HYPERLINK(0),") && lines[1].ends_with(",0.005,0.006,0.007"), "{lines:?}");
    assert_eq!(lines.len(), 2);

    let export: Value = server.get(&api::path::run_export(&trainer.run, "json")).await.json();
    assert_eq!(export["run"]["id"], trainer.run.as_str());
    assert_eq!(export["points"], json!(trainer.points().await));
    assert_eq!(server.get(&api::path::run_export(&trainer.run, "xlsx")).await.problem().status, 400);
    let empty = Trainer::starts(&server).await;
    assert_eq!(server.get(&api::path::run_export(&empty.run, "csv")).await.text().lines().count(), 1);
    assert_eq!(server.get(&api::path::run_export(&empty.run, "json")).await.json::<Value>()["points"], json!([]));
}
