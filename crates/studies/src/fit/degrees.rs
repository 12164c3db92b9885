//! Changes at the degrees of the plan. A search over all degrees for each change takes minutes.

use serde_json::Value;

use super::changes::Proposal;
use super::{AnalysisError, Change, Trials};
use planscope_plan::outcome::Planned;
use planscope_plan::scenario::{FreeSetting, ValidScenario};

/// Changes that are planned again with all free settings.
const REPLANNED: usize = 3;
/// Pointer of a change that needs other degrees.
const NODES: &str = "/cluster/nodes";

/// Returns the document of a scenario with the degrees, the ZeRO stage and the packing of its plan in place of free
/// ones. Recomputation, offload, TP, PP and the microbatch remain free. `None` if no degree is free.
pub(super) fn at_degrees(valid: &ValidScenario, plan: &Planned) -> Option<Value> {
    let is_degree = |setting: &FreeSetting| {
        matches!(
            setting,
            FreeSetting::Zero
                | FreeSetting::ContextParallel
                | FreeSetting::ExpertParallel
                | FreeSetting::ExpertTensorParallel
                | FreeSetting::SequenceParallel
                | FreeSetting::Packing
        )
    };
    let mut scenario = valid.scenario().clone();
    if !scenario.free.iter().any(is_degree) {
        return None;
    }
    let settings = plan.settings?;
    settings.apply(&mut scenario.training);
    scenario.workload.packing = settings.packing;
    scenario.free.retain(|setting| !is_degree(setting));
    serde_json::to_value(scenario).ok()
}

/// Returns whether a change is planned at the degrees of the plan.
pub(super) fn keeps_degrees(proposal: &Proposal) -> bool {
    !proposal.fields.iter().any(|field| field.pointer == NODES)
}

impl Trials<'_> {
    /// Plans the fastest changes again with all free settings, and uses faster plans. Returns true if the time is up.
    pub(super) fn replan(&self, changes: &mut [Change]) -> Result<bool, AnalysisError> {
        if self.restricted.is_none() {
            return Ok(false);
        }
        let total = changes.len().min(REPLANNED) as u32;
        for (done, change) in (0..).zip(changes.iter_mut().take(REPLANNED)) {
            (self.report)("planning the fastest changes with all free settings", done, total);
            let proposal = Proposal { title: change.title.clone(), kind: change.kind, fields: change.fields.clone() };
            let evaluated = match self.evaluate_on(self.document, &proposal) {
                Ok(Some(evaluated)) => evaluated,
                Ok(None) => continue,
                Err(AnalysisError::TimeIsUp) => return Ok(true),
                Err(error) => return Err(error),
            };
            let seconds = |result: &super::FitResult| result.iteration_s.unwrap_or(f64::INFINITY);
            if seconds(&evaluated.result) < seconds(&change.result)
                && let Some(faster) = self.change(proposal, evaluated)
            {
                *change = faster;
            }
        }
        Ok(false)
    }
}
