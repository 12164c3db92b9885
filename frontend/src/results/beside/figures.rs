//! Both answers, planner by planner: figures, and where the seconds went.

use api::job::StoredOutcome;
use api::planner::outcome::{Answer, Metrics, PlannerResult};
use leptos::prelude::*;

use crate::format;
use crate::results::{short_title, time_spent};

/// A figure that is compared: heading, how to read it and how to show it, and whether less is better.
struct Compared {
    heading: &'static str,
    of: fn(&Metrics) -> f64,
    show: fn(f64) -> String,
    less_is_better: bool,
}

const FIGURES: [Compared; 6] = [
    Compared { heading: "Iteration", of: |metrics| metrics.iteration_s, show: format::seconds, less_is_better: true },
    Compared { heading: "Tokens/s", of: |metrics| metrics.tokens_per_s, show: format::large, less_is_better: false },
    Compared { heading: "MFU", of: |metrics| metrics.mfu, show: format::percent, less_is_better: false },
    Compared { heading: "Bubble", of: |metrics| metrics.bubble, show: format::percent, less_is_better: true },
    Compared {
        heading: "Exposed comm.",
        of: |metrics| metrics.exposed_communication,
        show: format::percent,
        less_is_better: true,
    },
    Compared { heading: "Peak memory", of: |metrics| metrics.peak_memory_gib, show: format::gib, less_is_better: true },
];

/// Differences below this share of the value are alike.
const ALIKE: f64 = 0.001;

fn metrics(result: &PlannerResult) -> Option<&Metrics> {
    match &result.answer {
        Answer::Planned(planned) => Some(&planned.metrics),
        Answer::Infeasible { .. } => None,
    }
}

fn cell(figure: &Compared, there: &Metrics, here: &Metrics) -> impl IntoView + use<> {
    let (there, here) = ((figure.of)(there), (figure.of)(here));
    let change = if there.abs() > 0.0 { here / there - 1.0 } else { 0.0 };
    let alike = change.abs() < ALIKE;
    let better = (change < 0.0) == figure.less_is_better;
    let words = if alike { "alike".to_owned() } else { format::signed_percent(change) };
    view! {
        <td class:faster=!alike && better class:slower=!alike && !better>
            {format!("{} → {}", (figure.show)(there), (figure.show)(here))}
            <small class="below">{words}</small>
        </td>
    }
}

/// A table with a row for every planner that both have asked, and the seconds of each in a sentence.
pub(super) fn show(here: &StoredOutcome, there: &StoredOutcome) -> AnyView {
    let of = |results: &[PlannerResult], wanted| results.iter().find(|result| result.planner == wanted).cloned();
    let both: Vec<(PlannerResult, PlannerResult)> = here
        .outcome
        .results
        .iter()
        .filter_map(|result| Some((of(&there.outcome.results, result.planner)?, result.clone())))
        .collect();
    if both.is_empty() {
        return view! { <p class="hint">"No planner was asked in both."</p> }.into_any();
    }
    let row = |(there, here): &(PlannerResult, PlannerResult)| {
        let name = view! { <th scope="row">{short_title(here.planner)}</th> };
        match (metrics(there), metrics(here)) {
            (Some(there), Some(here)) => {
                let cells = FIGURES.iter().map(|figure| cell(figure, there, here)).collect_view();
                view! { <tr>{name}{cells}</tr> }.into_any()
            }
            (had, has) => {
                let words = match (had.is_some(), has.is_some()) {
                    (true, _) => "a plan there, none here",
                    (_, true) => "a plan here, none there",
                    _ => "no plan in either",
                };
                view! { <tr>{name}<td colspan=FIGURES.len().to_string()>{words}</td></tr> }.into_any()
            }
        }
    };
    let rows = both.iter().map(row).collect_view();
    let sentences = both
        .iter()
        .filter_map(|(there, here)| time_spent::explained(here, there, "in the other scenario"))
        .map(|words| {
            view! { <li>{words}</li> }
        });
    let headings = FIGURES.iter().map(|figure| view! { <th scope="col">{figure.heading}</th> }).collect_view();
    view! {
        <div class="table-scroll" role="region" aria-label="Figures there and here" tabindex="0">
            <table class="figures" data-testid="beside-figures">
                <thead><tr><th scope="col">"There → here"</th>{headings}</tr></thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
        <ul class="explained" data-testid="beside-explained">{sentences.collect_view()}</ul>
    }
    .into_any()
}
