//! Tests for the complete solver.

use proptest::prelude::*;

use super::examples::{best, cost, order, problem, problems};
use super::{Event, Infeasible, PairCost, Settings, Solver, TuningProblem, candidates, solve};
use crate::planners::pipeweaver::layer_tuning::LayerOption;
use planscope_core::optimality::Optimality;
use planscope_core::random::Random;
use planscope_core::units::{Bytes, Nanos};

const EXACT: Settings = Settings { gap: 0.0, solver: Solver::BranchAndBound, nodes: u64::MAX };

/// Three pairs, stored (10, 10), partly recomputed (12, 5) or recomputed (16, 1), all active at the
/// first backward. Limit 30: all stored. 25 and 20: one pair and two pairs partly recomputed. 15:
/// all partly (36). Limit 12: two partly, the third recomputed (11 bytes), 12 + 12 + 16. Limit 3:
/// all recomputed.
#[test]
fn less_memory_costs_the_optimal_time() {
    let pairs = || vec![vec![cost(10, 10, 0), cost(12, 5, 0), cost(16, 1, 0)]; 3];
    for (limit, time) in [(30, 30), (29, 32), (25, 32), (20, 34), (15, 36), (12, 40), (3, 48)] {
        let problem = problem(pairs(), "F0 F1 F2 B2 B1 B0", limit);
        let tuning = solve(&problem, &EXACT).unwrap();
        assert_eq!(
            (tuning.time.get(), tuning.bound.get(), tuning.optimality),
            (time, time, Optimality::Optimal),
            "{limit}"
        );
        assert!(tuning.peak.get() <= limit);
    }
}

/// Pair 1 overlaps pair 0 and pair 2, but never both: at most two pairs are active, 20 of 15 bytes.
/// Changing only pair 1 repairs both instants.
#[test]
fn only_overlapping_pairs_compete() {
    let pairs = vec![vec![cost(10, 10, 0), cost(14, 5, 0)]; 3];
    let tuning = solve(&problem(pairs, "F0 F1 B0 F2 B1 B2", 15), &EXACT).unwrap();
    assert_eq!((tuning.selection.as_slice(), tuning.time.get()), ([0, 1, 0].as_slice(), 34));
}

/// Recomputation needs 9 transient bytes during its own backward: 1 + 9 of 10 bytes. An additional
/// recomputed pair (1) exceeds the limit.
#[test]
fn transient_memory_counts_at_its_backward() {
    let pairs = || vec![vec![cost(10, 10, 0), cost(13, 1, 9)]; 2];
    assert_eq!(solve(&problem(pairs(), "F0 F1 B1 B0", 11), &EXACT).unwrap().selection, [1, 0]);
    let error = solve(&problem(pairs(), "F0 F1 B1 B0", 10), &EXACT).unwrap_err();
    assert!(matches!(error, Infeasible::Moment { needed, pairs: 2, .. } if needed == Bytes::new(11)), "{error}");
}

#[test]
fn infeasible_problems_are_named() {
    const GIB: u64 = 1 << 30;
    let pairs = vec![vec![cost(1, 4 * GIB, 0), cost(2, 2 * GIB, 0)]; 3];
    let problem = |base: u64, limit: u64| {
        let order = order("F0 F1 B0 F2 B1 B2");
        TuningProblem::new(pairs.clone(), &order, Bytes::new(base * GIB), Bytes::new(limit * GIB)).unwrap()
    };
    for (base, limit, message) in [
        (
            70,
            73,
            "the leanest candidates of the 2 pairs held at action 2, the backward of pair 0, need 74.00 GiB of 73.00 GiB",
        ),
        (80, 76, "80.00 GiB are always held, over the limit of 76.00 GiB"),
    ] {
        assert_eq!(solve(&problem(base, limit), &EXACT).unwrap_err().to_string(), message);
    }
    assert!(solve(&problem(70, 74), &EXACT).is_ok());
}

