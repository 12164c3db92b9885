use api::planner::scenario::PlannerKind;
use api::problem::{FieldProblem, Problem};

use super::*;

fn job(id: &str) -> Job {
    Job { id: id.to_owned(), scenario: "abc".to_owned(), state: JobState::Queued }
}

fn running(done: u32) -> JobState {
    JobState::Running { planner: PlannerKind::Gpipe, phase: "searching".to_owned(), done, total: 9, best: None }
}

fn problem(status: u16, pointer: &str) -> RequestError {
    let errors = vec![FieldProblem { pointer: pointer.to_owned(), detail: "must be positive".to_owned() }];
    RequestError::Problem(Box::new(Problem {
        kind: "/problems/x".to_owned(),
        title: "X".to_owned(),
        status,
        detail: String::new(),
        errors,
        candidates: Vec::new(),
        deleted: None,
    }))
}

fn create() -> Vec<Effect> {
    vec![Effect::CreateJob { scenario: "abc".to_owned() }]
}

/// Request whose job runs, with its number.
fn following() -> (PlanRequest, u64) {
    let mut request = PlanRequest::default();
    request.command(Command::Plan);
    let number = request.number();
    assert_eq!(request.respond(number, Response::Stored(Ok("abc".to_owned()))), create());
    assert_eq!(request.respond(number, Response::JobCreated(Ok(job("j1")))), [Effect::FollowJob(job("j1"))]);
    (request, number)
}

#[test]
fn an_edit_is_stored_planned_and_shown() {
    let mut request = PlanRequest::default();
    assert_eq!(request.state(), PlanState::Idle);
    assert_eq!(request.command(Command::Edit), [Effect::StartDebounce]);
    assert_eq!(request.state(), PlanState::Sending);
    let number = request.number();
    assert_eq!(request.respond(number, Response::DebounceEnded), [Effect::StoreScenario]);
    assert_eq!(request.respond(number, Response::Stored(Ok("abc".to_owned()))), create());
    assert_eq!(request.state(), PlanState::Queued);
    request.respond(number, Response::JobCreated(Ok(job("j1"))));
    assert_eq!(request.respond(number, Response::JobChanged(running(3))), []);
    assert!(matches!(request.state(), PlanState::Running { done: 3, total: 9, .. }));
    let fetch = [Effect::FetchOutcome { scenario: "abc".to_owned() }];
    assert_eq!(request.respond(number, Response::JobEnded(Ok(JobState::Done))), fetch);
    assert!(matches!(request.state(), PlanState::Running { .. }), "the outcome is still loading");
    assert_eq!(request.respond(number, Response::OutcomeShown { is_feasible: true }), []);
    assert_eq!(request.state(), PlanState::Done);
    assert!(!request.state().is_pending());
    // The job has ended, so the next edit cancels nothing.
    assert_eq!(request.command(Command::Edit), [Effect::StartDebounce]);
}

#[test]
fn an_outcome_without_plans_is_infeasible() {
    let (mut request, number) = following();
    request.respond(number, Response::JobEnded(Ok(JobState::Done)));
    request.respond(number, Response::OutcomeShown { is_feasible: false });
    assert_eq!(request.state(), PlanState::Infeasible);
}

#[test]
fn results_of_older_requests_are_ignored() {
    let mut request = PlanRequest::default();
    request.command(Command::Edit);
    let old = request.number();
    request.command(Command::Edit);
    let before = request.clone();
    for response in [
        Response::DebounceEnded,
        Response::Stored(Ok("old".to_owned())),
        Response::Stored(Err(RequestError::Offline)),
        Response::JobChanged(running(1)),
        Response::JobEnded(Ok(JobState::Done)),
        Response::OutcomeShown { is_feasible: true },
        Response::Failed(RequestError::Offline),
        Response::TimelineFailed(RequestError::Offline),
    ] {
        assert_eq!(request.respond(old, response.clone()), [], "{response:?}");
        assert_eq!(request, before, "{response:?}");
    }
}

#[test]
fn results_that_do_not_fit_the_phase_are_ignored() {
    let (mut request, number) = following();
    for response in [Response::DebounceEnded, Response::PauseEnded, Response::Stored(Ok("x".to_owned()))] {
        let before = request.clone();
        assert_eq!(request.respond(number, response), []);
        assert_eq!(request, before);
    }
}

