//! Hand-written files, and hostile changes of them.

use super::*;
use planscope_core::timeline::{MicrobatchSamples, SamplePart};
use serde_json::json;

/// Two ranks with one stage each and one microbatch: F 10, B 20, sends 3. Rank 0 runs F 0-10, rank 1 F 13-23 and B
/// 23-43, rank 0 B 46-66, then the synchronisation 66-70 and the optimizer 70-75. Rank 1 synchronises 43-47.
fn file() -> ExecutionFile {
    let transfer = |payload: &str, peer: u32| json!({"payload": payload, "peer": peer, "peer_stage": peer, "peer_microbatch": 0, "tag": 0, "batch": 0});
    let stage = |action: &str, rank: u32, start: u64, duration: u64| json!({"start_ns": start, "duration_ns": duration, "action": action, "stage": rank, "microbatch": 0});
    let moved = |action: &str, rank: u32, start: u64, payload: &str, batch: u32| {
        let mut transfer = transfer(payload, 1 - rank);
        transfer["batch"] = json!(batch);
        let mut moved =
            json!({"start_ns": start, "action": action, "stage": rank, "microbatch": 0, "transfer": transfer});
        if action == "isend" {
            moved["duration_ns"] = json!(3);
        }
        moved
    };
    let rank = |optimizer: u64, peak: u64, actions: Vec<serde_json::Value>, endings: serde_json::Value, group: u32| {
        json!({"devices": 2, "sync_group": group, "static_bytes": 100, "peak_bytes": peak, "sync_ns": 4,
            "optimizer_ns": optimizer, "actions": actions, "endings": endings})
    };
    let first = vec![
        moved("irecv", 0, 0, "gradient", 0),
        stage("forward_stage", 0, 0, 10),
        moved("isend", 0, 10, "activation", 1),
        moved("wait_irecv", 0, 10, "gradient", 0),
        stage("backward_stage", 0, 46, 20),
        moved("wait_isend", 0, 66, "activation", 1),
    ];
    let second = vec![
        moved("irecv", 1, 0, "activation", 0),
        moved("wait_irecv", 1, 0, "activation", 0),
        stage("forward_stage", 1, 13, 10),
        stage("backward_stage", 1, 23, 20),
        moved("isend", 1, 43, "gradient", 1),
        moved("wait_isend", 1, 43, "gradient", 1),
    ];
    let ending = |rank: u32, kind: &str, start: u64, duration: u64| json!({"rank": rank, "kind": kind, "start_ns": start, "duration_ns": duration});
    let document = json!({
        "format": "planscope-execution-plan", "version": 1, "engine": "test", "scenario": "", "planner": "1f1b",
        "iteration": 0, "devices": 4, "modules": ["M"],
        "layout": {"tensor": 2, "context": 1, "expert": 1, "pipeline": 2, "data": 1, "chunks": 1, "microbatch": 1},
        "activations": {"recompute": "none", "activation_offload": 0.0},
        "iteration_ns": 75, "peak_bytes": [117, 118],
        "runs": [{
            "buffers": {"receive": null, "send": null}, "overlapped_ppm": 1_000_000,
            "stages": [
                {"rank": 0, "layers": [{"module": 0, "first": 0, "end": 3}]},
                {"rank": 1, "layers": [{"module": 0, "first": 3, "end": 5}]}
            ],
            "microbatches": [{
                "first_stage": 0, "forward_ns": [10, 10], "input_grad_ns": [12, 12], "weight_grad_ns": [8, 8],
                "send_forward_ns": [3, 0], "send_backward_ns": [0, 3], "activation_bytes": [10, 11],
                "transient_bytes": [7, 7], "layer_strategies": [[1, 0, 2, 0], [0, 2, 0, 0]]
            }],
            "ranks": [
                rank(5, 117, first, json!([ending(0, "gradient_sync", 66, 4), ending(0, "optimizer", 70, 5)]), 0),
                rank(0, 118, second, json!([ending(1, "gradient_sync", 43, 4)]), 1)
            ]
        }],
        "replicas": [{"run": 0, "microbatches": [{"module": null, "samples": [
            {"sample": 0, "tokens": 5, "from_ppm": 0, "to_ppm": 1_000_000}
        ]}]}]
    });
    serde_json::from_value(document).unwrap()
}

fn refused(change: impl FnOnce(&mut ExecutionFile)) -> String {
    let mut changed = file();
    change(&mut changed);
    check_execution_file(&changed).unwrap_err().to_string()
}

/// Each rank has two devices. Rank 0 works 10 + 20 + 4 + 5, rank 1 10 + 20 + 4 of 75 ns.
#[test]
fn times_idle_share_and_memory_are_as_computed_by_hand() {
    let replay = check_execution_file(&file()).unwrap();
    assert_eq!((replay.iteration_ns, replay.peak_bytes), (75, vec![117, 118]));
    assert!((replay.idle_share - (1.0 - (39.0 + 34.0) / 150.0)).abs() < 1e-12);
}

/// Two replicas: the slower one delays the synchronisation of the other.
#[test]
fn replicas_synchronise_together() {
    let mut two = file();
    two.replicas.push(Replica {
        run: 0,
        microbatches: vec![MicrobatchSamples {
            module: None,
            samples: vec![SamplePart { sample: 1, tokens: 5, from_ppm: 0, to_ppm: 1_000_000 }],
        }],
    });
    two.devices = 8;
    assert!(check_execution_file(&two).is_ok());
    for rank in &mut two.runs[0].ranks {
        rank.sync_group = 0;
    }
    let error = check_execution_file(&two).unwrap_err().to_string();
    assert_eq!(
        error,
        "run 0, rank 1, action 6: gradient synchronisation and optimizer step do not follow at 66 ns as the costs say"
    );
    two.runs[0].ranks[1].endings[0].start_ns = 66;
    assert_eq!(check_execution_file(&two).unwrap().iteration_ns, 75);
}

