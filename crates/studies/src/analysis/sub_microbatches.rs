//! Effects of the sub-microbatch size for images or clips (PipeWeaver Fig. 10).
//!
//! Small sub-microbatches reduce the effect of ranking but do not saturate a device. Large
//! sub-microbatches saturate it but make the order important.

pub use planscope_analysis::analysis::sub_microbatches::*;

use super::{AnalysisError, Batches, Effort, Subject, Turn};
use planscope_cost::cost::Pricing;
use planscope_plan::scenario::ValidScenario;
use planscope_planners::planners::CutReplica;
use planscope_planners::planners::pipeweaver::ranking;
use planscope_planners::planners::pipeweaver::ranking::{Ending, Goal, Strategy};

/// Candidate sizes, up to the number of items in a microbatch.
const SIZES: [u32; 15] = [1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 28, 32, 40, 48];
/// Maximum item count per microbatch for which size 1 is tried. It is never competitive for larger
/// microbatches.
const SINGLES_UP_TO: u32 = 16;

/// Searches the fastest and slowest order for a replica, at sizes up to 48 and at the size in the
/// plan.
///
/// # Errors
/// The model has a single module, the batch has no items, or the scenario lacks the batch or
/// replica.
pub fn sub_microbatches(
    valid: &ValidScenario,
    subject: Subject,
    effort: &Effort<'_>,
) -> Result<SubMicrobatches, AnalysisError> {
    let mut scenario = valid.scenario().clone();
    let module = scenario.model.item_module_index().ok_or(AnalysisError::SingleModule)?;
    let base = valid.scenario();
    let pricing = Pricing::new(&base.model, &base.cluster, &base.training);
    let batches = Batches::new(valid, subject)?;
    let planned = batches.cut(&scenario, &pricing, subject)?;
    let (max_items, selected_size) = (planned.max_instances[module], planned.sizes[module]);
    if max_items == 0 {
        let module = scenario.model.modules[module].name.clone();
        return Err(AnalysisError::NoItems { module, iteration: subject.iteration });
    }
    let sizes = sizes(max_items, selected_size);
    let requested = (module, sizes.as_slice());
    let efficiency = CutReplica::relative_efficiency(base, &pricing, subject.layout, &batches.sizing, requested);
    // If the sizing batch has no items, the planner does not know the efficiency either.
    let efficiency = efficiency.unwrap_or_else(|| vec![1.0; sizes.len()]);
    // Use no more swap steps than the plan.
    let swaps = effort.rollouts.min(base.search.rollouts);
    let mut analysis = SubMicrobatches {
        planner: subject.planner,
        iteration: subject.iteration,
        replica: subject.replica,
        module: scenario.model.modules[module].name.clone(),
        most_items: max_items,
        chosen: selected_size,
        is_fixed: base.search.sub_microbatch.is_some(),
        rollouts: effort.rollouts,
        points: Vec::with_capacity(sizes.len()),
        is_cut: false,
    };
    // Start with the size in the plan, so that a partial study includes it.
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|&number| (sizes[number] != selected_size, number));
    for (done, &index) in order.iter().enumerate() {
        if effort.cancellation.is_over() || effort.cancellation.seconds() >= effort.seconds {
            analysis.is_cut = true;
            break;
        }
        scenario.search.sub_microbatch = Some(sizes[index]);
        let cut = batches.cut(&scenario, &pricing, subject)?;
        let parts = cut.parts.iter().filter(|part| part.module as usize == module).count() as u32;
        let mut ends = None;
        let mut infeasibility = None;
        match cut.interleaving(&scenario) {
            Err(reason) => infeasibility = Some(reason),
            Ok(interleaving) => {
                let budget = cut.budget(&scenario, effort.rollouts);
                let mut search = |goal, left| {
                    let turn = Turn::next(effort, left);
                    let strategy = Strategy::MonteCarlo;
                    let found = ranking::search(&interleaving, strategy, goal, budget, effort.workers, &turn);
                    analysis.is_cut |= found.ending == Ending::Time;
                    found
                };
                let left = 2 * (sizes.len() - done);
                let best = search(Goal::Fastest, left);
                let worst = search(Goal::Slowest, left - 1);
                ends = Some(SizeEnds {
                    best_s: CutReplica::swapped_end(&scenario, &interleaving, &best, swaps).secs(),
                    worst_s: worst.end.secs(),
                    lower_bound_s: best.lower_bound.secs(),
                });
            }
        }
        let segments = cut.segments[module];
        analysis.points.push(SizePoint {
            size: sizes[index],
            parts,
            segments,
            efficiency: efficiency[index],
            ends,
            misfit: infeasibility,
        });
    }
    analysis.points.sort_by_key(|point| point.size);
    Ok(analysis)
}

/// Returns the sizes for microbatches of up to `most` items.
fn sizes(max_items: u32, selected_size: u32) -> Vec<u32> {
    let max_size = SIZES[SIZES.len() - 1];
    let min_size = if max_items > SINGLES_UP_TO { 2 } else { 1 };
    let mut sizes: Vec<u32> = SIZES.into_iter().filter(|size| (min_size..max_items).contains(size)).collect();
    sizes.extend([max_items.min(max_size), selected_size]);
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_include_the_full_microbatch_and_the_selected_size() {
        assert_eq!(sizes(32, 7), [2, 3, 4, 6, 7, 8, 10, 12, 16, 20, 24, 28, 32]);
        assert_eq!(sizes(8, 2), [1, 2, 3, 4, 6, 8], "clips of video");
        assert_eq!(sizes(100, 64).last_chunk(), Some(&[40, 48, 64]));
        assert_eq!(sizes(1, 1), [1]);
    }
}
