//! Searches the fastest feasible layout if a publication omits parallel degrees.

use planner::cluster::Cluster;
use planner::estimate::{Configuration, Estimate, estimate};
use planner::model::Model;
use planner::outcome::Layout;
use planner::training::Training;

use crate::step::Step;

/// Published parameters. The search covers the others.
#[derive(Debug)]
pub(super) struct Search<'a> {
    pub(super) model: &'a Model,
    pub(super) cluster: &'a Cluster,
    pub(super) training: &'a Training,
    pub(super) global_batch: u32,
    pub(super) sequence_length: u32,
    /// Allowed (TP, PP) degrees.
    pub(super) splits: &'a [(u32, u32)],
    /// Allowed microbatch sizes in sequences.
    pub(super) microbatches: &'a [u32],
    pub(super) chunks: Chunks,
}

/// Allowed model chunks per rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunks {
    /// A single chunk.
    Single,
    /// All divisors of the layers per rank for which the interleaved schedule can distribute the
    /// microbatches evenly.
    Divisors,
}

impl Search<'_> {
    /// Returns the fastest layout within the memory limit, or `None` if there is none.
    pub(super) fn fastest(&self) -> Option<(Layout, Estimate, Step)> {
        let layouts = self.layouts();
        let estimates = layouts.into_iter().filter_map(|layout| {
            let configuration = self.configuration(layout);
            let estimate = estimate(&configuration).ok()?;
            let step = Step::new(&configuration, &estimate);
            estimate.infeasibility.is_none().then_some((layout, estimate, step))
        });
        estimates.min_by(|a, b| a.1.iteration.secs().total_cmp(&b.1.iteration.secs()))
    }

    fn layouts(&self) -> Vec<Layout> {
        let mut layouts = Vec::new();
        for &(tensor, pipeline) in self.splits {
            let data = self.cluster.devices() / (tensor * pipeline);
            for &microbatch in self.microbatches {
                if data == 0 || !self.global_batch.is_multiple_of(data * microbatch) {
                    continue;
                }
                let count = self.global_batch / (data * microbatch);
                let layout = |chunks| Layout { tensor, pipeline, data, chunks, microbatch, group: None };
                layouts.extend(self.chunk_counts(pipeline, count).into_iter().map(layout));
            }
        }
        layouts
    }

    fn chunk_counts(&self, pipeline: u32, microbatches: u32) -> Vec<u32> {
        let layers = self.model.layers();
        if !layers.is_multiple_of(pipeline) {
            return vec![];
        }
        if self.chunks == Chunks::Single || pipeline == 1 || !microbatches.is_multiple_of(pipeline) {
            return vec![1];
        }
        let each = layers / pipeline;
        (1..=each).filter(|chunks| each.is_multiple_of(*chunks)).collect()
    }

    fn configuration(&self, layout: Layout) -> Configuration {
        Configuration {
            model: self.model.clone(),
            cluster: self.cluster.clone(),
            training: Training {
                sequence_parallel: self.training.sequence_parallel && layout.tensor > 1,
                ..self.training.clone()
            },
            layout,
            layers_per_stage: Vec::new(),
            global_batch: self.global_batch,
            sequence_length: self.sequence_length,
            items: 0,
        }
    }
}

/// Returns all (TP, PP) pairs with TP * PP = `product` and TP at most 8, the node size.
pub(super) fn splits(product: u32) -> Vec<(u32, u32)> {
    [1, 2, 4, 8]
        .into_iter()
        .filter(|tensor| product.is_multiple_of(*tensor))
        .map(|tensor| (tensor, product / tensor))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_splits_within_a_node() {
        assert_eq!(splits(1), [(1, 1)]);
        assert_eq!(splits(280), [(1, 280), (2, 140), (4, 70), (8, 35)]);
    }
}