#[test]
fn changed_values_are_refused_with_their_position() {
    let run = |change: fn(&mut Run)| refused(|file| change(&mut file.runs[0]));
    assert_eq!(refused(|file| file.iteration_ns = 74), "the iteration takes 74 ns, in the simulation 75 ns");
    assert_eq!(refused(|file| file.peak_bytes[1] = 1), "rank 1: the peak memory is 1 bytes, by the runs 118");
    assert_eq!(run(|run| run.ranks[0].peak_bytes = 1), "run 0, rank 0: the peak memory is 1 bytes, by the actions 117");
    assert_eq!(
        run(|run| run.microbatches[0].activation_bytes[0] += 1),
        "run 0, rank 0: the peak memory is 117 bytes, by the actions 118"
    );
    assert_eq!(
        run(|run| run.ranks[1].actions[2].duration_ns = None),
        "run 0, rank 1, action 2: its duration is missing, by the costs 10 ns"
    );
    assert_eq!(
        run(|run| run.microbatches[0].send_forward_ns[0] = 4),
        "run 0, rank 0, action 2: starts or lasts otherwise than in the timeline, or starts before the action in front of it"
    );
    assert_eq!(
        run(|run| {
            run.ranks[0].actions[4].start_ns = 45;
        }),
        "run 0, rank 0, action 4: starts at 45 ns, in the simulation at 46 ns"
    );
    assert!(run(|run| run.ranks[0].sync_ns = 9).starts_with("run 0, rank 0, action 6: gradient synchronisation"));
    assert!(run(|run| run.ranks[0].endings.clear()).starts_with("run 0, rank 0, action 6: gradient synchronisation"));
    assert_eq!(
        run(|run| run.microbatches[0].layer_strategies[1] = [1, 0, 0, 0]),
        "run 0: microbatch 0: the layer strategies of stage 1 are not as many as its layers"
    );
}

#[test]
fn actions_out_of_order_are_refused() {
    let actions = |change: fn(&mut Vec<PlanAction>)| refused(|file| change(&mut file.runs[0].ranks[1].actions));
    assert!(actions(|list| list.swap(2, 3)).starts_with("run 0, rank 1, action 2: an input was not computed"));
    assert_eq!(
        actions(|list| drop(list.remove(1))),
        "run 0, rank 1, action 1: an input was not computed or waited for before"
    );
    assert_eq!(actions(|list| drop(list.remove(3))), "run 0, rank 1 never runs stage 1 for microbatch 0");
    assert_eq!(actions(|list| list.push(list[2])), "run 0, rank 1, action 6: this was done before");
    assert_eq!(
        actions(|list| list[2].stage = 0),
        "run 0, rank 1, action 2: this rank has no such stage and microbatch"
    );
    assert_eq!(actions(|list| list.truncate(4)), "run 0, rank 0, action 0: has no counterpart on rank 1");
}

/// Counts and times of hostile files cause no allocation, overflow or panic.
#[test]
fn hostile_values_are_refused() {
    let run = |change: fn(&mut Run)| refused(|file| change(&mut file.runs[0]));
    assert!(run(|run| run.microbatches[0].forward_ns[0] = u64::MAX).contains("the sum of all times"));
    assert!(run(|run| run.ranks[0].static_bytes = u64::MAX).contains("the sum of all memory"));
    assert!(run(|run| run.ranks[1].actions[3].start_ns = u64::MAX).contains("starts"));
    assert!(run(|run| run.microbatches[0].first_stage = u32::MAX).contains("visit stages that do not exist"));
    assert!(run(|run| run.microbatches[0].gang = Some(u32::MAX)).contains("invalid gang"));
    assert!(run(|run| run.microbatches[0].inputs = vec![0]).contains("the inputs of microbatch 0"));
    assert!(run(|run| run.stages[0].rank = u32::MAX).contains("stage 0 is on a rank that does not exist"));
    assert!(run(|run| run.stages[0].layers[0].end = 0).contains("a range of layers"));
    assert!(run(|run| run.microbatches.clear()).contains("number of microbatches"));
    assert!(run(|run| run.ranks.clear()).contains("0 ranks, the file has the peak memory of 2"));
    assert!(run(|run| run.overlapped_ppm = u64::MAX).contains("overlapped_ppm"));
    assert!(run(|run| run.ranks[0].actions[0].microbatch = u32::MAX).contains("rank 0, action 0"));
    assert!(run(|run| run.ranks[0].actions[1].with_next = true).contains("overlapped stages must follow"));
    assert!(refused(|file| file.runs.clear()).contains("replica 0: its run does not exist"));
    assert!(refused(|file| file.replicas[0].run = u32::MAX).contains("its run does not exist"));
    assert!(refused(|file| file.replicas.clear()).contains("no replica has this run"));
    assert!(
        refused(|file| {
            file.runs.clear();
            file.replicas.clear();
        })
        .contains("no runs")
    );
    let samples =
        |change: fn(&mut SamplePart)| refused(|file| change(&mut file.replicas[0].microbatches[0].samples[0]));
    assert_eq!(samples(|part| part.to_ppm = 400_000), "sample 0: assigned to 400000 millionths");
    assert!(samples(|part| part.from_ppm = u32::MAX).contains("ends before it starts"));
    // A phase far away is one phase, not four billion. Its ranks begin later.
    assert!(run(|run| run.ranks[1].phase = u32::MAX).contains("run 0, rank 1, action 2: starts at 13 ns"));
}
