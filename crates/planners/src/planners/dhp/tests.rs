//! Compares the planner to the plain dynamic program, to full enumeration on small batches, and to
//! the baselines.

use proptest::prelude::*;

use super::*;
use planscope_core::random::Random;
use planscope_core::units::Bytes;

const COST: GroupCost = GroupCost {
    a1: 2e-11,
    a2: 1e-6,
    a3: 5e4,
    b1: 2e-3,
    b2: 1e-3,
    within_node: 1e11,
    across_nodes: 1.2e10,
    ranks_per_node: 8,
    exchange: Exchange::Ring,
};

/// DHP Eq. 11 as a plain dynamic program: DP[i][j] for i groups and j ranks, from DP[0][j] = 0.
fn dynamic_program(cost: &GroupCost, groups: &[AtomicGroup], degrees: &AllowedDegrees, ranks: u32) -> Option<f64> {
    let mut table = vec![0.0; ranks as usize + 1];
    for group in groups {
        let mut next = vec![f64::INFINITY; ranks as usize + 1];
        for (j, value) in next.iter_mut().enumerate() {
            for &degree in degrees.list().iter().filter(|&&degree| degree >= group.minimum && degree as usize <= j) {
                *value = value.min(cost.seconds(group.load, degree).max(table[j - degree as usize]));
            }
        }
        table = next;
    }
    table.last().copied().filter(|makespan| makespan.is_finite())
}

fn rules() -> impl Strategy<Value = DegreeRule> {
    prop_oneof![Just(DegreeRule::Any), Just(DegreeRule::PowersOfTwo), (1_u32..40).prop_map(DegreeRule::DividesHeads),]
}

/// Costs with and without a time jump at the node boundary.
fn costs() -> impl Strategy<Value = GroupCost> {
    (1_u32..9, 0.5_f64..100.0, 0.0_f64..0.01, prop_oneof![Just(Exchange::Ring), Just(Exchange::AllToAll)]).prop_map(
        |(ranks_per_node, slower, b2, exchange)| GroupCost {
            ranks_per_node,
            b2,
            across_nodes: COST.within_node / slower,
            exchange,
            ..COST
        },
    )
}

fn lengths(limit: usize) -> impl Strategy<Value = Vec<Sequence>> {
    let sequence = (1_u64..30_000, 0.0_f64..1.0).prop_map(|(tokens, eta)| Sequence { tokens, eta });
    prop::collection::vec(sequence, 1..limit)
}

