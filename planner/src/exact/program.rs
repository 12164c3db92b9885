//! The integer program of PipeWeaver's section 3.1, in HiGHS: the cross-check of the branch and bound.
//!
//! An action u starts at s_u, at least 0, and takes t_u. Minimise the end C so that s_u + t_u + send <= s_v where v needs
//! what u makes, s_u + t_u + (synchronisation and optimizer of its rank) <= C, and on every rank of any two actions
//! one runs first: binary o_uv says that u does,
//!
//!   s_u + t_u <= s_v + M (1 - o_uv)   and   s_v + t_v <= s_u + M o_uv,
//!
//! with M the end of a known schedule, which no better one exceeds. While v runs its rank holds its own cell and what ran
//! before has left: the sum over u of o_uv D_u, D_u being what a forward keeps and a backward frees, fits its room.
//! Sends are delays here, as in the branch and bound's own bounds: where they wait for each other the program's end is a bound
//! only.

use highs::{Col, RowProblem};

use super::shop::Shop;
use crate::cost::PipelineCosts;
use crate::integer::minimise;
use crate::units::{Bytes, Nanos, Seconds};

/// What HiGHS found out.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramAnswer {
    /// End of the best schedule that it found, sends being delays; rounded.
    pub end: Option<Nanos>,
    /// No schedule ends earlier, to HiGHS's tolerances.
    pub lower_bound: Nanos,
    /// Whether it is proven that no schedule ends by the known end.
    pub is_infeasible: bool,
}

/// Size of the largest numbers of the program: HiGHS's tolerances are absolute.
const SCALE: f64 = 1000.0;

/// Solves the program for a pipeline of which a schedule with the end `known` exists; `None` where it has too many actions.
pub fn integer_program(
    costs: &PipelineCosts,
    limit: Bytes,
    known: Nanos,
    time: Option<Seconds>,
) -> Option<ProgramAnswer> {
    let shop = Shop::of(costs, limit)?;
    let unit = SCALE / known.get().max(1) as f64;
    let scaled = |time: u64| time as f64 * unit;
    let mut program = RowProblem::new();
    let end = program.add_column(1.0, 0.0..=SCALE);
    let starts: Vec<Col> = (0..shop.len()).map(|_| program.add_column(0.0, 0.0..=SCALE)).collect();
    for action in 0..shop.len() {
        let rest = scaled(shop.time[action] + shop.behind[action]);
        program.add_row(rest.., [(end, 1.0), (starts[action], -1.0)]);
        for &(input, lag) in &shop.needs[action] {
            let apart = scaled(shop.time[input] + lag);
            program.add_row(apart.., [(starts[action], 1.0), (starts[input], -1.0)]);
        }
    }
    let first = disjunctions(&shop, &mut program, &starts, scaled);
    for &rank in &shop.tight {
        memory(&shop, rank, &mut program, &first);
    }
    let answer = minimise(program, None, 0.0, time);
    let nanos = |value: f64| Nanos::new((value / unit + 0.5).max(0.0) as u64);
    Some(ProgramAnswer {
        end: answer.columns.as_ref().and_then(|columns| columns.first()).map(|&end| nanos(end)),
        lower_bound: nanos(answer.bound.max(0.0)),
        is_infeasible: answer.infeasible,
    })
}

/// Of every two actions of a rank whose order is open: the binary that says that the first of them runs first.
type Before = std::collections::BTreeMap<(usize, usize), Col>;

fn disjunctions(shop: &Shop, program: &mut RowProblem, starts: &[Col], scaled: impl Fn(u64) -> f64) -> Before {
    let mut before = Before::new();
    for one in 0..shop.len() {
        for other in one + 1..shop.len() {
            if shop.rank[one] != shop.rank[other] {
                continue;
            }
            let first = program.add_integer_column(0.0, 0..=1);
            // s_other - s_one - M o >= t_one - M, and s_one - s_other + M o >= t_other.
            let (own, next) = (scaled(shop.time[one]), scaled(shop.time[other]));
            program.add_row(own - SCALE.., [(starts[other], 1.0), (starts[one], -1.0), (first, -SCALE)]);
            program.add_row(next.., [(starts[one], 1.0), (starts[other], -1.0), (first, SCALE)]);
            before.insert((one, other), first);
        }
    }
    before
}

/// While each action of a rank runs, what ran before it and has not left, its own cell and its transient fit.
fn memory(shop: &Shop, rank: usize, program: &mut RowProblem, before: &Before) {
    let own: Vec<usize> = (0..shop.len()).filter(|&action| shop.rank[action] == rank).collect();
    let room = shop.room[rank] as f64;
    let share = |bytes: u64| bytes as f64 / room.max(1.0) * SCALE;
    for &action in &own {
        let mut held = share(shop.kept[action] + shop.transient[action]);
        let mut terms: Vec<(Col, f64)> = Vec::new();
        for &other in own.iter().filter(|&&other| other / 2 != action / 2) {
            let change =
                if super::shop::is_forward(other) { share(shop.kept[other]) } else { -share(shop.kept[other]) };
            if other < action {
                terms.push((before[&(other, action)], change));
            } else {
                // The binary says that `action` runs first: `other` does with 1 - o.
                held += change;
                terms.push((before[&(action, other)], -change));
            }
        }
        program.add_row(..=share(shop.room[rank]) - held, terms);
    }
}

#[cfg(test)]
mod tests {
    use crate::cost::UniformTimes;
    use crate::exact::{Budget, Ending, search};
    use crate::host::{Alone, Unwatched};
    use crate::random::Random;

    use super::*;

    /// Two solvers that share no step: the same end on twenty drawn pipelines, half of them with a cap.
    #[test]
    fn the_program_and_the_branch_and_bound_agree() {
        for seed in 0..20 {
            let mut costs = PipelineCosts::uniform(2, 1, 3, UniformTimes::default());
            let mut random = Random::new(seed, 0);
            for cell in 0..costs.flows.cells() {
                costs.forward[cell] = Nanos::new(1000 + random.below(12_000));
                costs.input_grad[cell] = Nanos::new(1000 + random.below(24_000));
            }
            let limit = Bytes::new(if seed % 2 == 0 { 2 } else { 3 });
            let exact = search(&costs, limit, Budget::default(), &Alone, &Unwatched).unwrap();
            assert_eq!(exact.ending, Ending::Optimal);
            let program = integer_program(&costs, limit, exact.heuristics.ranking, None).unwrap();
            let end = program.end.expect("the heuristics' order satisfies the program");
            // HiGHS keeps rows to 1e-6 of numbers up to 1000.
            let tolerance = exact.end.get() / 100_000 + 1;
            assert!(end.get().abs_diff(exact.end.get()) <= tolerance, "seed {seed}: {end:?}, {:?}", exact.end);
            assert!(program.lower_bound.get() <= exact.end.get() + tolerance, "seed {seed}");
        }
    }
}
