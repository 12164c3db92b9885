//! Outcomes of an older engine version stay available next to the new ones.

use harness::{TestServer, test_server};
use planner::engine::{Unobserved, plan};
use planner::scenario::validate::NoDatasets;
use planner::scenario::{PlannerKind, ValidScenario, parse};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn outcome_from_an_older_engine_is_retained() {
    const OLDER: &str = "planscope 0.1.0";
    let server = TestServer::open().await;
    let scenario = test_server::scenario();
    let id = server.store(&scenario).await;
    let mut planning =
        plan(&ValidScenario::new(parse(&scenario.to_string()).unwrap(), &NoDatasets).unwrap(), &mut Unobserved)
            .unwrap();
    OLDER.clone_into(&mut planning.outcome.engine);
    let retained = PlannerKind::OneFOneB;
    planning.outcome.results.retain(|result| result.planner == retained);
    planning.timelines.retain(|planned| planned.planner == retained);
    let then = "2026-01-01T00:00:00Z".parse().unwrap();
    let older = server::store::NewOutcome::pack(planning, &[]);
    server.store.writer().store_outcome(&older, then).await.unwrap();
    server.plan(&id).await;

    let list: Value = server.get(&api::path::engine_answers(&id)).await.json();
    let engines: Vec<&str> =
        list["answers"].as_array().unwrap().iter().filter_map(|it| it["engine"].as_str()).collect();
    assert_eq!(engines, [planner::outcome::ENGINE, OLDER], "the latest first");
    let planners = |outcome: &Value| outcome["outcome"]["results"].as_array().unwrap().len();
    let present: Value = server.get(&api::path::outcome(&id)).await.json();
    let older: Value = server.get(&api::path::engine_outcome(&id, "planscope%200.1.0")).await.json();
    assert_eq!((&older["outcome"]["engine"], planners(&older)), (&json!(OLDER), 1));
    assert!(planners(&present) > 1);
    let timeline = |planner, engine| api::path::engine_timeline(&id, planner, 0, engine);
    assert_eq!(server.get(&timeline("1f1b", "planscope%200.1.0")).await.status, 200);
    assert_eq!(server.get(&timeline("interleaved", "planscope%200.1.0")).await.problem().status, 404);
    assert_eq!(server.get(&api::path::engine_outcome(&id, "nobody")).await.problem().status, 404);
}
