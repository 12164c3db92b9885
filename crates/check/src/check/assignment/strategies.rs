//! Validation for pipelines with individual schemes.

use std::collections::{BTreeMap, BTreeSet};

use super::layers;
use crate::check::Violation;
use planscope_core::model::Model;
use planscope_pipeline::simulate::Execution;
use planscope_plan::plan::{OptimizerSharding, Plan, SchemedPipeline, Strategy};

/// Checks all iterations: pipelines use existing, disjoint devices, contain all layers in order,
/// and have as many stages as their scheme. TP divides the heads. Ranks and microbatches match the
/// pipelines.
pub(super) fn strategies(plan: &Plan, model: &Model, devices: u32, iterations: usize) -> Result<(), Violation> {
    equal("iterations", plan.iterations.len(), iterations)?;
    for (number, iteration) in plan.iterations.iter().enumerate() {
        equal("replicas", iteration.replicas.len(), 1)?;
        let replica = &iteration.replicas[0];
        let Some(strategy) = replica.strategy() else {
            return Err(Violation::Shape { element: "strategies of an iteration", found: 0, expected: 1 });
        };
        equal("groups", replica.groups().len(), 0)?;
        equal("sub-microbatches", replica.parts().len(), 0)?;
        equal("strategies of layers", replica.mixes.len(), 0)?;
        for pipeline in &strategy.pipelines {
            degrees(pipeline, model)?;
        }
        disjoint_devices(strategy, number, devices)?;
        let ranks = strategy.pipelines.iter().map(|pipeline| pipeline.scheme.pipeline as usize).sum();
        equal("ranks", replica.schedule.orders.len(), ranks)?;
        equal("stages", replica.schedule.stages, ranks)?;
        let microbatches = strategy.pipelines.iter().map(|pipeline| pipeline.microbatches as usize).sum();
        equal("microbatches of all pipelines", replica.microbatches.len(), microbatches)?;
        equal("microbatches", replica.schedule.microbatches, microbatches)?;
        if replica.microbatches.iter().any(Vec::is_empty) {
            return Err(Violation::Shape { element: "sequences of a microbatch", found: 0, expected: 1 });
        }
        local_microbatches(plan, number, strategy)?;
        if strategy.optimizer == OptimizerSharding::Replicas {
            equal_pipelines(strategy)?;
        }
    }
    Ok(())
}

/// Checks that phases do not overlap in time.
pub fn check_phases(strategy: &Strategy, execution: &Execution) -> Result<(), Violation> {
    let mut rank = 0;
    // Start and end per phase.
    let mut times: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for pipeline in &strategy.pipelines {
        for rank in rank..rank + pipeline.scheme.pipeline as usize {
            let (first, last) = times.entry(pipeline.phase).or_insert((u64::MAX, 0));
            *first = execution.start[rank].iter().map(|time| time.get()).min().unwrap_or(u64::MAX).min(*first);
            *last = execution.end[rank].iter().map(|time| time.get()).max().unwrap_or(0).max(*last);
        }
        rank += pipeline.scheme.pipeline as usize;
    }
    let mut ended = 0;
    for (phase, (first, last)) in times {
        if first < ended {
            return Err(Violation::Phase { phase, start: first, ended });
        }
        ended = ended.max(last);
    }
    Ok(())
}

fn equal(element: &'static str, found: usize, expected: usize) -> Result<(), Violation> {
    if found == expected { Ok(()) } else { Err(Violation::Shape { element, found, expected }) }
}

/// Checks degrees, head divisibility and layers of a pipeline.
fn degrees(pipeline: &SchemedPipeline, model: &Model) -> Result<(), Violation> {
    let tensor = pipeline.scheme.tensor;
    if tensor == 0 || pipeline.scheme.context == 0 || pipeline.scheme.pipeline == 0 {
        return Err(Violation::Shape { element: "a degree of a scheme", found: 0, expected: 1 });
    }
    for module in &model.modules {
        for (dimension, count) in module.sharded_heads() {
            if count % tensor != 0 {
                return Err(Violation::Divisibility { tensor, dimension, count });
            }
        }
    }
    layers(&pipeline.partition, model)?;
    let stages = pipeline.partition.stages.len();
    if stages == pipeline.scheme.pipeline as usize { Ok(()) } else { Err(Violation::Layers { stage: stages }) }
}

