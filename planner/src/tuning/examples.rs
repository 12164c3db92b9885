//! Small questions for the tests of the solver's parts.

use proptest::prelude::*;

use super::{Event, PairCost, TuningProblem};
use crate::units::{Bytes, Nanos};

pub(super) fn cost(time: u64, memory: u64, transient: u64) -> PairCost {
    PairCost { time: Nanos::new(time), memory: Bytes::new(memory), transient: Bytes::new(transient) }
}

/// An order as people write it: "F0 F1 B0 B1".
pub(super) fn order(actions: &str) -> Vec<Event> {
    let action = |word: &str| {
        let pair = word[1..].parse().unwrap();
        if word.starts_with('F') { Event::Hold(pair) } else { Event::Release(pair) }
    };
    actions.split_whitespace().map(action).collect()
}

pub(super) fn problem(pairs: Vec<Vec<PairCost>>, actions: &str, limit: u64) -> TuningProblem {
    TuningProblem::new(pairs, &order(actions), Bytes::ZERO, Bytes::new(limit)).unwrap()
}

/// Every choice of a small problem.
pub(super) fn choices(problem: &TuningProblem) -> Vec<Vec<u8>> {
    problem.pairs.iter().fold(vec![Vec::new()], |choices, costs| {
        let longer = |choice: Vec<u8>| {
            (0..costs.len()).map(move |next| {
                let mut choice = choice.clone();
                choice.push(next as u8);
                choice
            })
        };
        choices.into_iter().flat_map(longer).collect()
    })
}

/// The best time of all choices that fit.
pub(super) fn best(problem: &TuningProblem) -> Option<Nanos> {
    choices(problem).iter().filter(|choice| problem.fits(choice)).map(|choice| problem.time(choice)).min()
}

/// Up to six pairs of up to three candidates in any legal order, with and without transient memory.
pub(super) fn problems() -> impl Strategy<Value = TuningProblem> {
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

/// A legal order: at every place one of the pairs that can go on.
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