proptest! {
    #[test]
    fn degrees_match_the_plain_dynamic_program(
        sequences in lengths(10), cost in costs(), rule in rules(), ranks in 1_u32..40, max_degree in 1_u32..40, per_rank in 2000_u64..20_000,
    ) {
        let degrees = AllowedDegrees::new(rule, Some(max_degree), ranks);
        let groups: Option<Vec<AtomicGroup>> = sequences
            .iter()
            .enumerate()
            .map(|(index, &sequence)| {
                let minimum = degrees.minimum(sequence.tokens, per_rank)?;
                Some(AtomicGroup { sequences: vec![index as u32], load: Load::from_sequence(sequence), minimum })
            })
            .collect();
        if let Some(groups) = groups {
            let allocation = allocate(&cost, &groups, &degrees, ranks);
            let expected = dynamic_program(&cost, &groups, &degrees, ranks);
            prop_assert_eq!(allocation.as_ref().map(|allocation| allocation.makespan), expected);
            if let Some(allocation) = allocation {
                prop_assert!(allocation.degrees.iter().sum::<u32>() <= ranks);
                for (group, degree) in groups.iter().zip(&allocation.degrees) {
                    prop_assert!(*degree >= group.minimum && degrees.list().contains(degree));
                    prop_assert!(cost.seconds(group.load, *degree) <= allocation.makespan);
                }
            }
        }
    }

    #[test]
    fn plans_are_legal_and_between_the_bound_and_every_static_plan(
        sequences in lengths(60), cost in costs(), rule in rules(), ranks in 1_u32..24, per_rank in 4000_u64..20_000,
    ) {
        let degrees = AllowedDegrees::new(rule, None, ranks);
        let problem = GroupProblem { sequences: &sequences, ranks, tokens_per_rank: per_rank, degrees: &degrees, cost: &cost };
        for effort in [Effort::Published, Effort::Portfolio] {
            match plan(problem, effort) {
                Ok(plan) => {
                    legal(problem, &plan, Packed::AlignedIterations)?;
                    if effort == Effort::Portfolio {
                        let powers = degrees.powers_of_two();
                        if let Ok(restricted) = super::plan(GroupProblem { degrees: &powers, ..problem }, effort) {
                            prop_assert!(plan.seconds <= restricted.seconds * (1.0 + 1e-12), "{}", restricted.seconds);
                        }
                        for (degree, seconds) in static_degrees(problem) {
                            if let Ok(seconds) = seconds {
                                prop_assert!(plan.seconds <= seconds * (1.0 + 1e-12), "{degree}: {} > {seconds}", plan.seconds);
                            }
                        }
                    }
                }
                Err(GroupError::TooLong { sequence, capacity, .. }) => prop_assert!(sequences[sequence as usize].tokens > capacity),
                Err(error) => prop_assert!(false, "{error}"),
            }
        }
        for degree in degrees.list().iter().filter(|&&degree| ranks % degree == 0) {
            if let Ok(plan) = static_plan(problem, *degree) {
                legal(problem, &plan, Packed::AlignedIterations)?;
                prop_assert!(plan.microbatches.iter().flat_map(|microbatch| &microbatch.groups).all(|group| group.degree == *degree));
            }
        }
        if let Ok(balanced) = megatron_balanced(problem) {
            legal(problem, &balanced, Packed::Sequential)?;
        }
        let any = AllowedDegrees::new(DegreeRule::Any, None, ranks);
        let free = GroupProblem { degrees: &any, ..problem };
        if let Ok(balanced) = megatron_balanced(free) {
            let unpacked = super::plan(free, Effort::Unpacked).map(|plan| plan.seconds);
            prop_assert!(
                unpacked.as_ref().is_ok_and(|&seconds| seconds <= balanced.seconds * (1.0 + 1e-12)),
                "{unpacked:?} > {}",
                balanced.seconds
            );
        }
    }

    #[test]
    fn the_degree_for_a_target_matches_a_scan(
        tokens in 1_u64..100_000, cost in costs(), rule in rules(), ranks in 1_u32..40, per_rank in 2000_u64..20_000, target in 0.0_f64..1.0,
    ) {
        let degrees = AllowedDegrees::new(rule, None, ranks);
        if let Some(minimum) = degrees.minimum(tokens, per_rank) {
            let load = Load::from_sequence(Sequence::causal(tokens));
            let setting = atomic::Setting { ranks, tokens_per_rank: per_rank, degrees: &degrees, cost: &cost };
            let found = atomic::degree_for(setting, atomic::Item { index: 0, load, minimum }, target);
            let allowed = degrees.list().iter().copied().filter(|&degree| degree >= minimum);
            if let Some(first) = allowed.clone().find(|&degree| cost.seconds(load, degree) <= target) {
                prop_assert_eq!(found, first);
            } else {
                let fastest = allowed.map(|degree| cost.seconds(load, degree)).fold(f64::INFINITY, f64::min);
                prop_assert!(cost.seconds(load, found) <= fastest * (1.0 + 1e-12));
            }
        }
    }

    /// Compares to all groupings of up to five sequences, at all degrees.
    #[test]
    fn small_microbatch_groupings_respect_the_bound(sequences in lengths(6), cost in costs(), rule in rules(), ranks in 1_u32..9) {
        let degrees = AllowedDegrees::new(rule, None, ranks);
        let problem = GroupProblem { sequences: &sequences, ranks, tokens_per_rank: 8000, degrees: &degrees, cost: &cost };
        if let Ok(plan) = plan(problem, Effort::Portfolio) {
            let best = best_grouping(problem);
            if let Some(best) = best {
                prop_assert!(plan.bound <= best * (1.0 + 1e-12), "{} > {best}", plan.bound);
                if plan.microbatches.len() == 1 {
                    prop_assert!(plan.seconds >= best * (1.0 - 1e-12), "{} < {best}", plan.seconds);
                }
            }
        }
    }

    #[test]
    fn groups_use_disjoint_ranks(sequences in lengths(40), cost in costs(), ranks in 1_u32..33) {
        let degrees = AllowedDegrees::new(DegreeRule::Any, None, ranks);
        let problem = GroupProblem { sequences: &sequences, ranks, tokens_per_rank: 30_000, degrees: &degrees, cost: &cost };
        for microbatch in plan(problem, Effort::Portfolio).map_err(|error| TestCaseError::fail(error.to_string()))?.microbatches {
            let placement = assign_ranks(problem, &microbatch);
            let mut taken = vec![false; ranks as usize];
            for placed in &placement.groups {
                prop_assert_eq!(placed.ranks.len() as u32, microbatch.groups[placed.group as usize].degree);
                for &rank in &placed.ranks {
                    prop_assert!(!std::mem::replace(&mut taken[rank as usize], true));
                }
            }
            prop_assert_eq!(placement.groups.len(), microbatch.groups.len());
            if placement.cut == 0 {
                prop_assert!((placement.seconds - microbatch.seconds).abs() <= 1e-12 * microbatch.seconds);
            }
        }
    }
}