/// Checks that stages in a phase use disjoint devices.
fn disjoint_devices(strategy: &Strategy, iteration: usize, devices: u32) -> Result<(), Violation> {
    let mut taken = BTreeSet::new();
    for (index, pipeline) in strategy.pipelines.iter().enumerate() {
        let each = u64::from(pipeline.scheme.tensor) * u64::from(pipeline.scheme.context);
        for stage in 0..u64::from(pipeline.scheme.pipeline) {
            let first = u64::from(pipeline.first_device) + stage * u64::from(pipeline.stage_stride);
            for device in first..first + each {
                if device >= u64::from(devices) || !taken.insert((pipeline.phase, device)) {
                    let device = u32::try_from(device).unwrap_or(u32::MAX);
                    return Err(Violation::Device { iteration, pipeline: index, device });
                }
            }
        }
    }
    Ok(())
}

/// Checks that ranks run only microbatches of their pipeline.
fn local_microbatches(plan: &Plan, number: usize, strategy: &Strategy) -> Result<(), Violation> {
    let orders = &plan.iterations[number].replicas[0].schedule.orders;
    let (mut first_rank, mut first) = (0, 0);
    for pipeline in &strategy.pipelines {
        let (ranks, microbatches) = (pipeline.scheme.pipeline as usize, pipeline.microbatches);
        for (rank, order) in orders.iter().enumerate().skip(first_rank).take(ranks) {
            let foreign = order.iter().find(|action| {
                action.stage as usize != rank || action.microbatch < first || action.microbatch >= first + microbatches
            });
            if let Some(action) = foreign {
                return Err(Violation::Foreign { rank, action: action.to_string() });
            }
        }
        (first_rank, first) = (first_rank + ranks, first + microbatches);
    }
    Ok(())
}

