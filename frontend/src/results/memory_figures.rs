//! Peak, mean and fluctuation of a rank's memory, by planner.

use std::sync::Arc;

use api::planner::analysis::{RankMemoryMetrics, rank_memory};
use api::planner::scenario::PlannerKind;
use api::planner::timeline::Timeline;
use leptos::prelude::*;

use crate::format;

type PlannerMemory = (PlannerKind, RankMemoryMetrics);

/// Compares plans with and without layer tuning, if both exist.
fn comparison(metrics: &[PlannerMemory]) -> Option<String> {
    let find_metrics = |wanted| metrics.iter().find(|(planner, _)| *planner == wanted).map(|(_, values)| *values);
    let (with, without) = (find_metrics(PlannerKind::PipeWeaver)?, find_metrics(PlannerKind::PipeWeaverRanking)?);
    let describe = |memory: RankMemoryMetrics| {
        let fluctuation = memory.fluctuation_gib.map(|gib| format!(", fluctuation {}", format::gib(gib)));
        format!("peak {}{}", format::gib(memory.peak_gib), fluctuation.unwrap_or_default())
    };
    Some(format!("PipeWeaver with layer tuning: {}; without: {}.", describe(with), describe(without)))
}

/// Memory figures of a rank for all displayed plans.
#[component]
pub(super) fn MemoryMetrics(
    /// Planner, timeline pairs.
    #[prop(into)]
    timelines: Signal<Vec<(PlannerKind, Arc<Timeline>)>>,
    /// Rank. Plans with fewer ranks are omitted.
    #[prop(into)]
    rank: Signal<usize>,
) -> impl IntoView {
    let metrics = Memo::new(move |_| {
        timelines.with(|timelines| {
            let planner_memory = |(planner, timeline): &(PlannerKind, Arc<Timeline>)| {
                Some((*planner, rank_memory(timeline, rank.get())?))
            };
            timelines.iter().filter_map(planner_memory).collect::<Vec<PlannerMemory>>()
        })
    });
    let caption = Memo::new(move |_| metrics.with(|rows| comparison(rows)));
    let lines = move || {
        let line = |(planner, memory): PlannerMemory| {
            let fluctuation = memory.fluctuation_gib.map_or_else(|| "–".to_owned(), format::gib);
            view! {
                <tr data-planner=planner.id()>
                    <th scope="row"><span class="pill" data-planner-colour=planner.id()></span>" "{planner.title()}</th>
                    <td data-value=memory.peak_gib.to_string()>{format::gib(memory.peak_gib)}</td>
                    <td>{format::gib(memory.mean_gib)}</td>
                    <td>{fluctuation}</td>
                </tr>
            }
        };
        metrics.get().into_iter().map(line).collect_view()
    };
    let headings = ["Planner", "Peak", "Mean", "Fluctuation"].map(|text| view! { <th scope="col">{text}</th> });
    view! {
        {move || caption.get().map(|caption_text| view! { <p class="hint" data-testid="memory-caption">{caption_text}</p> })}
        <details class="advanced" data-testid="memory-table">
            <summary>"As a table"</summary>
            <p class="hint">
                "Of this rank and iteration, slowest replica. Fluctuation is the standard deviation over time from the rank's first backward to its last forward; where these do not overlap there is none."
            </p>
            <div class="table-scroll" role="region" aria-label="Memory of the rank by planner" tabindex="0">
                <table class="figures">
                    <thead><tr>{headings}</tr></thead>
                    <tbody>{lines}</tbody>
                </table>
            </div>
        </details>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tuning_is_compared_where_both_plans_are_there() {
        let sample_metrics = |peak_gib, fluctuation_gib| RankMemoryMetrics { peak_gib, mean_gib: 1.0, fluctuation_gib };
        let with = (PlannerKind::PipeWeaver, sample_metrics(70.0, Some(2.0)));
        let without = (PlannerKind::PipeWeaverRanking, sample_metrics(40.0, None));
        assert_eq!(
            comparison(&[with, without]).unwrap().replace('\u{202f}', " "),
            "PipeWeaver with layer tuning: peak 70.0 GiB, fluctuation 2.00 GiB; without: peak 40.0 GiB."
        );
        assert_eq!(comparison(&[with]), None);
    }
}
