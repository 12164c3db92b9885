//! Tests that each kind of violation is detected.

use std::num::NonZeroU32;

use super::*;
use planscope_core::action::{Action, Schedule};
use planscope_core::units::Nanos;
use planscope_cost::cost::{PipelineCosts, UniformTimes};
use planscope_pipeline::execution_plan::{Buffers, PlanAction, PlanActionKind, compile};
use planscope_pipeline::schedule::one_f_one_b;
use planscope_pipeline::simulate::{StepEnd, assemble, execute};

use PlanActionKind::{BackwardStage, ForwardStage, Irecv, Isend, WaitIrecv, WaitIsend};

fn times() -> UniformTimes {
    let ten = Nanos::new(10);
    UniformTimes { forward: ten, input_grad: ten, weight_grad: ten, communication: Nanos::new(1) }
}

fn build_timeline(costs: &PipelineCosts) -> Timeline {
    let schedule = one_f_one_b(costs.ranks(), costs.flows.microbatches());
    let execution = execute(&schedule, costs).unwrap();
    assemble(&schedule, &execution, costs, &StepEnd::from_executions(costs.ranks(), std::iter::once(&execution)))
}

fn timeline(ranks: usize, microbatches: usize) -> Timeline {
    build_timeline(&PipelineCosts::uniform(ranks, 1, microbatches, times()))
}

/// Returns the first index of an action in a rank's list.
fn action_index(plan: &ExecutionPlan, rank: usize, action: PlanActionKind, microbatch: u32) -> usize {
    let is_it = |candidate: &PlanAction| candidate.action == action && candidate.microbatch == microbatch;
    plan.ranks[rank].iter().position(is_it).expect("it is there")
}

fn action(plan: &mut ExecutionPlan, rank: usize, kind: PlanActionKind, microbatch: u32) -> &mut PlanAction {
    let index = action_index(plan, rank, kind, microbatch);
    &mut plan.ranks[rank][index]
}

/// Validates a modified 1F1B plan with three ranks and four microbatches.
fn spoilt(spoil: impl FnOnce(&mut ExecutionPlan)) -> ExecutionViolation {
    let timeline = timeline(3, 4);
    let mut plan = compile(&timeline, Buffers::default()).unwrap();
    assert!(check_execution_plan(&plan, &timeline).is_ok());
    spoil(&mut plan);
    check_execution_plan(&plan, &timeline).unwrap_err()
}

/// Validates the plan after removing an action.
fn without(rank: usize, action: PlanActionKind, microbatch: u32) -> ExecutionViolation {
    spoilt(|plan| {
        let index = action_index(plan, rank, action, microbatch);
        plan.ranks[rank].remove(index);
    })
}

/// Moves an action to a different position in the rank's list and copies the start time at that
/// position.
fn moved(plan: &mut ExecutionPlan, rank: usize, from: usize, to: usize) {
    let mut action = plan.ranks[rank].remove(from);
    let before = plan.ranks[rank][..to].last().map_or(0, |before| before.start_ns);
    action.start_ns = action.start_ns.max(before).min(plan.ranks[rank].get(to).map_or(u64::MAX, |next| next.start_ns));
    plan.ranks[rank].insert(to, action);
}

#[test]
fn reordered_channel_receives_are_detected() {
    let swapped = spoilt(|plan| {
        let [first, second] = [0, 1].map(|microbatch| action_index(plan, 1, Irecv, microbatch));
        plan.ranks[1].swap(first, second);
    });
    assert_eq!(swapped, ExecutionViolation::Order { from: 0, to: 1, position: 0 });
    let tagged = spoilt(|plan| {
        for action in plan.ranks[1].iter_mut().filter(|action| action.microbatch == 2) {
            if let (Irecv | WaitIrecv, Some(transfer)) = (action.action, &mut action.transfer) {
                transfer.tag += 10 * u32::from(transfer.peer == 0);
            }
        }
    });
    assert_eq!(tagged, ExecutionViolation::Order { from: 0, to: 1, position: 2 });
    let sized = spoilt(|plan| {
        let index = action_index(plan, 2, Irecv, 0);
        let transfer = plan.ranks[2][index].transfer;
        for action in plan.ranks[2].iter_mut().filter(|action| action.transfer == transfer) {
            action.transfer.as_mut().unwrap().bytes = Some(7);
        }
    });
    assert_eq!(sized, ExecutionViolation::Order { from: 1, to: 2, position: 0 });
}