#[test]
fn an_edit_cancels_the_running_job() {
    let (mut request, number) = following();
    let cancel = Effect::CancelJob { id: "j1".to_owned() };
    assert_eq!(request.command(Command::Edit), [cancel, Effect::StartDebounce]);
    assert_eq!(request.respond(number, Response::JobEnded(Ok(JobState::Done))), []);
    assert_eq!(request.state(), PlanState::Sending);
    assert_eq!(request.command(Command::Edit), [Effect::StartDebounce], "the job is cancelled once");
}

#[test]
fn a_job_that_is_created_for_an_older_request_is_cancelled() {
    let mut request = PlanRequest::default();
    request.command(Command::Plan);
    let old = request.number();
    request.respond(old, Response::Stored(Ok("abc".to_owned())));
    request.command(Command::Edit);
    let cancel = [Effect::CancelJob { id: "late".to_owned() }];
    assert_eq!(request.respond(old, Response::JobCreated(Ok(job("late")))), cancel);
    assert_eq!(request.state(), PlanState::Sending);
}

#[test]
fn cancel_stops_the_job_and_ignores_its_end() {
    let (mut request, number) = following();
    assert_eq!(request.command(Command::Cancel), [Effect::CancelJob { id: "j1".to_owned() }]);
    assert_eq!(request.state(), PlanState::Cancelled);
    request.respond(number, Response::JobEnded(Ok(JobState::Cancelled)));
    request.respond(number, Response::OutcomeShown { is_feasible: true });
    assert_eq!(request.state(), PlanState::Cancelled);
    assert_eq!(request.command(Command::Plan), [Effect::StoreScenario], "it can be planned again");
}

#[test]
fn a_detached_job_is_followed_but_not_cancelled() {
    let (mut request, number) = following();
    assert_eq!(request.command(Command::DetachJob), []);
    assert_eq!(request.number(), number);
    request.respond(number, Response::JobChanged(running(5)));
    assert!(matches!(request.state(), PlanState::Running { done: 5, .. }));
    assert_eq!(request.command(Command::Edit), [Effect::StartDebounce]);
}

#[test]
fn a_job_that_another_page_cancels_is_created_again_up_to_the_limit() {
    let (mut request, number) = following();
    for attempt in 2..=MAX_ATTEMPTS {
        let effects = request.respond(number, Response::JobEnded(Ok(JobState::Cancelled)));
        assert_eq!(effects, create(), "attempt {attempt}");
        request.respond(number, Response::JobCreated(Ok(job("again"))));
    }
    assert_eq!(request.respond(number, Response::JobEnded(Ok(JobState::Cancelled))), []);
    assert_eq!(request.state(), PlanState::Cancelled);
}

#[test]
fn a_full_queue_is_tried_again_up_to_the_limit() {
    let mut request = PlanRequest::default();
    request.command(Command::Plan);
    let number = request.number();
    request.respond(number, Response::Stored(Ok("abc".to_owned())));
    for _ in 1..MAX_ATTEMPTS {
        let effects = request.respond(number, Response::JobCreated(Err(problem(503, "/seed"))));
        assert_eq!((effects, request.state()), (vec![Effect::StartPause], PlanState::Queued));
        assert_eq!(request.respond(number, Response::PauseEnded), create());
    }
    request.respond(number, Response::JobCreated(Err(problem(503, "/seed"))));
    assert!(matches!(request.state(), PlanState::Failed(error) if error.status() == Some(503)));
}

