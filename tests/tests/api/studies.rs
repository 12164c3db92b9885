//! Studies over HTTP: what they answer, what they refuse, and that they end with their time, their asker or their place.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use harness::{House, Settings, engines, house};
use serde_json::{Value, json};
use server::jobs::Limits;
use server::studies::StudyLimits;
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

async fn planned(house: &House, scenario: &Value) -> String {
    let id = house.store(scenario).await;
    assert_eq!(house.plan(&id).await["state"]["state"], "done");
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn the_search_of_a_plan_is_shown_as_it_went() {
    let house = House::open().await;
    let id = planned(&house, &multimodal()).await;
    let study: Value = house.get(&api::path::search_study(&id[..12], 1, 30)).await.json();
    let outcome: Value = house.get(&api::path::outcome(&id)).await.json();
    let results = outcome["outcome"]["results"].as_array().unwrap();
    let ranking = results.iter().find(|result| result["planner"] == "pipeweaver_ranking").unwrap();
    let of_iteration = &ranking["answer"]["iterations"][1];
    assert_eq!((&study["planner"], &study["iteration"]), (&json!("pipeweaver_ranking"), &json!(1)));
    let strategies = study["strategies"].as_array().unwrap();
    let names: Vec<&str> = strategies.iter().map(|strategy| strategy["strategy"].as_str().unwrap()).collect();
    assert_eq!(names, ["mcts", "dfs", "random"]);
    // Swaps on the critical path of the best ranking end the search.
    assert_eq!(study["swapped_s"], of_iteration["iteration_s"]);
    assert!(strategies[0]["best_s"].as_f64() >= study["swapped_s"].as_f64());
    assert_eq!(study["lower_bound_s"], of_iteration["lower_bound_s"]);
    assert_eq!(study["is_cut"], false);
    for strategy in strategies {
        let steps = &strategy["steps"];
        let length = |column: &str| steps[column].as_array().unwrap().len();
        assert!(length("rollouts") >= 2 && length("rollouts") == length("best_s"));
        assert_eq!(length("seconds"), length("best_s"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sizes_are_searched_up_to_the_whole_microbatch() {
    let house = House::open().await;
    let id = planned(&house, &multimodal()).await;
    let study: Value = house.get(&api::path::sub_microbatch_study(&id, 0, 20)).await.json();
    let points = study["points"].as_array().unwrap();
    let sizes: Vec<u64> = points.iter().map(|point| point["size"].as_u64().unwrap()).collect();
    assert!(sizes.is_sorted_by(|a, b| a < b) && sizes.contains(&study["chosen"].as_u64().unwrap()), "{study}");
    assert_eq!(sizes.last(), Some(&study["most_items"].as_u64().unwrap()));
    for point in points {
        assert!(point["ends"]["best_s"].as_f64() <= point["ends"]["worst_s"].as_f64(), "{point}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_studied_is_a_problem_that_says_why() {
    let house = House::open().await;
    let refused = async |path: &str| {
        let problem = house.get(path).await.problem();
        (problem.status, problem.kind, problem.detail)
    };
    let id = house.store(&multimodal()).await;
    let (status, kind, _) = refused(&api::path::search_study(&id, 0, 10)).await;
    assert_eq!((status, kind.as_str()), (409, "/problems/not-planned"));
    planned(&house, &multimodal()).await;
    let (status, kind, detail) = refused(&api::path::search_study(&id, 2, 10)).await;
    assert_eq!((status, kind.as_str()), (404, "/problems/not-found"));
    assert_eq!(detail, "there is no iteration 2: the scenario has 2, counted from 0");
    for query in ["rollouts=0", "rollouts=100001", "rollouts=few", "iteration=-1"] {
        let path = format!("{}/{id}/studies/search?{query}", api::path::SCENARIOS);
        assert_eq!(refused(&path).await.0, 400, "{query}");
    }
    assert_eq!(refused(&api::path::search_study("aaaaaaaaaaaa", 0, 10)).await.0, 404);

    let mut text = house::scenario();
    text["planners"] = json!(["pipeweaver_ranking"]);
    let text = planned(&house, &text).await;
    let (status, kind, detail) = refused(&api::path::sub_microbatch_study(&text, 0, 10)).await;
    assert_eq!((status, kind.as_str()), (422, "/problems/no-study"));
    assert_eq!(detail, "this model has one module: nothing to split");
    let fixed = planned(&house, &house::scenario()).await;
    let (status, _, detail) = refused(&api::path::search_study(&fixed, 0, 10)).await;
    assert_eq!((status, detail.as_str()), (422, "no PipeWeaver planner has a plan of this scenario"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_another_engine_is_not_studied() {
    let calls = Arc::new(AtomicU32::new(0));
    let house = House::planning_with(engines::instant(&calls)).await;
    let id = planned(&house, &multimodal()).await;
    let planning = house.get(&api::path::search_study(&id, 0, 10)).await.problem();
    assert_eq!(planning.status, 422, "an answer without plans");
    let mut write = house.store.writer().begin().await.unwrap();
    sqlx::query("DELETE FROM timeline").execute(&mut *write).await.unwrap();
    sqlx::query("UPDATE outcome SET engine = 'old', outcome_json = json_set(outcome_json, '$.engine', 'old')")
        .execute(&mut *write)
        .await
        .unwrap();
    write.commit().await.unwrap();
    assert_eq!(house.get(&api::path::search_study(&id, 0, 10)).await.problem().status, 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_study_whose_time_is_up_answers_what_it_has() {
    let study_limits = StudyLimits { queue: 1, time: Duration::ZERO, threads: Threads::new(1) };
    let house = House::with(Settings { study_limits, ..Settings::default() }).await;
    let id = planned(&house, &multimodal()).await;
    let study: Value = house.get(&api::path::search_study(&id, 0, 100_000)).await.json();
    assert_eq!(study["is_cut"], true);
    for strategy in study["strategies"].as_array().unwrap() {
        assert_eq!((&strategy["ended"], &strategy["rollouts"]), (&json!("time"), &json!(1)));
    }
    let sizes: Value = house.get(&api::path::sub_microbatch_study(&id, 0, 100)).await.json();
    assert_eq!((&sizes["is_cut"], &sizes["points"]), (&json!(true), &json!([])));
}

/// The clock of a test stands still, so nothing but its asker ends a study of a hundred thousand rollouts; there is
/// one turn and one place, so the next study is answered only if the first is gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_study_ends_with_its_asker_and_makes_room() {
    let limits = Limits { workers: 1, queue: 4, search_threads: Threads::new(1) };
    let study_limits = StudyLimits { queue: 1, time: Duration::from_secs(20), threads: Threads::new(1) };
    let house = House::with(Settings { limits, study_limits, ..Settings::default() }).await;
    let mut scenario = multimodal();
    scenario["workload"]["global_batch"] = json!(16);
    let id = planned(&house, &scenario).await;
    let ask = || {
        let path = api::path::search_study(&id, 0, 100_000);
        let request = Request::get(path).header("host", "localhost").body(Body::empty()).unwrap();
        tokio::spawn(house.router.clone().oneshot(request))
    };
    let mut asked = ask();
    let mut full = None;
    for _ in 0..500 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        if asked.is_finished() {
            // It was refused itself: the short one below was there first.
            asked = ask();
            continue;
        }
        let reply = house.get(&api::path::search_study(&id, 0, 1)).await;
        if reply.status == 503 {
            full = Some(reply);
            break;
        }
    }
    let full = full.expect("the first study is under way");
    assert_eq!((full.problem().kind.as_str(), full.header("retry-after")), ("/problems/studies-full", "5"));
    assert!(!asked.is_finished(), "it goes on by itself");
    asked.abort();
    let next = async {
        loop {
            let reply = house.get(&api::path::search_study(&id, 0, 1)).await;
            if reply.status == 200 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), next).await.expect("the first study ended with its asker");
}

#[tokio::test]
async fn stages_of_every_plan_stand_side_by_side() {
    let house = House::open().await;
    let id = planned(&house, &multimodal()).await;
    let study: Value = house.get(&api::path::stage_study(&id, 1)).await.json();
    let plans = study["plans"].as_array().unwrap();
    assert_eq!((study["iteration"].as_u64(), plans.len()), (Some(1), 2));
    for plan in plans {
        // One pipeline of four ranks and five microbatches: 3 / (5 + 3) without chunks.
        assert_eq!((plan["depth"].as_u64(), plan["microbatches"].as_u64()), (Some(4), Some(5)));
        assert!(plan["rates"].as_array().unwrap().len() >= 4, "{plan}");
        let counted: u64 = plan["modules"].as_array().unwrap().iter().map(|of| of["count"].as_u64().unwrap()).sum();
        assert!(counted >= 20, "{plan}");
    }
    let one_f_one_b = plans.iter().find(|plan| plan["planner"] == "1f1b").unwrap();
    assert!((one_f_one_b["ideal_bubble"].as_f64().unwrap() - 0.375).abs() < 1e-12);
    let beyond: Value = house.get(&api::path::stage_study(&id, 9)).await.json();
    assert!(beyond["plans"].as_array().unwrap().is_empty());
}
