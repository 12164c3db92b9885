use proptest::prelude::*;

use super::*;
use crate::trace_comparison::{Activity, Call, DeviceSlice, RecordedStep, SegmentKind, segments};

/// Times of a rank in a step: compute, then an all-reduce that ends at 100 in each step of 100 ns.
/// `clock` is added to all times.
fn recorded(rank: u32, clock: u64, compute: &[u64]) -> Recorded {
    let slice = |name, activity, start, end: u64, step, call| DeviceSlice {
        name,
        activity,
        phase: None,
        start_ns: clock + start,
        duration_ns: end - start,
        step: Some(step),
        call,
        launched_ns: None,
    };
    let steps = (0..).zip(compute);
    let slices = steps.flat_map(|(step, &compute)| {
        let at = step * 100;
        [
            slice(0, Activity::Compute, at, at + compute, step, None),
            slice(1, Activity::Communication, at + compute, at + 100, step, Some(0)),
        ]
    });
    Recorded {
        name: format!("rank{rank}.json"),
        rank,
        names: vec!["gemm".to_owned(), "nccl".to_owned()],
        slices: slices.collect(),
        calls: vec![call("0", None, true)],
        steps: (0..compute.len() as u64).map(|number| RecordedStep { number, duration_ns: 100 }).collect(),
        ..Recorded::default()
    }
}

fn call(group: &str, sequence: Option<u64>, waits_for_all: bool) -> Call {
    Call { operation: "allreduce".to_owned(), group: group.to_owned(), sequence, waits_for_all }
}

/// Three ranks, two steps. Rank 2 computes 90 ns and 80 ns, the others 60 and 70. In step 0 rank 0
/// waits 30 ns and rank 1 20 ns; in step 1 20 ns and 10 ns.
fn three() -> Vec<Recorded> {
    vec![recorded(0, 1000, &[60, 60]), recorded(1, 5000, &[70, 70]), recorded(2, 0, &[90, 80])]
}

#[test]
fn the_shortest_kernel_arrives_last() {
    let report = ranks(&three(), 10).expect("shared collectives");
    assert_eq!((report.collectives, report.wait_ns, report.clock_deviation_ns), (2, 80, 0));
    let rows: Vec<_> = report
        .ranks
        .iter()
        .map(|rank| {
            (rank.rank, rank.waited_ns, rank.caused_ns, rank.late_ns, rank.last, rank.last_steps, rank.clock_ns)
        })
        .collect();
    assert_eq!(
        rows,
        [(0, 50, 0, 0, 0, 0, Some(0)), (1, 30, 0, 0, 0, 0, Some(4000)), (2, 0, 80, 30, 2, 2, Some(-1000)),]
    );
    let longest = &report.longest[0];
    assert_eq!(
        (longest.step, longest.first, longest.last, longest.wait_ns, longest.transfer_ns),
        (Some(0), 0, 2, 50, 10)
    );
    assert_eq!(longest.waits, [(0, 30), (1, 20), (2, 0)].map(|(rank, wait_ns)| Wait { rank, wait_ns }));
    assert_eq!(report.steps[1], StepWait { step: 1, wait_ns: 30, last: 2, caused_ns: 30 });
    assert_eq!((report.groups[0].collectives, report.groups[0].last, report.groups[0].transfer_ns), (2, 2, 30));
    assert!(report.notes.is_empty(), "{:?}", report.notes);
}

#[test]
fn incomplete_traces_are_noted() {
    let mut incomplete = three();
    incomplete[0].world_size = Some(5);
    incomplete[1].duplicates = 2;
    incomplete[2].slices.truncate(2);
    let notes = ranks(&incomplete, 0).expect("shared").notes.join("\n");
    for text in ["2 device slices of rank1.json", "Of 5 ranks, these have no trace: 3, 4.", "rank 1: 2, rank 2: 1"] {
        assert!(notes.contains(text), "{text}: {notes}");
    }
}