#[test]
fn validation_errors_are_shown_at_their_fields() {
    let mut request = PlanRequest::default();
    request.command(Command::Plan);
    let number = request.number();
    let effects = request.respond(number, Response::Stored(Err(problem(422, "/seed"))));
    let [Effect::ShowFieldErrors(errors)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(errors.at("/seed"), Some("must be positive"));
    assert!(matches!(request.state(), PlanState::Failed(_)));
}

#[test]
fn failures_end_the_request() {
    let (mut request, number) = following();
    let failed = JobState::Failed { detail: "out of memory".to_owned() };
    assert_eq!(request.respond(number, Response::JobEnded(Ok(failed))), []);
    assert_eq!(request.state(), PlanState::Failed(RequestError::Unreadable("out of memory".to_owned())));
    let (mut request, number) = following();
    let effects = request.respond(number, Response::JobEnded(Err(RequestError::Offline)));
    assert_eq!(effects, [Effect::AwaitServer], "planning goes on when the server answers");
    assert_eq!(request.state(), PlanState::Failed(RequestError::Offline));
    assert!(request.is_unanswered() && !request.is_unstored(), "the results are of an earlier scenario");
    // A timeline that cannot be loaded after the outcome is shown is an error, too.
    let (mut request, number) = following();
    request.respond(number, Response::JobEnded(Ok(JobState::Done)));
    request.respond(number, Response::OutcomeShown { is_feasible: true });
    request.respond(number, Response::TimelineFailed(RequestError::Offline));
    assert_eq!(request.state(), PlanState::Failed(RequestError::Offline));
    assert!(!request.is_unanswered(), "the outcome is shown");
}

#[test]
fn a_scenario_that_cannot_be_sent_is_not_stored() {
    let mut request = PlanRequest::default();
    request.command(Command::Plan);
    assert!(request.is_unstored());
    let effects = request.respond(request.number(), Response::Stored(Err(RequestError::Offline)));
    assert_eq!(effects, [Effect::AwaitServer]);
    assert!(request.is_unstored() && request.is_unanswered());
    request.command(Command::Plan);
    request.respond(request.number(), Response::Stored(Ok("abc".to_owned())));
    assert!(!request.is_unstored());
}

#[test]
fn a_cancelled_request_names_the_fastest_plan_before() {
    let (mut request, number) = following();
    let best = BestSoFar { planner: PlannerKind::OneFOneB, iteration_s: 24.2, step: 3 };
    let running =
        JobState::Running { planner: PlannerKind::Best, phase: "trying".into(), done: 1, total: 2, best: Some(best) };
    request.respond(number, Response::JobChanged(running));
    assert_eq!(request.best_before_cancel(), None);
    request.command(Command::Cancel);
    assert_eq!(request.best_before_cancel(), Some(best));
}

#[test]
fn an_opened_scenario_is_shown_or_planned() {
    let mut request = PlanRequest::default();
    request.command(Command::Open);
    assert_eq!(request.state(), PlanState::Opening);
    let number = request.number();
    let missing = Response::OutcomeMissing { scenario: "abc".to_owned() };
    assert_eq!(request.clone().respond(number, missing.clone()), create());
    assert_eq!(request.clone().respond(number, Response::ScenarioCreated), [Effect::StoreScenario]);
    let mut contained = request.clone();
    contained.respond(number, Response::ContainedShown);
    assert_eq!(contained.state(), PlanState::Idle);
    assert_eq!(contained.respond(number, missing), create());
    request.respond(number, Response::OutcomeShown { is_feasible: true });
    assert_eq!(request.state(), PlanState::Done);
}

#[test]
fn previews_are_accepted_until_the_outcome_is_shown_or_another_scenario_is_opened() {
    let mut request = PlanRequest::default();
    request.command(Command::Open);
    let opened = request.number();
    assert!(!request.accepts_preview(opened), "the scenario is loading");
    request.respond(opened, Response::OutcomeShown { is_feasible: true });
    request.command(Command::Edit);
    let first = request.number();
    assert!(request.is_storing() && request.accepts_preview(first));
    request.command(Command::Edit);
    let second = request.number();
    // A preview of the previous edit is newer than what is shown.
    assert!(request.accepts_preview(first) && request.accepts_preview(second));
    request.respond(second, Response::DebounceEnded);
    request.respond(second, Response::Stored(Ok("abc".to_owned())));
    request.respond(second, Response::JobCreated(Ok(job("j1"))));
    assert!(!request.is_storing() && request.accepts_preview(second), "a sketch is faster than the job");
    let mut done = request.clone();
    done.respond(second, Response::JobEnded(Ok(JobState::Done)));
    done.respond(second, Response::OutcomeShown { is_feasible: true });
    assert!(!done.accepts_preview(second));
    request.command(Command::Open);
    request.command(Command::Edit);
    assert!(!request.accepts_preview(second), "it belongs to the previous scenario");
}
