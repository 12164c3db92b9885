//! Hand-derived plans, and invariants for all plans.

use proptest::prelude::*;

use planscope_check::check::check_execution_plan;
use planscope_core::action::{Action, ActionKind, Schedule};
use planscope_core::random::Random;
use planscope_core::stage_graph::{Flows, Path, Placement};
use planscope_core::timeline::SpanKind;
use planscope_core::timeline::Timeline;
use planscope_core::units::Bytes;
use planscope_core::units::Nanos;
use planscope_cost::cost::{PipelineCosts, UniformTimes};
use planscope_pipeline::execution_plan::*;
use planscope_pipeline::schedule::dual_queue::{Interleaving, Priorities, interleave};
use planscope_pipeline::schedule::{Grouping, gpipe, interleaved, one_f_one_b};
use planscope_pipeline::simulate::{StepEnd, assemble, execute};
use std::num::NonZeroU32;

fn buffers(count: u32) -> Buffers {
    NonZeroU32::new(count).map_or(Buffers::UNLIMITED, Buffers::uniform)
}

fn times(forward: u64, gradient: u64, communication: u64) -> UniformTimes {
    let [forward, gradient, communication] = [forward, gradient, communication].map(Nanos::new);
    UniformTimes { forward, input_grad: gradient, weight_grad: gradient, communication }
}

fn timeline(schedule: &Schedule, costs: &PipelineCosts) -> Timeline {
    let execution = execute(schedule, costs).unwrap();
    assemble(schedule, &execution, costs, &StepEnd::from_executions(schedule.ranks(), std::iter::once(&execution)))
}

/// Short notation for an action: `F` or another letter for the type, then stage and microbatch.
/// Transfers add `a` or `g`, the peer and the batch.
fn notation(action: &PlanAction) -> String {
    let (stage, microbatch) = (action.stage, action.microbatch);
    let name = match action.action {
        PlanActionKind::ForwardStage => "F",
        PlanActionKind::BackwardStage => "B",
        PlanActionKind::InputGradStage => "I",
        PlanActionKind::WeightGradStage => "W",
        other => other.name(),
    };
    let transfer = action.transfer.map(|transfer| {
        let payload = if transfer.payload == Payload::Activation { "a" } else { "g" };
        format!(" {payload}{} {}#{} batch {}", transfer.peer_microbatch, transfer.peer, transfer.tag, transfer.batch)
    });
    format!("{:>3} {name} {stage}.{microbatch}{}", action.start_ns, transfer.unwrap_or_default())
}

fn lists(plan: &ExecutionPlan) -> String {
    let list = |(rank, list): (usize, &Vec<PlanAction>)| {
        let lines: Vec<String> = list.iter().map(notation).collect();
        format!("rank {rank}\n{}\n", lines.join("\n"))
    };
    plan.ranks.iter().enumerate().map(list).collect()
}

