//! The integer program of PipeWeaver's section 6.3.
//!
//! Binary o_ij says that pair i takes candidate j. Minimise the sum of o_ij t_ij so that each pair takes one candidate,
//! and what is held at every instant fits. Moments whose memory is that of a part of another instant's pairs have no
//! row (see [`TuningProblem`]).

use highs::{Col, RowProblem};

use super::problem::TuningProblem;
use crate::integer::minimise;
use crate::units::{Nanos, Seconds};

/// What HiGHS found out.
pub(super) struct ProgramAnswer {
    /// A choice that fits, checked in whole bytes.
    pub(super) choice: Option<Vec<u8>>,
    /// No choice that fits takes less.
    pub(super) bound: Nanos,
    /// Whether it is proven that none fits.
    pub(super) impossible: bool,
}

/// Solves the program, starting from a choice where one is known.
pub(super) fn solve(problem: &TuningProblem, start: Option<&[u8]>, gap: f64, limit: Option<Seconds>) -> ProgramAnswer {
    // Numbers near 1 suit HiGHS's absolute tolerances: time in shares of the longest pair, memory in shares of the room.
    let longest = problem.pairs.iter().flatten().map(|cost| cost.time.get()).max().unwrap_or(0).max(1) as f64;
    let room = problem.room.max(1) as f64;
    let mut program = RowProblem::new();
    let columns: Vec<Vec<Col>> = problem
        .pairs
        .iter()
        .map(|costs| {
            let binary =
                |cost: &super::PairCost| program.add_integer_column(cost.time.get() as f64 / longest * SCALE, 0..=1);
            costs.iter().map(binary).collect()
        })
        .collect();
    for own in &columns {
        program.add_row(1..=1, own.iter().map(|&column| (column, 1.0)));
    }
    for at in 0..problem.instants.len() {
        let held = problem.spans.iter().zip(&problem.pairs).zip(&columns);
        let terms = held.filter(|((span, _), _)| span.instants().contains(&at)).flat_map(|((&span, costs), own)| {
            own.iter().zip(costs).map(move |(&column, cost)| (column, cost.at(at, span) as f64 / room * SCALE))
        });
        program.add_row(..=problem.room as f64 / room * SCALE, terms.collect::<Vec<_>>());
    }
    let hint = start.map(|choice| {
        let chosen = problem.pairs.iter().zip(choice);
        chosen
            .flat_map(|(costs, &chosen)| (0..costs.len()).map(move |at| f64::from(at == usize::from(chosen))))
            .collect::<Vec<f64>>()
    });
    let answer = minimise(program, hint.as_deref(), gap, limit);
    let choice = answer.columns.map(|values| decode(problem, &values)).filter(|choice| problem.fits(choice));
    let best = choice.as_deref().into_iter().chain(start).map(|choice| problem.time(choice)).min();
    let lower = Nanos::new((answer.bound / SCALE * longest * (1.0 - TOLERANCE)).max(0.0) as u64);
    // Within its tolerance of the best HiGHS has proven all that it can.
    let met = best.filter(|best| best.get() as f64 * (1.0 - 2.0 * TOLERANCE) <= lower.get() as f64);
    ProgramAnswer { choice, bound: met.unwrap_or(lower), impossible: answer.infeasible }
}

/// Size of the largest numbers of the program.
const SCALE: f64 = 1000.0;
/// Relative error of HiGHS's bound, with room.
const TOLERANCE: f64 = 1e-7;

/// Of each pair the candidate with the largest value.
fn decode(problem: &TuningProblem, values: &[f64]) -> Vec<u8> {
    let mut rest = values;
    let mut choice = Vec::with_capacity(problem.pairs());
    for costs in &problem.pairs {
        let (own, others) = rest.split_at(costs.len());
        let largest = (0..own.len()).rev().max_by(|&one, &other| own[one].total_cmp(&own[other]));
        choice.push(largest.unwrap_or(0) as u8);
        rest = others;
    }
    choice
}
