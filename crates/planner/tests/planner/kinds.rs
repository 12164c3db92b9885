//! Checks all schedule kinds for all small sizes: complete, valid, free of deadlocks, consistent
//! with the closed form.

use planner::check::check_run;
use planner::cost::{PipelineCosts, UniformTimes};
use planner::lower_bound::lower_bound;
use planner::schedule::{ActionKind, ChunksRule, Schedule, ScheduleError, ScheduleKind, Shape, StageTimes};
use planner::simulate::{Execution, execute, peak_memory};
use planner::units::{Bytes, Nanos};
use proptest::prelude::*;

fn shape(kind: ScheduleKind, ranks: usize, chunks: usize, microbatches: usize) -> Shape {
    Shape { ranks, chunks: kind.chunks(Some(chunks)), microbatches, group: None }
}

fn uniform(kind: ScheduleKind, shape: Shape, [forward, input, weight, send]: [u64; 4]) -> PipelineCosts {
    let times = UniformTimes {
        forward: Nanos::new(forward),
        input_grad: Nanos::new(input),
        weight_grad: Nanos::new(weight),
        communication: Nanos::new(send),
    };
    PipelineCosts::uniform_over(kind.flows(shape.ranks, shape.chunks, shape.microbatches), times)
}

/// Simulates and validates a schedule.
fn checked_execution(kind: ScheduleKind, schedule: &Schedule, costs: &PipelineCosts, limit: Bytes) -> Execution {
    let execution = execute(schedule, costs).unwrap_or_else(|deadlock| panic!("{}: {deadlock}", kind.id()));
    check_run(schedule, &execution, costs, limit).unwrap_or_else(|violation| panic!("{}: {violation}", kind.id()));
    assert!(lower_bound(costs) <= execution.makespan(), "{}", kind.id());
    execution
}

/// Maximum span on any rank (start of the first action to end of the last action).
fn max_span(execution: &Execution) -> u64 {
    let ranks = 0..execution.start.len();
    ranks.map(|rank| (execution.rank_end(rank) - execution.start[rank][0]).get()).max().unwrap_or(0)
}

/// Maximum span minus minimum work per rank.
fn bubble(execution: &Execution) -> u64 {
    let work = execution
        .start
        .iter()
        .zip(&execution.end)
        .map(|(start, end)| start.iter().zip(end).map(|(&start, &end)| (end - start).get()).sum::<u64>());
    max_span(execution) - work.min().unwrap_or(0)
}

/// Returns the error for sizes that the kind does not support.
fn refusal(kind: ScheduleKind, p: usize, m: usize) -> Option<ScheduleError> {
    match kind {
        ScheduleKind::DualPipe if p % 2 == 1 => Some(ScheduleError::OddRanks { kind, ranks: p }),
        ScheduleKind::DualPipe if m % 2 == 1 => Some(ScheduleError::OddMicrobatches { kind, microbatches: m }),
        ScheduleKind::DualPipe | ScheduleKind::DualPipeV if m < 2 * p => {
            Some(ScheduleError::TooFewMicrobatches { kind, min: 2 * p, ranks: p, microbatches: m })
        }
        _ => None,
    }
}

/// p from 1 to 8, m from 1 to 24, with and without communication: all kinds run or report an error.
#[test]
fn small_shapes_run_or_are_rejected() {
    for kind in ScheduleKind::ALL {
        for (p, m) in (1..=8).flat_map(|p| (1..=24).map(move |m| (p, m))) {
            let chunks: &[usize] = if matches!(kind.chunks_rule(), ChunksRule::Any { .. }) { &[1, 2, 3] } else { &[1] };
            for (&v, send) in chunks.iter().flat_map(|v| [0, 3].map(|send| (v, send))) {
                let shape = shape(kind, p, v, m);
                let costs = uniform(kind, shape, [10, 10, 10, send]);
                match kind.generate(shape, &costs, None) {
                    Ok(schedule) => drop(checked_execution(kind, &schedule, &costs, Bytes::new(u64::MAX))),
                    Err(error) => assert_eq!(Some(error), refusal(kind, p, m), "{} p {p} v {v} m {m}", kind.id()),
                }
            }
        }
    }
}