/// F 10, B 20, sends 1: rank 0 runs F0 0-10, F1 10-20, B0 42-62, B1 72-92, rank 1 F0 11-21, B0
/// 21-41, F1 41-51, B1 51-71. The second activation arrives at 21, but rank 1 needs the first
/// already at 11, so a common batch would delay it.
#[test]
fn two_microbatches_in_1f1b_on_two_ranks() {
    let timeline = timeline(&one_f_one_b(2, 2), &PipelineCosts::uniform(2, 1, 2, times(10, 10, 1)));
    let plan = compile(&timeline, Buffers::default()).unwrap();
    assert_eq!(plan.planned_ns, 92);
    insta::assert_snapshot!(lists(&plan), @r"
    rank 0
      0 irecv 0.0 g0 1#0 batch 0
      0 irecv 0.1 g1 1#1 batch 1
      0 F 0.0
     10 isend 0.0 a0 1#0 batch 2
     10 F 0.1
     20 isend 0.1 a1 1#1 batch 3
     20 wait_irecv 0.0 g0 1#0 batch 0
     42 B 0.0
     62 wait_irecv 0.1 g1 1#1 batch 1
     72 B 0.1
     92 wait_isend 0.0 a0 1#0 batch 2
     92 wait_isend 0.1 a1 1#1 batch 3
    rank 1
      0 irecv 1.0 a0 0#0 batch 0
      0 irecv 1.1 a1 0#1 batch 1
      0 wait_irecv 1.0 a0 0#0 batch 0
     11 F 1.0
     21 B 1.0
     41 isend 1.0 g0 0#0 batch 2
     41 wait_irecv 1.1 a1 0#1 batch 1
     41 F 1.1
     51 B 1.1
     71 isend 1.1 g1 0#1 batch 3
     71 wait_isend 1.0 g0 0#0 batch 2
     71 wait_isend 1.1 g1 0#1 batch 3
    ");
    let replay = check_execution_plan(&plan, &timeline).unwrap();
    assert_eq!((replay.end_ns, replay.receives_held, replay.sends_held), (92, 2, 2));
    assert_eq!(plan.counts(), Counts { actions: 24, stages: 8, transfers: 4, batches: 8 });
}

/// If only one buffer exists, the second receive follows the first consumer, and rank 0 must
/// complete the F0 send and then computes F1 into the same buffer.
#[test]
fn single_buffer_delays_receives_until_release() {
    let timeline = timeline(&one_f_one_b(2, 2), &PipelineCosts::uniform(2, 1, 2, times(10, 10, 1)));
    let plan = compile(&timeline, buffers(1)).unwrap();
    insta::assert_snapshot!(lists(&plan), @r"
    rank 0
      0 irecv 0.0 g0 1#0 batch 0
      0 F 0.0
     10 isend 0.0 a0 1#0 batch 1
     10 wait_isend 0.0 a0 1#0 batch 1
     10 F 0.1
     20 isend 0.1 a1 1#1 batch 2
     20 wait_irecv 0.0 g0 1#0 batch 0
     42 B 0.0
     62 irecv 0.1 g1 1#1 batch 3
     62 wait_irecv 0.1 g1 1#1 batch 3
     72 B 0.1
     92 wait_isend 0.1 a1 1#1 batch 2
    rank 1
      0 irecv 1.0 a0 0#0 batch 0
      0 wait_irecv 1.0 a0 0#0 batch 0
     11 F 1.0
     21 irecv 1.1 a1 0#1 batch 1
     21 B 1.0
     41 isend 1.0 g0 0#0 batch 2
     41 wait_irecv 1.1 a1 0#1 batch 1
     41 F 1.1
     51 wait_isend 1.0 g0 0#0 batch 2
     51 B 1.1
     71 isend 1.1 g1 0#1 batch 3
     71 wait_isend 1.1 g1 0#1 batch 3
    ");
    let replay = check_execution_plan(&plan, &timeline).unwrap();
    assert_eq!((replay.receives_held, replay.sends_held), (1, 1));
}

/// Two sub-microbatches of an encoder on rank 0 join a backbone that starts on rank 1.
fn joined() -> (Schedule, PipelineCosts) {
    let path = |stages: std::ops::Range<usize>, inputs: &[usize]| Path { stages, inputs: inputs.to_vec() };
    let flows = Flows::new(2, vec![0, 1, 0], &[path(0..1, &[]), path(0..1, &[]), path(1..3, &[0, 1])]).unwrap();
    let orders = vec![
        vec![
            Action::forward(0, 0),
            Action::forward(0, 1),
            Action::forward(2, 2),
            Action::backward(2, 2),
            Action::backward(0, 1),
            Action::backward(0, 0),
        ],
        vec![Action::forward(1, 2), Action::backward(1, 2)],
    ];
    (Schedule { stages: 3, microbatches: 3, orders }, PipelineCosts::uniform_over(flows, times(10, 10, 2)))
}

/// Inputs for one action need one buffer, so rank 1 receives both sub-microbatches at the start.
/// Both gradients return to the encoder stage, in consumption order.
#[test]
fn parts_go_into_the_microbatch_that_waits_for_them_and_gradients_come_back_to_each() {
    let (schedule, costs) = joined();
    let timeline = timeline(&schedule, &costs);
    let plan = compile(&timeline, buffers(1)).unwrap();
    insta::assert_snapshot!(lists(&plan), @r"
    rank 0
      0 irecv 2.2 a2 1#0 batch 0
      0 F 0.0
     10 isend 0.0 a2 1#0 batch 1
     10 wait_isend 0.0 a2 1#0 batch 1
     10 F 0.1
     20 isend 0.1 a2 1#1 batch 2
     20 wait_irecv 2.2 a2 1#0 batch 0
     34 F 2.2
     44 irecv 0.1 g2 1#1 batch 3
     44 wait_isend 0.1 a2 1#1 batch 2
     44 B 2.2
     64 isend 2.2 g2 1#2 batch 4
     64 wait_irecv 0.1 g2 1#1 batch 3
     88 B 0.1
    108 irecv 0.0 g2 1#2 batch 5
    108 wait_irecv 0.0 g2 1#2 batch 5
    108 B 0.0
    128 wait_isend 2.2 g2 1#2 batch 4
    rank 1
      0 irecv 1.2 a0 0#0 batch 0
      0 irecv 1.2 a1 0#1 batch 0
      0 wait_irecv 1.2 a0 0#0 batch 0
      0 wait_irecv 1.2 a1 0#1 batch 0
     22 F 1.2
     32 isend 1.2 a2 0#0 batch 1
     32 irecv 1.2 g2 0#2 batch 1
     32 wait_isend 1.2 a2 0#0 batch 1
     32 wait_irecv 1.2 g2 0#2 batch 1
     66 B 1.2
     86 isend 1.2 g1 0#1 batch 2
     86 isend 1.2 g0 0#2 batch 2
     86 wait_isend 1.2 g1 0#1 batch 2
     86 wait_isend 1.2 g0 0#2 batch 2
    ");
    let unlimited = compile(&timeline, Buffers::UNLIMITED).unwrap();
    assert_eq!(check_execution_plan(&unlimited, &timeline).unwrap().end_ns, plan.planned_ns);
}

/// Rank 0 sends three tensors but rank 1 consumes the third tensor first, so a single buffer is not
/// enough.
#[test]
fn a_receive_that_is_needed_comes_beyond_the_limit() {
    let costs = PipelineCosts::uniform(2, 1, 3, times(10, 10, 1));
    let mut schedule = gpipe(2, 3);
    schedule.orders[1] = [2, 1, 0].map(|m| [Action::forward(1, m), Action::backward(1, m)]).concat();
    let timeline = timeline(&schedule, &costs);
    let plan = compile(&timeline, buffers(1)).unwrap();
    let replay = check_execution_plan(&plan, &timeline).unwrap();
    assert_eq!(replay.receives_held, 3);
}

/// Rank 0 computes three tensors for rank 1 before the tensor that rank 1 consumes first, via rank
/// 2.
#[test]
fn blocked_receivers_launch_receives_early() {
    let path = |stages: std::ops::Range<usize>| Path { stages, inputs: Vec::new() };
    let flows = Flows::new(3, vec![0, 1, 0, 2, 1], &[path(0..2), path(0..2), path(0..2), path(2..5)]).unwrap();
    let costs = PipelineCosts::uniform_over(flows, times(10, 10, 1));
    let all = |action: fn(usize, usize) -> Action, stage| [0, 1, 2].map(|microbatch| action(stage, microbatch));
    let (forward, backward) = (Action::forward, Action::backward);
    let orders = vec![
        [&all(forward, 0)[..], &[forward(2, 3), backward(2, 3)], &all(backward, 0)].concat(),
        [&[forward(4, 3), backward(4, 3)][..], &all(forward, 1), &all(backward, 1)].concat(),
        vec![forward(3, 3), backward(3, 3)],
    ];
    let timeline = timeline(&Schedule { stages: 5, microbatches: 4, orders }, &costs);
    let plan = compile(&timeline, buffers(1)).unwrap();
    // Rank 1 launches the receive for 0.0 immediately. If one send buffer exists, rank 0 cannot
    // compute 0.2 before it sends 0.1. The receive for 0.1 would follow 1.0, which follows 4.3,
    // which needs 2.3, which follows 0.2. Therefore rank 1, blocked before its first stage,
    // launches the receive there. The receive for 0.2 follows after 1.1 releases a buffer.
    let first: Vec<String> = plan.ranks[1][..4].iter().map(notation).collect();
    assert_eq!(
        first,
        [
            "  0 irecv 4.3 a3 2#0 batch 0",
            "  0 irecv 1.0 a0 0#0 batch 0",
            "  0 irecv 1.1 a1 0#1 batch 1",
            "  0 wait_irecv 4.3 a3 2#0 batch 0",
        ]
    );
    let replay = check_execution_plan(&plan, &timeline).unwrap();
    assert_eq!((replay.receives_held, replay.sends_held), (2, 1));
    let unlimited = compile(&timeline, Buffers::UNLIMITED).unwrap();
    assert_eq!(check_execution_plan(&unlimited, &timeline).unwrap().end_ns, plan.planned_ns);
}

#[test]
fn stages_on_a_shared_rank_need_no_transfer() {
    let costs = PipelineCosts::uniform_over(Flows::chain(1, vec![0, 0, 0], 2), times(10, 10, 1));
    let order =
        |m| [0, 1, 2].map(|s| Action::forward(s, m)).into_iter().chain([2, 1, 0].map(|s| Action::backward(s, m)));
    let schedule = Schedule { stages: 3, microbatches: 2, orders: vec![order(0).chain(order(1)).collect()] };
    let plan = compile(&timeline(&schedule, &costs), Buffers::default()).unwrap();
    assert_eq!(plan.counts(), Counts { actions: 12, stages: 12, transfers: 0, batches: 0 });
}

#[test]
fn invalid_pipelines_are_rejected_by_name() {
    let sound = timeline(&one_f_one_b(2, 2), &PipelineCosts::uniform(2, 1, 2, times(10, 10, 1)));
    let spoilt = |spoil: fn(&mut Timeline)| {
        let mut timeline = sound.clone();
        spoil(&mut timeline);
        compile(&timeline, Buffers::default()).unwrap_err()
    };
    assert_eq!(spoilt(|timeline| timeline.stage.truncate(3)), CompileError::Columns);
    assert_eq!(spoilt(|timeline| timeline.ranks = 3), CompileError::Columns);
    assert_eq!(spoilt(|timeline| timeline.stage[0] = 1), CompileError::Stage { stage: 1, first: 0, second: 1 });
    assert_eq!(spoilt(|timeline| timeline.microbatch[1] = 0), CompileError::Repeated { stage: 0, microbatch: 0 });
    let split = |timeline: &mut Timeline| timeline.kind[3] = SpanKind::InputGrad as u8;
    assert_eq!(spoilt(split), CompileError::Incomplete { stage: 0, microbatch: 1 });
    let join = |timeline: &mut Timeline| timeline.joins.push(planscope_core::timeline::Join { from: 5, into: 0 });
    assert_eq!(spoilt(join), CompileError::Join { from: 5, into: 0 });
    // The first microbatch depends on the second, but the ranks run the second later.
    let late = |timeline: &mut Timeline| timeline.joins.push(planscope_core::timeline::Join { from: 1, into: 0 });
    assert_eq!(spoilt(late), CompileError::Circular { rank: 0, index: 0 });
}

/// Random times, zeros included.
fn at_random(costs: &mut PipelineCosts, random: &mut Random) {
    for column in [&mut costs.forward, &mut costs.input_grad, &mut costs.weight_grad] {
        for time in column.iter_mut() {
            *time = Nanos::new(random.below(50));
        }
    }
    for column in [&mut costs.send_forward, &mut costs.send_backward] {
        let sends = column.iter_mut().filter(|time| **time > Nanos::ZERO);
        sends.for_each(|time| *time = Nanos::new(random.below(12)));
    }
}

/// Splits backwards. Weight gradients follow their input gradients by up to three positions.
fn split(schedule: &Schedule, random: &mut Random) -> Schedule {
    let order = |order: &Vec<Action>| {
        let (mut actions, mut late) = (Vec::new(), std::collections::VecDeque::new());
        for action in order {
            if action.kind == ActionKind::Backward {
                actions.push(Action { kind: ActionKind::InputGrad, ..*action });
                late.push_back(Action { kind: ActionKind::WeightGrad, ..*action });
            } else {
                actions.push(*action);
            }
            while late.len() > random.below(4) as usize {
                actions.extend(late.pop_front());
            }
        }
        actions.extend(late);
        actions
    };
    Schedule { orders: schedule.orders.iter().map(order).collect(), ..*schedule }
}

/// Overlaps neighbouring forwards and backwards from different microbatches if the result is
/// executable.
fn overlap(schedule: &Schedule, costs: &PipelineCosts) -> Schedule {
    let mut found = schedule.clone();
    for rank in 0..found.ranks() {
        for index in 1..found.orders[rank].len() {
            let [first, second] = [found.orders[rank][index - 1], found.orders[rank][index]];
            let kinds = [first.kind, second.kind];
            let is_mixed_pair = kinds.contains(&ActionKind::Forward) && kinds.contains(&ActionKind::Backward);
            let free = index < 2 || !found.orders[rank][index - 2].with_next;
            if is_mixed_pair && first.microbatch != second.microbatch && free {
                found.orders[rank][index - 1].with_next = true;
                if execute(&found, costs).is_err() {
                    found.orders[rank][index - 1].with_next = false;
                }
            }
        }
    }
    found
}

/// Encoders that have sub-microbatches, distributed to all ranks or all placed on the last rank,
/// before a multi-segment backbone.
fn multimodal(ranks: usize, microbatches: usize, segments: usize, random: &mut Random) -> (PipelineCosts, Vec<u32>) {
    let (mut paths, mut groups) = (Vec::new(), Vec::new());
    for microbatch in 0..microbatches as u32 {
        let (first, parts) = (paths.len(), random.below(5) as usize);
        for _ in 0..parts {
            paths.push(Path { stages: 0..ranks, inputs: Vec::new() });
            groups.push(2 * microbatch);
        }
        paths.push(Path { stages: ranks..ranks * (1 + segments), inputs: (first..first + parts).collect() });
        groups.push(2 * microbatch + 1);
    }
    let mut stage_rank: Vec<u32> = (0..ranks * (1 + segments)).map(|stage| (stage % ranks) as u32).collect();
    if random.below(2) == 0 {
        stage_rank[..ranks].fill(ranks as u32 - 1);
    }
    let flows = Flows::new(ranks, stage_rank, &paths).unwrap();
    let mut costs = PipelineCosts::uniform_over(flows, times(1, 1, 1));
    costs.activation.iter_mut().for_each(|bytes| *bytes = Bytes::new(1 + random.below(30)));
    (costs, groups)
}

/// Checks that the plan is valid for all buffer limits, and that unlimited buffers reproduce the
/// simulated time.
fn sound(schedule: &Schedule, costs: &PipelineCosts) -> Result<(), TestCaseError> {
    let execution = execute(schedule, costs).unwrap();
    let timeline = timeline(schedule, costs);
    for count in [0, 1, 2, 5] {
        let plan = compile(&timeline, buffers(count)).unwrap();
        let replay = check_execution_plan(&plan, &timeline);
        prop_assert!(replay.is_ok(), "{count} buffers: {:?}\n{}", replay, lists(&plan));
        if count == 0 {
            prop_assert_eq!(Nanos::new(replay.unwrap().end_ns), execution.makespan(), "\n{}", lists(&plan));
            prop_assert_eq!(Nanos::new(plan.planned_ns), execution.makespan());
        }
        let text = serde_json::to_string(&plan).unwrap();
        prop_assert_eq!(&serde_json::from_str::<ExecutionPlan>(&text).unwrap(), &plan);
    }
    Ok(())
}

proptest! {
    #[test]
    fn static_schedule_plans_are_sound(
        ranks in 1_usize..6, chunks in 1_usize..4, microbatches in 1_usize..10, which in 0..5, seed in any::<u32>(),
    ) {
        let mut random = Random::new(seed, 0);
        let chunks = if which == 2 { chunks } else { 1 };
        let mut costs = PipelineCosts::uniform(ranks, chunks, microbatches, times(1, 1, 1));
        at_random(&mut costs, &mut random);
        let schedule = match which {
            0 => gpipe(ranks, microbatches),
            2 => interleaved(ranks, chunks, microbatches, Grouping::Balanced),
            3 => split(&one_f_one_b(ranks, microbatches), &mut random),
            4 => {
                costs.overlapped_ppm = 600_000 + random.below(400_000);
                overlap(&one_f_one_b(ranks, microbatches), &costs)
            }
            _ => one_f_one_b(ranks, microbatches),
        };
        sound(&schedule, &costs)?;
    }

    #[test]
    fn dual_queue_plans_are_sound(
        ranks in 1_usize..5, microbatches in 1_usize..7, segments in 1_usize..4, seed in any::<u32>(), spare in 0_u64..200,
    ) {
        let mut random = Random::new(seed, 0);
        let (mut costs, groups) = multimodal(ranks, microbatches, segments, &mut random);
        at_random(&mut costs, &mut random);
        let mut priorities = Priorities::natural(2 * microbatches);
        random.shuffle(&mut priorities.forward);
        random.shuffle(&mut priorities.backward);
        let min_memory = Interleaving::new(&costs, &groups, Bytes::ZERO).unwrap_err().needs;
        let interleaving = Interleaving::new(&costs, &groups, min_memory + Bytes::new(spare)).unwrap();
        sound(&interleave(&interleaving, &priorities).schedule, &costs)?;
    }

    #[test]
    fn zigzag_placement_plans_are_sound(ranks in 1_usize..5, microbatches in 1_usize..7, seed in any::<u32>()) {
        let mut random = Random::new(seed, 0);
        for placement in [Placement::Zigzag, Placement::Bidirectional] {
            let flows = Flows::placed(ranks, 2 * ranks, microbatches, placement);
            let mut costs = PipelineCosts::uniform_over(flows, times(1, 1, 1));
            at_random(&mut costs, &mut random);
            costs.activation.fill(Bytes::new(1));
            let groups: Vec<u32> = (0..microbatches as u32).collect();
            let interleaving = Interleaving::new(&costs, &groups, Bytes::new(1 << 20)).unwrap();
            let schedule = interleave(&interleaving, &Priorities::natural(microbatches)).schedule;
            sound(&split(&schedule, &mut random), &costs)?;
        }
    }
}
