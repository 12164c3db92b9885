//! Studies over HTTP: what they answer, what they refuse, and that they end with their time, their asker or their place.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use harness::{Settings, TestServer, engines, test_server};
use serde_json::{Value, json};
use server::jobs::Limits;
use server::studies::AnalysisLimits;
use server::workers::Threads;
use tower::ServiceExt;

/// VLM-S with few microbatches, so that a debug build plans it in moments.
fn multimodal() -> Value {
    json!({
        "schema": "scenario/1",
        "model": {"preset": "vlm-s"},
        "cluster": {"preset": "h800", "nodes": 2},
        "workload": {
            "samples": {
                "kind": "drawn",
                "text_tokens": {"kind": "constant", "value": 8192},
                "images": {"kind": "uniform", "min": 1, "max": 12}
            },
            "global_batch": 5,
            "context_length": 8192,
            "packing": "single"
        },
        "training": {"recompute": "full"},
        "layout": {"tensor": 4, "pipeline": 4, "microbatch": 1},
        "search": {"rollouts": 30},
        "planners": ["1f1b", "pipeweaver_ranking"],
        "iterations": 2
    })
}

async fn planned(server: &TestServer, scenario: &Value) -> String {
    let id = server.store(scenario).await;
    assert_eq!(server.plan(&id).await["state"]["state"], "done");
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn search_progress_is_reported() {
    let server = TestServer::open().await;
    let id = planned(&server, &multimodal()).await;
    let analysis: Value = server.get(&api::path::search_analysis(&id[..12], 1, 30)).await.json();
    let outcome: Value = server.get(&api::path::outcome(&id)).await.json();
    let results = outcome["outcome"]["results"].as_array().unwrap();
    let ranking = results.iter().find(|result| result["planner"] == "pipeweaver_ranking").unwrap();
    let ranked_iteration = &ranking["answer"]["iterations"][1];
    assert_eq!((&analysis["planner"], &analysis["iteration"]), (&json!("pipeweaver_ranking"), &json!(1)));
    let strategies = analysis["strategies"].as_array().unwrap();
    let names: Vec<&str> = strategies.iter().map(|strategy| strategy["strategy"].as_str().unwrap()).collect();
    assert_eq!(names, ["mcts", "dfs", "random"]);
    // Swaps on the critical path of the best ranking end the search.
    assert_eq!(analysis["swapped_s"], ranked_iteration["iteration_s"]);
    assert!(strategies[0]["best_s"].as_f64() >= analysis["swapped_s"].as_f64());
    assert_eq!(analysis["lower_bound_s"], ranked_iteration["lower_bound_s"]);
    assert_eq!(analysis["is_cut"], false);
    for strategy in strategies {
        let steps = &strategy["steps"];
        let length = |column: &str| steps[column].as_array().unwrap().len();
        assert!(length("rollouts") >= 2 && length("rollouts") == length("best_s"));
        assert_eq!(length("seconds"), length("best_s"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sizes_are_analysed_up_to_the_full_microbatch() {
    let server = TestServer::open().await;
    let id = planned(&server, &multimodal()).await;
    let analysis: Value = server.get(&api::path::sub_microbatch_analysis(&id, 0, 20)).await.json();
    let points = analysis["points"].as_array().unwrap();
    let sizes: Vec<u64> = points.iter().map(|point| point["size"].as_u64().unwrap()).collect();
    assert!(sizes.is_sorted_by(|a, b| a < b) && sizes.contains(&analysis["chosen"].as_u64().unwrap()), "{analysis}");
    assert_eq!(sizes.last(), Some(&analysis["most_items"].as_u64().unwrap()));
    for point in points {
        assert!(point["ends"]["best_s"].as_f64() <= point["ends"]["worst_s"].as_f64(), "{point}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn impossible_analyses_report_the_reason() {
    let server = TestServer::open().await;
    let rejection = async |path: &str| {
        let problem = server.get(path).await.problem();
        (problem.status, problem.kind, problem.detail)
    };
    let id = server.store(&multimodal()).await;
    let (status, kind, _) = rejection(&api::path::search_analysis(&id, 0, 10)).await;
    assert_eq!((status, kind.as_str()), (409, "/problems/not-planned"));
    planned(&server, &multimodal()).await;
    let (status, kind, detail) = rejection(&api::path::search_analysis(&id, 2, 10)).await;
    assert_eq!((status, kind.as_str()), (404, "/problems/not-found"));
    assert_eq!(detail, "there is no iteration 2: the scenario has 2, counted from 0");
    for query in ["rollouts=0", "rollouts=100001", "rollouts=few", "iteration=-1"] {
        let path = format!("{}/{id}/studies/search?{query}", api::path::SCENARIOS);
        assert_eq!(rejection(&path).await.0, 400, "{query}");
    }
    assert_eq!(rejection(&api::path::search_analysis("aaaaaaaaaaaa", 0, 10)).await.0, 404);

    let mut text = test_server::scenario();
    text["planners"] = json!(["pipeweaver_ranking"]);
    let text = planned(&server, &text).await;
    let (status, kind, detail) = rejection(&api::path::sub_microbatch_analysis(&text, 0, 10)).await;
    assert_eq!((status, kind.as_str()), (422, "/problems/no-study"));
    assert_eq!(detail, "this model has one module: nothing to split");
    let fixed = planned(&server, &test_server::scenario()).await;
    let (status, _, detail) = rejection(&api::path::search_analysis(&fixed, 0, 10)).await;
    assert_eq!((status, detail.as_str()), (422, "no PipeWeaver planner has a plan of this scenario"));
}

#[tokio::test(flavor = "multi_thread")]
async fn outcome_from_another_engine_is_not_analysed() {
    let calls = Arc::new(AtomicU32::new(0));
    let server = TestServer::planning_with(engines::instant(&calls)).await;
    let id = planned(&server, &multimodal()).await;
    let planning = server.get(&api::path::search_analysis(&id, 0, 10)).await.problem();
    assert_eq!(planning.status, 422, "an answer without plans");
    let mut write = server.store.writer().begin().await.unwrap();
    sqlx::query("DELETE FROM timeline").execute(&mut *write).await.unwrap();
    sqlx::query("UPDATE outcome SET engine = 'old', outcome_json = json_set(outcome_json, '$.engine', 'old')")
        .execute(&mut *write)
        .await
        .unwrap();
    write.commit().await.unwrap();
    assert_eq!(server.get(&api::path::search_analysis(&id, 0, 10)).await.problem().status, 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn timed_out_analysis_returns_partial_results() {
    let analysis_limits = AnalysisLimits { queue: 1, time: Duration::ZERO, threads: Threads::new(1) };
    let server = TestServer::with(Settings { analysis_limits, ..Settings::default() }).await;
    let id = planned(&server, &multimodal()).await;
    let analysis: Value = server.get(&api::path::search_analysis(&id, 0, 100_000)).await.json();
    assert_eq!(analysis["is_cut"], true);
    for strategy in analysis["strategies"].as_array().unwrap() {
        assert_eq!((&strategy["ended"], &strategy["rollouts"]), (&json!("time"), &json!(1)));
    }
    let sizes: Value = server.get(&api::path::sub_microbatch_analysis(&id, 0, 100)).await.json();
    assert_eq!((&sizes["is_cut"], &sizes["points"]), (&json!(true), &json!([])));
}

/// The clock of a test stands still, so nothing but its asker ends a study of a hundred thousand rollouts; there is
/// one turn and one place, so the next study is answered only if the first is gone.
#[tokio::test(flavor = "multi_thread")]
async fn analysis_ends_with_its_request_and_releases_its_slot() {
    let limits = Limits { workers: 1, queue: 4, ..Limits::default() };
    let analysis_limits = AnalysisLimits { queue: 1, time: Duration::from_secs(20), threads: Threads::new(1) };
    let server = TestServer::with(Settings { limits, analysis_limits, ..Settings::default() }).await;
    let mut scenario = multimodal();
    scenario["workload"]["global_batch"] = json!(16);
    let id = planned(&server, &scenario).await;
    let ask = || {
        let path = api::path::search_analysis(&id, 0, 100_000);
        let request = Request::get(path).header("host", "localhost").body(Body::empty()).unwrap();
        tokio::spawn(server.router.clone().oneshot(request))
    };
    let mut pending = ask();
    let mut full = None;
    for _ in 0..500 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        if pending.is_finished() {
            // It was refused itself: the short one below was there first.
            pending = ask();
            continue;
        }
        let reply = server.get(&api::path::search_analysis(&id, 0, 1)).await;
        if reply.status == 503 {
            full = Some(reply);
            break;
        }
    }
    let full = full.expect("the first study is under way");
    assert_eq!((full.problem().kind.as_str(), full.header("retry-after")), ("/problems/studies-full", "5"));
    assert!(!pending.is_finished(), "it goes on by itself");
    pending.abort();
    let next = async {
        loop {
            let reply = server.get(&api::path::search_analysis(&id, 0, 1)).await;
            if reply.status == 200 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), next).await.expect("the first study ended with its asker");
}

#[tokio::test]
async fn stages_are_compared_for_every_plan() {
    let server = TestServer::open().await;
    let id = planned(&server, &multimodal()).await;
    let analysis: Value = server.get(&api::path::stage_analysis(&id, 1)).await.json();
    let plans = analysis["plans"].as_array().unwrap();
    assert_eq!((analysis["iteration"].as_u64(), plans.len()), (Some(1), 2));
    for plan in plans {
        // One pipeline of four ranks and five microbatches: 3 / (5 + 3) without chunks.
        assert_eq!((plan["depth"].as_u64(), plan["microbatches"].as_u64()), (Some(4), Some(5)));
        assert!(plan["rates"].as_array().unwrap().len() >= 4, "{plan}");
        let counted: u64 =
            plan["modules"].as_array().unwrap().iter().map(|module| module["count"].as_u64().unwrap()).sum();
        assert!(counted >= 20, "{plan}");
    }
    let one_f_one_b = plans.iter().find(|plan| plan["planner"] == "1f1b").unwrap();
    assert!((one_f_one_b["ideal_bubble"].as_f64().unwrap() - 0.375).abs() < 1e-12);
    let beyond: Value = server.get(&api::path::stage_analysis(&id, 9)).await.json();
    assert!(beyond["plans"].as_array().unwrap().is_empty());
}

/// LLaVA-OneVision on one node under DFLOP: three batches of 32 samples with 1 to 16 images.
fn data_aware() -> Value {
    json!({
        "schema": "scenario/1",
        "model": {"preset": "llava-ov-llama-3-8b"},
        "cluster": {"preset": "a100-80gb", "nodes": 1},
        "workload": {
            "samples": {
                "kind": "drawn",
                "text_tokens": {"kind": "uniform", "min": 50, "max": 900},
                "images": {"kind": "uniform", "min": 1, "max": 16}
            },
            "global_batch": 32,
            "context_length": 32768,
            "packing": "packed",
            "max_samples": 1
        },
        "training": {"recompute": "full"},
        "planners": ["dflop"],
        "iterations": 3
    })
}

fn floats(analysis: &Value, column: &str) -> Vec<f64> {
    analysis[column].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

/// Nothing is slow, so every batch is dealt as it was: each iteration under watch costs 4 % and wins nothing, B = 0 <= C, and after
/// five of them correction is off for good.
#[tokio::test(flavor = "multi_thread")]
async fn correction_without_anomalies_never_pays_and_switches_itself_off() {
    let server = TestServer::open().await;
    let id = planned(&server, &data_aware()).await;
    let path = api::path::correction_analysis(&id, "anomaly=0&window=5&iterations=12");
    let analysis: Value = server.get(&path).await.json();
    assert_eq!(
        (&analysis["slow_shapes"], &analysis["switched_off"], &analysis["settled"]),
        (&json!(0), &json!(4), &json!(0.0))
    );
    assert_eq!(analysis["decisions"], json!([{"iteration": 4, "benefit": 0.0, "stays_on": false}]));
    assert_eq!(analysis["benefits"], json!([0.0, 0.0, 0.0, 0.0, 0.0]));
    let (without, with, net) = (floats(&analysis, "without_s"), floats(&analysis, "with_s"), floats(&analysis, "net"));
    assert_eq!([without.len(), with.len(), net.len()], [12; 3]);
    for iteration in 0..12 {
        let cost = if iteration < 5 { 1.04 } else { 1.0 };
        assert!((with[iteration] / without[iteration] - cost).abs() < 1e-12, "{iteration}");
        assert!((net[iteration] - (1.0 / cost - 1.0)).abs() < 1e-12, "{iteration}");
    }
}

/// Every shape in ten takes longer by twice the longest stage and watching is free: dealing by what was learnt wins, so it stays on.
/// Where watching costs all throughput, it cannot: net speed-up is below 1 / (1 + 1) - 1 + B, and B is far below 1.
#[tokio::test(flavor = "multi_thread")]
async fn correction_stays_on_while_it_wins_more_than_it_costs() {
    let server = TestServer::open().await;
    let id = planned(&server, &data_aware()).await;
    let ask = async |cost: &str| -> Value {
        let query = format!("anomaly=0.1&slowdown=2&window=10&iterations=30&cost={cost}");
        server.get(&api::path::correction_analysis(&id, &query)).await.json()
    };
    let free = ask("0").await;
    assert!(free["slow_shapes"].as_u64().unwrap() > 0 && free["delay_s"].as_f64().unwrap() > 0.0);
    assert_eq!(free["switched_off"], Value::Null);
    assert!(free["settled"].as_f64().unwrap() > 0.0, "{}", free["settled"]);
    let decided: Vec<u64> =
        free["decisions"].as_array().unwrap().iter().map(|decision| decision["iteration"].as_u64().unwrap()).collect();
    assert_eq!(decided, [9, 19, 29]);
    // Nothing is known before the first iteration.
    assert_eq!(floats(&free, "benefits")[0].to_bits(), 0.0_f64.to_bits());
    let dear = ask("1").await;
    assert_eq!((&dear["switched_off"], &dear["cost"]), (&json!(9), &json!(1.0)));
    assert_eq!(free["without_s"], dear["without_s"], "the same run, watched or not");
}

/// A log in which step k takes what the plan says times a factor.
async fn upload_run(server: &TestServer, planned_s: &[f64], factors: &[f64]) -> String {
    let mut log = String::new();
    for (step, (planned, factor)) in (1..).zip(planned_s.iter().zip(factors)) {
        writeln!(
            log,
            " iteration {step:8}/ 1000 | consumed samples: {:12} | elapsed time per iteration (ms): {:.6} | learning rate: 1.0E-04 | \
             global batch size: 32 | lm loss: 2.0 |",
            step * 32,
            planned * factor * 1e3
        )
        .unwrap();
    }
    let opened: Value = server.post(api::path::RUNS, json!({"name": "night"}).to_string()).await.json();
    let id = opened["run"].as_str().unwrap().to_owned();
    let request = Request::put(api::path::run_log(&id))
        .header("authorization", format!("Bearer {}", opened["ingest_token"].as_str().unwrap()))
        .body(Body::from(log))
        .unwrap();
    assert!(server.send(request).await.status < 300);
    server.post(&api::path::run_finish(&id), json!({"exit_code": 0}).to_string()).await;
    id
}

/// All steps 30 % slower than planned say nothing of shapes. The first twice as slow as the others does: a shape with n0, n1, n2 items in the
/// three batches seems (2 n0 + n1 + n2) / (n0 + n1 + n2) times as long, and one of the first batch alone exactly twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_says_which_shapes_are_slow() {
    let server = TestServer::open().await;
    let id = planned(&server, &data_aware()).await;
    let outcome: Value = server.get(&api::path::outcome(&id)).await.json();
    let iterations = outcome["outcome"]["results"][0]["answer"]["iterations"].as_array().unwrap();
    let times: Vec<f64> = iterations.iter().map(|iteration| iteration["iteration_s"].as_f64().unwrap()).collect();
    assert_eq!(times.len(), 3);
    let learnt = async |factors: &[f64]| -> Vec<(u64, f64)> {
        let run = upload_run(&server, &times, factors).await;
        let query = format!("anomaly=0&iterations=3&window=3&run={run}");
        let analysis: Value = server.get(&api::path::correction_analysis(&id, &query)).await.json();
        assert!(analysis["notes"].as_array().unwrap().iter().any(|note| note.as_str().unwrap().contains("batch k")));
        let pair = |entry: &Value| (entry["items"].as_u64().unwrap(), entry["penalty"].as_f64().unwrap());
        analysis["penalties"].as_array().unwrap().iter().map(pair).collect()
    };
    let even = learnt(&[1.3, 1.3, 1.3]).await;
    assert!(!even.is_empty() && even.iter().all(|(_, penalty)| (penalty - 1.0).abs() < 1e-9), "{even:?}");
    let first = learnt(&[2.6, 1.3, 1.3]).await;
    assert!((first[0].1 - 2.0).abs() < 1e-4, "{first:?}");
    assert!(first.is_sorted_by(|a, b| a.1 >= b.1));
    for (items, penalty) in first {
        // n0 = (penalty - 1) n is a whole number of items; up to 5 % is noise and told as 1.
        let slow = (penalty - 1.0) * items as f64;
        assert!((slow - slow.round()).abs() < 1e-2, "{items} {penalty}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_that_cannot_be_simulated_says_why() {
    let server = TestServer::open().await;
    let rejection = async |id: &str, query: &str| {
        let problem = server.get(&api::path::correction_analysis(id, query)).await.problem();
        (problem.status, problem.detail)
    };
    let id = server.store(&data_aware()).await;
    assert_eq!(rejection(&id, "").await.0, 409, "not planned yet");
    let id = planned(&server, &data_aware()).await;
    for (query, expected) in [
        ("iterations=0", "iterations: 0 is out of range: 1 to 200"),
        ("iterations=201", "iterations: 201 is out of range: 1 to 200"),
        ("window=0", "window: 0 is out of range: 1 to 200"),
        ("anomaly=1.5", "anomaly: 1.5 is out of range: 0 to 1"),
        ("anomaly=NaN", "anomaly: NaN is out of range: 0 to 1"),
        ("slowdown=-1", "slowdown: -1 is out of range: 0 to 10"),
        ("cost=2", "cost: 2 is out of range: 0 to 1"),
    ] {
        assert_eq!(rejection(&id, query).await, (400, expected.to_owned()));
    }
    assert_eq!(rejection(&id, "anomaly=few").await.0, 400);
    assert_eq!(rejection(&id, "run=aaaaaaaaaaaa").await.0, 404);
    let other = planned(&server, &test_server::scenario()).await;
    assert_eq!(rejection(&other, "").await, (422, "DFLOP has no plan of this scenario".to_owned()));
}

/// What the sweep says of a point, its own plan says again; what is no point of the scenario is not found.
#[tokio::test(flavor = "multi_thread")]
async fn layout_in_the_sweep_is_planned_by_name() {
    let server = TestServer::open().await;
    let mut scenario = multimodal();
    scenario["cluster"]["nodes"] = json!(1);
    scenario["layout"] = json!({"microbatch": 1});
    let id = server.store(&scenario).await;
    let sweep: Value = server.get(&api::path::layout_analysis(&id)).await.json();
    let best = sweep["best"].as_array().unwrap().last().unwrap()["point"].as_u64().unwrap();
    let point = &sweep["points"][usize::try_from(best).unwrap()];
    let name = point["name"].as_str().unwrap();
    let plan: Value = server.get(&api::path::layout_plan(&id[..12], name)).await.json();
    assert_eq!((&plan["point"]["title"], &plan["point"]["name"]), (&point["title"], &point["name"]));
    let seconds = |value: &Value| value["figures"]["iteration_s"].as_f64().unwrap();
    assert!((seconds(&plan["point"]) - seconds(point)).abs() < 1e-9);
    assert!(point["against_best"].is_string());
    assert_eq!(
        plan["timeline"]["ranks"].as_u64().unwrap() as usize,
        plan["placement"]["ranks"].as_array().unwrap().len()
    );
    // The end of the timeline is the iteration, in ns.
    let makespan = plan["timeline"]["makespan_ns"].as_f64().unwrap();
    assert!((makespan * 1e-9 - seconds(point)).abs() < 2e-9);
    let illegal = sweep["points"].as_array().unwrap().iter().find(|point| point["figures"].is_null()).unwrap();
    let reply = server.get(&api::path::layout_plan(&id, illegal["name"].as_str().unwrap())).await;
    assert!([200, 422].contains(&reply.status), "left out, or against a rule: {}", reply.status);
    for name in ["1-apart-1_9.9", "nonsense", "1-apart-1_0.1.3.1.1.1.1.0.1_1.2.1.1.1.1.1.3.1"] {
        let problem = server.get(&api::path::layout_plan(&id, name)).await.problem();
        assert_eq!(
            (problem.status, problem.detail),
            (404, format!("{name:?} is no layout of this scenario's modules"))
        );
    }
}