#[test]
fn other_durations_are_found() {
    for (rank, kind) in [(0, ForwardStage), (2, BackwardStage), (0, Isend)] {
        let longer = spoilt(|plan| *action(plan, rank, kind, 1).duration_ns.as_mut().unwrap() += 1);
        assert!(
            matches!(longer, ExecutionViolation::Time(At { rank: found, .. }) if found == rank),
            "{kind:?}: {longer}"
        );
    }
    let mut costs = PipelineCosts::uniform(2, 1, 2, times());
    costs.optimizer.fill(Nanos::new(5));
    let timeline = build_timeline(&costs);
    let mut plan = compile(&timeline, Buffers::default()).unwrap();
    assert_eq!(plan.iteration_ns(), timeline.makespan_ns);
    assert!(check_execution_plan(&plan, &timeline).is_ok());
    plan.endings[1].start_ns += 1;
    assert_eq!(check_execution_plan(&plan, &timeline), Err(ExecutionViolation::Ending));
}

#[test]
fn missing_actions_are_detected() {
    assert!(matches!(without(1, WaitIrecv, 0), ExecutionViolation::Unfed(At { rank: 1, .. })));
    assert!(matches!(without(0, WaitIsend, 3), ExecutionViolation::Unwaited(At { rank: 0, .. })));
    assert!(matches!(without(1, Irecv, 2), ExecutionViolation::Unstarted(At { rank: 1, .. })));
    assert!(matches!(without(0, Isend, 1), ExecutionViolation::Unstarted(At { rank: 0, .. })));
    assert!(matches!(without(2, ForwardStage, 1), ExecutionViolation::Reordered(At { rank: 2, .. })));
    let last = without(0, BackwardStage, 3);
    assert_eq!(last, ExecutionViolation::Missing { rank: 0, stage: 0, microbatch: 3 });
    let unsent = spoilt(|plan| {
        let unsent = |action: &PlanAction| matches!(action.action, Isend | WaitIsend) && action.microbatch == 1;
        plan.ranks[0].retain(|action| !unsent(action));
    });
    assert!(matches!(unsent, ExecutionViolation::Unmatched(At { rank: 1, .. }, 0)), "{unsent}");
    assert_eq!(spoilt(|plan| plan.ranks.truncate(2)), ExecutionViolation::Ranks { found: 2, expected: 3 });
}

#[test]
fn no_action_can_be_left_out() {
    let timeline = timeline(3, 4);
    let plan = compile(&timeline, Buffers::default()).unwrap();
    for rank in 0..3 {
        for index in 0..plan.ranks[rank].len() {
            let mut shorter = plan.clone();
            shorter.ranks[rank].remove(index);
            assert!(check_execution_plan(&shorter, &timeline).is_err(), "rank {rank}, action {index}");
        }
    }
}

#[test]
fn superfluous_or_early_actions_are_detected() {
    let twice = |action| {
        spoilt(move |plan| {
            let index = action_index(plan, 1, action, 0);
            let again = plan.ranks[1][index];
            plan.ranks[1].insert(index + 1, again);
        })
    };
    for action in [ForwardStage, BackwardStage, Isend, Irecv, WaitIsend, WaitIrecv] {
        assert!(matches!(twice(action), ExecutionViolation::Repeated(At { rank: 1, .. })), "{action:?}");
    }
    let foreign = spoilt(|plan| action(plan, 1, ForwardStage, 0).stage = 2);
    assert!(matches!(foreign, ExecutionViolation::Foreign(At { rank: 1, .. })), "{foreign}");
    let early = spoilt(|plan| {
        let (send, stage) = (action_index(plan, 0, Isend, 2), action_index(plan, 0, ForwardStage, 2));
        moved(plan, 0, send, stage);
    });
    assert!(matches!(early, ExecutionViolation::Unmade(At { rank: 0, .. })), "{early}");
    let unneeded = spoilt(|plan| action(plan, 0, Isend, 2).transfer.as_mut().unwrap().peer = 2);
    assert!(matches!(unneeded, ExecutionViolation::Unneeded(At { rank: 0, .. })), "{unneeded}");
    let self_transfer = spoilt(|plan| action(plan, 0, Isend, 2).transfer.as_mut().unwrap().peer = 0);
    assert!(matches!(self_transfer, ExecutionViolation::Malformed(At { rank: 0, .. })), "{self_transfer}");
    let bare = spoilt(|plan| action(plan, 0, Isend, 2).transfer = None);
    assert!(matches!(bare, ExecutionViolation::Malformed(At { rank: 0, .. })), "{bare}");
    let torn = spoilt(|plan| action(plan, 0, ForwardStage, 2).with_next = true);
    assert!(matches!(torn, ExecutionViolation::Torn(At { rank: 0, .. })), "{torn}");
    let late = spoilt(|plan| action(plan, 2, ForwardStage, 0).start_ns += 1);
    assert!(matches!(late, ExecutionViolation::Time(At { rank: 2, .. })), "{late}");
    let split = spoilt(|plan| {
        let batch = plan.ranks[1].iter().rfind(|action| action.action == Isend).unwrap().transfer.unwrap().batch;
        plan.ranks[1][0].transfer.as_mut().unwrap().batch = batch;
    });
    assert!(matches!(split, ExecutionViolation::Unstarted(_) | ExecutionViolation::Batch(_)), "{split}");
}

