//! Hand-written files, and hostile changes of them.

use super::*;
use planscope_core::timeline::{MicrobatchSamples, SamplePart};

/// Two ranks with one stage each and one microbatch: F 10, B 20, sends 3. Rank 0 runs F 0-10, rank 1 F 13-23 and B
/// 23-43, rank 0 B 46-66, then the synchronisation 66-70 and the optimizer 70-75. Rank 1 synchronises 43-47.
fn file() -> ExecutionFile {
    serde_json::from_str(include_str!("../../../../../fuzz/seeds/execution_file/pipeline.json")).unwrap()
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

/// Two ranks start the forward of a microbatch together, and the backward at 12, when the slower rank is done. They
/// synchronise at 32 for 4, then rank 0 has an optimizer step of 5.
#[test]
fn groups_start_together() {
    let mut file: ExecutionFile =
        serde_json::from_str(include_str!("../../../../../fuzz/seeds/execution_file/groups.json")).unwrap();
    assert_eq!(check_execution_file(&file).unwrap().iteration_ns, 41);
    file.runs[0].ranks[0].actions[1].start_ns = 10;
    let error = check_execution_file(&file).unwrap_err().to_string();
    assert_eq!(error, "run 0, rank 0, action 1: starts at 10 ns, in the simulation at 12 ns");
}

/// An overlapped pair of 10 and 10 takes 16 at 800,000 ppm: 8 each from 10 on. Then 6, 4 and the synchronisation 4.
#[test]
fn overlapped_pairs_share_their_common_time() {
    let mut file: ExecutionFile =
        serde_json::from_str(include_str!("../../../../../fuzz/seeds/execution_file/pair.json")).unwrap();
    assert_eq!(check_execution_file(&file).unwrap().iteration_ns, 40);
    file.runs[0].overlapped_ppm = 900_000;
    let error = check_execution_file(&file).unwrap_err().to_string();
    assert_eq!(error, "run 0, rank 0, action 1: its duration is 8 ns, by the costs 9 ns");
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
    two.layout.data = 2;
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
    assert_eq!(refused(|file| file.devices = 5), "its ranks: 4 devices, the file has 5");
    assert_eq!(refused(|file| file.layout.data = 3), "TP x CP x PP x DP: 12 devices, the file has 4");
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
        "run 0, rank 0, action 2: its start or duration differs from the timeline, or it starts before the action that precedes it"
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
    let without = |index: usize| {
        refused(|file| {
            file.runs[0].ranks[1].actions.remove(index);
        })
    };
    assert!(actions(|list| list.swap(2, 3)).starts_with("run 0, rank 1, action 2: an input was not computed"));
    assert_eq!(without(1), "run 0, rank 1, action 1: an input was not computed or waited for before");
    assert_eq!(without(3), "run 0, rank 1 never runs stage 1 for microbatch 0");
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
    assert_eq!(samples(|part| part.to_ppm = 400_000), "sample 0: its parts add up to 400000 of 1000000 millionths");
    assert!(samples(|part| part.from_ppm = u32::MAX).contains("ends before it starts"));
    // A phase far away is one phase, not four billion. Its ranks begin later.
    assert!(run(|run| run.ranks[1].phase = u32::MAX).contains("run 0, rank 1, action 2: starts at 13 ns"));
}
