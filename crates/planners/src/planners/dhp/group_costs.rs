//! Costs and schedules of context-parallel groups. Each rank is a full model replica, and a group
//! splits sequences across ranks.

mod account;

use std::collections::BTreeMap;

pub(crate) use account::Accounts;

use crate::planners::replica;
use planscope_core::action::{Action, ActionKind, Schedule};
use planscope_core::model::Model;
use planscope_core::stage_graph::{Flows, Gathered, Placement};
use planscope_core::training::ContextExchange;
use planscope_core::units::{Nanos, Seconds};
use planscope_core::workload::{PackedBatch, Packing};
use planscope_cost::cost::{MicrobatchLoad, Partition, PipelineCosts, Pricing, ReplicaLayout};
use planscope_plan::outcome::Layout;
use planscope_plan::plan::{ReplicaPlan, SequenceGroup};
use planscope_plan::scenario::Scenario;

/// Returns a partition that has all layers on one stage.
pub(crate) fn single_stage_partition(model: &Model) -> Partition {
    let range = |(module, module_spec): (usize, &planscope_core::model::Module)| {
        planscope_cost::cost::partition::LayerRange::new(module, 0, module_spec.layers)
    };
    Partition { stages: vec![model.modules.iter().enumerate().map(range).collect()], placement: Placement::Cyclic }
}

/// Builds the schedule: ranks run groups sequentially, forward then backward per group.
pub(crate) fn schedule(groups: &[SequenceGroup], ranks: usize) -> Schedule {
    let mut orders = vec![Vec::new(); ranks];
    let mut stages = 0;
    for (item, group) in groups.iter().enumerate() {
        for &rank in &group.ranks {
            orders[rank as usize].extend([Action::forward(stages, item), Action::backward(stages, item)]);
            stages += 1;
        }
    }
    Schedule { stages, microbatches: groups.len(), orders }
}

/// Forward and backward costs per group, computed from a rank's operators.
pub(crate) struct GroupPrices {
    /// One cell per group.
    pub columns: PipelineCosts,
}

impl GroupPrices {
    /// Computes costs by load, exchange and degree. `None` if a degree has no cost table.
    pub(crate) fn new(
        pricing: &Pricing<'_>,
        model: &Model,
        layout: Layout,
        loads: &[MicrobatchLoad],
        exchange_degrees: &[(ContextExchange, u32)],
    ) -> Option<Self> {
        let partition = single_stage_partition(model);
        let mut by_way: BTreeMap<(ContextExchange, u32), Vec<usize>> = BTreeMap::new();
        for (item, &way) in exchange_degrees.iter().enumerate() {
            by_way.entry(way).or_default().push(item);
        }
        let mut columns: Option<PipelineCosts> = None;
        for ((exchange, degree), items) in by_way {
            let group_loads: Vec<MicrobatchLoad> = items.iter().map(|&item| loads[item].clone()).collect();
            let table = pricing.at_context(exchange, degree)?.table(layout.tensor, &group_loads);
            let all: Vec<usize> = (0..group_loads.len()).collect();
            let position = ReplicaLayout { pipeline: 1, data: layout.data, replica: 0 };
            let costs = table.pipeline(&partition, position, &all);
            let columns = columns.get_or_insert_with(|| sized(&costs, loads.len()));
            for (from, &to) in items.iter().enumerate() {
                copy(&costs, from, columns, to);
            }
        }
        columns.map(|columns| Self { columns })
    }

    /// Forward plus backward time of a group, in seconds.
    pub(crate) fn seconds(&self, item: usize) -> f64 {
        (self.columns.forward[item] + self.columns.backward(item)).secs()
    }
}

/// Returns columns with `count` cells of placeholder values.
fn sized(like: &PipelineCosts, count: usize) -> PipelineCosts {
    let mut columns = like.clone();
    let times = [
        &mut columns.forward,
        &mut columns.input_grad,
        &mut columns.weight_grad,
        &mut columns.send_forward,
        &mut columns.send_backward,
        &mut columns.exposed_forward,
        &mut columns.exposed_backward,
        &mut columns.recomputed,
        &mut columns.communication,
    ];
    for column in times {
        column.resize(count, Nanos::ZERO);
    }
    columns.activation.resize(count, planscope_core::units::Bytes::ZERO);
    columns.offloaded.resize(count, planscope_core::units::Bytes::ZERO);
    columns.transient.resize(count, planscope_core::units::Bytes::ZERO);
    columns.shapes.resize(count, planscope_core::timeline::MicrobatchShape::default());
    columns
}

/// Copies a cell and clears its sends, because each rank contains all layers.
fn copy(from: &PipelineCosts, at: usize, to: &mut PipelineCosts, cell: usize) {
    to.copy_cell(cell, from, at);
    (to.send_forward[cell], to.send_backward[cell]) = (Nanos::ZERO, Nanos::ZERO);
    to.shapes[cell] = from.shapes[at];
}

/// Busy time and number of groups per rank.
pub(crate) fn work(schedule: &Schedule, costs: &PipelineCosts) -> Vec<(Nanos, usize)> {
    let rank_work = |order: &Vec<Action>| {
        let both = |action: &Action| {
            let cell = costs.cell(action.stage as usize, action.microbatch as usize);
            if action.kind == ActionKind::Forward { costs.forward[cell] } else { costs.backward(cell) }
        };
        (order.iter().map(both).sum(), order.len() / 2)
    };
    schedule.orders.iter().map(rank_work).collect()
}

/// Loads for groups of concatenated, unpadded sequences.
pub(crate) fn loads(scenario: &Scenario, batch: &PackedBatch, groups: &[Vec<u32>]) -> Vec<MicrobatchLoad> {
    replica::loads_packed(scenario, Packing::Packed, batch, groups)
}