/// Candidate 1 needs less memory while stored, candidate 0 less at release. Each instant is
/// feasible for some candidate, but no candidate is feasible at both. Pair 0 is active at B1 (at
/// least 1) and released at B0 (at least 6).
#[test]
fn separately_feasible_instants_can_be_jointly_infeasible() {
    let pairs = vec![vec![cost(1, 6, 0), cost(1, 1, 9)], vec![cost(1, 6, 0)]];
    let error = solve(&problem(pairs.clone(), "F0 F1 B1 B0", 8), &EXACT).unwrap_err();
    assert_eq!(error, Infeasible::AlignedIterations { limit: Bytes::new(8) });
    assert_eq!(solve(&problem(pairs, "F0 F1 B1 B0", 10), &EXACT).unwrap().selection, [1, 0]);
}

/// A typical pipeline rank: uneven microbatches, five candidates per pair, 1F1B with `depth` pairs
/// in flight. The limit is `percent` % relative to the minimum-time selection.
fn rank(pairs: usize, depth: usize, percent: u64, seed: u32) -> TuningProblem {
    let mut random = Random::new(seed, 0);
    let costs: Vec<Vec<PairCost>> = (0..pairs)
        .map(|_| {
            let scale = 400 + random.below(1200);
            let option = |time: u64, memory: u64| LayerOption {
                time: Nanos::new(time * scale),
                memory: Bytes::new(memory * scale),
            };
            let layer = vec![option(20_000, 900_000), option(20_700, 560_000), option(26_600, 50_000)];
            candidates(&vec![layer; 8], 5).iter().map(PairCost::from).collect()
        })
        .collect();
    let mut order: Vec<Event> = (0..depth as u32).map(Event::Hold).collect();
    for pair in depth as u32..pairs as u32 {
        order.extend([Event::Release(pair - depth as u32), Event::Hold(pair)]);
    }
    order.extend((pairs - depth..pairs).map(|pair| Event::Release(pair as u32)));
    let problem = |limit: u64| TuningProblem::new(costs.clone(), &order, Bytes::ZERO, Bytes::new(limit)).unwrap();
    let fastest: Vec<u8> = costs.iter().map(|costs| costs.len() as u8 - 1).collect();
    let peak = problem(0).peak(&fastest).0.get();
    problem(peak / 100 * percent)
}

/// The paper's gap does not require enumeration.
#[test]
fn pipeline_ranks_are_solved_by_the_bound() {
    for (pairs, depth) in [(64, 8), (96, 4), (128, 16), (128, 2)] {
        for percent in [15, 25, 40, 60, 80, 95] {
            let problem = rank(pairs, depth, percent, percent as u32);
            let tuning = solve(&problem, &Settings::default()).unwrap();
            assert_eq!(tuning.solver, Solver::Lagrangian, "{pairs} {depth} {percent}: {}", tuning.gap);
            assert!(tuning.gap <= 0.05 && problem.fits(&tuning.selection));
            assert_eq!(solve(&problem, &Settings::default()).unwrap(), tuning, "the same question, another answer");
        }
    }
}

proptest! {
    #[test]
    fn small_questions_are_answered_as_by_trying_everything(problem in problems()) {
        match (solve(&problem, &EXACT), best(&problem)) {
            (Ok(tuning), Some(best)) => {
                prop_assert_eq!((tuning.time, tuning.bound, tuning.optimality), (best, best, Optimality::Optimal));
                prop_assert!(problem.fits(&tuning.selection));
            }
            (Err(Infeasible::Unknown { .. }), _) => prop_assert!(false, "everything was tried"),
            (Err(_), None) => {}
            (result, best) => prop_assert!(false, "{result:?} against {best:?}"),
        }
    }

    #[test]
    fn results_are_within_the_requested_gap(problem in problems(), percent in 0_u32..50) {
        let gap = f64::from(percent) / 100.0;
        if let Ok(tuning) = solve(&problem, &Settings { gap, ..EXACT }) {
            let best = best(&problem).unwrap();
            prop_assert!(tuning.bound <= best && best <= tuning.time && tuning.gap <= gap + 1e-12);
        }
    }

    #[test]
    fn more_memory_never_hurts(problem in problems(), more in 1_u64..40) {
        let mut roomier = problem.clone();
        roomier.limit = problem.limit + Bytes::new(more);
        roomier.capacity = problem.capacity + more;
        if let Ok(tuning) = solve(&problem, &EXACT) {
            prop_assert!(solve(&roomier, &EXACT).unwrap().time <= tuning.time);
        }
    }
}
