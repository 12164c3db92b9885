//! Microbatches from the sequences of a batch.

use crate::planners::dflop::partition::{Item, PartitionSettings, fill_empty, partition};
use crate::planners::replica;
use planscope_core::workload::{PackedBatch, Packing};
use planscope_cost::cost::Pricing;
use planscope_plan::scenario::{FreeSetting, Scenario};

/// Step limit per batch (about 5 ms), and the target gap.
const PARTITION: PartitionSettings = PartitionSettings { steps: 500_000, gap: 1e-3 };
/// Limit on sequences per batch. Consecutive sequences of larger batches differ little in the mean.
const MAX_SEQUENCES: usize = 20_000;

/// How the sequences of a batch form microbatches of a mean size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Composition {
    /// Consecutive sequences, in the order of the planner.
    Consecutive,
    /// Equal work in the largest module and in all other modules (DFLOP Eq. 6), for stages of one module.
    EqualModules,
    /// Equal work in total, for stages of several modules.
    EqualTotal,
}

impl Composition {
    /// Compositions of equal work.
    pub(crate) const EQUAL: [Self; 2] = [Self::EqualModules, Self::EqualTotal];

    /// Returns whether a planner may form microbatches of equal work from the sequences. Unpacked sequences are
    /// padded to the longest of their microbatch, so they stay sorted by length.
    pub(crate) fn is_free(scenario: &Scenario, batch: &PackedBatch) -> bool {
        scenario.is_free(FreeSetting::Assignment)
            && scenario.search.rollouts > 0
            && scenario.workload.packing == Packing::Packed
            && batch.sequences.len() <= MAX_SEQUENCES
            && batch.sequences.iter().any(|sequence| *sequence != batch.sequences[0])
    }

    /// Returns the sequences of each microbatch, `size` in the mean. `order` is the order of consecutive sequences.
    pub(crate) fn microbatches(
        self,
        scenario: &Scenario,
        pricing: &Pricing<'_>,
        size: u32,
        batch: &PackedBatch,
        order: &[usize],
    ) -> Vec<Vec<u32>> {
        if self == Self::Consecutive {
            return order
                .chunks(size as usize)
                .map(|chunk| chunk.iter().map(|&index| index as u32).collect())
                .collect();
        }
        let items = self.items(&module_seconds(scenario, pricing, batch));
        let buckets = items.len().div_ceil(size as usize);
        let mut buckets = partition(&items, buckets, PARTITION).expect("times are finite").buckets;
        fill_empty(&mut buckets);
        buckets
    }

    /// Returns the work of each sequence, as shares of the work of the batch.
    fn items(self, seconds: &[Vec<f64>]) -> Vec<Item> {
        let sums: Vec<f64> = seconds.iter().map(|module| module.iter().sum()).collect();
        let total: f64 = sums.iter().sum();
        let largest = (0..sums.len()).max_by(|&a, &b| sums[a].total_cmp(&sums[b])).unwrap_or(0);
        let share = |seconds: f64, sum: f64| if sum > 0.0 { seconds / sum } else { 0.0 };
        let item = |sequence: usize| {
            let own = seconds[largest][sequence];
            let others: f64 = seconds.iter().map(|module| module[sequence]).sum::<f64>() - own;
            match self {
                Self::EqualModules => {
                    Item { encoder: share(others.max(0.0), total - sums[largest]), backbone: share(own, sums[largest]) }
                }
                Self::Consecutive | Self::EqualTotal => Item { encoder: 0.0, backbone: share(own + others, total) },
            }
        };
        (0..seconds.first().map_or(0, Vec::len)).map(item).collect()
    }

    /// Describes the microbatches in plans. `None` for consecutive sequences.
    pub(crate) const fn describe(self) -> Option<&'static str> {
        match self {
            Self::Consecutive => None,
            Self::EqualModules => Some("Microbatches have nearly equal work in the largest module and in the others."),
            Self::EqualTotal => Some("Microbatches have nearly equal work."),
        }
    }
}

