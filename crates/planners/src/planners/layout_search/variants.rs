//! Variants of the fastest layouts: other divisions of their microbatches, and other microbatches.

use super::{Composition, LayoutSearch, Score, SimulationResult, Sized};
use planscope_core::workload::PackedBatch;
use planscope_plan::observer::{Cancelled, Observer, go_on};
use planscope_plan::outcome::Layout;

/// Fastest layouts whose variants are simulated.
const VARIED_LAYOUTS: usize = 2;

impl<'a> LayoutSearch<'a> {
    /// Simulates the variants of the fastest layouts.
    pub(super) fn simulate_variants(
        &mut self,
        batch: &'a PackedBatch,
        observer: &mut dyn Observer,
    ) -> Result<(), Cancelled> {
        let variants_of = |sized: &Sized| {
            let batch = self.microbatches_for(sized.layout, sized.composition);
            batch.map_or_else(Vec::new, |batch| self.planner.variants(batch, sized))
        };
        let variants: Vec<Sized> = self.fastest(|_| true).into_iter().flat_map(variants_of).collect();
        self.simulate_each(variants, observer)?;
        if !Composition::is_free(self.scenario, batch) {
            return Ok(());
        }
        let composed = |sized: &Sized| Composition::EQUAL.map(|composition| Sized { composition, ..sized.clone() });
        let several: Vec<Sized> = self.fastest(|layout| layout.microbatch > 1).into_iter().flat_map(composed).collect();
        for sized in &several {
            self.compose(sized.composition, sized.layout.microbatch, batch);
        }
        self.simulate_each(several, observer)
    }

    /// Returns the fastest of the layouts that `includes` accepts.
    fn fastest(&self, includes: impl Fn(Layout) -> bool) -> Vec<&Sized> {
        let mut fastest: Vec<&(Score, Sized)> =
            self.simulated.iter().filter(|(_, sized)| includes(sized.layout)).collect();
        fastest.sort_by_key(|(score, sized)| (score.time, sized.layout));
        fastest.into_iter().take(VARIED_LAYOUTS).map(|(_, sized)| sized).collect()
    }

    fn simulate_each(&mut self, variants: Vec<Sized>, observer: &mut dyn Observer) -> Result<(), Cancelled> {
        for sized in variants {
            go_on(observer)?;
            self.total += 1;
            match self.simulate(&sized) {
                SimulationResult::Simulated(score) => self.simulated.push((score, sized)),
                SimulationResult::Rejected(infeasibility) => self.rejected.push((sized.layout, infeasibility)),
                SimulationResult::Slow(peak) => self.slow.push(peak),
            }
        }
        Ok(())
    }
}
