//! Gap of `uneven-pipeline` on random large pipelines.
//!
//! `cargo run --release -p planscope-solve --example uneven -- RANKS MICROBATCHES CAP PASSES [INPUTS]` prints a line
//! per family and input, then the mean and the maximum gap per family. CAP 0 means no limit on
//! activations in flight. The output is the same on all machines.

use planscope_core::host::{NeverCancelled, SequentialWorkers};
use planscope_core::optimality::relative_gap;
use planscope_core::random::Random;
use planscope_core::units::{Bytes, Nanos};
use planscope_cost::cost::{PipelineCosts, UniformTimes};
use planscope_solve::exact::{Budget, search};

/// What is uneven in a family of inputs.
#[derive(Debug, Clone, Copy)]
enum Family {
    /// Every action has its own time: forwards 0.5 to 1.5 ms, backwards 1 to 3 ms.
    Actions,
    /// Microbatches 0.5 to 1.5 ms, stages 0.8 to 1.2 times as long, backwards 1.5 to 2.5 times as
    /// long as forwards.
    Products,
    /// As `Products`, with log-normal microbatches (deviation 0.4).
    LongTailed,
}

fn main() {
    let numbers: Vec<f64> = std::env::args().skip(1).map(|word| word.parse().expect("a number")).collect();
    let &[ranks, microbatches, cap, passes, ref rest @ ..] = numbers.as_slice() else {
        panic!("RANKS MICROBATCHES CAP PASSES [INPUTS]");
    };
    let (ranks, microbatches, inputs) = (ranks as usize, microbatches as usize, rest.first().map_or(10, |&n| n as u64));
    let limit = if cap > 0.0 { Bytes::new(cap as u64) } else { Bytes::new(u64::MAX) };
    for family in [Family::Actions, Family::Products, Family::LongTailed] {
        let mut gaps = Vec::new();
        for input in 0..inputs {
            let costs = drawn(family, ranks, microbatches, input);
            let budget = Budget { nodes: passes as u64, ..Budget::default() };
            let found =
                search(&costs, limit, budget, &SequentialWorkers, &NeverCancelled).expect("one activation fits");
            let gap = 100.0 * found.gap();
            let before = 100.0 * relative_gap(found.heuristics.best().get(), found.lower_bound.get());
            println!("{family:?} {input}: {gap:.2} % after {} passes, {before:.2} % before", found.nodes);
            gaps.push(gap);
        }
        let (mean, most) = (gaps.iter().sum::<f64>() / gaps.len() as f64, gaps.iter().copied().fold(0.0, f64::max));
        println!("{family:?}: mean {mean:.2} %, most {most:.2} %");
    }
}

fn drawn(family: Family, ranks: usize, microbatches: usize, input: u64) -> PipelineCosts {
    let mut random = Random::new(11, input);
    let mut costs = PipelineCosts::uniform(ranks, 1, microbatches, UniformTimes::default());
    let stages: Vec<f64> = (0..ranks).map(|_| 0.8 + 0.4 * random.unit()).collect();
    for microbatch in 0..microbatches {
        let length = match family {
            Family::LongTailed => libm::exp(0.4 * random.normal()),
            Family::Actions | Family::Products => 0.5 + random.unit(),
        };
        let ratio = 1.5 + random.unit();
        for (cell, stage) in costs.flows.microbatch_cells(microbatch).zip(&stages) {
            let (forward, backward) = match family {
                Family::Actions => (0.5 + random.unit(), 1.0 + 2.0 * random.unit()),
                Family::Products | Family::LongTailed => (length * stage, length * stage * ratio),
            };
            costs.forward[cell] = Nanos::new((1e6 * forward) as u64);
            costs.input_grad[cell] = Nanos::new((1e6 * backward) as u64);
        }
    }
    costs
}
