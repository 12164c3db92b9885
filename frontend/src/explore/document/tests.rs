use serde_json::json;

use super::*;

fn stored(id: &str) -> Box<StoredScenario> {
    let example = include_str!("../../../../examples/vlm-s-image-heavy.json");
    let scenario = api::planner::scenario::parse(example).unwrap();
    let scenario = serde_json::to_value(&scenario).unwrap();
    let stored = json!({"id": id, "short": &id[..10], "scenario": scenario, "kept": false, "created_at": ""});
    Box::new(serde_json::from_value(stored).unwrap())
}

fn outcome() -> Box<StoredOutcome> {
    let histogram = json!({"edges": [0.0, 1.0], "counts": [1], "mean": 0.0, "median": 0.0, "p99": 0.0, "max": 0.0});
    let workload = json!({"sample_tokens": histogram, "sample_images": null});
    let outcome = json!({
        "outcome": {"engine": "1", "scenario": "abc", "batches": [], "workload": workload, "results": []},
        "planning_ms": [], "created_at": "", "current_engine": "1",
    });
    Box::new(serde_json::from_value(outcome).unwrap())
}

fn problem(status: u16) -> RequestError {
    let problem = json!({"type": "/problems/x", "title": "X", "status": status, "detail": ""});
    RequestError::Problem(Box::new(serde_json::from_value(problem).unwrap()))
}

fn open(name: &str) -> Command {
    Command::Open { name: name.to_owned(), is_shown: false, has_view: false }
}

const ID: &str = "abcdefghijkl";

/// Document that waits for the outcome of a stored scenario.
fn waiting() -> Document {
    let mut document = Document::default();
    document.command(open("abcdefghij"));
    let effects = document.respond(document.number(), Response::Fetched(Ok(stored(ID))));
    let fetch = Effect::FetchOutcome { name: "abcdefghij".to_owned() };
    assert_eq!(effects, [Effect::Remember(stored(ID)), fetch]);
    document
}

#[test]
fn a_stored_scenario_is_opened_with_its_outcome() {
    let mut document = Document::default();
    let fetch = Effect::FetchScenario { name: "abcdefghij".to_owned() };
    assert_eq!(document.command(open("abcdefghij")), [Effect::Clear, fetch]);
    let mut document = waiting();
    let shown = document.respond(document.number(), Response::OutcomeFetched(Ok(Some(outcome()))));
    assert_eq!(shown, [Effect::ShowOutcome(outcome()), Effect::ShowStored(stored(ID))]);
}

#[test]
fn a_stored_scenario_without_an_outcome_is_planned() {
    let mut document = waiting();
    let effects = document.respond(document.number(), Response::OutcomeFetched(Ok(None)));
    assert_eq!(effects, [Effect::ShowStored(stored(ID)), Effect::Plan { scenario: ID.to_owned() }]);
}

#[test]
fn the_editor_is_filled_if_the_outcome_cannot_be_fetched() {
    let mut document = waiting();
    let effects = document.respond(document.number(), Response::OutcomeFetched(Err(RequestError::Offline)));
    assert_eq!(effects, [Effect::ShowStored(stored(ID)), Effect::Fail(RequestError::Offline)]);
}

#[test]
fn a_deleted_scenario_is_removed_from_the_recent_ones() {
    for (status, is_gone) in [(404, true), (410, true), (300, false), (500, false)] {
        let mut document = Document::default();
        document.command(open("abcdefghij"));
        let effects = document.respond(document.number(), Response::Fetched(Err(problem(status))));
        let forget = Effect::Forget { name: "abcdefghij".to_owned() };
        let expected: Vec<Effect> =
            is_gone.then_some(forget).into_iter().chain([Effect::Fail(problem(status))]).collect();
        assert_eq!(effects, expected, "{status}");
    }
}

#[test]
fn the_shown_scenario_is_not_loaded_again() {
    let mut document = Document::default();
    let shown = |has_view| Command::Open { name: ID.to_owned(), is_shown: true, has_view };
    assert_eq!(document.command(shown(false)), [Effect::WriteAddress]);
    assert_eq!(document.command(shown(true)), [Effect::ReadView, Effect::WriteAddress]);
    assert_eq!(document, Document::default());
}

#[test]
fn responses_for_a_scenario_that_was_left_are_ignored() {
    let mut document = Document::default();
    document.command(open("abcdefghij"));
    let old = document.number();
    document.command(open("zzzzzzzzzz"));
    assert_eq!(document.respond(old, Response::Fetched(Ok(stored(ID)))), []);
    assert_eq!(document.respond(old, Response::Fetched(Err(problem(404)))), []);
    let effects = document.respond(document.number(), Response::Fetched(Ok(stored("zzzzzzzzzzzz"))));
    assert_eq!(effects[0], Effect::Remember(stored("zzzzzzzzzzzz")));
}

#[test]
fn a_new_scenario_is_created_and_planned() {
    let mut document = Document::default();
    let effects = document.command(Command::Create(Start::Draft));
    assert_eq!(effects, [Effect::Clear, Effect::CreateScenario(Start::Draft)]);
    let scenario = json!({"seed": 1});
    let created = Response::Created(Ok(scenario.clone()));
    assert_eq!(document.clone().respond(document.number(), created), [Effect::ShowCreated(scenario)]);
    let failed = document.respond(document.number(), Response::Created(Err(RequestError::Offline)));
    assert_eq!(failed, [Effect::Fail(RequestError::Offline)]);
}

#[test]
fn a_contained_scenario_shows_the_outcome_that_the_server_has() {
    let identity = |planned| ScenarioIdentity { id: ID.to_owned(), stored: planned, planned };
    let scenario = json!({"seed": 1});
    let mut document = Document::default();
    let effects = document.command(Command::OpenContained(scenario.clone()));
    assert_eq!(effects, [Effect::Clear, Effect::ShowContained(scenario.clone()), Effect::Identify(scenario)]);
    for unknown in [Ok(identity(false)), Err(RequestError::Offline)] {
        let mut document = document.clone();
        assert_eq!(document.respond(document.number(), Response::Identified(unknown)), [], "it stays unplanned");
    }
    // An edit makes the answer obsolete.
    let mut edited = document.clone();
    let old = edited.number();
    edited.command(Command::Edit);
    assert_eq!(edited.respond(old, Response::Identified(Ok(identity(true)))), []);
    let number = document.number();
    let effects = document.respond(number, Response::Identified(Ok(identity(true))));
    assert_eq!(effects, [Effect::FetchScenario { name: ID.to_owned() }]);
    let mut deleted = document.clone();
    assert_eq!(deleted.respond(number, Response::Fetched(Err(problem(404)))), [], "the link is still shown");
    let effects = document.respond(number, Response::Fetched(Ok(stored(ID))));
    assert_eq!(effects, [Effect::Remember(stored(ID)), Effect::FetchOutcome { name: ID.to_owned() }]);
}

#[test]
fn open_or_loading_scenario_is_not_opened_again() {
    let mut document = Document::default();
    document.command(open("abcdefghij"));
    assert!(document.is_same(None, "abcdefghij") && !document.is_same(None, "zzzzzzzzzz"));
    assert!(document.is_same(Some(ID), "abcdefghij"));
    assert!(!document.is_same(Some("zzzzzzzzzzzz"), "abcdefghij"), "it was opened before an edit");
    document.command(Command::Edit);
    assert!(document.is_same(None, "abcdefghij"), "an edit does not change the link");
    document.command(Command::Create(Start::Draft));
    assert!(!document.is_same(None, "abcdefghij"));
}
