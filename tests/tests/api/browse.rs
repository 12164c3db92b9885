//! Lists: search, tags, order, pages, pins, deletion, restore, ambiguous links.

use std::sync::Arc;
use std::time::Duration;

use harness::{TestServer, engines, test_server};
use serde_json::{Value, json};

/// Saves scenarios with these titles, one per second.
async fn save_scenarios(server: &TestServer, titles: &[&str]) -> Vec<String> {
    let mut ids = Vec::new();
    for (seed, title) in titles.iter().enumerate() {
        let mut scenario = test_server::scenario();
        scenario["seed"] = json!(7000 + 100 * titles.len() + seed);
        scenario["title"] = json!(title);
        let id = server.store(&scenario).await;
        server.post(&api::path::keep(&id), "").await;
        server.clock.advance(Duration::from_secs(1));
        ids.push(id);
    }
    ids
}

async fn patch(server: &TestServer, path: &str, changes: Value) -> harness::Reply {
    let request = axum::http::Request::patch(path)
        .header("content-type", "application/json")
        .body(axum::body::Body::from(changes.to_string()))
        .unwrap();
    server.send(request).await
}

/// Returns the names in a list, in order.
async fn names(server: &TestServer, list: &str, key: &str, name: &str) -> Vec<String> {
    let list: Value = server.get(list).await.json();
    list[key].as_array().unwrap().iter().map(|thing| thing[name].as_str().unwrap().to_owned()).collect()
}

async fn titles(server: &TestServer, query: &str) -> Vec<String> {
    names(server, &format!("{}{query}", api::path::SCENARIOS), "scenarios", "title").await
}

#[tokio::test]
async fn scenarios_are_filtered_by_terms_and_tags_and_sorted() {
    let server = TestServer::open().await;
    let ids = save_scenarios(&server, &["alpha 100%", "Beta a_b", "gamma axb"]).await;
    let changed = patch(
        &server,
        &api::path::scenario(&ids[1]),
        json!({"note": " slow <b>node</b> ", "tags": ["night", "a100", "night"], "pinned": true}),
    )
    .await;
    assert_eq!(changed.status, 200, "{changed:?}");
    let changed: Value = changed.json();
    assert_eq!(
        (&changed["note"], &changed["tags"], &changed["pinned"]),
        (&json!("slow <b>node</b>"), &json!(["a100", "night"]), &json!(true))
    );

    // Pinned entries are first in all orders, then the newest.
    assert_eq!(titles(&server, "").await, ["Beta a_b", "gamma axb", "alpha 100%"]);
    assert_eq!(titles(&server, "?sort=name").await, ["Beta a_b", "alpha 100%", "gamma axb"]);
    assert_eq!(titles(&server, "?sort=-name").await, ["Beta a_b", "gamma axb", "alpha 100%"]);
    assert_eq!(titles(&server, "?sort=created").await, ["Beta a_b", "alpha 100%", "gamma axb"]);
    for sort in ["model", "-cluster", "planner", "time"] {
        assert_eq!(titles(&server, &format!("?sort={sort}")).await.len(), 3);
    }
    // Pattern characters are literal. All words must match, in any position.
    for (query, found) in [
        ("?q=%25", &["alpha 100%"][..]),
        ("?q=a_b", &["Beta a_b"]),
        ("?q=SLOW+llama", &["Beta a_b"]),
        ("?q=night+gamma", &[]),
        ("?search=axb", &["gamma axb"]),
        ("?q=llama-2&tag=night", &["Beta a_b"]),
        ("?q=gpt-3&tag=night", &[]),
        ("?tag=night", &["Beta a_b"]),
        ("?tag=nigh", &[]),
        ("?q=%27%3B+DROP+TABLE+scenario", &[]),
        ("?lang=..%2F..%2F&q=100%25", &["alpha 100%"]),
    ] {
        assert_eq!(titles(&server, query).await, found, "{query}");
    }
    let list: Value = server.get(api::path::SCENARIOS).await.json();
    assert_eq!(
        (&list["total"], &list["tags"], &list["retention_days"]),
        (&json!(3), &json!(["a100", "night"]), &json!(30))
    );
    assert!(list["stored_bytes"].as_u64().unwrap() > 500, "{list}");

    let too_long = format!("?q={}", "x".repeat(201));
    for wrong in ["?sort=colour", "?limit=many", "?deleted=perhaps", &too_long] {
        let reply = server.get(&format!("{}{wrong}", api::path::SCENARIOS)).await;
        assert_eq!(reply.problem().status, 400, "{wrong}");
    }
    assert_eq!(titles(&server, "?limit=100000").await.len(), 3, "more than 200 is 200");
}

