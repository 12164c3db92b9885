//! Layer tuning of one replica: memory that its order leaves unused is spent on recomputing less (PipeWeaver, 6.3).
//!
//! A rank's memory follows from the order of its actions alone, so every rank is a problem of its own: which candidate
//! each of its stage pairs gets. Times change then, orders do not.

use crate::cost::pipeline::Cell;
use crate::cost::{LayerCost, LayerTable, MicrobatchLoad, Partition, PipelineCosts, Place, StrategyMix};
use crate::plan::misfit::Misfit;
use crate::schedule::{ActionKind, Schedule};
use crate::tuning::{
    Candidate, Event, Infeasible, LayerOption, PairCost, Settings, TuningProblem, candidates, solve,
};
use crate::units::Bytes;

/// Candidates of a stage pair.
const CANDIDATES: usize = 6;

/// The mixes that a stage pair may get, by cell.
pub(super) struct Options {
    pairs: Vec<Mixes>,
}

/// Mixes of one cell, each with what the cell costs under it.
type Mixes = Vec<(StrategyMix, PairCost)>;

impl Options {
    /// Of every cell: from the fastest to the leanest mix, with what the cell costs under it.
    pub(super) fn of(
        table: &LayerTable<'_>,
        (partition, place): (&Partition, Place),
        (loads, costs): (&[MicrobatchLoad], &PipelineCosts),
    ) -> Self {
        // Equal loads on one stage have equal candidates.
        let mut known: Vec<Vec<(usize, Mixes)>> = vec![Vec::new(); partition.stages.len()];
        let pairs = costs.cells().map(|Cell { stage, microbatch, .. }| {
            let range = partition.stages[stage][0];
            let load = &loads[microbatch].modules[range.module];
            let same = known[stage].iter().find(|(other, _)| loads[*other].modules[range.module] == *load);
            if let Some((_, mixes)) = same {
                return mixes.clone();
            }
            let mixes: Mixes = mixes(table.strategy_layers(range.module, microbatch), range.len())
                .into_iter()
                .map(|mix| {
                    let cost = table.mixed_cell(partition, place, (stage, microbatch), mix);
                    let time = cost.forward.to_nanos() + cost.input_grad.to_nanos() + cost.weight_grad.to_nanos();
                    let (memory, transient) = (Bytes::from_f64(cost.activation), Bytes::from_f64(cost.transient));
                    (mix, PairCost { time, memory, transient })
                })
                .collect();
            known[stage].push((microbatch, mixes.clone()));
            mixes
        });
        Self { pairs: pairs.collect() }
    }

    /// The leanest mix of every cell.
    pub(super) fn leanest(&self) -> Vec<StrategyMix> {
        let leanest = |options: &Mixes| {
            let least = options.iter().min_by_key(|(_, cost)| (cost.memory + cost.transient, cost.time));
            least.map_or(StrategyMix::default(), |(mix, _)| *mix)
        };
        self.pairs.iter().map(leanest).collect()
    }

    /// The leanest cells, holding more: `pressure` of the way to what the fastest mix of each holds.
    pub(super) fn pressed(&self, lean: &PipelineCosts, pressure: f64) -> PipelineCosts {
        let mut pressed = lean.clone();
        for (cell, options) in self.pairs.iter().enumerate() {
            let most = options.iter().map(|(_, cost)| cost.memory).max().unwrap_or(Bytes::ZERO);
            let more = most.saturating_sub(lean.activation[cell]).get() as f64 * pressure;
            pressed.activation[cell] += Bytes::from_f64(more);
        }
        pressed
    }

    /// The mix of every cell for an order.
    pub(super) fn choose(
        &self,
        schedule: &Schedule,
        costs: &PipelineCosts,
        limit: Bytes,
    ) -> Result<Vec<StrategyMix>, Misfit> {
        let settings = Settings::default();
        let mut mixes = vec![StrategyMix::default(); self.pairs.len()];
        for (rank, order) in schedule.orders.iter().enumerate() {
            let cell = |place: usize| costs.cell(order[place].stage as usize, order[place].microbatch as usize);
            let mut number = vec![u32::MAX; self.pairs.len()];
            let mut own = Vec::new();
            let mut events = Vec::with_capacity(order.len());
            for (place, action) in order.iter().enumerate() {
                let cell = cell(place);
                if action.kind == ActionKind::Forward {
                    number[cell] = own.len() as u32;
                    own.push(cell);
                    events.push(Event::Hold(number[cell]));
                } else {
                    events.push(Event::Release(number[cell]));
                }
            }
            let pairs = own.iter().map(|&cell| self.pairs[cell].iter().map(|&(_, cost)| cost).collect()).collect();
            let problem = TuningProblem::new(pairs, &events, costs.static_memory[rank], limit)
                .map_err(|error| Misfit::rule(&error.to_string()))?;
            let tuned = solve(&problem, &settings).map_err(|error| misfit(rank, &error))?;
            for (&cell, &choice) in own.iter().zip(&tuned.choice) {
                mixes[cell] = self.pairs[cell][choice as usize].0;
            }
        }
        Ok(mixes)
    }
}

/// What a rank lacks whose layers find no strategies.
fn misfit(rank: usize, error: &Infeasible) -> Misfit {
    let needs = match *error {
        Infeasible::Base { base, .. } => base,
        Infeasible::Moment { needed, .. } => needed,
        // More than there is, but nobody knows how much.
        Infeasible::Together { limit } | Infeasible::Unknown { limit, .. } => limit + Bytes::new(1),
    };
    Misfit::activations(rank, needs)
}

/// Mixes of equal layers: the candidates of the knapsack over what one layer costs under each strategy.
fn mixes(layer: &[LayerCost; 4], layers: u32) -> Vec<StrategyMix> {
    let option = |cost: &LayerCost| LayerOption {
        time: (cost.forward + cost.input_grad + cost.weight_grad).to_nanos(),
        memory: Bytes::from_f64(cost.activation),
    };
    let options: Vec<LayerOption> = layer.iter().map(option).collect();
    let found = candidates(&vec![options; layers as usize], CANDIDATES);
    let mix = |candidate: &Candidate| {
        let mut mix = StrategyMix::default();
        candidate.options.iter().for_each(|&option| mix.0[option as usize] += 1);
        mix
    };
    found.iter().map(mix).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Nanos;

    /// Two pairs held together that need 4 and 5 bytes at least beside 3 of states, where there are 10; then where there are 2.
    #[test]
    fn a_rank_says_how_much_it_needs() {
        let pair =
            |bytes: u64| vec![PairCost { time: Nanos::new(1), memory: Bytes::new(bytes), transient: Bytes::ZERO }];
        let events = [Event::Hold(0), Event::Hold(1), Event::Release(1), Event::Release(0)];
        for (limit, needs) in [(10, 12), (2, 3)] {
            let problem =
                TuningProblem::new(vec![pair(4), pair(5)], &events, Bytes::new(3), Bytes::new(limit)).unwrap();
            let error = solve(&problem, &Settings::default()).unwrap_err();
            assert_eq!(misfit(6, &error), Misfit::activations(6, Bytes::new(needs)), "{error}");
        }
    }
}