/// Memory mode: all sequences in a group together, or one at a time.
#[derive(Clone, Copy, PartialEq)]
enum Packed {
    AlignedIterations,
    Sequential,
}

fn legal(problem: GroupProblem<'_>, plan: &BatchPlan, packed: Packed) -> Result<(), TestCaseError> {
    let mut seen = vec![0; problem.sequences.len()];
    let mut total = 0.0;
    for microbatch in &plan.microbatches {
        let used: u32 = microbatch.groups.iter().map(|group| group.degree).sum();
        prop_assert_eq!(used + microbatch.idle_ranks, problem.ranks);
        let slowest = microbatch.groups.iter().map(|group| group.seconds).fold(0.0, f64::max);
        prop_assert!(microbatch.seconds.total_cmp(&slowest).is_eq());
        prop_assert!(microbatch.bound <= slowest * (1.0 + 1e-12), "{} > {slowest}", microbatch.bound);
        total += slowest;
        for group in &microbatch.groups {
            let capacity = u64::from(group.degree) * problem.tokens_per_rank;
            let tokens = group.sequences.iter().map(|&index| problem.sequences[index as usize].tokens);
            let needed = if packed == Packed::AlignedIterations { tokens.sum() } else { tokens.max().unwrap_or(0) };
            prop_assert!(needed <= capacity, "{} on {}", needed, group.degree);
            if packed == Packed::AlignedIterations {
                prop_assert!(problem.degrees.list().contains(&group.degree) && group.degree >= group.minimum);
            }
            for &index in &group.sequences {
                seen[index as usize] += 1;
            }
        }
    }
    prop_assert!(seen.iter().all(|&times| times == 1));
    prop_assert!((total - plan.seconds).abs() <= 1e-12 * total);
    prop_assert!(plan.bound <= plan.seconds * (1.0 + 1e-12), "{} > {}", plan.bound, plan.seconds);
    Ok(())
}

/// Returns the minimum makespan over all partitions of the sequences.
fn best_grouping(problem: GroupProblem<'_>) -> Option<f64> {
    fn deal(problem: GroupProblem<'_>, groups: &mut Vec<AtomicGroup>, next: usize, best: &mut Option<f64>) {
        let Some(&sequence) = problem.sequences.get(next) else {
            for group in groups.iter_mut() {
                match problem.degrees.minimum(group.load.tokens, problem.tokens_per_rank) {
                    Some(minimum) => group.minimum = minimum,
                    None => return,
                }
            }
            if let Some(makespan) = dynamic_program(problem.cost, groups, problem.degrees, problem.ranks) {
                *best = Some(best.map_or(makespan, |best| best.min(makespan)));
            }
            return;
        };
        for at in 0..groups.len() {
            let before = groups[at].load;
            groups[at].load = before.and(Load::from_sequence(sequence));
            deal(problem, groups, next + 1, best);
            groups[at].load = before;
        }
        groups.push(AtomicGroup { sequences: Vec::new(), load: Load::from_sequence(sequence), minimum: 1 });
        deal(problem, groups, next + 1, best);
        groups.pop();
    }
    let mut best = None;
    deal(problem, &mut Vec::new(), 0, &mut best);
    best
}

