//! What the size of the sub-microbatches of images or clips does (figure 10 of the paper).
//!
//! Small ones leave ranking little to lose but do not fill a device; large ones fill it and make the order matter.

use serde::{Deserialize, Serialize};

use super::{Batches, Effort, NoStudy, Subject, Turn};
use crate::cost::Pricing;
use crate::plan::CutReplica;
use crate::ranking::{self, Ending, Goal, Strategy};
use crate::scenario::{PlannerKind, ValidScenario};

/// Sizes that are looked at, up to what a microbatch holds.
const SIZES: [u32; 15] = [1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 28, 32, 40, 48];
/// Where a microbatch holds more items than this, single ones are not looked at: they are slow in every respect.
const SINGLES_UP_TO: u32 = 16;

/// Best and worst order at every size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SubMicrobatches {
    /// The planner whose plan is studied.
    pub planner: PlannerKind,
    /// The batch.
    pub iteration: u32,
    /// The data-parallel replica.
    pub replica: u32,
    /// Module whose items are cut.
    pub module: String,
    /// Most items of it in one microbatch of the replica.
    pub most_items: u32,
    /// The size that the plan has.
    pub chosen: u32,
    /// Whether the scenario fixes it, rather than the partitioner having chosen it.
    pub is_fixed: bool,
    /// Rankings that each search may interleave, beside the starting orders.
    pub rollouts: u32,
    /// By size, smallest first.
    pub points: Vec<SizePoint>,
    /// Whether the time was up before all sizes were searched with all rollouts.
    pub is_cut: bool,
}

/// One size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SizePoint {
    /// Most items of a sub-microbatch.
    pub size: u32,
    /// Sub-microbatches that the replica's items are cut into.
    pub parts: u32,
    /// Segments of the module.
    pub segments: u32,
    /// Efficiency of the module at this size relative to its best.
    pub efficiency: f64,
    /// End of the fastest and the slowest order found; absent where it does not fit.
    pub ends: Option<SizeEnds>,
    /// Why there is no order, where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misfit: Option<String>,
}

/// What ranking can win or lose at one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SizeEnds {
    /// End of the fastest order found, after swaps on its critical path.
    pub best_s: f64,
    /// End of the slowest order found.
    pub worst_s: f64,
    /// No order ends earlier.
    pub lower_bound_s: f64,
}

/// Searches the fastest and the slowest order of one replica at sizes up to 48 and the plan's own.
///
/// # Errors
/// Where the model has one module, the batch no items, or the scenario no such batch or replica.
pub fn sub_microbatches(
    valid: &ValidScenario,
    subject: Subject,
    effort: &Effort<'_>,
) -> Result<SubMicrobatches, NoStudy> {
    let mut scenario = valid.scenario().clone();
    let module = scenario.model.item_module_index().ok_or(NoStudy::OneModule)?;
    let of = valid.scenario();
    let pricing = Pricing::new(&of.model, &of.cluster, &of.training);
    let batches = Batches::of(valid, subject)?;
    let planned = batches.cut(&scenario, &pricing, subject)?;
    let (most, chosen) = (planned.most[module], planned.sizes[module]);
    if most == 0 {
        let module = scenario.model.modules[module].name.clone();
        return Err(NoStudy::NoItems { module, iteration: subject.iteration });
    }
    let sizes = sizes(most, chosen);
    let asked = (module, sizes.as_slice());
    let efficiency = CutReplica::relative_efficiency(of, &pricing, subject.layout, &batches.sizing, asked);
    // Without items in the sizing batch, the planner too knows nothing of the module's efficiency.
    let efficiency = efficiency.unwrap_or_else(|| vec![1.0; sizes.len()]);
    // A longer study is no reason to swap longer than the plan did.
    let swaps = effort.rollouts.min(of.search.rollouts);
    let mut study = SubMicrobatches {
        planner: subject.planner,
        iteration: subject.iteration,
        replica: subject.replica,
        module: scenario.model.modules[module].name.clone(),
        most_items: most,
        chosen,
        is_fixed: of.search.sub_microbatch.is_some(),
        rollouts: effort.rollouts,
        points: Vec::with_capacity(sizes.len()),
        is_cut: false,
    };
    // The plan's own size first: a study that is cut has at least that one.
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|&place| (sizes[place] != chosen, place));
    for (done, &place) in order.iter().enumerate() {
        if effort.watch.is_over() || effort.watch.seconds() >= effort.seconds {
            study.is_cut = true;
            break;
        }
        scenario.search.sub_microbatch = Some(sizes[place]);
        let cut = batches.cut(&scenario, &pricing, subject)?;
        let parts = cut.parts.iter().filter(|part| part.module as usize == module).count() as u32;
        let mut ends = None;
        let mut misfit = None;
        match cut.interleaving(&scenario) {
            Err(reason) => misfit = Some(reason),
            Ok(interleaving) => {
                let budget = cut.budget(&scenario, effort.rollouts);
                let mut search = |goal, left| {
                    let turn = Turn::next(effort, left);
                    let strategy = Strategy::MonteCarlo;
                    let found = ranking::search(&interleaving, strategy, goal, budget, effort.workers, &turn);
                    study.is_cut |= found.ending == Ending::Time;
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
        study.points.push(SizePoint {
            size: sizes[place],
            parts,
            segments,
            efficiency: efficiency[place],
            ends,
            misfit,
        });
    }
    study.points.sort_by_key(|point| point.size);
    Ok(study)
}

/// The sizes for microbatches of at most `most` items.
fn sizes(most: u32, chosen: u32) -> Vec<u32> {
    let largest = SIZES[SIZES.len() - 1];
    let least = if most > SINGLES_UP_TO { 2 } else { 1 };
    let mut sizes: Vec<u32> = SIZES.into_iter().filter(|size| (least..most).contains(size)).collect();
    sizes.extend([most.min(largest), chosen]);
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_reach_the_whole_microbatch_and_hold_the_chosen_one() {
        assert_eq!(sizes(32, 7), [2, 3, 4, 6, 7, 8, 10, 12, 16, 20, 24, 28, 32]);
        assert_eq!(sizes(8, 2), [1, 2, 3, 4, 6, 8], "clips of video");
        assert_eq!(sizes(100, 64).last_chunk(), Some(&[40, 48, 64]));
        assert_eq!(sizes(1, 1), [1]);
    }
}