/// The median of the others is 140 ns (60+60 and 70+70, upper median). Rank 2 has 170 ns in as many
/// kernels.
#[test]
fn the_straggler_has_a_reason() {
    let straggler = ranks(&three(), 0).expect("shared").straggler.expect("rank 2");
    assert_eq!((straggler.rank, straggler.excess_compute_ns, straggler.excess_idle_ns), (2, 30, 0));
    assert_eq!(straggler.cause, Cause::SlowerKernels);
    assert!((straggler.caused_share - 1.0).abs() < 1e-12 && (straggler.last_share - 1.0).abs() < 1e-12);
    assert!((straggler.same_kernels_ratio.expect("equal counts") - 170.0 / 140.0).abs() < 1e-12);
    assert_eq!((straggler.kernels[0].name.as_str(), straggler.kernels[0].excess_ns), ("gemm", 30));
    // A second kernel of 30 ns per step instead of longer ones: more work.
    let mut more = three();
    more[2] = recorded(2, 0, &[60, 60]);
    for step in 0..2_u64 {
        let first = more[2].slices[0];
        let start_ns = step * 100 + 60;
        more[2].slices.push(DeviceSlice { start_ns, duration_ns: 30, step: Some(step), ..first });
        let last = 1 + 2 * step as usize;
        more[2].slices[last].start_ns += 30;
        more[2].slices[last].duration_ns -= 30;
    }
    assert_eq!(ranks(&more, 0).expect("shared").straggler.expect("rank 2").cause, Cause::MoreWork);
    // The device is idle for 30 ns before each collective.
    let mut late = three();
    late[2] = recorded(2, 0, &[60, 60]);
    for last in [1, 3] {
        late[2].slices[last].start_ns += 30;
        late[2].slices[last].duration_ns -= 30;
    }
    let host = ranks(&late, 0).expect("shared").straggler.expect("rank 2");
    assert_eq!((host.cause, host.excess_idle_ns), (Cause::Host, 60));
    let even = [recorded(0, 0, &[60, 70]), recorded(1, 0, &[70, 60])];
    let even = ranks(&even, 0).expect("shared");
    assert_eq!((even.straggler, even.notes.len()), (None, 1));
}

/// Four ranks in one step: a collective of the pairs (0, 1) and (2, 3), then one of all. Times are the starts of the inner
/// collective; it takes 10 ns, and the outer one ends at 200 ns. `noise` is added to the work of rank 2 between both.
fn nested(compute: [u64; 4], noise: u64) -> Vec<Recorded> {
    let rank = |rank: u32| {
        let pair = (rank / 2 * 2) as usize;
        let inner_end = compute[pair].max(compute[pair + 1]) + 10;
        let outer_start = inner_end + 20 + if rank == 2 { noise } else { 0 };
        let mut own = recorded(rank, 0, &[compute[rank as usize]]);
        own.calls = vec![call(if pair == 0 { "a" } else { "b" }, Some(1), true), call("all", Some(1), true)];
        own.slices[1].duration_ns = inner_end - compute[rank as usize];
        let after = |start_ns: u64, end_ns: u64, slice: DeviceSlice| DeviceSlice {
            start_ns,
            duration_ns: end_ns - start_ns,
            ..slice
        };
        own.slices.push(after(inner_end, outer_start, own.slices[0]));
        own.slices.push(DeviceSlice { call: Some(1), ..after(outer_start, 200, own.slices[1]) });
        own
    };
    (0..4).map(rank).collect()
}

/// Rank 3 computes 60 ns, the others 40. Rank 2 waits 20 ns for it, then ranks 0 and 1 wait 20 ns for both.
#[test]
fn waits_go_back_to_the_rank_that_delays_the_last() {
    let caused = |report: &RankReport| report.ranks.iter().map(|rank| rank.caused_ns).collect::<Vec<_>>();
    let even = ranks(&nested([40, 40, 40, 60], 0), 9).expect("shared");
    assert_eq!((caused(&even), even.wait_ns, even.steps[0].last), (vec![0, 0, 0, 60], 60, 3));
    let noisy = ranks(&nested([40, 40, 40, 60], 1), 9).expect("shared");
    assert_eq!((caused(&noisy), noisy.wait_ns), (vec![0, 0, 3, 60], 63));
    let straggler = noisy.straggler.expect("rank 3");
    assert_eq!((straggler.rank, straggler.cause, straggler.excess_compute_ns), (3, Cause::SlowerKernels, 20));
    // A rank that is late by itself after its pair waited for another one has its own part: 30 ns of the 50 ns.
    let both = ranks(&nested([40, 40, 40, 60], 30), 9).expect("shared");
    assert_eq!(caused(&both), [0, 0, 3 * 30, 3 * 20]);
    // A wait that computation hides does not delay the rank.
    let mut hidden = nested([40, 40, 40, 60], 0);
    let beside = DeviceSlice { start_ns: 40, duration_ns: 20, ..hidden[2].slices[0] };
    hidden[2].slices.insert(1, beside);
    assert_eq!(caused(&ranks(&hidden, 9).expect("shared")), [0, 0, 40, 20]);
}

