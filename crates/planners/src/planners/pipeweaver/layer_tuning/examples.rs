//! Small problems for solver tests.

use proptest::prelude::*;

use super::{Event, PairCost, TuningProblem};
use planscope_core::units::{Bytes, Nanos};

pub(crate) fn cost(time: u64, memory: u64, transient: u64) -> PairCost {
    PairCost { time: Nanos::new(time), memory: Bytes::new(memory), transient: Bytes::new(transient) }
}

/// Parses an order such as "F0 F1 B0 B1".
pub(crate) fn order(actions: &str) -> Vec<Event> {
    let action = |word: &str| {
        let pair = word[1..].parse().unwrap();
        if word.starts_with('F') { Event::Hold(pair) } else { Event::Release(pair) }
    };
    actions.split_whitespace().map(action).collect()
}

pub(crate) fn problem(pairs: Vec<Vec<PairCost>>, actions: &str, limit: u64) -> TuningProblem {
    TuningProblem::new(pairs, &order(actions), Bytes::ZERO, Bytes::new(limit)).unwrap()
}

/// Enumerates all selections for a small problem.
pub(crate) fn choices(problem: &TuningProblem) -> Vec<Vec<u8>> {
    problem.pairs.iter().fold(vec![Vec::new()], |choices, costs| {
        let longer = |selection: Vec<u8>| {
            (0..costs.len()).map(move |next| {
                let mut extended = selection.clone();
                extended.push(next as u8);
                extended
            })
        };
        choices.into_iter().flat_map(longer).collect()
    })
}

/// Minimum time among feasible selections.
pub(crate) fn best(problem: &TuningProblem) -> Option<Nanos> {
    choices(problem).iter().filter(|selection| problem.fits(selection)).map(|selection| problem.time(selection)).min()
}

/// Up to six pairs, up to three candidates per pair, in any valid order, with or without transient
/// memory.
pub(crate) fn problems() -> impl Strategy<Value = TuningProblem> {
    let costs = |transient: u64| {
        let cost = (0_u64..30, 0_u64..30, 0..=transient).prop_map(|(time, memory, more)| cost(time, memory, more));
        prop::collection::vec(prop::collection::vec(cost, 1..4), 1..7)
    };
    let pairs = prop_oneof![costs(0), costs(12)];
    (pairs, prop::collection::vec(0_usize..12, 12), 0_u64..120).prop_map(|(pairs, picks, limit)| {
        let order = any_order(pairs.len(), &picks);
        TuningProblem::new(pairs, &order, Bytes::ZERO, Bytes::new(limit)).unwrap()
    })
}

/// Builds a valid order: each position runs one of the pairs that can continue.
fn any_order(pairs: usize, picks: &[usize]) -> Vec<Event> {
    let mut done = vec![0; pairs];
    let mut order = Vec::new();
    for pick in picks.iter().take(2 * pairs) {
        let open: Vec<usize> = (0..pairs).filter(|&pair| done[pair] < 2).collect();
        let pair = open[pick % open.len()];
        order.push(if done[pair] == 0 { Event::Hold(pair as u32) } else { Event::Release(pair as u32) });
        done[pair] += 1;
    }
    order
}