#[tokio::test]
async fn pages_stay_where_they_are_while_things_are_stored() {
    let server = TestServer::open().await;
    let names: Vec<String> = (0..7).map(|number| format!("s{number}")).collect();
    save_scenarios(&server, &names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let page = async |after: &str| -> Value {
        server.get(&format!("{}?limit=3&after={after}", api::path::SCENARIOS)).await.json()
    };
    let titles = |page: &Value| -> Vec<String> {
        page["scenarios"].as_array().unwrap().iter().map(|line| line["title"].as_str().unwrap().to_owned()).collect()
    };
    let first = page("").await;
    assert_eq!(
        (titles(&first), &first["before"], &first["previous"]),
        (vec!["s6".into(), "s5".into(), "s4".into()], &json!(0), &Value::Null)
    );

    // Meanwhile two scenarios are added, one is renamed and one deleted.
    save_scenarios(&server, &["n0", "n1"]).await;
    let last_seen = first["next"].as_str().unwrap().to_owned();
    assert_eq!(server.delete(&api::path::scenario(&last_seen)).await.status, 204);
    let second = page(&last_seen).await;
    assert_eq!(titles(&second), ["s3", "s2", "s1"], "nothing twice, nothing left out");
    // Before it are n1, n0, s6, s5.
    assert_eq!((&second["before"], &second["total"]), (&json!(4), &json!(8)));
    let third = page(second["next"].as_str().unwrap()).await;
    assert_eq!((titles(&third), &third["next"]), (vec!["s0".to_owned()], &Value::Null));
    // The page before the third page is the second.
    assert_eq!(titles(&page(third["previous"].as_str().unwrap()).await), ["s3", "s2", "s1"]);
    let back = page(second["previous"].as_str().unwrap()).await;
    assert_eq!(titles(&back), ["n0", "s6", "s5"], "three things before s3");
    assert_eq!(back["previous"], json!(""), "and before them the first page");
    assert_eq!(titles(&page("nothing").await).len(), 0);

    let mut by_name = Vec::new();
    let mut after = String::new();
    loop {
        let page: Value = server.get(&format!("{}?limit=2&sort=name&after={after}", api::path::SCENARIOS)).await.json();
        by_name.extend(titles(&page));
        let Some(next) = page["next"].as_str() else { break };
        after = next.to_owned();
    }
    assert_eq!(by_name, ["n0", "n1", "s0", "s1", "s2", "s3", "s5", "s6"]);
}

#[tokio::test]
async fn all_invalid_annotations_are_reported() {
    let server = TestServer::open().await;
    let id = save_scenarios(&server, &["one"]).await.remove(0);
    let dataset =
        server.post(api::path::DATASETS, "5 7 9").await.json::<Value>()["dataset"]["id"].as_str().unwrap().to_owned();
    for path in [api::path::scenario(&id), api::path::dataset(&dataset)] {
        let wrong = patch(&server, &path, json!({"name": "\u{200b}", "tags": ["ok", "", "x".repeat(41)]})).await;
        assert_eq!((wrong.status, wrong.pointers()), (422, vec!["/name".into(), "/tags/1".into(), "/tags/2".into()]));
        let many: Vec<String> = (0..33).map(|number| number.to_string()).collect();
        assert_eq!(patch(&server, &path, json!({"tags": many})).await.pointers(), ["/tags"]);
        assert_eq!(patch(&server, &path, json!({"colour": 1})).await.problem().status, 400);
        let named: Value =
            patch(&server, &path, json!({"name": "a\u{202e}b<img src=x>", "note": "x".repeat(5000)})).await.json();
        let name = if named["name"].is_null() { &named["scenario"]["title"] } else { &named["name"] };
        assert_eq!((name, named["note"].as_str().unwrap().len()), (&json!("ab<img src=x>"), 4000));
    }
    assert_eq!(patch(&server, &api::path::scenario("aaaaaaaaaaaa"), json!({})).await.problem().status, 404);
    assert_eq!(patch(&server, &api::path::dataset("nothing"), json!({})).await.problem().status, 404);
}

/// A pinned draft would not be in any list.
#[tokio::test]
async fn a_pinned_scenario_that_is_deleted_and_stored_anew_is_in_the_list() {
    let server = TestServer::open().await;
    let id = server.store(&test_server::scenario()).await;
    patch(&server, &api::path::scenario(&id), json!({"pinned": true})).await;
    assert_eq!(server.delete(&api::path::scenario(&id)).await.status, 204);
    assert_eq!(server.store(&test_server::scenario()).await, id);
    let stored: Value = server.get(&api::path::scenario(&id)).await.json();
    assert_eq!((&stored["kept"], &stored["pinned"]), (&json!(true), &json!(true)));
    assert_eq!(titles(&server, "").await.len(), 1);
}

#[tokio::test]
async fn a_deleted_scenario_comes_back_with_its_outcome_until_its_days_are_over() {
    let calls = Arc::default();
    let server = TestServer::planning_with(engines::instant(&calls)).await;
    let id = save_scenarios(&server, &["comes back"]).await.remove(0);
    patch(&server, &api::path::scenario(&id), json!({"tags": ["t"], "note": "n", "pinned": true})).await;
    server.plan(&id).await;
    let before: Value = server.get(&api::path::outcome(&id)).await.json();
    assert_eq!(server.delete(&api::path::scenario(&id)).await.status, 204);

    let gone = server.get(&api::path::scenario(&id)).await;
    let problem = gone.problem();
    assert_eq!((problem.status, problem.kind.as_str()), (410, "/problems/deleted"));
    let deleted = problem.deleted.unwrap();
    assert_eq!(
        (deleted.at.as_str(), deleted.restore.as_deref()),
        ("2026-01-01T00:00:01Z", Some(api::path::scenario_restore(&id).as_str()))
    );
    assert_eq!(titles(&server, "").await.len(), 0);
    assert_eq!(titles(&server, "?deleted=true").await, ["comes back"]);
    assert_eq!(server.get("/api/v1/plans").await.json::<Value>()["total"], 0);

    let restored: Value = server.post(&deleted.restore.unwrap(), "").await.json();
    assert_eq!(
        (&restored["kept"], &restored["tags"], &restored["note"], &restored["pinned"]),
        (&json!(true), &json!(["t"]), &json!("n"), &json!(true))
    );
    assert_eq!(server.get(&api::path::outcome(&id)).await.json::<Value>(), before);
    assert_eq!(server.post(&api::path::scenario_restore(&id), "").await.status, 200, "again is no harm");
    assert_eq!(server.post(&api::path::scenario_restore("nothing"), "").await.problem().status, 404);

    assert_eq!(server.delete(&api::path::scenario(&id)).await.status, 204);
    server.clock.advance(Duration::from_hours(24 * 30));
    assert_eq!(server.post(&api::path::scenario_restore(&id), "").await.status, 200, "the last moment");
    assert_eq!(server.delete(&api::path::scenario(&id)).await.status, 204);
    server.clock.advance(Duration::from_hours(24 * 30 + 1));
    for reply in [server.post(&api::path::scenario_restore(&id), "").await, server.get(&api::path::scenario(&id)).await]
    {
        let problem = reply.problem();
        assert_eq!((problem.status, problem.deleted.unwrap().restore), (410, None));
    }
    assert_eq!(titles(&server, "?deleted=true").await.len(), 0);
    // Stored again, it is a draft without annotations.
    let mut scenario = test_server::scenario();
    scenario["seed"] = json!(7100);
    assert_eq!(server.store(&scenario).await, id);
    let anew: Value = server.get(&api::path::scenario(&id)).await.json();
    assert_eq!((&anew["kept"], &anew["tags"]), (&json!(false), &json!([])));
    assert_eq!(server.get(&api::path::outcome(&id)).await.problem().status, 404);
}

#[tokio::test]
async fn a_deleted_dataset_comes_back_and_its_scenario_can_be_planned_again() {
    let server = TestServer::open().await;
    let upload = async |name: &str, lengths: &str| -> String {
        let reply: Value =
            server.post(&format!("{}?name={name}", api::path::DATASETS), lengths.to_owned()).await.json();
        server.clock.advance(Duration::from_secs(1));
        reply["dataset"]["id"].as_str().unwrap().to_owned()
    };
    let (small, large) = (upload("b.txt", "5 7 9").await, upload("a.txt", "5 7 9 11 13").await);
    let listed =
        async |query: &str| names(&server, &format!("{}{query}", api::path::DATASETS), "datasets", "name").await;
    assert_eq!(listed("").await, ["a.txt", "b.txt"]);
    assert_eq!(listed("?sort=-samples").await, ["a.txt", "b.txt"]);
    assert_eq!(listed("?sort=size").await, ["b.txt", "a.txt"]);
    patch(&server, &api::path::dataset(&small), json!({"name": "short ones", "tags": ["lab"], "pinned": true})).await;
    assert_eq!(listed("").await, ["short ones", "a.txt"]);
    assert_eq!(listed("?q=LAB").await, ["short ones"]);

    let mut scenario = test_server::scenario();
    scenario["workload"]["samples"] = json!({"kind": "dataset", "id": small});
    let id = server.store(&scenario).await;
    assert_eq!(server.delete(&api::path::dataset(&small)).await.status, 204);
    let problem = server.get(&api::path::dataset(&small)).await.problem();
    assert_eq!(problem.deleted.unwrap().restore, Some(api::path::dataset_restore(&small)));
    assert_eq!(server.post(&api::path::plan(&id), "").await.status, 422);
    assert_eq!(
        (listed("").await, listed("?deleted=true").await),
        (vec!["a.txt".to_owned()], vec!["short ones".to_owned()])
    );
    let list: Value = server.get(api::path::DATASETS).await.json();
    assert!(list["deleted_bytes"].as_u64().unwrap() > 0 && list["stored_bytes"].as_u64().unwrap() > 0);

    let restored: Value = server.post(&api::path::dataset_restore(&small), "").await.json();
    assert_eq!(
        (&restored["name"], &restored["tags"], &restored["pinned"]),
        (&json!("short ones"), &json!(["lab"]), &json!(true))
    );
    assert!(matches!(server.post(&api::path::plan(&id), "").await.status, 200 | 202));

    assert_eq!(server.delete(&api::path::dataset(&large)).await.status, 204);
    server.clock.advance(Duration::from_hours(24 * 30 + 1));
    assert_eq!(server.post(&api::path::dataset_restore(&large), "").await.problem().status, 410);
    // Uploaded again, it is new.
    assert_eq!(upload("c.txt", "5 7 9 11 13").await, large);
    let again: Value = server.get(&api::path::dataset(&large)).await.json();
    assert_eq!(
        (&again["name"], &again["samples"], &again["text_tokens"]["max"]),
        (&json!("c.txt"), &json!(5), &json!(13.0))
    );
}

#[tokio::test]
async fn plans_from_all_scenarios_are_listed() {
    let server = TestServer::open().await;
    let id = server.store(&test_server::scenario()).await;
    server.plan(&id).await;
    let outcome: Value = server.get(&api::path::outcome(&id)).await.json();
    let list: Value = server.get("/api/v1/plans?sort=time").await.json();
    let plans = list["plans"].as_array().unwrap();
    let planned: Vec<&Value> = outcome["outcome"]["results"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|result| result["answer"]["status"] == "planned")
        .collect();
    assert!(!plans.is_empty() && plans.len() == planned.len(), "{list}");
    for (plan, result) in plans.iter().zip(planned) {
        assert_eq!(
            (&plan["planner"], &plan["scenario"], &plan["engine"]),
            (&result["planner"], &json!(id), &list["current_engine"])
        );
        assert_eq!(plan["iteration_s"], result["answer"]["metrics"]["iteration_s"]);
        assert_eq!(plan["layout"], result["answer"]["layout"]);
    }
    let first = plans[0]["planner"].as_str().unwrap();
    assert_eq!(server.get(&format!("/api/v1/plans?planner={first}")).await.json::<Value>()["total"], 1);
    assert_eq!(server.get("/api/v1/plans?planner=magic").await.problem().status, 404);
    assert_eq!(server.get("/api/v1/plans?q=nothing+of+this+name").await.json::<Value>()["total"], 0);
    assert_eq!(server.get("/api/v1/plans?engine=other").await.json::<Value>()["total"], 0);
}

#[tokio::test]
async fn an_ambiguous_link_names_its_candidates() {
    let server = TestServer::open().await;
    let id = save_scenarios(&server, &["the one"]).await.remove(0);
    for last in ["a", "b"] {
        let planted = format!("{}{}", "q".repeat(15), last.repeat(37));
        let mut write = server.store.writer().begin().await.unwrap();
        sqlx::query("INSERT INTO scenario (id, title, kept, created_at_ms, used_at_ms, scenario_json) SELECT ?, ?, 1, 0, 0, scenario_json FROM scenario WHERE id = ?")
            .bind(&planted)
            .bind(format!("candidate {last}"))
            .bind(&id)
            .execute(&mut *write)
            .await
            .unwrap();
        write.commit().await.unwrap();
        if last == "b" {
            assert_eq!(server.delete(&api::path::scenario(&planted)).await.status, 204);
        }
    }
    let problem = server.get(&api::path::scenario(&"Q".repeat(12))).await.problem();
    let candidates = problem.scenarios();
    assert_eq!((problem.status, candidates.len()), (300, 2));
    let (first, second) = (&candidates[0], &candidates[1]);
    assert_eq!(
        (first.title.as_str(), first.short.as_str(), &first.deleted_at),
        ("candidate a", format!("{}a", "q".repeat(15)).as_str(), &None)
    );
    assert!(second.deleted_at.is_some());
    assert_eq!(
        server.get(&api::path::scenario(&first.short)).await.json::<Value>()["scenario"]["title"],
        "candidate a"
    );
}

/// Links in all formats of earlier versions.
#[derive(serde::Deserialize)]
struct Fixture {
    links: Vec<Link>,
}

#[derive(serde::Deserialize)]
struct Link {
    form: String,
    #[serde(rename = "link")]
    address: String,
    id: String,
}

#[tokio::test]
async fn every_link_format_opens() {
    let server = TestServer::open().await;
    let fixture: Fixture = serde_json::from_str(include_str!("../../e2e/fixtures/links.json")).unwrap();
    let example: Value =
        serde_json::from_str(include_str!("../../../examples/llama-2-7b-long-documents.json")).unwrap();
    assert!(fixture.links.len() >= 4);
    for Link { form, address: link, id } in fixture.links {
        let scenario = match form.as_str() {
            "stored" => example.clone(),
            "self-contained" => api::contained::read(link.split_once('#').unwrap().1).unwrap(),
            form => panic!("nobody opens {form} links"),
        };
        assert_eq!(server.store(&scenario).await, id, "{link}: the identifier of a question never changes");
        if form == "stored" {
            let (prefix, _) =
                link.trim_start_matches("/s/").split_once('#').unwrap_or((link.trim_start_matches("/s/"), ""));
            assert_eq!(server.get(&api::path::scenario(prefix)).await.json::<Value>()["id"], json!(id));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_and_traces_round_trip() {
    let server = TestServer::open().await;
    let id = server.store(&test_server::scenario()).await;
    server.plan(&id).await;
    let timeline: planner::timeline::Timeline =
        server.get_as(&api::path::timeline(&id, "1f1b", 0), "application/json").await.json();
    let trace = server.get(&api::path::timeline_trace(&id, "1f1b", 0)).await;
    assert!(trace.header("content-disposition").contains(".trace.json"), "{trace:?}");
    let sent: Value = server.post(api::path::TRACES, trace.body.clone()).await.json();
    assert_eq!(sent["trace"]["slices"], json!(timeline.len()), "as many slices as spans");
    assert_eq!(sent["report"]["skipped"], 0);
    // Forwards, backwards and their sends are actions.
    assert!(sent["trace"]["actions"].as_u64().unwrap() >= 2 * 4, "{sent}");
    let trace_id = sent["trace"]["id"].as_str().unwrap();
    let observed: planner::timeline::Timeline =
        server.get_as(&api::path::trace_timeline(trace_id, 0), "application/json").await.json();
    assert_eq!(observed.ranks, timeline.ranks);

    let arguments = server.get(&api::path::megatron_arguments(&id, "1f1b")).await;
    for argument in [
        "--tensor-model-parallel-size 2\n",
        "--pipeline-model-parallel-size 4\n",
        "--global-batch-size ",
        "# WARNING: Batch: sequences of the job are full",
        "--num-layers 32\n",
        "--hidden-size 4096\n",
        "--ffn-hidden-size 11008\n",
        "--seq-length 4096\n",
        "--swiglu\n",
        "--normalization RMSNorm\n",
        "--make-vocab-size-divisible-by 128\n",
        "# WARNING: Padding: the vocabulary of the plan is 32000",
    ] {
        assert!(arguments.text().contains(argument), "{argument}: {}", arguments.text());
    }
    let interleaved = server.get(&api::path::megatron_arguments(&id, "interleaved")).await;
    assert!(interleaved.text().contains("--num-layers-per-virtual-pipeline-stage "), "{}", interleaved.text());
    let refused = server.get(&api::path::megatron_arguments(&id, "wait_free_cyclic")).await;
    assert_eq!((refused.status, refused.problem().kind.as_str()), (422, "/problems/not-exportable"));
    assert_eq!(server.get(&api::path::megatron_arguments(&id, "gpipe")).await.problem().status, 404);

    let job = server.get(&api::path::torchtitan_job(&id, "interleaved")).await;
    for setting in
        ["pipeline_parallel_schedule = \"Interleaved1F1B\"\n", "tensor_parallel_degree = 2\n", "\"layers.31\""]
    {
        assert!(job.text().contains(setting), "{setting}: {}", job.text());
    }
    let refused = server.get(&api::path::torchtitan_job(&id, "wait_free_cyclic")).await;
    assert_eq!((refused.status, refused.problem().kind.as_str()), (422, "/problems/not-exportable"));

    let table = server.get(&api::path::outcome_csv(&id)).await;
    let lines: Vec<&str> = table.text().lines().collect();
    assert_eq!((lines.len(), &lines[0][..22]), (4, "planner,title,status,i"));
    let outcome: Value = server.get(&api::path::outcome(&id)).await.json();
    let fastest = outcome["outcome"]["results"][0]["answer"]["metrics"]["iteration_s"].as_f64().unwrap();
    assert!(lines[1].contains(&format!(",planned,{fastest},")), "{} is not {fastest}", lines[1]);
}

#[tokio::test]
async fn runs_traces_and_profiles_are_pinned_too() {
    let server = TestServer::open().await;
    let mut runs = Vec::new();
    for name in ["first", "second"] {
        let created: Value = server.post(api::path::RUNS, json!({"name": name}).to_string()).await.json();
        runs.push(created["run"].as_str().unwrap().to_owned());
        server.clock.advance(Duration::from_secs(1));
    }
    assert_eq!(patch(&server, &api::path::run(&runs[0]), json!({"pinned": true, "tags": ["x"]})).await.status, 200);
    assert_eq!(names(&server, "/api/v1/runs", "runs", "name").await, ["first", "second"]);
    assert_eq!(names(&server, "/api/v1/runs?q=x+first", "runs", "name").await, ["first"]);
    assert_eq!(patch(&server, &api::path::run(&runs[0]), json!({"pinned": false})).await.status, 200);
    assert_eq!(names(&server, "/api/v1/runs?sort=-created", "runs", "name").await, ["second", "first"]);
    assert_eq!(server.delete(&api::path::run(&runs[1])).await.status, 204);
    assert_eq!(names(&server, "/api/v1/runs?deleted=true", "runs", "name").await, ["second"]);

    let slice = |name: &str| json!([{"ph": "X", "name": name, "pid": 0, "tid": 1, "ts": 0, "dur": 5}]).to_string();
    let mut traces = Vec::new();
    for name in ["one", "two"] {
        let sent: Value = server.post(&format!("{}?name={name}", api::path::TRACES), slice(name)).await.json();
        traces.push(sent["trace"]["id"].as_str().unwrap().to_owned());
        server.clock.advance(Duration::from_secs(1));
    }
    assert_eq!(patch(&server, &api::path::trace(&traces[0]), json!({"pinned": true})).await.status, 200);
    assert_eq!(names(&server, "/api/v1/traces", "traces", "name").await, ["one", "two"]);
    assert_eq!(names(&server, "/api/v1/traces?limit=1&sort=-name", "traces", "name").await, ["one"]);
    assert_eq!(
        names(&server, &format!("/api/v1/traces?limit=1&sort=-name&after={}", traces[0]), "traces", "name").await,
        ["two"]
    );
}
