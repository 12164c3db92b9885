//! Plans derived by hand, and what every plan must keep.

use proptest::prelude::*;

use super::*;
use crate::check::check_execution_plan;
use crate::cost::{PipelineCosts, UniformTimes};
use crate::flow::{Flows, Path, Placement};
use crate::random::Random;
use crate::schedule::dual_queue::{Interleaving, Priorities, interleave};
use crate::schedule::{Action, ActionKind, Grouping, Schedule, gpipe, interleaved, one_f_one_b};
use crate::simulate::{StepEnd, assemble, execute};
use crate::timeline::SpanKind;
use crate::units::Nanos;

fn buffers(count: u32) -> Buffers {
    NonZeroU32::new(count).map_or(Buffers::UNLIMITED, Buffers::of)
}

fn times(forward: u64, gradient: u64, communication: u64) -> UniformTimes {
    let [forward, gradient, communication] = [forward, gradient, communication].map(Nanos::new);
    UniformTimes { forward, input_grad: gradient, weight_grad: gradient, communication }
}

fn timeline(schedule: &Schedule, costs: &PipelineCosts) -> Timeline {
    let execution = execute(schedule, costs).unwrap();
    assemble(schedule, &execution, costs, &StepEnd::of(schedule.ranks(), std::iter::once(&execution)))
}

/// An action in few words: `F` and what stands for the other kinds, stage, microbatch; for transfers `a` or `g`, the
/// peer and the batch.
fn words(action: &PlanAction) -> String {
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
        let lines: Vec<String> = list.iter().map(words).collect();
        format!("rank {rank}\n{}\n", lines.join("\n"))
    };
    plan.ranks.iter().enumerate().map(list).collect()
}