/// Twelve kernels of `kernel` ns in a step of 1000 ns, each with an all-reduce behind the following kernels. It ends 10 ns after
/// the slowest rank starts it.
fn overlapped(rank: u32, kernel: u64, slowest: u64, steps: std::ops::Range<u64>) -> Recorded {
    let mut own = recorded(rank, 0, &[]);
    let template = recorded(rank, 0, &[1]).slices;
    for step in steps.clone() {
        for index in 0..12_u64 {
            let at = step * 1000 + index * kernel;
            let end = step * 1000 + (index + 1) * slowest + 10;
            let slice = |of: usize, start_ns, end_ns| DeviceSlice {
                start_ns,
                duration_ns: end_ns - start_ns,
                step: Some(step),
                ..template[of]
            };
            own.slices.push(slice(0, at, at + kernel));
            own.slices.push(slice(1, at + kernel, end));
        }
    }
    own.slices.sort_by_key(|slice| slice.start_ns);
    own.steps = steps.map(|number| RecordedStep { number, duration_ns: 1000 }).collect();
    own
}

/// Rank 3 needs 60 ns for each kernel and the others 50 ns. The run loses 12 x 10 ns, and each other rank waits
/// 10 + 20 + ... + 120 = 780 ns. The step takes 730 ns; its own kernels take 600 ns.
#[test]
fn hidden_waits_are_not_lost_time() {
    let traces: Vec<Recorded> =
        (0..4).map(|rank| overlapped(rank, if rank == 3 { 60 } else { 50 }, 60, 0..1)).collect();
    let report = ranks(&traces, 0).expect("shared");
    assert_eq!(report.wait_ns, 3 * 780);
    let straggler = report.straggler.expect("rank 3");
    assert_eq!((straggler.rank, straggler.excess_compute_ns, straggler.lost_ns), (3, 120, 120));
    assert_eq!((straggler.cause, straggler.named().as_str()), (Cause::SlowerKernels, "rank 3"));
    assert_eq!((report.ranks[0].exposed_ns, report.ranks[3].exposed_ns), (130, 10));
}

#[test]
fn equally_slow_ranks_are_named_together() {
    let kernel = |rank: u32| if [1, 2, 4].contains(&rank) { 60 } else { 50 };
    let traces: Vec<Recorded> = (0..6).map(|rank| overlapped(rank, kernel(rank), 60, 0..1)).collect();
    let straggler = ranks(&traces, 0).expect("shared").straggler.expect("three ranks");
    assert_eq!((straggler.slow_ranks.clone(), straggler.named().as_str()), (vec![1, 2, 4], "ranks 1 to 2, 4"));
    // The median of the others does not contain the slow ranks.
    assert_eq!((straggler.excess_compute_ns, straggler.same_kernels_ratio), (120, Some(1.2)));
    assert!((straggler.caused_share - 1.0).abs() < 1e-12);
}

/// Rank 1 lacks step 0 and rank 2 lacks step 3. Waits and excess are those of the steps 1 and 2.
#[test]
fn waits_outside_of_the_common_steps_are_left_out() {
    let steps = |rank: u32| {
        if rank == 1 {
            1..4
        } else if rank == 2 {
            0..3
        } else {
            0..4
        }
    };
    let kernel = |rank: u32| if rank == 0 { 60 } else { 50 };
    let traces: Vec<Recorded> = (0..4).map(|rank| overlapped(rank, kernel(rank), 60, steps(rank))).collect();
    let report = ranks(&traces, 0).expect("shared");
    assert_eq!((report.collectives, report.wait_ns, report.steps.len()), (24, 2 * 3 * 780, 2));
    let straggler = report.straggler.expect("rank 0");
    assert_eq!((straggler.lost_ns, straggler.excess_compute_ns, straggler.cause), (240, 240, Cause::SlowerKernels));
    assert!(report.notes.iter().any(|note| note.starts_with("24 collectives outside")), "{:?}", report.notes);
    // Without steps, the part from the first to the last collective of all ranks is compared.
    let mut stepless = traces;
    for trace in &mut stepless {
        let first = trace.steps[0].number * 12;
        let calls = (0..12 * trace.steps.len() as u64).map(|index| call("0", Some(first + index + 1), true));
        trace.calls = calls.collect();
        trace.steps.clear();
        for (index, slice) in (0..).zip(trace.slices.iter_mut().filter(|slice| slice.call.is_some())) {
            (slice.step, slice.call) = (None, Some(index));
        }
        trace.slices.iter_mut().for_each(|slice| slice.step = None);
    }
    let straggler = ranks(&stepless, 0).expect("shared").straggler.expect("rank 0");
    // 22 of 24 kernels begin after the end of the first collective.
    assert_eq!((straggler.rank, straggler.excess_compute_ns, straggler.cause), (0, 220, Cause::SlowerKernels));
}

