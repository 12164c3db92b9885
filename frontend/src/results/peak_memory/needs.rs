//! Memory need by rank and term in an analysis of fit.

use api::planner::fit::Fit;
use leptos::prelude::*;

use super::{Miss, Rank, RankPeaks, Table};
use crate::format;

impl RankPeaks {
    /// Need of a scenario that does not fit.
    fn from_fit(fit: &Fit) -> Self {
        let miss = || Some(Miss { layout: fit.base.layout?, needs_gib: fit.base.peak_gib? });
        let ranks = fit.ranks.iter();
        Self {
            planner: fit.planner,
            ranks: ranks
                .map(|need| Rank { rank: need.rank, layers: need.layers.clone(), memory: need.memory })
                .collect(),
            limit_gib: fit.limit_gib,
            iterations: 1,
            miss: miss(),
        }
    }
}

/// Need of the fullest rank in a sentence, and a folded table of all ranks. Without ranks, the binding constraint.
#[component]
pub(in crate::results) fn RankNeeds<'a>(fit: &'a Fit) -> impl IntoView + use<> {
    let peaks = RankPeaks::from_fit(fit);
    let Some(headline) = peaks.headline() else {
        return fit.base.binding.as_deref().map(|binding| view! { <p>{format::sentence(binding)}</p> }).into_any();
    };
    let limit = peaks.limit_text();
    view! {
        <p data-testid="fit-need">{headline}</p>
        <details class="advanced" data-testid="fit-ranks">
            <summary>"Memory by rank and term"</summary>
            <p class="hint">{limit}</p>
            <Table ranks=peaks.ranks />
        </details>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use api::planner::fit::FitResult;
    use api::planner::outcome::{Layout, RankNeed};
    use api::planner::scenario::PlannerKind;

    use super::super::tests::{memory, plain};
    use super::*;

    #[test]
    fn the_need_names_the_nearest_layout() {
        let layout = Some(Layout { tensor: 8, pipeline: 1, data: 1, chunks: 1, microbatch: 1, group: None });
        let base = FitResult {
            layout,
            iteration_s: None,
            tokens_per_s_per_device: None,
            peak_gib: Some(94.0),
            stage_layers: Vec::new(),
            binding: None,
        };
        let fit = Fit {
            planner: PlannerKind::OneFOneB,
            base,
            ranks: vec![RankNeed { rank: 0, layers: "Llama 0-79".to_owned(), memory: memory(70.0) }],
            limit_gib: 76.0,
            changes: Vec::new(),
            simulated: 0,
            rejected: 0,
            combination: None,
            is_partial: false,
        };
        assert_eq!(
            plain(&RankPeaks::from_fit(&fit).headline().unwrap()),
            "TP 8 · PP 1 · DP 1 · mb 1 comes closest: rank 0 needs 94.0 GiB; 76.0 GiB available."
        );
    }
}