/// Checks that pipelines are equal and in a single phase, as required by optimizer state sharded
/// across replicas.
fn equal_pipelines(strategy: &Strategy) -> Result<(), Violation> {
    let Some(first) = strategy.pipelines.first() else {
        return Err(Violation::Shape { element: "pipelines", found: 0, expected: 1 });
    };
    let same = |pipeline: &&SchemedPipeline| pipeline.scheme == first.scheme && pipeline.phase == 0;
    equal("equal pipelines", strategy.pipelines.iter().filter(same).count(), strategy.pipelines.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use planscope_core::action::{Action, Schedule};
    use planscope_core::model::presets::model;
    use planscope_cost::cost::Partition;
    use planscope_plan::outcome::{Layout, Search, SolverStatus};
    use planscope_plan::plan::{IterationPlan, ReplicaKind, ReplicaPlan, Scheme};

    /// Validates two pipelines on six devices after `spoil`: <2,2,1> on devices 0 to 3 and <1,1,2>
    /// on devices 4 and 5. Both have a single microbatch.
    fn checked(spoil: impl FnOnce(&mut Strategy, &mut ReplicaPlan)) -> Result<(), Violation> {
        let model = model("llama-2-7b").unwrap();
        let pipeline = |tensor, pipeline, context, first_device| SchemedPipeline {
            scheme: Scheme { tensor, pipeline, context },
            first_device,
            stage_stride: tensor * context,
            partition: Partition::even(&model, pipeline).unwrap(),
            microbatches: 1,
            phase: 0,
            estimated_s: 1.0,
        };
        let mut strategy = Strategy {
            pipelines: vec![pipeline(2, 2, 1, 0), pipeline(1, 1, 2, 4)],
            optimizer: OptimizerSharding::AllDevices,
            estimated_s: 1.0,
        };
        let both = |stage, microbatch| vec![Action::forward(stage, microbatch), Action::backward(stage, microbatch)];
        let mut replica = ReplicaPlan {
            microbatches: vec![vec![0, 2], vec![1]],
            kind: ReplicaKind::Pipeline,
            schedule: Schedule { stages: 3, microbatches: 2, orders: vec![both(0, 0), both(1, 0), both(2, 1)] },
            mixes: Vec::new(),
        };
        spoil(&mut strategy, &mut replica);
        replica.kind = ReplicaKind::Strategy(strategy);
        let plan = Plan {
            modules: Vec::new(),
            layout: Layout { tensor: 2, pipeline: 2, data: 2, chunks: 1, microbatch: 2, group: None },
            partition: Partition::even(&model, 1).unwrap(),
            iterations: vec![IterationPlan { replicas: vec![replica], decision: None }],
            algorithm: String::new(),
            status: SolverStatus::Heuristic,
            search: Search::default(),
            decisions: Vec::new(),
        };
        strategies(&plan, &model, 6, 1)
    }

    #[test]
    fn pipelines_side_by_side_and_behind_each_other_pass() {
        assert_eq!(checked(|_, _| {}), Ok(()));
        assert_eq!(
            checked(|strategy, _| (strategy.pipelines[1].phase, strategy.pipelines[1].first_device) = (1, 0)),
            Ok(())
        );
    }

    /// Ranks 0 and 1 end at 10 and 12. Rank 2 in the next phase starts at 12 (valid) or at 11
    /// (invalid).
    #[test]
    fn a_phase_waits_for_the_previous_phase() {
        let nanos = |time| vec![planscope_core::units::Nanos::new(time)];
        let execution = |start| Execution {
            start: vec![nanos(0), nanos(2), nanos(start)],
            end: vec![nanos(10), nanos(12), nanos(20)],
            bound_by: Vec::new(),
            send_start: Vec::new(),
        };
        let mut found = Vec::new();
        checked(|strategy, _| {
            strategy.pipelines[1].phase = 1;
            found = [12, 11].map(|start| check_phases(strategy, &execution(start))).to_vec();
            strategy.pipelines[1].first_device = 0;
        })
        .unwrap();
        assert_eq!(found, [Ok(()), Err(Violation::Phase { phase: 1, start: 11, ended: 12 })]);
    }

    #[test]
    fn invalid_strategies_are_rejected() {
        let shape = |element, found, expected| Err(Violation::Shape { element, found, expected });
        let device = |pipeline, device| Err(Violation::Device { iteration: 0, pipeline, device });
        assert_eq!(checked(|strategy, _| strategy.pipelines[1].first_device = 3), device(1, 3));
        assert_eq!(checked(|strategy, _| strategy.pipelines[1].first_device = 5), device(1, 6));
        assert_eq!(checked(|strategy, _| strategy.pipelines[0].stage_stride = 1), device(0, 1));
        let three = checked(|strategy, _| strategy.pipelines[1].scheme.tensor = 3);
        assert_eq!(three, Err(Violation::Divisibility { tensor: 3, dimension: "heads", count: 32 }));
        let shallow = checked(|strategy, _| strategy.pipelines[0].partition.stages.truncate(1));
        assert_eq!(shallow, Err(Violation::Layers { stage: 1 }));
        let unequal = checked(|strategy, _| strategy.optimizer = OptimizerSharding::Replicas);
        assert_eq!(unequal, shape("equal pipelines", 1, 2));
        assert_eq!(
            checked(|_, replica| replica.microbatches.truncate(1)),
            shape("microbatches of all pipelines", 1, 2)
        );
        assert_eq!(checked(|_, replica| replica.microbatches[1].clear()), shape("sequences of a microbatch", 0, 1));
        let stolen = checked(|_, replica| replica.schedule.orders[2][0].microbatch = 0);
        assert_eq!(stolen, Err(Violation::Foreign { rank: 2, action: "2F0".to_owned() }));
    }
}