/// Long-tailed batch: most sequences are short, some are very long.
fn long_tailed(count: usize, seed: u32) -> Vec<Sequence> {
    let mut random = Random::new(seed, 0);
    let length = |random: &mut Random| (libm::exp(7.8 + 1.1 * random.normal()) as u64).clamp(200, 120_000);
    (0..count).map(|_| Sequence::causal(length(&mut random))).collect()
}

/// 10 tokens per rank. In descending order: 25 opens a bin with three ranks, 5 tokens remain. 12
/// opens a bin with two ranks, 8 remain. 8 is added to the second bin. 6 does not fit and opens a
/// third bin with one rank, 4 remain. 5 is added to the first bin, 4 to the third. 1 does not fit
/// and opens a fourth bin.
#[test]
fn best_fit_decreasing_fills_the_fullest_bin() {
    let sequences: Vec<Sequence> = [25, 12, 8, 6, 5, 4, 1].map(Sequence::causal).to_vec();
    let degrees = AllowedDegrees::new(DegreeRule::Any, None, 7);
    let problem = GroupProblem { sequences: &sequences, ranks: 7, tokens_per_rank: 10, degrees: &degrees, cost: &COST };
    let plan = plan(problem, Effort::Published).unwrap();
    let mut groups: Vec<Vec<u32>> = plan.microbatches[0].groups.iter().map(|group| group.sequences.clone()).collect();
    groups.sort();
    assert_eq!(groups, [vec![0, 4], vec![1, 2], vec![3, 5], vec![6]]);
    assert_eq!(plan.notation(), "<3>x1 <2>x1 <1>x2");
}

/// Two sequences with 30 tokens need three of four ranks each, so they need two microbatches. The
/// four ranks have capacity for 40 tokens.
#[test]
fn a_microbatch_is_never_overfilled() {
    let sequences = [Sequence::causal(30), Sequence::causal(30)];
    let degrees = AllowedDegrees::new(DegreeRule::Any, None, 4);
    let problem = GroupProblem { sequences: &sequences, ranks: 4, tokens_per_rank: 10, degrees: &degrees, cost: &COST };
    let plan = plan(problem, Effort::Portfolio).unwrap();
    assert_eq!(plan.microbatches.len(), 2);
}

/// Sequences that need three of four ranks cannot share a microbatch; sequences that need two ranks
/// form pairs. The search starts at this lower limit, and the split is the same as for a search
/// from a smaller number.
#[test]
fn a_split_begins_with_as_many_microbatches_as_ranks_ask_for() {
    let degrees = AllowedDegrees::new(DegreeRule::Any, None, 4);
    let split = |sequences: &[Sequence]| {
        let problem = GroupProblem { sequences, ranks: 4, tokens_per_rank: 10, degrees: &degrees, cost: &COST };
        let (setting, items) = batch::prepare(problem).unwrap();
        let [memory, ranks] = [batch::fewest_by_memory, batch::fewest_by_ranks].map(|fewest| fewest(setting, &items));
        let [from, to] = [memory, memory.max(ranks)].map(|count| batch::split_mixed(setting, &items, count));
        assert_eq!(from, to, "{sequences:?}");
        (memory, ranks)
    };
    assert_eq!(split(&[Sequence::causal(30); 64]), (48, 64));
    assert_eq!(split(&[Sequence::causal(20); 64]), (32, 32));
    assert_eq!(split(&[Sequence::causal(5); 64]), (8, 0));
    let mut mixed: Vec<Sequence> = long_tailed(200, 5);
    for sequence in &mut mixed {
        sequence.tokens = (sequence.tokens / 400).clamp(1, 40);
    }
    let (memory, ranks) = split(&mixed);
    assert!(memory > 1 && ranks > 1, "{memory} {ranks}");
}

