//! Peak memory of layouts that were rejected for memory: model states plus activations per rank.

use super::{Composition, LayoutSearch, Microbatches, Sized};
use crate::planners::breakdown::rank_memory;
use crate::planners::contents;
use crate::planners::infeasible::Infeasibility;
use planscope_core::model::Model;
use planscope_core::units::Bytes;
use planscope_cost::cost::Partition;
use planscope_cost::cost::partition::LayerRange;
use planscope_pipeline::simulate::{execute, peak_memory_over};
use planscope_plan::outcome::{Layout, NearestMiss, RankMemory, RankNeed, joined, range_description};

/// Limit on simulated layouts.
const MAX_SIMULATED: usize = 48;
/// Limit on simulated layouts while an open layout can still need less memory than all previous
/// candidates.
const MAX_TESTED: usize = 192;
/// Maximum attempts to increase the memory limit, for a schedule that adapts to it.
const MAX_RAISES: u32 = 40;

/// Memory requirement for a layout.
pub(crate) struct Need {
    pub layout: Layout,
    /// Rank with the highest peak memory.
    pub rank: usize,
    /// Peak memory of that rank; without activations if `ranks` is empty.
    pub bytes: Bytes,
    /// All ranks. Empty if the layout cannot run.
    ranks: Vec<RankNeed>,
}

impl Need {
    /// Returns true if the requirement includes activations.
    pub(crate) fn is_complete(&self) -> bool {
        !self.ranks.is_empty()
    }

    /// Converts the requirement for the outcome.
    pub(crate) fn miss(self, limit: Bytes) -> NearestMiss {
        NearestMiss {
            layout: self.layout,
            rank: self.rank as u32,
            needs_gib: self.bytes.gib(),
            limit_gib: limit.gib(),
            ranks: self.ranks,
        }
    }
}

impl LayoutSearch<'_> {
    /// Returns the requirements of layouts rejected for memory. Complete requirements come first,
    /// in ascending order, then model states of layouts that cannot run at any limit. If there are
    /// too many layouts, those with the smallest model states are used.
    pub(crate) fn needs(&self) -> Vec<Need> {
        let with_memory =
            |(layout, infeasibility): &(Layout, Infeasibility)| Some((infeasibility.constraint.memory()?, *layout));
        let mut open: Vec<((usize, Bytes), Layout)> = self.rejected.iter().filter_map(with_memory).collect();
        open.sort_by_key(|((_, bytes), layout)| (*bytes, *layout));
        let mut needs: Vec<Need> = Vec::new();
        let mut min_bytes: Option<Bytes> = None;
        for ((rank, bytes), layout) in open {
            let is_promising = min_bytes.is_none_or(|known| bytes < known);
            if needs.len() >= if is_promising { MAX_TESTED } else { MAX_SIMULATED } {
                break;
            }
            let need = self.simulated_need(layout).map_or_else(
                || Need { layout, rank, bytes, ranks: Vec::new() },
                // A later batch can need more memory than the sizing batch.
                |need| if need.bytes < bytes { Need { rank, bytes, ..need } } else { need },
            );
            min_bytes = Some(min_bytes.map_or(need.bytes, |known_min| known_min.min(need.bytes)));
            needs.push(need);
        }
        needs.sort_by_key(|need| (!need.is_complete(), need.bytes, need.layout));
        needs
    }

    /// Simulates a layout's memory requirement on the sizing batch. `None` if it cannot run.
    fn simulated_need(&self, layout: Layout) -> Option<Need> {
        let batch = self.microbatches_for(layout, Composition::Consecutive)?;
        let table = self.table(layout.tensor, &batch.loads);
        let assignment = self.planner.assign(self.scenario, layout, &batch.loads, &table);
        // Some planners use all available memory, so the limit increases only until the layout
        // fits.
        let mut scenario = self.scenario.clone();
        for _ in 0..MAX_RAISES {
            let roomy = Microbatches {
                scenario: &scenario,
                pricing: batch.pricing,
                batch: batch.batch,
                sequences: batch.sequences.clone(),
                loads: batch.loads.clone(),
            };
            let sized = self.planner.cut(&roomy, &table, layout);
            let infeasibility = match sized.and_then(|sized| self.memory_need(&roomy, &table, &sized, &assignment)) {
                Ok(need) => return Some(need),
                Err(error) => error,
            };
            let (_, needed) = infeasibility.constraint.memory()?;
            let limit = scenario.memory_limit().gib();
            scenario.set_memory_limit(needed.gib().max(limit * 1.02));
        }
        None
    }

    fn memory_need(
        &self,
        batch: &Microbatches<'_>,
        table: &planscope_cost::cost::LayerTable<'_>,
        sized: &Sized,
        assignment: &[Vec<usize>],
    ) -> Result<Need, Infeasibility> {
        let ranks = sized.layout.pipeline as usize;
        let mut memory = vec![RankMemory::default(); ranks];
        let (mut rank, mut bytes) = (0, Bytes::ZERO);
        let mut before: Option<&[usize]> = None;
        for (replica, assigned) in assignment.iter().enumerate() {
            let is_same = before.is_some_and(|before| {
                before.len() == assigned.len()
                    && before.iter().zip(assigned).all(|(&before, &now)| batch.loads[before] == batch.loads[now])
            });
            if is_same {
                continue;
            }
            before = Some(assigned);
            let (costs, schedule) = self.planner.replica(batch, table, sized, (replica, assigned))?;
            let execution = execute(&schedule, &costs).map_err(|_| Infeasibility::deadlock())?;
            let (fullest, peak) = peak_memory_over(&schedule, &execution, &costs);
            if peak > bytes {
                (rank, bytes) = (fullest, peak);
            }
            for (rank, max_memory) in memory.iter_mut().enumerate().take(schedule.ranks()) {
                let current = rank_memory(rank, &schedule, &execution, &costs);
                if current.resident_gib() > max_memory.resident_gib() {
                    *max_memory = current;
                }
            }
        }
        let reserve_gib = self.scenario.training.memory_reserve_gib;
        let needs = memory.into_iter().enumerate().map(|(rank, memory)| RankNeed {
            rank: rank as u32,
            layers: layers(&self.scenario.model, &sized.partition, rank, ranks),
            memory: RankMemory { reserve_gib, ..memory },
        });
        Ok(Need { layout: sized.layout, rank, bytes, ranks: needs.collect() })
    }
}

/// Describes the layers on a rank.
fn layers(model: &Model, partition: &Partition, rank: usize, ranks: usize) -> String {
    let description =
        |range: &LayerRange| range_description(model, contents::layers(range), (range.begins(), range.ends(model)));
    joined(partition.stages_on(rank, ranks).flatten().map(description))
}
