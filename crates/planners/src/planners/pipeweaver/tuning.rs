//! Layer tuning of a replica: unused memory serves to reduce recomputation (PipeWeaver Sec. 6.3).
//!
//! A rank's memory depends only on the order of actions, so ranks are independent problems: choose
//! a candidate per stage pair. Tuning changes times but not orders.

use crate::planners::infeasible::Infeasibility;
use crate::planners::pipeweaver::layer_tuning::{
    Candidate, Event, Infeasible, LayerOption, PairCost, Settings, TuningProblem, candidates, solve,
};
use planscope_core::action::{ActionKind, Schedule};
use planscope_core::units::Bytes;
use planscope_cost::cost::pipeline::Cell;
use planscope_cost::cost::{
    LayerCost, LayerTable, MicrobatchLoad, Partition, PipelineCosts, ReplicaLayout, StrategyMix,
};

/// Candidates per stage pair.
const CANDIDATES: usize = 6;

/// Candidate mixes per cell.
pub(crate) struct Options {
    pairs: Vec<Mixes>,
}

/// Mixes of a cell and the resulting costs.
type Mixes = Vec<(StrategyMix, PairCost)>;

impl Options {
    /// Computes the candidates per cell, from the fastest to the leanest mix.
    pub(crate) fn new(
        table: &LayerTable<'_>,
        (partition, position): (&Partition, ReplicaLayout),
        (loads, costs): (&[MicrobatchLoad], &PipelineCosts),
    ) -> Self {
        // Equal loads on a stage have equal candidates.
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
                    let cost = table.mixed_cell(partition, position, (stage, microbatch), mix);
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

    /// Returns the leanest mix per cell.
    pub(crate) fn leanest(&self) -> Vec<StrategyMix> {
        let leanest = |options: &Mixes| {
            let smallest = options.iter().min_by_key(|(_, cost)| (cost.memory + cost.transient, cost.time));
            smallest.map_or(StrategyMix::default(), |(mix, _)| *mix)
        };
        self.pairs.iter().map(leanest).collect()
    }

    /// Returns the leanest costs, and increases activation memory by `pressure` times the
    /// difference to the fastest mix.
    pub(crate) fn pressed(&self, lean: &PipelineCosts, pressure: f64) -> PipelineCosts {
        let mut pressed = lean.clone();
        for (cell, options) in self.pairs.iter().enumerate() {
            let max_memory = options.iter().map(|(_, cost)| cost.memory).max().unwrap_or(Bytes::ZERO);
            let more = max_memory.saturating_sub(lean.activation[cell]).get() as f64 * pressure;
            pressed.activation[cell] += Bytes::from_f64(more);
        }
        pressed
    }

    /// Chooses the mixes for an order.
    pub(crate) fn choose(
        &self,
        schedule: &Schedule,
        costs: &PipelineCosts,
        limit: Bytes,
    ) -> Result<Vec<StrategyMix>, Infeasibility> {
        let settings = Settings::default();
        let mut mixes = vec![StrategyMix::default(); self.pairs.len()];
        for (rank, order) in schedule.orders.iter().enumerate() {
            let cell = |index: usize| costs.cell(order[index].stage as usize, order[index].microbatch as usize);
            let mut number = vec![u32::MAX; self.pairs.len()];
            let mut cells = Vec::new();
            let mut events = Vec::with_capacity(order.len());
            for (index, action) in order.iter().enumerate() {
                let cell = cell(index);
                if action.kind == ActionKind::Forward {
                    number[cell] = cells.len() as u32;
                    cells.push(cell);
                    events.push(Event::Hold(number[cell]));
                } else {
                    events.push(Event::Release(number[cell]));
                }
            }
            let pairs = cells.iter().map(|&cell| self.pairs[cell].iter().map(|&(_, cost)| cost).collect()).collect();
            let problem = TuningProblem::new(pairs, &events, costs.static_memory[rank], limit)
                .map_err(|error| Infeasibility::rule(&error.to_string()))?;
            let tuned = solve(&problem, &settings).map_err(|error| infeasibility(rank, &error))?;
            for (&cell, &candidate) in cells.iter().zip(&tuned.selection) {
                mixes[cell] = self.pairs[cell][candidate as usize].0;
            }
        }
        Ok(mixes)
    }
}

/// Converts the infeasibility of a rank.
fn infeasibility(rank: usize, error: &Infeasible) -> Infeasibility {
    let needs = match *error {
        Infeasible::Base { base, .. } => base,
        Infeasible::Moment { needed, .. } => needed,
        // The exact requirement is unknown, but it exceeds the limit.
        Infeasible::AlignedIterations { limit } | Infeasible::Unknown { limit, .. } => limit + Bytes::new(1),
    };
    Infeasibility::activations(rank, needs)
}

/// Mixes of equal layers: knapsack candidates from the cost of a layer per strategy.
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
    use planscope_core::units::Nanos;

    /// Two pairs in flight need at least 4 and 5 bytes, plus 3 bytes for states. The limit is 10
    /// bytes, then 2.
    #[test]
    fn a_rank_says_how_much_it_needs() {
        let pair =
            |bytes: u64| vec![PairCost { time: Nanos::new(1), memory: Bytes::new(bytes), transient: Bytes::ZERO }];
        let events = [Event::Hold(0), Event::Hold(1), Event::Release(1), Event::Release(0)];
        for (limit, needs) in [(10, 12), (2, 3)] {
            let problem =
                TuningProblem::new(vec![pair(4), pair(5)], &events, Bytes::new(3), Bytes::new(limit)).unwrap();
            let error = solve(&problem, &Settings::default()).unwrap_err();
            assert_eq!(infeasibility(6, &error), Infeasibility::activations(6, Bytes::new(needs)), "{error}");
        }
    }
}