/// Two ranks with 100 tokens each, a1 = 1 µs per token² and 2 ms per sequence. The plan in
/// Megatron-LM: 100 tokens on rank 0, 10 + 2 ms; 70 and 50 on rank 1, 4.9 + 2.5 + 2 · 2 ms. A
/// packed plan has two microbatches for 220 tokens, with a bound of (17.4 + 2 · 2 · 2) / 2 = 12.7
/// ms.
#[test]
fn unpacked_plans_are_not_bound_by_packing_costs() {
    let cost = GroupCost { a1: 1e-6, a2: 0.0, b1: 2e-3, ..COST };
    let degrees = AllowedDegrees::new(DegreeRule::Any, None, 2);
    let sequences = [100, 70, 50].map(Sequence::causal);
    let problem =
        GroupProblem { sequences: &sequences, ranks: 2, tokens_per_rank: 100, degrees: &degrees, cost: &cost };
    let balanced = megatron_balanced(problem).unwrap();
    assert!((balanced.seconds - 0.012).abs() < 1e-12 && balanced.bound <= balanced.seconds, "{balanced:?}");
    let unpacked = plan(problem, Effort::Unpacked).unwrap();
    assert!(unpacked.bound <= balanced.seconds && unpacked.bound > 0.01089, "{unpacked:?}");
    assert!(plan(problem, Effort::Portfolio).unwrap().bound > 0.0126);
}

#[test]
fn invalid_inputs_are_rejected() {
    let degrees = AllowedDegrees::new(DegreeRule::Any, Some(4), 8);
    let single = [Sequence::causal(100)];
    let problem = GroupProblem { sequences: &single, ranks: 8, tokens_per_rank: 25, degrees: &degrees, cost: &COST };
    assert!(plan(problem, Effort::Portfolio).is_ok());
    let long = [Sequence::causal(7), Sequence::causal(101)];
    let too_long = GroupError::TooLong { sequence: 1, tokens: 101, capacity: 100, degree: 4, per_rank: 25 };
    let negative = GroupCost { a2: -1.0, ..COST };
    for (problem, expected) in [
        (GroupProblem { sequences: &[], ..problem }, GroupError::Empty),
        (GroupProblem { ranks: 0, ..problem }, GroupError::NoRanks),
        (GroupProblem { tokens_per_rank: 0, ..problem }, GroupError::NoMemory),
        (GroupProblem { sequences: &[Sequence::causal(0)], ..problem }, GroupError::NoTokens { sequence: 0 }),
        (
            GroupProblem { sequences: &[Sequence { tokens: 1, eta: 2.0 }], ..problem },
            GroupError::Mask { sequence: 0, eta: 2.0 },
        ),
        (GroupProblem { sequences: &long, ..problem }, too_long),
        (GroupProblem { cost: &negative, ..problem }, GroupError::Cost { fields: vec!["a2"] }),
    ] {
        assert_eq!(plan(problem, Effort::Portfolio), Err(expected));
    }
}

/// Batches with uneven lengths gain more than batches with equal lengths. The paper claims this;
/// the test uses synthetic distributions.
#[test]
fn long_tails_gain_more_than_equal_lengths() {
    let degrees = AllowedDegrees::new(DegreeRule::Any, None, 64);
    let gain = |sequences: &[Sequence]| {
        let problem = GroupProblem { sequences, ranks: 64, tokens_per_rank: 16_384, degrees: &degrees, cost: &COST };
        let plan = plan(problem, Effort::Portfolio).unwrap();
        let degree = best_static_degree(problem).unwrap();
        static_plan(problem, degree).unwrap().seconds / plan.seconds
    };
    let tailed = gain(&long_tailed(512, 3));
    let equal = gain(&[Sequence::causal(4096); 512]);
    assert!(tailed > 1.1 && equal < tailed && equal >= 1.0, "{tailed} {equal}");
}