/// Costs of all ranks for the groups in a plan.
pub(crate) fn costs(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    layout: Layout,
    batch: &PackedBatch,
    plan: &ReplicaPlan,
) -> PipelineCosts {
    let ranks = layout.data as usize;
    let loads = loads(scenario, batch, &plan.microbatches);
    let ways: Vec<_> = plan.groups().iter().map(|group| (group.exchange, group.degree())).collect();
    let prices = GroupPrices::new(pricing, &scenario.model, layout, &loads, &ways)
        .expect("the planner asked for prices of these degrees before");
    let items: Vec<Gathered> =
        plan.groups().iter().map(|group| Gathered { ranks: group.ranks.clone(), gang: group.gang }).collect();
    let flows = Flows::together(ranks, &items).expect("groups stand on the ranks of the layout");
    let single = prices.columns;
    let mut costs = sized(&single, flows.cells());
    let mut windows = vec![(Seconds::ZERO, Seconds::ZERO); ranks];
    for (item, group) in plan.groups().iter().enumerate() {
        for (cell, &rank) in flows.microbatch_cells(item).zip(&group.ranks) {
            copy(&single, item, &mut costs, cell);
            let window = &mut windows[rank as usize];
            window.0 = Seconds::from_secs(single.backward(item).secs());
            if window.1 == Seconds::ZERO {
                window.1 = Seconds::from_secs(single.forward[item].secs());
            }
        }
    }
    costs.shapes.clone_from(&single.shapes);
    let partition = single_stage_partition(&scenario.model);
    let position = ReplicaLayout { pipeline: 1, data: layout.data, replica: 0 };
    let table =
        pricing.at_context(ContextExchange::Ring, 1).expect("one rank is a degree").table(layout.tensor, &loads);
    let state = table.state_memory(&partition, position)[0];
    costs.static_memory = vec![state.total(); ranks];
    costs.state = vec![state; ranks];
    let ends = windows.iter().map(|&window| table.step_end(&partition, position, Some(&[window])));
    (costs.sync, costs.optimizer) = ends.map(|(sync, optimizer)| (sync[0], optimizer[0])).unzip();
    costs.flows = flows;
    costs
}

#[cfg(test)]
mod tests {
    use super::*;
    use planscope_core::workload::Sequence;
    use planscope_cost::cost::ContextSettings;

    fn group(ranks: &[u32], gang: u32) -> SequenceGroup {
        SequenceGroup {
            ranks: ranks.to_vec(),
            microbatch: 0,
            gang,
            exchange: ContextExchange::Ring,
            estimate: Nanos::ZERO,
        }
    }

    /// Cells are numbered by group, then by rank: 0 and 1 for the first group, 2 for the second, 3
    /// and 4 for the third.
    #[test]
    fn ranks_run_groups_sequentially() {
        let schedule = schedule(&[group(&[0, 2], 0), group(&[1], 1), group(&[1, 2], 2)], 3);
        let both = |stage, item| [Action::forward(stage, item), Action::backward(stage, item)];
        assert_eq!((schedule.stages, schedule.microbatches), (5, 3));
        assert_eq!(
            schedule.orders,
            [both(0, 0).to_vec(), [both(2, 1), both(3, 2)].concat(), [both(1, 0), both(4, 2)].concat()]
        );
    }

    /// Llama-2 7B with 32,768 tokens: in a group of two, each rank has half the matrix products,
    /// half the attention scores and half the activations, plus the exchange. Its time is 50 % to
    /// 100 % of the single-rank time.
    #[test]
    fn a_group_with_two_ranks_costs_between_half_and_full_time() {
        let scenario = serde_json::json!({
            "schema": "scenario/1", "model": { "preset": "llama-2-7b" },
            "cluster": { "preset": "a100-80gb", "nodes": 1 },
            "workload": {
                "samples": {
                    "kind": "drawn", "text_tokens": { "kind": "constant", "value": 32_768 },
                    "images": { "kind": "constant", "value": 0 }
                },
                "global_batch": 1, "context_length": 32_768, "packing": "single"
            },
            "training": { "zero": 1 }, "planners": ["dhp"]
        });
        let scenario = planscope_plan::scenario::parse(&scenario.to_string()).unwrap();
        let contexts = ContextSettings::up_to(&scenario.training, 2);
        let pricing = Pricing::new(&scenario.model, &scenario.cluster, &scenario.training).with_contexts(&contexts);
        let layout = Layout { tensor: 1, pipeline: 1, data: 8, chunks: 1, microbatch: 1, group: None };
        let sequence = Sequence {
            samples: 1,
            tokens: 32_768,
            computed_tokens: 32_768,
            squared: 32_768 * 32_768,
            useful_squared: 32_768 * 32_768,
            ..Sequence::default()
        };
        let load = MicrobatchLoad::new(&[sequence], &scenario.model, Packing::Packed);
        for exchange in [ContextExchange::Ring, ContextExchange::AllToAll] {
            let exchange_degrees = [(exchange, 1), (exchange, 2)];
            let loads = [load.clone(), load.clone()];
            let prices = GroupPrices::new(&pricing, &scenario.model, layout, &loads, &exchange_degrees).unwrap();
            let (single_rank, two) = (prices.seconds(0), prices.seconds(1));
            assert!(two < single_rank && two > 0.5 * single_rank, "{exchange:?}: {two} of {single_rank}");
            let (single_rank, two) =
                (prices.columns.activation[0].get() as f64, prices.columns.activation[1].get() as f64);
            assert!((two / single_rank - 0.5).abs() < 0.01, "{exchange:?}: {two} of {single_rank} bytes");
        }
        assert!(GroupPrices::new(&pricing, &scenario.model, layout, &[load], &[(ContextExchange::Ring, 3)]).is_none());
    }
}
