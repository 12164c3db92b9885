//! Rehearsals from outside: processes, sockets, and what they write. Times are only held to what holds on any machine.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use planner::cost::{PipelineCosts, UniformTimes};
use planner::execution_plan::{Buffers, ExecutionPlan, PlanActionKind, compile};
use planner::schedule::one_f_one_b;
use planner::simulate::{StepEnd, assemble, execute};
use planner::units::Nanos;

/// 1F1B of four ranks and six microbatches: forwards take 4 ms, both gradients 4 ms each, a send 1 ms.
fn plan() -> ExecutionPlan {
    let four = Nanos::new(4_000_000);
    let times =
        UniformTimes { forward: four, input_grad: four, weight_grad: four, communication: Nanos::new(1_000_000) };
    let (schedule, costs) = (one_f_one_b(4, 6), PipelineCosts::uniform(4, 1, 6, times));
    let execution = execute(&schedule, &costs).unwrap();
    let timeline = assemble(&schedule, &execution, &costs, &StepEnd::of(4, std::iter::once(&execution)));
    compile(&timeline, Buffers::default()).unwrap()
}

fn rehearse(plan: &ExecutionPlan, folder: &Path, more: &[&str]) -> Output {
    let path = folder.join("plan.json");
    std::fs::write(&path, serde_json::to_vec(plan).unwrap()).unwrap();
    let (trace, log) = (folder.join("trace.json.gz"), folder.join("train.log"));
    Command::new(env!("CARGO_BIN_EXE_planscope"))
        .arg("rehearse")
        .arg(&path)
        .args(["--speed", "0.1", "--json", "--trace"])
        .arg(&trace)
        .arg("--log")
        .arg(&log)
        .args(more)
        .env_clear()
        .output()
        .unwrap()
}

/// What a rehearsal of the plan, spoilt, says before it exits with 1.
fn fault(spoil: impl FnOnce(&mut ExecutionPlan)) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut plan = plan();
    spoil(&mut plan);
    let output = rehearse(&plan, folder.path(), &["--patience", "1"]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    told
}

#[test]
fn a_sound_plan_is_rehearsed_and_what_it_writes_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan();
    let output = rehearse(&plan, folder.path(), &["--iterations", "2"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for iteration in report["iterations"].as_array().unwrap() {
        // Sleepers never wake early; times are rounded to nanoseconds.
        let [simulated, rehearsed] = ["simulated_ms", "rehearsed_ms"].map(|name| iteration[name].as_f64().unwrap());
        assert!(rehearsed >= simulated - 0.001, "{report}");
    }
    let log = std::fs::read(folder.path().join("train.log")).unwrap();
    let log = ingest::log::import(&log, &ingest::log::Limits::default()).unwrap();
    assert_eq!(log.points.iter().map(|point| point.step).collect::<Vec<_>>(), [1, 2]);
    for (point, iteration) in log.points.iter().zip(report["iterations"].as_array().unwrap()) {
        let told = iteration["rehearsed_ms"].as_f64().unwrap() / 1e3;
        assert!((point.step_time_s.unwrap() - told).abs() < 1e-6);
        assert!(point.timers.iter().any(|timer| timer.name == "forward-compute"));
    }
    let file = std::fs::File::open(folder.path().join("trace.json.gz")).unwrap();
    let limits = ingest::trace::Limits::default();
    let trace = ingest::trace::read(file, ingest::trace::TimeUnit::Microseconds, &limits).unwrap();
    let ranks: Vec<Option<u32>> = trace.processes.iter().map(|process| process.rank).collect();
    assert_eq!(ranks, [Some(0), Some(1), Some(2), Some(3)]);
    assert_eq!(trace.steps.len(), 8);
    let (slices, lanes) = (&trace.slices, &trace.lanes);
    let mut orders: BTreeMap<u32, Vec<(u64, String)>> = BTreeMap::new();
    for action in &trace.actions {
        let slice = action.slice as usize;
        let lane = &lanes[slices.lane[slice] as usize];
        if lane.name.as_deref() == Some("compute") {
            let name = trace.names[slices.name[slice] as usize].clone();
            orders.entry(lane.process).or_default().push((slices.start_ns[slice], name));
        }
    }
    for (rank, list) in plan.ranks.iter().enumerate() {
        let computed = list.iter().filter(|action| action.action.computes());
        let letter = |kind| if kind == PlanActionKind::ForwardStage { 'F' } else { 'B' };
        let names: Vec<String> = computed
            .map(|action| format!("PP:{}{}{}", action.stage, letter(action.action), action.microbatch))
            .collect();
        let mut found = orders.remove(&(rank as u32)).unwrap();
        found.sort();
        let found: Vec<String> = found.into_iter().map(|(_, name)| name).collect();
        assert_eq!(found, [names.clone(), names].concat(), "rank {rank}");
    }
}

fn places(plan: &ExecutionPlan, rank: usize, kind: PlanActionKind, peer: u32) -> Vec<usize> {
    let list = plan.ranks[rank].iter().enumerate();
    let wanted = list.filter(|(_, one)| one.action == kind && one.transfer.is_some_and(|way| way.peer == peer));
    wanted.map(|(index, _)| index).collect()
}

#[test]
fn receives_in_another_order_are_told() {
    let told = fault(|plan| {
        let receives = places(plan, 1, PlanActionKind::Irecv, 0);
        plan.ranks[1].swap(receives[0], receives[1]);
    });
    assert!(told.contains("rank 1, action") && told.contains("out of order"), "{told}");
    assert!(told.contains("expects the activation of stage 0, microbatch 1"), "{told}");
}

#[test]
fn a_message_that_nobody_sends_is_told() {
    let told = fault(|plan| {
        let last = *places(plan, 0, PlanActionKind::Isend, 1).last().unwrap();
        let tag = plan.ranks[0].remove(last).transfer.unwrap().tag;
        let waits = |one: &planner::execution_plan::PlanAction| {
            one.action == PlanActionKind::WaitIsend && one.transfer.is_some_and(|way| way.tag == tag)
        };
        plan.ranks[0].retain(|one| !waits(one));
    });
    assert!(told.contains("a message is lost") && told.contains("rank 0"), "{told}");
}

#[test]
fn ranks_that_wait_for_each_other_are_told() {
    let told = fault(|plan| {
        // Rank 0 waits for a gradient before it has sent anything that it could be of.
        let wait = places(plan, 0, PlanActionKind::WaitIrecv, 1)[0];
        let wait = plan.ranks[0].remove(wait);
        let first = plan.ranks[0].iter().position(|one| one.action.computes()).unwrap();
        plan.ranks[0].insert(first, wait);
    });
    assert!(told.contains("deadlock") && told.contains("rank 0, at action"), "{told}");
}

#[test]
fn what_is_no_plan_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut untimed = plan();
    untimed.ranks[2].iter_mut().for_each(|action| action.duration_ns = None);
    let output = rehearse(&untimed, folder.path(), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("duration_ns"));
    assert!(!folder.path().join("trace.json.gz").exists());
}