/// Four nodes with four ranks: <6> uses a node and half of the next, <2> fills that node, <3> and
/// <1> share the third, <4> uses the last.
#[test]
fn groups_stay_inside_nodes_where_they_can() {
    let cost = GroupCost { ranks_per_node: 4, ..COST };
    let sequences = [Sequence::causal(10); 5];
    let degrees = AllowedDegrees::new(DegreeRule::Any, None, 16);
    let problem =
        GroupProblem { sequences: &sequences, ranks: 16, tokens_per_rank: 10, degrees: &degrees, cost: &cost };
    let group = |(index, degree): (usize, u32)| Group {
        sequences: vec![index as u32],
        tokens: 10,
        minimum: 1,
        degree,
        seconds: 1.0,
    };
    let groups: Vec<Group> = [6, 4, 3, 2, 1].into_iter().enumerate().map(group).collect();
    let microbatch = Microbatch { groups, seconds: 1.0, bound: 0.0, idle_ranks: 0, grouping: Grouping::Memory };
    let placement = assign_ranks(problem, &microbatch);
    assert_eq!(placement.cut, 0);
    let starts: Vec<(u32, u32)> =
        placement.groups.iter().map(|placed| (microbatch.groups[placed.group as usize].degree, placed.nodes)).collect();
    assert_eq!(starts, [(4, 1), (6, 2), (2, 1), (3, 1), (1, 1)]);
    let mut pool = GroupPool::default();
    let first = pool.ask(&placement);
    let second = pool.ask(&placement);
    assert_eq!((first, second), (PoolCount { hits: 0, misses: 4 }, PoolCount { hits: 4, misses: 0 }));
    assert_eq!(pool.len(), 4);
}

#[test]
fn coefficients_are_recovered_from_predictions() {
    for exchange in [Exchange::Ring, Exchange::AllToAll] {
        let cost = GroupCost { exchange, ..COST };
        let samples: Vec<Measured> = [1000, 4000, 16_000, 64_000, 200_000]
            .into_iter()
            .flat_map(|tokens| [1, 2, 4, 8, 16].map(|degree| (Load::from_sequence(Sequence::causal(tokens)), degree)))
            .map(|(load, degree)| Measured { load, degree, seconds: cost.seconds(load, degree) })
            .collect();
        let fit = fit(&samples, &cost).unwrap();
        assert!(fit.mean < 1e-6 && fit.communication, "{fit:?}");
        let pairs = [
            (fit.cost.a1, cost.a1),
            (fit.cost.a2, cost.a2),
            (fit.cost.a3, cost.a3),
            (fit.cost.b1, cost.b1),
            (fit.cost.b2, cost.b2),
        ];
        assert!(pairs.iter().all(|(found, true_value)| (found / true_value - 1.0).abs() < 1e-4), "{:?}", fit.cost);
    }
    let sample = Measured { load: Load::from_sequence(Sequence::causal(5)), degree: 1, seconds: 1.0 };
    assert_eq!(fit(&[sample], &COST), Err(FitError::TooFew { given: 1, needed: 6 }));
    assert_eq!(fit(&[Measured { seconds: -1.0, ..sample }], &COST), Err(FitError::NotATiming { index: 0 }));
}

/// Decreasing times would need a negative a1. The fit returns zero and reports the error.
#[test]
fn no_coefficient_is_negative() {
    let samples: Vec<Measured> = (1..8)
        .map(|at| Measured {
            load: Load::from_sequence(Sequence::causal(1000 * at)),
            degree: 1,
            seconds: 1.0 - 0.05 * at as f64,
        })
        .collect();
    let fit = fit(&samples, &COST).unwrap();
    assert_eq!(fit.cost.wrong_fields(), Vec::<&str>::new());
    assert!(fit.mean > 0.05 && !fit.communication && fit.cost.a1.abs() < 1e-18, "{fit:?}");
}

#[test]
fn memory_becomes_tokens() {
    let memory = RankMemory { budget: Bytes::from_gib(64.0), states: Bytes::from_gib(24.0), per_token: 2_097_152.0 };
    assert_eq!(memory.tokens(), 20_480);
}
