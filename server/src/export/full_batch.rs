//! Batch of a job that fills every sequence to the sequence length, with the tokens of a plan.

use planner::outcome::{BatchSummary, Planned};
use planner::scenario::Scenario;
use planner::workload::Packing;

/// Batch in sequences of the sequence length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FullBatch {
    /// Sequences of a microbatch, at least 1.
    pub(super) microbatch: u32,
    /// Sequences of a step.
    pub(super) global_batch: u32,
    /// Mean tokens of a microbatch of the plan.
    pub(super) planned_tokens: u64,
    /// Tokens of a microbatch of the job.
    pub(super) tokens: u64,
    /// True if the sequences of the plan are full, so that the batch is that of the scenario.
    is_planned: bool,
}

impl FullBatch {
    /// Returns the batch of the scenario if its sequences are full or padded. Otherwise, a microbatch has at most the tokens of a
    /// planned one, so that it needs no more memory, and a step has about the tokens of the plan.
    pub(super) fn new(scenario: &Scenario, planned: &Planned, batches: &[BatchSummary]) -> Self {
        let (layout, workload) = (&planned.layout, &scenario.workload);
        let context = u64::from(workload.context_length.max(1));
        let unchanged = Self {
            microbatch: layout.microbatch,
            global_batch: workload.global_batch,
            planned_tokens: u64::from(layout.microbatch) * context,
            tokens: u64::from(layout.microbatch) * context,
            is_planned: true,
        };
        let tokens = batches.iter().map(|batch| batch.tokens).sum::<u64>();
        let full = context * u64::from(workload.global_batch) * batches.len() as u64;
        let microbatches: u64 = planned.iterations.iter().map(|iteration| u64::from(iteration.microbatches)).sum();
        let replicas = u64::from(layout.data.max(1));
        let is_full = tokens >= full || workload.packing == Packing::Padded;
        if is_full || microbatches == 0 || batches.is_empty() {
            return unchanged;
        }
        let planned_tokens = tokens / (microbatches * replicas);
        let microbatch = (planned_tokens / context).max(1);
        let at_once = microbatch * replicas;
        let steps = (tokens as f64 / (batches.len() as u64 * context * at_once) as f64).round().max(1.0);
        Self {
            microbatch: microbatch as u32,
            global_batch: (steps * at_once as f64) as u32,
            planned_tokens,
            tokens: microbatch * context,
            is_planned: false,
        }
    }

    /// Describes the batch, if it is not that of the scenario.
    pub(super) fn note(self, scenario: &Scenario) -> Option<String> {
        let Self { microbatch, global_batch, planned_tokens, tokens, is_planned } = self;
        if is_planned {
            return None;
        }
        let samples = scenario.workload.global_batch;
        let context = scenario.workload.context_length;
        let size = if tokens > planned_tokens {
            "One full sequence has more, so that a microbatch needs more time and memory than planned: use shorter sequences"
        } else {
            "The job has at most as many"
        };
        Some(format!(
            "Batch: sequences of the job are full, samples of the plan are shorter. A planned microbatch has {planned_tokens} tokens on \
             average. {size}: {microbatch} x {context} tokens. A step of {global_batch} sequences has about the tokens of \
             {samples} samples."
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::testing;

    #[test]
    fn short_samples_fill_fewer_sequences() {
        let (mut scenario, mut planned, mut batches) = testing::planned("1f1b", &[]);
        let full = FullBatch::new(&scenario, &planned, &batches);
        assert_eq!((full.microbatch, full.global_batch, full.note(&scenario)), (1, 16, None));
        // Microbatches of 8 samples with a quarter of the sequence length each.
        planned.layout.microbatch = 8;
        for iteration in &mut planned.iterations {
            iteration.microbatches = 1;
        }
        planned.layout.data = 2;
        for batch in &mut batches {
            batch.tokens = 16 * 1024;
        }
        let short = FullBatch::new(&scenario, &planned, &batches);
        assert_eq!((short.microbatch, short.global_batch, short.tokens), (2, 4, 8192));
        assert!(short.note(&scenario).unwrap().contains("8192 tokens on average. The job has at most as many"));
        // One sequence is longer than all samples of a microbatch.
        scenario.workload.context_length = 16_384;
        let long = FullBatch::new(&scenario, &planned, &batches);
        assert_eq!((long.microbatch, long.global_batch), (1, 2));
        assert!(long.note(&scenario).unwrap().contains("more time and memory than planned"));
    }
}
