//! The main road: lengths in, three schedules out, found again by a short link.

use harness::{TestServer, test_server};
use planner::outcome::ENGINE;
use serde_json::{Value, json};

#[tokio::test]
async fn lengths_become_schedules_that_a_short_link_finds_again() {
    let server = TestServer::open().await;

    // An engineer uploads what a profiler wrote.
    let file = "num_prefill_tokens,num_total_tokens\n700,800\n1500,1600\n3100,3200\n400,480\n";
    let reply = server.post("/api/v1/datasets?name=data%2Farxiv.csv", file).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    let uploaded: Value = reply.json();
    let dataset = uploaded["dataset"]["id"].as_str().unwrap();
    assert_eq!(dataset.len(), 52);
    assert_eq!(reply.header("location"), api::path::dataset(dataset));
    assert_eq!(uploaded["dataset"]["name"], "arxiv.csv");
    assert_eq!(uploaded["dataset"]["samples"], 4);
    assert_eq!(uploaded["dataset"]["created_at"], "2026-01-01T00:00:00Z");
    assert_eq!(uploaded["report"]["source"], "column num_total_tokens");

    // Asks about them.
    let mut scenario = test_server::scenario();
    scenario["workload"]["samples"] = json!({"kind": "dataset", "id": dataset});
    let reply = server.request("PUT", api::path::SCENARIOS, scenario.to_string()).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    let stored: Value = reply.json();
    let id = stored["id"].as_str().unwrap().to_owned();
    let short = stored["short"].as_str().unwrap().to_owned();
    assert!(short.len() >= 10 && id.starts_with(&short));
    assert_eq!(stored["kept"], false);

    // Plans, and watches it.
    let reply = server.post(&api::path::plan(&id), "").await;
    assert_eq!(reply.status, 202, "{reply:?}");
    let job: Value = reply.json();
    let events = server.get(&api::path::job_events(job["id"].as_str().unwrap())).await.events();
    assert_eq!(events.last().unwrap()["state"]["state"], "done", "{events:?}");
    assert!(events.iter().all(|event| event["scenario"] == id.as_str()));

    // Reads the answer.
    let outcome: Value = server.get(&api::path::outcome(&id)).await.json();
    assert_eq!(outcome["outcome"]["engine"], ENGINE);
    assert_eq!(outcome["current_engine"], ENGINE);
    assert_eq!(outcome["outcome"]["scenario"], id.as_str());
    let results = outcome["outcome"]["results"].as_array().unwrap();
    assert_eq!(results.len(), 3);
    assert!(results.iter().all(|result| result["answer"]["status"] == "planned"), "{results:?}");
    let planning = outcome["planning_ms"].as_array().unwrap();
    assert_eq!(planning.len(), 3);
    // What is planned anew for every batch stands beside the step of the batch before; the tests' clock stands still.
    let batches = &planning.iter().find(|time| time["planner"] == "wait_free_cyclic").unwrap()["batches"];
    assert_eq!(batches.as_array().unwrap().len(), 2);
    assert_eq!(batches[0], json!({"ms": 0.0}));
    assert!(batches[1]["step_before_ms"].as_f64().unwrap() > 0.0 && batches[1]["exposed_ms"] == 0.0, "{batches}");
    assert!(planning.iter().all(|time| time["planner"] != "1f1b" || time.get("batches").is_none()), "{planning:?}");

    // Looks at each schedule: the compact form and JSON are the same timeline.
    for planner in ["1f1b", "interleaved", "wait_free_cyclic"] {
        let path = api::path::timeline(&id, planner, 1);
        let compact = server.get(&path).await;
        assert_eq!(compact.header("content-type"), api::path::TIMELINE_MEDIA_TYPE, "{compact:?}");
        let timeline = api::timeline::decode(&compact.body).unwrap();
        assert_eq!(timeline.ranks, 4);
        assert!(timeline.len() > 8);
        assert_eq!(server.get_as(&path, "application/json").await.json::<planner::timeline::Timeline>(), timeline);
    }
    assert_eq!(server.get(&api::path::timeline(&id, "1f1b", 2)).await.status, 404);
    assert_eq!(server.get(&api::path::timeline(&id, "gpipe", 0)).await.status, 404);
    assert_eq!(server.get(&api::path::timeline(&id, "nope", 0)).await.status, 404);
    assert_eq!(server.get(&api::path::timeline(&id, "1f1b", 0).replace("/0", "/x")).await.status, 400);

    // Takes a schedule to torch.
    let csv = server.get(&api::path::schedule_csv(&id, "1f1b", 0)).await;
    assert_eq!(csv.header("content-type"), "text/csv; charset=utf-8");
    assert_eq!(csv.header("content-disposition"), format!("attachment; filename=\"planscope-{short}-1f1b-0.csv\""));
    assert_eq!(csv.text().lines().count(), 4);
    assert!(csv.text().starts_with("0F0,"), "{}", csv.text());

    // Takes to a trainer what every rank does, and looks at one of them.
    let view: Value = server.get(&api::path::execution_plan(&id, "1f1b", 0, 3, None)).await.json();
    assert_eq!((&view["rank"], &view["ranks"]), (&json!(3), &json!(4)));
    let first: Vec<&Value> = view["list"].as_array().unwrap().iter().map(|action| &action["action"]).take(3).collect();
    // Nothing runs before its input is there; a second receive is launched while the first is waited for.
    assert_eq!(first, ["irecv", "irecv", "wait_irecv"]);
    assert!(view["replayed_s"].as_f64() >= view["planned_s"].as_f64(), "{view}");
    let file = server.get(&api::path::execution_plan_file(&id, "1f1b", 0, "csv", None)).await;
    let name = format!("attachment; filename=\"planscope-{short}-1f1b-0-execution.csv\"");
    assert_eq!(file.header("content-disposition"), name);
    assert_eq!(file.text().lines().count() as u64, 1 + view["actions"].as_u64().unwrap());
    let execution_plan: planner::execution_plan::ExecutionPlan =
        server.get(&api::path::execution_plan_file(&id, "1f1b", 0, "json", None)).await.json();
    assert_eq!(execution_plan.ranks.len(), 4);
    assert_eq!(server.get(&api::path::execution_plan(&id, "1f1b", 0, 4, None)).await.status, 404);
    assert_eq!(server.get(&api::path::execution_plan_file(&id, "1f1b", 0, "xml", None)).await.status, 400);
    assert_eq!(server.get(&api::path::execution_plan(&id, "gpipe", 0, 0, None)).await.status, 404);

    // Keeps it, and finds it in the list with its best planner.
    let saved: Value = server.post(&api::path::keep(&short), r#"{"title": "Arxiv on one node"}"#).await.json();
    assert_eq!((&saved["kept"], &saved["scenario"]["title"]), (&json!(true), &json!("Arxiv on one node")));
    let list: Value = server.get(api::path::SCENARIOS).await.json();
    let line = &list["scenarios"][0];
    assert_eq!((&line["id"], &line["title"]), (&json!(id), &json!("Arxiv on one node")));
    assert_eq!(line["cluster"], "1 x 8 A100-80GB");
    assert_eq!(line["best"]["planner"], results[0]["title"]);
    assert_eq!(line["best"]["iteration_s"], results[0]["answer"]["metrics"]["iteration_s"]);

    // A colleague opens the short link, in capitals, and sees the same numbers.
    let theirs: Value = server.get(&api::path::outcome(&short.to_uppercase())).await.json();
    assert_eq!(theirs, outcome);

    // The dataset goes; what was answered stays, what was not can no longer be asked.
    assert_eq!(server.delete(&api::path::dataset(dataset)).await.status, 204);
    assert_eq!(server.get(&api::path::outcome(&id)).await.json::<Value>(), outcome);
    assert_eq!(server.post(&api::path::plan(&id), "").await.status, 200);

    // The scenario goes, and says so.
    assert_eq!(server.delete(&api::path::scenario(&id)).await.status, 204);
    for path in [api::path::scenario(&id), api::path::outcome(&id), api::path::timeline(&id, "1f1b", 0)] {
        let gone = server.get(&path).await;
        assert_eq!(gone.status, 410, "{path}");
        assert!(gone.problem().detail.contains("2026-01-01T00:00:00Z"), "{gone:?}");
    }
    assert_eq!(server.delete(&api::path::scenario(&id)).await.status, 410);
}

/// Two servers that never met answer the same question with the same bytes.
#[tokio::test]
async fn same_request_has_the_same_result_everywhere() {
    let mut answers = Vec::new();
    for _ in 0..2 {
        let server = TestServer::open().await;
        let id = server.store(&test_server::scenario()).await;
        assert_eq!(server.plan(&id).await["state"]["state"], "done");
        let outcome: Value = server.get(&api::path::outcome(&id)).await.json();
        let timeline = server.get(&api::path::timeline(&id, "wait_free_cyclic", 0)).await.body;
        answers.push((outcome["outcome"].to_string(), timeline));
    }
    assert_eq!(answers[0], answers[1]);
}

/// What cannot fit is an answer, with the constraint that binds.
#[tokio::test]
async fn a_model_that_does_not_fit_is_answered_with_the_reason() {
    let server = TestServer::open().await;
    let mut scenario = test_server::scenario();
    scenario["model"] = json!({"preset": "gpt-3-175b"});
    scenario["layout"] = json!({});
    let id = server.store(&scenario).await;
    assert_eq!(server.plan(&id).await["state"]["state"], "done");
    let outcome: Value = server.get(&api::path::outcome(&id)).await.json();
    for result in outcome["outcome"]["results"].as_array().unwrap() {
        let planner_outcome = &result["answer"];
        assert_eq!(planner_outcome["status"], "infeasible", "{result}");
        assert!(planner_outcome["binding"].as_str().unwrap().contains("GiB"), "{planner_outcome}");
    }
    server.post(&api::path::keep(&id), "").await;
    let list: Value = server.get(api::path::SCENARIOS).await.json();
    assert_eq!(list["scenarios"][0]["best"], Value::Null);
}
