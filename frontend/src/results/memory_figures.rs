//! Peak, mean and fluctuation of a rank's memory, by planner.

use std::sync::Arc;

use api::planner::analysis::{RankMemoryFigures, rank_memory};
use api::planner::scenario::PlannerKind;
use api::planner::timeline::Timeline;
use leptos::prelude::*;

use crate::format;

type Figures = (PlannerKind, RankMemoryFigures);

/// Compares plans with and without layer tuning, if both exist.
fn comparison(figures: &[Figures]) -> Option<String> {
    let of = |wanted| figures.iter().find(|(planner, _)| *planner == wanted).map(|(_, figures)| *figures);
    let (with, without) = (of(PlannerKind::PipeWeaver)?, of(PlannerKind::PipeWeaverRanking)?);
    let words = |figures: RankMemoryFigures| {
        let fluctuation = figures.fluctuation_gib.map(|gib| format!(", fluctuation {}", format::gib(gib)));
        format!("peak {}{}", format::gib(figures.peak_gib), fluctuation.unwrap_or_default())
    };
    Some(format!("PipeWeaver with layer tuning: {}; without: {}.", words(with), words(without)))
}

/// Memory figures of a rank for all displayed plans.
#[component]
pub(super) fn MemoryFigures(
    /// Planner, timeline pairs.
    #[prop(into)]
    timelines: Signal<Vec<(PlannerKind, Arc<Timeline>)>>,
    /// Rank. Plans with fewer ranks are omitted.
    #[prop(into)]
    rank: Signal<usize>,
) -> impl IntoView {
    let figures = Memo::new(move |_| {
        timelines.with(|timelines| {
            let of = |(planner, timeline): &(PlannerKind, Arc<Timeline>)| {
                Some((*planner, rank_memory(timeline, rank.get())?))
            };
            timelines.iter().filter_map(of).collect::<Vec<Figures>>()
        })
    });
    let words = Memo::new(move |_| figures.with(|figures| comparison(figures)));
    let lines = move || {
        let line = |(planner, figures): Figures| {
            let fluctuation = figures.fluctuation_gib.map_or_else(|| "–".to_owned(), format::gib);
            view! {
                <tr data-planner=planner.id()>
                    <th scope="row"><span class="pill" data-planner-colour=planner.id()></span>" "{planner.title()}</th>
                    <td data-value=figures.peak_gib.to_string()>{format::gib(figures.peak_gib)}</td>
                    <td>{format::gib(figures.mean_gib)}</td>
                    <td>{fluctuation}</td>
                </tr>
            }
        };
        figures.get().into_iter().map(line).collect_view()
    };
    let headings = ["Planner", "Peak", "Mean", "Fluctuation"].map(|text| view! { <th scope="col">{text}</th> });
    view! {
        {move || words.get().map(|words| view! { <p class="hint" data-testid="memory-caption">{words}</p> })}
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
        let figures = |peak_gib, fluctuation_gib| RankMemoryFigures { peak_gib, mean_gib: 1.0, fluctuation_gib };
        let with = (PlannerKind::PipeWeaver, figures(70.0, Some(2.0)));
        let without = (PlannerKind::PipeWeaverRanking, figures(40.0, None));
        assert_eq!(
            comparison(&[with, without]).unwrap().replace('\u{202f}', " "),
            "PipeWeaver with layer tuning: peak 70.0 GiB, fluctuation 2.00 GiB; without: peak 40.0 GiB."
        );
        assert_eq!(comparison(&[with]), None);
    }
}