/// Time of each sequence in each module, on the TP degree of the scenario or without TP, in seconds.
fn module_seconds(scenario: &Scenario, pricing: &Pricing<'_>, batch: &PackedBatch) -> Vec<Vec<f64>> {
    let alone: Vec<Vec<u32>> = (0..batch.sequences.len() as u32).map(|sequence| vec![sequence]).collect();
    let loads = replica::loads(scenario, batch, &alone);
    let table = pricing.table(scenario.layout.tensor.unwrap_or(1), &loads);
    let module = |(index, module): (usize, &planscope_core::model::Module)| {
        let seconds = |sequence: usize| {
            let weight = table.mean_weight(index, &[sequence], 1);
            weight.layer * f64::from(module.layers) + weight.input + weight.output
        };
        (0..loads.len()).map(seconds).collect()
    };
    scenario.model.modules.iter().enumerate().map(module).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Unobserved, plan};
    use planscope_core::workload::packing;
    use planscope_plan::outcome::PlanOutcome;
    use planscope_plan::scenario::validate::NoDatasets;
    use planscope_plan::scenario::{Sampler, ValidScenario, parse};
    use serde_json::json;

    fn scenario(free: &[&str], planners: &[&str]) -> ValidScenario {
        let scenario = json!({
            "schema": "scenario/1", "model": { "preset": "llava-ov-7b" }, "cluster": { "preset": "h100", "nodes": 1 },
            "workload": {
                "samples": {
                    "kind": "drawn", "text_tokens": { "kind": "uniform", "min": 100, "max": 3000 },
                    "images": { "kind": "uniform", "min": 0, "max": 8 }
                },
                "global_batch": 64, "context_length": 8192, "packing": "packed", "max_samples": 1
            },
            "training": { "recompute": "full" }, "layout": { "microbatch": 4 }, "free": free, "planners": planners, "seed": 7
        });
        ValidScenario::new(parse(&scenario.to_string()).unwrap(), &NoDatasets).unwrap()
    }

    /// Largest share of the work of a module in one microbatch, over the mean share.
    fn imbalance(seconds: &[f64], microbatches: &[Vec<u32>]) -> f64 {
        let sum = |microbatch: &Vec<u32>| microbatch.iter().map(|&sequence| seconds[sequence as usize]).sum::<f64>();
        let largest = microbatches.iter().map(sum).fold(0.0, f64::max);
        largest * microbatches.len() as f64 / seconds.iter().sum::<f64>()
    }

    /// 64 sequences form 16 microbatches. With equal modules, encoder and backbone are both within 5 % of the mean; with
    /// consecutive sequences, the encoder exceeds it by more than 20 %.
    #[test]
    fn microbatches_of_equal_work_have_every_sequence_once() {
        let valid = scenario(&["assignment"], &["1f1b"]);
        let scenario = valid.scenario();
        let pricing = Pricing::new(&scenario.model, &scenario.cluster, &scenario.training);
        let batch =
            packing::pack(&Sampler::new(&valid).sizing().samples, &scenario.model, &scenario.workload.packing_rule());
        assert!(Composition::is_free(scenario, &batch));
        let order: Vec<usize> = (0..64).collect();
        let form = |composition: Composition| composition.microbatches(scenario, &pricing, 4, &batch, &order);
        let seconds = module_seconds(scenario, &pricing, &batch);
        let total: Vec<f64> = (0..64).map(|sequence| seconds[0][sequence] + seconds[1][sequence]).collect();
        assert!(imbalance(&seconds[0], &form(Composition::Consecutive)) > 1.2);
        let by_module = form(Composition::EqualModules);
        assert!(seconds.iter().all(|module| imbalance(module, &by_module) < 1.05));
        assert!(imbalance(&total, &form(Composition::EqualTotal)) < 1.05);
        for composition in [Composition::Consecutive, Composition::EqualModules, Composition::EqualTotal] {
            let microbatches = form(composition);
            let mut all: Vec<u32> = microbatches.iter().flatten().copied().collect();
            all.sort_unstable();
            assert_eq!((microbatches.len(), all), (16, (0..64).collect()), "{composition:?}");
        }
    }

    /// With a free assignment, no planner of pipelines is slower than with a fixed one, and DFLOP is not slower than 1F1B,
    /// whose layout is a special case.
    #[test]
    fn a_free_assignment_is_not_slower() {
        let planners = ["1f1b", "interleaved", "wait_free_cyclic", "pipeweaver", "dflop"];
        let times = |free: &[&str]| -> Vec<(String, f64)> {
            let outcome = plan(&scenario(free, &planners), &mut Unobserved).unwrap().outcome;
            let time = |result: planscope_plan::outcome::PlannerResult| match result.answer {
                PlanOutcome::Planned(planned) => Some((result.planner.id().to_owned(), planned.metrics.iteration_s)),
                PlanOutcome::Infeasible { .. } => None,
            };
            let mut times: Vec<_> = outcome.results.into_iter().filter_map(time).collect();
            times.sort_by(|a, b| a.0.cmp(&b.0));
            times
        };
        let (fixed, free) = (times(&[]), times(&["assignment"]));
        assert_eq!((fixed.len(), free.len()), (5, 5));
        for ((planner, fixed), (_, free)) in fixed.iter().zip(&free) {
            assert!(*free <= fixed * 1.005, "{planner}: {free} s against {fixed} s");
        }
        let of = |id: &str| free.iter().find(|(planner, _)| planner == id).unwrap().1;
        assert!(of("dflop") <= of("1f1b") && of("dflop") <= of("interleaved"));
        assert!(free.iter().zip(&fixed).any(|((_, free), (_, fixed))| *free < fixed * 0.98), "{fixed:?} {free:?}");
    }
}