/// Each rank blocks on its sends before it launches the receives that these sends need.
#[test]
fn sends_that_meet_head_on_are_a_circle() {
    let timeline = timeline(2, 2);
    let mut plan = compile(&timeline, Buffers::uniform(NonZeroU32::MIN)).unwrap();
    // Rank 0 launches the receive of gradient 0 only after send 1 is complete. Rank 1 launches the
    // receive of activation 1 only after send 0 is complete.
    for (rank, send, receive) in [(0, 1, 0), (1, 0, 1)] {
        let wait = action_index(&plan, rank, WaitIsend, send);
        let behind = action_index(&plan, rank, Isend, send) + 1;
        moved(&mut plan, rank, wait, behind);
        let (from, to) = (action_index(&plan, rank, Irecv, receive), action_index(&plan, rank, WaitIrecv, receive) - 1);
        moved(&mut plan, rank, from, to);
    }
    let violation = check_execution_plan(&plan, &timeline).unwrap_err();
    let [first, second] =
        [(0, 1), (1, 0)].map(|(rank, send)| At { rank, index: action_index(&plan, rank, WaitIsend, send) });
    assert_eq!(violation, ExecutionViolation::Deadlock(vec![first, second]));
    let message = format!("deadlock: {first} waits for rank 1; {second} waits for rank 0");
    assert_eq!(violation.to_string(), message);
}

/// A batch completes when all transfers are done. Here, receive 1 depends on work that needs
/// receive 0.
#[test]
fn a_batch_that_delays_its_input_is_a_cycle() {
    let timeline = timeline(2, 3);
    let mut plan = compile(&timeline, Buffers::UNLIMITED).unwrap();
    let mut merged = plan.ranks[1].iter().filter(|action| action.action == Irecv).map(|action| action.transfer);
    let batch = merged.next().flatten().unwrap().batch;
    for action in plan.ranks[1].iter_mut().filter(|action| matches!(action.action, Irecv | WaitIrecv)) {
        action.transfer.as_mut().unwrap().batch = batch;
    }
    let violation = check_execution_plan(&plan, &timeline).unwrap_err();
    let at =
        [(0, 0), (1, 0)].map(|(rank, microbatch)| At { rank, index: action_index(&plan, rank, WaitIrecv, microbatch) });
    assert_eq!(violation, ExecutionViolation::Deadlock(at.to_vec()));
}

/// F 10, B 20, sends 30, two microbatches. With a single receive buffer, activation 1 is sent when
/// the forward of microbatch 0 is done, at 50. In the timeline it is sent from 40 to 70.
#[test]
fn replay_reports_the_delay_from_few_buffers() {
    let times = UniformTimes {
        forward: Nanos::new(10),
        input_grad: Nanos::new(10),
        weight_grad: Nanos::new(10),
        communication: Nanos::new(30),
    };
    let costs = PipelineCosts::uniform(2, 1, 2, times);
    let orders = vec![
        [0, 1].map(|m| Action::forward(0, m)).into_iter().chain([0, 1].map(|m| Action::backward(0, m))).collect(),
        [0, 1].map(|m| Action::forward(1, m)).into_iter().chain([0, 1].map(|m| Action::backward(1, m))).collect(),
    ];
    let schedule = Schedule { stages: 2, microbatches: 2, orders };
    let execution = execute(&schedule, &costs).unwrap();
    let timeline = assemble(&schedule, &execution, &costs, &StepEnd::from_executions(2, std::iter::once(&execution)));
    let replay = |buffers| check_execution_plan(&compile(&timeline, buffers).unwrap(), &timeline).unwrap();
    // F1.1 at 70, B1.0 at 80, B1.1 at 100. The gradient of B1.1 is sent from 130 (when the link is
    // free) to 160. B0.1 runs until 180.
    assert_eq!(replay(Buffers::UNLIMITED), Replay { end_ns: 180, receives_held: 2, sends_held: 2 });
    // Activation 1 is sent from 50 to 80. B1.0 finishes at 110; its gradient arrives at 140 and
    // occupies the buffer until 160. Then gradient 1 is sent until 190.
    assert_eq!(replay(Buffers::uniform(NonZeroU32::MIN)), Replay { end_ns: 210, receives_held: 1, sends_held: 1 });
}
