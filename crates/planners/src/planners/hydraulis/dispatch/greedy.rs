//! Greedy assignment of one order of sequences (Hydraulis Alg. 1).

use std::collections::{BTreeMap, BTreeSet};

use super::{PipelineLoad, Problem, ROUNDING, State};
use crate::planners::hydraulis::scheme::SchemeCost;

/// Bits of the time, bits of the work, tokens and longest sequence.
type LoadKey = (u64, u64, u64, u64);

impl PipelineLoad {
    /// Returns the key of pipelines with equal loads, by time. For non-negative floats, the bit patterns have the
    /// order of the values.
    fn key(&self, scheme: &SchemeCost) -> LoadKey {
        (self.seconds(scheme).to_bits(), self.work.to_bits(), self.tokens, self.max_length)
    }
}

impl Problem<'_> {
    /// Runs Hydraulis Alg. 1 for one order. Returns the maximum pipeline time in seconds and a
    /// pipeline index per sequence.
    ///
    /// After a step, the maximum time is the maximum of the previous value and the new time of the
    /// selected pipeline. Therefore the pipeline with the earliest finish time is selected. The
    /// current time plus the work of the sequence is a lower bound for the finish time. Pipelines
    /// of a kind are scanned in ascending time order, until this bound exceeds the earliest finish
    /// time.
    pub(super) fn greedy(&self, order: &[usize]) -> (f64, Vec<usize>) {
        let mut state = State::new(self);
        let mut pipeline_indices = vec![0; self.lengths.len()];
        // Pipelines of a kind by load, in ascending order of time.
        let mut by_load: Vec<BTreeMap<LoadKey, BTreeSet<usize>>> = vec![BTreeMap::new(); self.kinds.len()];
        for (pipeline, &kind) in self.kind.iter().enumerate() {
            by_load[kind].entry(PipelineLoad::default().key(&self.kinds[kind])).or_default().insert(pipeline);
        }
        for &sequence in order {
            let tokens = self.lengths[sequence];
            let mut best: Option<(f64, usize)> = None;
            for (kind, scheme) in self.kinds.iter().enumerate().filter(|(_, scheme)| tokens <= scheme.max_len) {
                let work = self.work[sequence * self.kinds.len() + kind];
                for (&(end, ..), pipelines) in &by_load[kind] {
                    if best.is_some_and(|(earliest, _)| f64::from_bits(end) + work > earliest * ROUNDING) {
                        break;
                    }
                    let Some(&pipeline) = pipelines.first() else { continue };
                    let finish = state.loads[pipeline].and(work, tokens).seconds(scheme);
                    if best.is_none_or(|(known, first)| finish < known || (finish <= known && pipeline < first)) {
                        best = Some((finish, pipeline));
                    }
                }
            }
            if let Some((_, pipeline)) = best {
                let (kind, scheme) = (self.kind[pipeline], &self.pipelines[pipeline]);
                let before = state.loads[pipeline].key(scheme);
                state.add(self, sequence, pipeline);
                let equal = by_load[kind].entry(before).or_default();
                equal.remove(&pipeline);
                if equal.is_empty() {
                    by_load[kind].remove(&before);
                }
                by_load[kind].entry(state.loads[pipeline].key(scheme)).or_default().insert(pipeline);
                pipeline_indices[sequence] = pipeline;
            }
        }
        (state.slowest, pipeline_indices)
    }
}
