//! Layers of the stages of a layout.

use super::{Microbatches, Sized};
use crate::planners::infeasible::Infeasibility;
use planscope_cost::cost::{LayerTable, Partition};
use planscope_plan::outcome::Layout;
use planscope_plan::scenario::{FreeSetting, Scenario};

/// Builds undivided microbatches on the stages from [`cut`].
pub(crate) fn balanced(
    batch: &Microbatches<'_>,
    table: &LayerTable<'_>,
    layout: Layout,
) -> Result<Sized, Infeasibility> {
    let partition = cut(batch.scenario, table, layout).ok_or_else(|| Infeasibility::rule("no split of the layers"))?;
    Ok(Sized::undivided(layout, partition))
}

/// Assigns layers to stages: as the scenario fixes them; balanced by mean time, embedding and head included, for
/// several modules or if the layers per stage are free; otherwise as the framework does by default.
fn cut(scenario: &Scenario, table: &LayerTable<'_>, layout: Layout) -> Option<Partition> {
    let stages = layout.pipeline * layout.chunks;
    if !scenario.layers_per_stage.is_empty() {
        let partition = Partition::stated(&scenario.model, &scenario.layers_per_stage);
        partition.filter(|partition| partition.stages.len() == stages as usize)
    } else if scenario.model.modules.len() == 1 && !scenario.is_free(FreeSetting::LayersPerStage) {
        Partition::usual(&scenario.model, stages, scenario.training.framework)
    } else {
        Partition::balanced(&scenario.model, &table.weights(stages), stages)
    }
}
