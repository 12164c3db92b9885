//! Metrics and time differences per planner for two outcomes.

use api::job::StoredOutcome;
use api::planner::outcome::{Metrics, PlanOutcome, PlannerResult};
use leptos::prelude::*;

use crate::accuracy_link::AccuracyLink;
use crate::format;
use crate::results::{short_title, time_spent};

/// Compared metric: heading, accessor, format, direction, kind of change.
struct Compared {
    heading: &'static str,
    value: fn(&Metrics) -> f64,
    show: fn(f64) -> String,
    less_is_better: bool,
    change: Change,
}

#[derive(Clone, Copy)]
enum Change {
    /// Relative change.
    Ratio,
    /// Difference in percentage points, for shares. A ratio of shares is misleading, and undefined
    /// for zero.
    Points,
}

impl Change {
    /// Formats the change from `there` to `here`. Returns `None` if the values are equal within
    /// tolerance.
    fn describe(self, there: f64, here: f64) -> Option<String> {
        match self {
            Self::Ratio if there.abs() > 0.0 => {
                let change = here / there - 1.0;
                (change.abs() >= ALIKE).then(|| format::signed_percent(change))
            }
            Self::Ratio => (here.abs() > 0.0).then(|| "from none".to_owned()),
            Self::Points => {
                let points = (here - there) * 100.0;
                let sign = if points < 0.0 { "\u{2212}" } else { "+" };
                (points.abs() >= ALIKE_POINTS).then(|| format!("{sign}{} points", format::three_digits(points.abs())))
            }
        }
    }
}

const METRICS: [Compared; 6] = [
    Compared {
        heading: "Step time",
        value: |metrics| metrics.iteration_s,
        show: format::seconds,
        less_is_better: true,
        change: Change::Ratio,
    },
    Compared {
        heading: "Tokens/s",
        value: |metrics| metrics.tokens_per_s,
        show: format::large,
        less_is_better: false,
        change: Change::Ratio,
    },
    Compared {
        heading: "MFU",
        value: |metrics| metrics.mfu,
        show: format::percent,
        less_is_better: false,
        change: Change::Points,
    },
    Compared {
        heading: "Bubble",
        value: |metrics| metrics.bubble,
        show: format::percent,
        less_is_better: true,
        change: Change::Points,
    },
    Compared {
        heading: "Exposed comm.",
        value: |metrics| metrics.exposed_communication,
        show: format::percent,
        less_is_better: true,
        change: Change::Points,
    },
    Compared {
        heading: "Peak memory",
        value: |metrics| metrics.peak_memory_gib,
        show: format::gib,
        less_is_better: true,
        change: Change::Ratio,
    },
];

/// Relative tolerance.
const ALIKE: f64 = 0.001;
/// Tolerance in percentage points.
const ALIKE_POINTS: f64 = 0.05;

fn metrics(result: &PlannerResult) -> Option<&Metrics> {
    match &result.answer {
        PlanOutcome::Planned(planned) => Some(&planned.metrics),
        PlanOutcome::Infeasible { .. } => None,
    }
}

fn cell(figure: &Compared, there: &Metrics, here: &Metrics) -> impl IntoView + use<> {
    let (there, here) = ((figure.value)(there), (figure.value)(here));
    let change = figure.change.describe(there, here);
    let alike = change.is_none();
    let better = (here < there) == figure.less_is_better;
    let text = change.unwrap_or_else(|| "alike".to_owned());
    view! {
        <td class:faster=!alike && better class:slower=!alike && !better>
            {format!("{} → {}", (figure.show)(there), (figure.show)(here))}
            <small class="below">{text}</small>
        </td>
    }
}

/// Table with a row for each planner present in both outcomes, and a sentence that explains the
/// time difference.
pub(super) fn show(here: &StoredOutcome, there: &StoredOutcome) -> AnyView {
    let find_result =
        |results: &[PlannerResult], wanted| results.iter().find(|result| result.planner == wanted).cloned();
    let both: Vec<(PlannerResult, PlannerResult)> = here
        .outcome
        .results
        .iter()
        .filter_map(|result| Some((find_result(&there.outcome.results, result.planner)?, result.clone())))
        .collect();
    if both.is_empty() {
        return view! { <p class="hint">"The scenarios have no planner in common."</p> }.into_any();
    }
    let row = |(there, here): &(PlannerResult, PlannerResult)| {
        let name = view! { <th scope="row">{short_title(here.planner)}</th> };
        match (metrics(there), metrics(here)) {
            (Some(there), Some(here)) => {
                let cells = METRICS.iter().map(|figure| cell(figure, there, here)).collect_view();
                view! { <tr>{name}{cells}</tr> }.into_any()
            }
            (had, has) => {
                let message = match (had.is_some(), has.is_some()) {
                    (true, _) => "a plan there, none here",
                    (_, true) => "a plan here, none there",
                    _ => "no plan in either",
                };
                view! { <tr>{name}<td colspan=METRICS.len().to_string()>{message}</td></tr> }.into_any()
            }
        }
    };
    let rows = both.iter().map(row).collect_view();
    let sentences = both
        .iter()
        .filter_map(|(there, here)| time_spent::explained(here, there, "in the other scenario"))
        .map(|sentence| {
            view! { <li>{sentence}</li> }
        });
    let headings = METRICS.iter().map(|figure| view! { <th scope="col">{figure.heading}</th> }).collect_view();
    view! {
        <div class="table-scroll" role="region" aria-label="Figures there and here" tabindex="0">
            <table class="figures" data-testid="comparison-figures">
                <thead><tr><th scope="col">"Other → this"</th>{headings}</tr></thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
        <AccuracyLink subject="These" />
        <ul class="explained" data-testid="comparison-explained">{sentences.collect_view()}</ul>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_compared_by_points_and_none_is_not_alike_with_some() {
        let describe = |there, here| Change::Points.describe(there, here);
        assert_eq!(describe(0.0, 0.12).as_deref(), Some("+12.0 points"));
        assert_eq!(describe(0.02, 0.01).as_deref(), Some("\u{2212}1.00 points"));
        assert_eq!(describe(0.3, 0.300_4), None);
        assert_eq!(Change::Ratio.describe(2.0, 2.2).as_deref(), Some("+10.0\u{202f}%"));
        assert_eq!(Change::Ratio.describe(2.0, 2.001), None);
        assert_eq!(Change::Ratio.describe(0.0, 1.0).as_deref(), Some("from none"));
        assert_eq!(Change::Ratio.describe(0.0, 0.0), None);
    }
}