/// F 10, B 20, sends 1: rank 0 runs F0 0-10, F1 10-20, B0 42-62, B1 72-92, rank 1 F0 11-21, B0 21-41, F1 41-51, B1
/// 51-71. The second activation arrives at 21, the first is taken at 11: in one batch the second would hold it up.
#[test]
fn two_microbatches_of_1f1b_over_two_ranks() {
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

/// With one buffer the second receive follows the first one's consumer, and rank 0 waits for the send of F0 before it
/// computes F1 into the same buffer.
#[test]
fn one_buffer_puts_receives_behind_what_frees_it() {
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

/// An encoder's two parts on rank 0 go into a backbone whose first stage stands on rank 1.
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

/// What one action consumes needs one buffer, so both parts are received at once. The gradients of both travel to the
/// parts' stage, first the one that is needed first.
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

/// Rank 0 sends three results before rank 1 takes the last of them first: one buffer cannot do.
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

/// Rank 0 computes three results for rank 1 before the one that rank 1 runs first, by way of rank 2.
#[test]
fn where_buffers_would_deadlock_the_receiver_makes_room() {
    let path = |stages: std::ops::Range<usize>| Path { stages, inputs: Vec::new() };
    let flows = Flows::new(3, vec![0, 1, 0, 2, 1], &[path(0..2), path(0..2), path(0..2), path(2..5)]).unwrap();
    let costs = PipelineCosts::uniform_over(flows, times(10, 10, 1));
    let all = |of: fn(usize, usize) -> Action, stage| [0, 1, 2].map(|microbatch| of(stage, microbatch));
    let (forward, backward) = (Action::forward, Action::backward);
    let orders = vec![
        [&all(forward, 0)[..], &[forward(2, 3), backward(2, 3)], &all(backward, 0)].concat(),
        [&[forward(4, 3), backward(4, 3)][..], &all(forward, 1), &all(backward, 1)].concat(),
        vec![forward(3, 3), backward(3, 3)],
    ];
    let timeline = timeline(&Schedule { stages: 5, microbatches: 4, orders }, &costs);
    let plan = compile(&timeline, buffers(1)).unwrap();
    // The receive of 0.0 is launched at once. With one send buffer 0.2 cannot be computed before 0.1 is sent, whose
    // receive would stand behind 1.0, and that behind 4.3, which needs 2.3, behind 0.2. So rank 1, which waits before
    // its first stage, launches it there; that of 0.2 comes when 1.1 has made room.
    let first: Vec<String> = plan.ranks[1][..4].iter().map(words).collect();
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
fn stages_of_one_rank_need_no_transfer() {
    let costs = PipelineCosts::uniform_over(Flows::chain(1, vec![0, 0, 0], 2), times(10, 10, 1));
    let order =
        |m| [0, 1, 2].map(|s| Action::forward(s, m)).into_iter().chain([2, 1, 0].map(|s| Action::backward(s, m)));
    let schedule = Schedule { stages: 3, microbatches: 2, orders: vec![order(0).chain(order(1)).collect()] };
    let plan = compile(&timeline(&schedule, &costs), Buffers::default()).unwrap();
    assert_eq!(plan.counts(), Counts { actions: 12, stages: 12, transfers: 0, batches: 0 });
}

#[test]
fn what_is_no_pipeline_is_refused_by_name() {
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
    let join = |timeline: &mut Timeline| timeline.joins.push(crate::timeline::Join { from: 5, into: 0 });
    assert_eq!(spoilt(join), CompileError::Join { from: 5, into: 0 });
    // The first microbatch would wait for the second, which the ranks run behind it.
    let late = |timeline: &mut Timeline| timeline.joins.push(crate::timeline::Join { from: 1, into: 0 });
    assert_eq!(spoilt(late), CompileError::Circular { rank: 0, place: 0 });
}

/// Random times, some of them zero.
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

/// The same with split backwards: weight gradients of a rank stand up to three places behind their input gradients.
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

/// Neighbouring forwards and backwards of different microbatches overlapped, where that runs.
fn overlap(schedule: &Schedule, costs: &PipelineCosts) -> Schedule {
    let mut found = schedule.clone();
    for rank in 0..found.ranks() {
        for place in 1..found.orders[rank].len() {
            let [first, second] = [found.orders[rank][place - 1], found.orders[rank][place]];
            let kinds = [first.kind, second.kind];
            let one_each = kinds.contains(&ActionKind::Forward) && kinds.contains(&ActionKind::Backward);
            let free = place < 2 || !found.orders[rank][place - 2].with_next;
            if one_each && first.microbatch != second.microbatch && free {
                found.orders[rank][place - 1].with_next = true;
                if execute(&found, costs).is_err() {
                    found.orders[rank][place - 1].with_next = false;
                }
            }
        }
    }
    found
}

/// Encoders with their sub-microbatches, one on each rank or all on the last, before a backbone of several segments.
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

/// Compiled for every number of buffers the plan passes; without limits it takes the simulator's time.
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
    fn plans_of_static_schedules_are_sound(
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
    fn plans_of_dual_queues_are_sound(
        ranks in 1_usize..5, microbatches in 1_usize..7, segments in 1_usize..4, seed in any::<u32>(), spare in 0_u64..200,
    ) {
        let mut random = Random::new(seed, 0);
        let (mut costs, groups) = multimodal(ranks, microbatches, segments, &mut random);
        at_random(&mut costs, &mut random);
        let mut priorities = Priorities::natural(2 * microbatches);
        random.shuffle(&mut priorities.forward);
        random.shuffle(&mut priorities.backward);
        let least = Interleaving::new(&costs, &groups, Bytes::ZERO).unwrap_err().needs;
        let interleaving = Interleaving::new(&costs, &groups, least + Bytes::new(spare)).unwrap();
        sound(&interleave(&interleaving, &priorities).schedule, &costs)?;
    }

    #[test]
    fn plans_of_turning_placements_are_sound(ranks in 1_usize..5, microbatches in 1_usize..7, seed in any::<u32>()) {
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
