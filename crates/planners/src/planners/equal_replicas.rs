//! Equal replicas: replicas with the same work and the same links are planned and simulated once.

use std::collections::BTreeMap;

use planscope_core::workload::{MicrobatchContents, PackedBatch};
use planscope_plan::outcome::Layout;
use planscope_plan::scenario::Scenario;

/// Number of earlier replicas that a replica is compared with. Equal replicas are adjacent or alternate.
pub(crate) const REMEMBERED: usize = 16;

/// Returns a number that determines the links between the stages of a replica. Replicas with equal work and equal numbers
/// take the same time. The number is 0 for all replicas if consecutive ranks of a pipeline are whole nodes apart.
pub(crate) fn link_class(scenario: &Scenario, layout: Layout, replica: usize) -> u32 {
    let node = scenario.cluster.devices_per_node;
    let devices = layout.tensor * scenario.training.context_parallel;
    let distance = devices.saturating_mul(layout.data);
    if distance.is_multiple_of(node) { 0 } else { (replica as u32).wrapping_mul(devices) % node }
}

/// Returns for each replica the index of the first replica with the same microbatch contents, in order, and the same links.
/// `assigned` has indices into `microbatches` by replica.
pub(crate) fn first_equal(
    scenario: &Scenario,
    layout: Layout,
    batch: &PackedBatch,
    microbatches: &[Vec<u32>],
    assigned: &[Vec<usize>],
) -> Vec<usize> {
    let mut numbers: BTreeMap<MicrobatchContents, usize> = BTreeMap::new();
    let number = |sequences: &Vec<u32>| {
        let next = numbers.len();
        *numbers.entry(batch.contents(sequences)).or_insert(next)
    };
    let numbers: Vec<usize> = microbatches.iter().map(number).collect();
    let mut first: BTreeMap<(u32, Vec<usize>), usize> = BTreeMap::new();
    let first_of = |(replica, assigned): (usize, &Vec<usize>)| {
        let work = assigned.iter().map(|&microbatch| numbers[microbatch]).collect();
        *first.entry((link_class(scenario, layout, replica), work)).or_insert(replica)
    };
    assigned.iter().enumerate().map(first_of).collect()
}

#[cfg(test)]
mod tests {
    use planscope_core::workload::packing;
    use planscope_plan::scenario::validate::NoDatasets;
    use planscope_plan::scenario::{Sampler, ValidScenario, parse};

    use super::*;

    /// Two nodes of eight devices; samples of 1,024 tokens.
    fn firsts(tensor: u32, pipeline: u32, data: u32, assigned: &[Vec<usize>]) -> Vec<usize> {
        let document = serde_json::json!({
            "schema": "scenario/1", "model": { "preset": "llama-3-8b" }, "cluster": { "preset": "h100", "nodes": 2 },
            "workload": {
                "samples": {
                    "kind": "drawn", "text_tokens": { "kind": "constant", "value": 1024 },
                    "images": { "kind": "constant", "value": 0 }
                },
                "global_batch": 16, "context_length": 1024, "packing": "single"
            },
            "planners": ["1f1b"]
        });
        let valid = ValidScenario::new(parse(&document.to_string()).unwrap(), &NoDatasets).unwrap();
        let scenario = valid.scenario();
        let batch = Sampler::new(&valid).evaluation(0);
        let mut batch = packing::pack(&batch.samples, &scenario.model, &scenario.workload.packing_rule());
        // The last microbatch differs.
        batch.sequences.last_mut().unwrap().tokens -= 1;
        let microbatches: Vec<Vec<u32>> = (0..16).map(|sequence| vec![sequence]).collect();
        let layout = Layout { tensor, pipeline, data, chunks: 1, microbatch: 1, group: None };
        first_equal(scenario, layout, &batch, &microbatches, assigned)
    }

    #[test]
    fn replicas_with_equal_contents_and_links_are_equal() {
        let assigned: Vec<Vec<usize>> = (0..4).map(|replica| vec![replica, replica + 4]).collect();
        assert_eq!(firsts(2, 2, 4, &assigned), [0, 0, 0, 0], "ranks are a node apart");
        // Two ranks of a replica are in one node, or in two.
        assert_eq!(firsts(2, 8, 1, &assigned[..1]), [0]);
        let three: Vec<Vec<usize>> = (0..3).map(|replica| vec![replica]).collect();
        assert_eq!(firsts(2, 2, 3, &three), [0, 1, 2], "offsets 0, 2 and 4 differ");
    }

    #[test]
    fn order_and_contents_distinguish_replicas() {
        let assigned = [vec![0, 1], vec![2, 15], vec![15, 2], vec![3, 4], vec![5, 15], vec![6]];
        assert_eq!(firsts(8, 2, 1, &assigned), [0, 1, 2, 0, 1, 5]);
    }
}