/// Compares bubble and memory to the formulas for several shapes and times. V-Half, V-Min and ZB-H2
/// can be better.
#[test]
fn closed_forms_hold() {
    let (mut bubbles, mut peaks) = (0, 0);
    for kind in ScheduleKind::ALL {
        for (p, v, m) in [(1, 2, 4), (2, 2, 8), (3, 1, 9), (4, 2, 12), (5, 3, 20), (6, 1, 24), (7, 2, 28), (8, 2, 32)] {
            for [f, i, w, both] in [[100, 100, 100, 300], [100, 100, 100, 250], [100, 120, 80, 300], [80, 100, 60, 240]]
            {
                let shape = shape(kind, p, v, m);
                if kind.check(shape).is_err() {
                    continue;
                }
                let mut costs = uniform(kind, shape, [f, i, w, 0]);
                costs.overlapped_ppm = (both * 1_000_000_u64).div_ceil(f + i + w);
                let schedule = kind.generate(shape, &costs, None).unwrap();
                let execution = checked_execution(kind, &schedule, &costs, Bytes::new(u64::MAX));
                let bubble = bubble(&execution);
                let name = format!("{} p {p} v {v} m {m} F {f} I {i} W {w} F&B {both}", kind.id());
                let nanos = Nanos::new;
                let times = StageTimes {
                    forward: nanos(f),
                    input_grad: nanos(i),
                    weight_grad: nanos(w),
                    overlapped: nanos(both),
                };
                if let Some(expected) = kind.expected_bubble(shape, times) {
                    let expected = expected.get();
                    match kind {
                        ScheduleKind::ZbH2 | ScheduleKind::VHalf | ScheduleKind::VMin => {
                            assert!(bubble <= expected, "{name}: {bubble} {expected}");
                        }
                        _ => assert_eq!(bubble, expected, "{name}"),
                    }
                    bubbles += 1;
                }
                if let Some(expected) = kind.expected_peak(shape) {
                    let peak = (0..p).map(|rank| peak_memory(rank, &schedule, &execution, &costs).get()).max();
                    assert_eq!(peak, Some(expected), "{name}");
                    peaks += 1;
                }
            }
        }
    }
    assert!(bubbles > 200 && peaks > 300, "{bubbles} {peaks}");
}

/// F = I = W. Relative to the 1F1B bubble b for the same model, the zero-bubble kinds leave b/3
/// (ZB1P), 0 (ZB-H2, ZBV), at most b/2 (V-Half) and 2b/3 (V-Min) at 1, 2, 1, about 1/2 and about 1/3 of its
/// memory. p = 12: a stage takes 6 per action, a chunk 3.
#[test]
fn bubble_and_memory_match_the_published_values() {
    let (p, m) = (12, 48);
    let measured = |kind: ScheduleKind| {
        let shape = shape(kind, p, 1, m);
        let each = 6 / shape.chunks as u64;
        let costs = uniform(kind, shape, [each, each, each, 0]);
        let schedule = kind.generate(shape, &costs, None).unwrap();
        let execution = checked_execution(kind, &schedule, &costs, Bytes::new(u64::MAX));
        let peak = (0..p).map(|rank| peak_memory(rank, &schedule, &execution, &costs).get()).max().unwrap();
        (bubble(&execution), peak as f64 / shape.chunks as f64)
    };
    let (b, memory) = measured(ScheduleKind::OneFOneB);
    assert_eq!((b, memory), (11 * 18, 12.0));
    assert_eq!(measured(ScheduleKind::InterleavedZeroBubble), (b / 3, memory));
    assert_eq!(measured(ScheduleKind::ZbH1), (b / 3, memory));
    assert_eq!(measured(ScheduleKind::ZbH2), (0, 2.0 * memory));
    assert_eq!(measured(ScheduleKind::Zbv), (0, memory));
    // The start and the end of both patterns are shortened, so the bubbles are smaller than published.
    let (half, half_memory) = measured(ScheduleKind::VHalf);
    assert!(
        half <= 3 * (3 * 12 - 7) && half_memory.to_bits() == (memory / 2.0 + 1.0).to_bits(),
        "{half} {half_memory}"
    );
    let (min, min_memory) = measured(ScheduleKind::VMin);
    assert!(min <= 2 * b / 3 && min_memory.to_bits() == (memory / 3.0 + 1.0).to_bits(), "{min} {min_memory}");
}

