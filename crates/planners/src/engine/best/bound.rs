//! Lower bound on the iteration time over all layouts.

use planscope_core::training::Recompute;
use planscope_core::workload::{PackedBatch, Packing};
use planscope_cost::cost::Pricing;
use planscope_plan::observer::{Cancelled, Observer, go_on};
use planscope_plan::scenario::Scenario;
use planscope_plan::scenario::budget::MAX_MICROBATCH;

use crate::planners::{PlanningContext, replica, setting_choices};

/// Returns the mean time per batch of `batches`, in s, that no plan of any layout undercuts: every module runs at the
/// tensor-parallel degree, expert-parallel degree and microbatch size with the least device time, without
/// recomputation, padding, pipeline bubbles and exposed communication between replicas or stages, and all devices
/// share the work equally.
pub(super) fn all_layouts(
    context: PlanningContext<'_>,
    batches: &[PackedBatch],
    observer: &dyn Observer,
) -> Result<f64, Cancelled> {
    let mut scenario = context.scenario.clone();
    scenario.training.recompute = Recompute::None;
    scenario.training.recompute_layers = None;
    scenario.training.activation_offload = 0.0;
    scenario.training.context_parallel = 1;
    scenario.workload.packing = Packing::Packed;
    let devices = f64::from(scenario.cluster.devices());
    let mut device_seconds = 0.0;
    for batch in batches {
        let mut least = vec![f64::INFINITY; scenario.model.modules.len()];
        for (expert, expert_tensor, sequence_parallel) in degrees(context.scenario) {
            go_on(observer)?;
            scenario.training.expert_parallel = expert;
            scenario.training.expert_tensor_parallel = expert_tensor;
            scenario.training.sequence_parallel = sequence_parallel;
            let pricing = Pricing::new(&scenario.model, &scenario.cluster, &scenario.training);
            let all: Vec<u32> = (0..batch.sequences.len() as u32).collect();
            for size in (0..=MAX_MICROBATCH.ilog2()).map(|power| 1_usize << power) {
                let microbatches: Vec<Vec<u32>> = all.chunks(size).map(<[u32]>::to_vec).collect();
                let loads = replica::loads(&scenario, batch, &microbatches);
                for tensor in tensor_degrees(&scenario) {
                    let table = pricing.table(tensor, &loads);
                    for (module, least) in least.iter_mut().enumerate() {
                        *least = least.min(f64::from(tensor) * table.min_time(module..module + 1));
                    }
                }
                if size >= all.len() {
                    break;
                }
            }
        }
        device_seconds += least.iter().sum::<f64>();
    }
    Ok(device_seconds / devices / batches.len().max(1) as f64)
}

/// Tensor-parallel degrees within a node that divide the heads of all modules.
fn tensor_degrees(scenario: &Scenario) -> Vec<u32> {
    let divides = |tensor: &u32| {
        scenario.cluster.devices_per_node.is_multiple_of(*tensor)
            && scenario.model.modules.iter().all(|module| module.supports_tensor(*tensor))
    };
    (0..5).map(|power| 1 << power).filter(divides).collect()
}

/// Expert-parallel degrees, expert TP and sequence parallelism: those of the scenario, or all that are possible.
fn degrees(scenario: &Scenario) -> Vec<(u32, Option<u32>, bool)> {
    let own = scenario.training.sequence_parallel;
    let is_free = setting_choices::chooses_sequence_parallelism(scenario);
    let choices = if is_free { vec![own, !own] } else { vec![own] };
    let mut degrees = Vec::new();
    for &choice in &choices {
        for expert in setting_choices::expert_degrees(scenario) {
            let tensors = setting_choices::expert_tensor_degrees(scenario).into_iter();
            degrees.extend(tensors.map(|tensor| (expert, tensor, choice)));
        }
    }
    degrees
}