#[test]
fn collectives_are_matched_by_group_sequence_and_step() {
    // Rank 1 misses the first collective; sequence numbers match the others.
    let mut with = three();
    for rank in &mut with {
        rank.calls = vec![call("0", Some(7), true), call("0", Some(8), true)];
        rank.slices[3].call = Some(1);
    }
    with[1].slices.remove(1);
    let report = ranks(&with, 9).expect("shared");
    assert_eq!((report.collectives, report.wait_ns), (2, 30 + 30));
    assert_eq!(report.longest.iter().map(|found| found.number).max(), Some(8));
    // Without sequence numbers, the step without it on rank 1 is uneven only if it has others.
    let mut without = three();
    without[1].slices.remove(1);
    assert_eq!(ranks(&without, 9).expect("shared").collectives, 2);
    // Groups are separate, and rooted operations are left out.
    let mut apart = three();
    apart[2].calls[0].group = "1".to_owned();
    assert_eq!(ranks(&apart, 9).expect("ranks 0 and 1").collectives, 2);
    assert_eq!(ranks(&apart, 9).expect("ranks 0 and 1").ranks[2].clock_ns, None);
    for rank in &mut apart {
        rank.calls[0].waits_for_all = false;
    }
    assert!(matches!(ranks(&apart, 9), Err(RanksError::NothingShared(reason)) if reason.contains("6 kernels")));
    assert_eq!(ranks(&three()[..1], 9), Err(RanksError::TooFew(1)));
    let twice = [recorded(3, 0, &[1]), recorded(3, 0, &[1])];
    assert!(matches!(ranks(&twice, 9), Err(RanksError::SameRank { rank: 3, .. })));
}

#[test]
fn ranks_share_an_axis() {
    use SegmentKind::{Compute, Transfer, Wait};

    let rows = segments(&three(), Some(1), 1000).expect("shared").rows;
    let found: Vec<_> = rows
        .iter()
        .map(|row| {
            (row.rank, row.segments.iter().map(|part| (part.kind, part.start_ns, part.duration_ns)).collect::<Vec<_>>())
        })
        .collect();
    assert_eq!(
        found,
        [
            (0, vec![(Compute, 0, 60), (Wait, 60, 20), (Transfer, 80, 20)]),
            (1, vec![(Compute, 0, 70), (Wait, 70, 10), (Transfer, 80, 20)]),
            (2, vec![(Compute, 0, 80), (Transfer, 80, 20)]),
        ]
    );
}

proptest! {
    /// Waits do not depend on clocks, and every wait has a cause.
    #[test]
    fn waits_add_up(compute in prop::collection::vec(prop::collection::vec(0_u64..100, 3), 2..5), clocks in prop::collection::vec(0_u64..1_000_000, 5)) {
        let at = |clocks: &[u64]| {
            let traces: Vec<Recorded> = compute.iter().zip(clocks).zip(0..).map(|((compute, clock), rank)| recorded(rank, *clock, compute)).collect();
            ranks(&traces, 100).expect("shared")
        };
        let (one, other) = (at(&clocks), at(&[0; 5]));
        prop_assert_eq!(&one.straggler, &other.straggler);
        prop_assert_eq!(one.clock_deviation_ns, 0);
        let caused: u64 = one.ranks.iter().map(|rank| rank.caused_ns).sum();
        let waited: u64 = one.ranks.iter().map(|rank| rank.waited_ns).sum();
        prop_assert_eq!((caused, waited), (one.wait_ns, one.wait_ns));
        for (rank, clock) in one.ranks.iter().zip(&clocks) {
            prop_assert_eq!(rank.clock_ns, Some(signed_clock(*clock, clocks[0])));
        }
    }
}

fn signed_clock(clock: u64, first: u64) -> i64 {
    i64::try_from(clock).expect("small") - i64::try_from(first).expect("small")
}