proptest! {
    /// Uneven times and activations per stage and microbatch, under any memory limit.
    #[test]
    fn every_kind_is_sound_with_uneven_times(
        p in 1_usize..7, v in 1_usize..4, m in 1_usize..16, seed in any::<u32>(), cap in 30_u64..300, gain in 600_000_u64..1_000_001,
    ) {
        for kind in ScheduleKind::ALL {
            let shape = shape(kind, p, v, m);
            if kind.check(shape).is_err() {
                continue;
            }
            let mut costs = uniform(kind, shape, [1, 1, 1, 1]);
            costs.overlapped_ppm = gain;
            crate::schedules::vary(&mut costs, seed);
            checked_execution(kind, &kind.generate(shape, &costs, None).unwrap(), &costs, Bytes::new(u64::MAX));
            if kind.is_cost_dependent() {
                let cap = Bytes::new(cap);
                match kind.generate(shape, &costs, Some(cap)) {
                    Ok(schedule) => drop(checked_execution(kind, &schedule, &costs, cap)),
                    Err(ScheduleError::Memory { needs, limit, .. }) => prop_assert!(needs > limit),
                    Err(error) => prop_assert!(matches!(error, ScheduleError::NoOrder { .. }), "{error}"),
                }
            }
        }
    }
}

#[test]
fn invalid_shapes_are_rejected_with_a_message() {
    let rejection = |kind: ScheduleKind, shape: Shape| kind.check(shape).unwrap_err().to_string();
    let shape = |ranks, chunks, microbatches, group| Shape { ranks, chunks, microbatches, group };
    for (kind, shape, says) in [
        (ScheduleKind::DualPipe, shape(5, 2, 20, None), "DualPipe needs an even number of ranks, 5 given"),
        (ScheduleKind::DualPipe, shape(4, 2, 9, None), "DualPipe needs an even number of microbatches, 9 given"),
        (ScheduleKind::DualPipe, shape(4, 2, 6, None), "DualPipe needs at least 8 microbatches on 4 ranks, 6 given"),
        (ScheduleKind::DualPipeV, shape(3, 2, 5, None), "DualPipeV needs at least 6 microbatches on 3 ranks, 5 given"),
        (ScheduleKind::Zbv, shape(4, 3, 8, None), "ZBV needs 2 chunks on every rank, 3 given"),
        (ScheduleKind::OneFOneB, shape(4, 1, 8, Some(4)), "1F1B has no groups"),
        (ScheduleKind::Interleaved, shape(4, 2, 8, Some(0)), "a group needs a microbatch at least"),
        (
            ScheduleKind::Gpipe,
            shape(0, 1, 8, None),
            "a schedule needs ranks, chunks and microbatches: 0, 1 and 8 given",
        ),
    ] {
        assert_eq!(rejection(kind, shape), says);
    }
}

/// A schedule splits backwards or overlaps actions only if its kind declares it.
#[test]
fn kinds_match_their_definition() {
    for kind in ScheduleKind::ALL {
        let shape = shape(kind, 4, 2, 8);
        let costs = uniform(kind, shape, [10, 10, 10, 0]);
        let schedule = kind.generate(shape, &costs, None).unwrap();
        let has = |test: &dyn Fn(&planner::schedule::Action) -> bool| schedule.orders.iter().flatten().any(test);
        assert_eq!(has(&|action| action.kind == ActionKind::WeightGrad), kind.splits_backward(), "{}", kind.id());
        assert_eq!(has(&|action| action.with_next), kind.overlaps(), "{}", kind.id());
        assert!(kind.source().contains(", 20"), "{}: a paper and a year", kind.id());
        let other = uniform(kind, Shape { microbatches: 10, ..shape }, [10, 10, 10, 0]);
        assert_eq!(kind.generate(shape, &other, None), Err(ScheduleError::Costs { kind }));
    }
}
