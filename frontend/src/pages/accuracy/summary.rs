//! Table with a row per set: errors, goal status, and the best other tool.

use std::sync::Arc;

use api::accuracy::{AccuracyGoal, AccuracySet};
use leptos::prelude::*;

use super::choices::{medians, rank_text};
use super::link;
use crate::format;

fn percent(value: f64) -> String {
    format::percent(value / 100.0)
}

fn goal(goal: AccuracyGoal) -> String {
    let max_error = goal.largest.map(|limit| format!(", largest {limit}\u{202f}%")).unwrap_or_default();
    format!("mean {}\u{202f}%{max_error}", goal.mean)
}

/// Returns the table cells for a set, in column order.
fn statistics_cells(set: &AccuracySet) -> [String; 8] {
    let errors = &set.statistics;
    [
        format::count(errors.count.into()),
        percent(errors.mean_abs_pct),
        percent(errors.median_abs_pct),
        percent(errors.p90_abs_pct),
        percent(errors.max_abs_pct),
        format::signed_percent(errors.bias_pct / 100.0),
        errors.spearman.map_or_else(|| "–".to_owned(), |rank| rank_text(rank, 3)),
        medians(&set.choices).map_or_else(
            || "–".to_owned(),
            |(rank, regret)| {
                let rank = rank.map_or_else(|| "–".to_owned(), |rank| rank_text(rank, 2));
                format!("{rank}; regret {}", percent(regret))
            },
        ),
    ]
}

const COLUMNS: [(&str, &str); 8] = [
    ("Rows", "Measurements compared"),
    ("Mean", "Mean absolute error"),
    ("Median", "Median absolute error"),
    ("p90", "90 % of the absolute errors are smaller"),
    ("Max", "Largest absolute error"),
    ("Bias", "Mean of the signed errors"),
    ("Rank corr.", "Spearman's rank correlation of predicted and measured values, over all rows"),
    (
        "Inside groups",
        "Medians over the groups of layouts of one model on one cluster: rank correlation, and regret, which is how much slower the layout with the shortest predicted time is than the fastest measured one",
    ),
];

/// True for sets of memory sizes.
fn is_memory(set: &AccuracySet) -> bool {
    matches!(set.unit.as_str(), "GiB" | "%")
}

/// Table with all sets. Each row links to the details.
#[component]
pub(super) fn Summary(sets: Vec<Arc<AccuracySet>>, #[prop(into)] selected: Signal<Option<String>>) -> impl IntoView {
    let headings =
        COLUMNS.map(|(text, explanation)| view! { <th scope="col" class="number" title=explanation>{text}</th> });
    let (memory, times): (Vec<_>, Vec<_>) = sets.into_iter().partition(|set| is_memory(set));
    let row = move |set: Arc<AccuracySet>| {
        let id = set.id.clone();
        let is_selected = Memo::new(move |_| selected.with(|current| current.as_deref() == Some(id.as_str())));
        let met = set.goal.is_met(&set.statistics);
        let status = if met { "met" } else { "missed" };
        view! {
            <tr class:chosen=is_selected data-set=set.id.clone()>
                <th scope="row">
                    // `data-noscroll` keeps the scroll position, because the click only changes the
                    // content below the table.
                    <a href=link(&set.id) data-noscroll="" aria-current=move || is_selected.get().then_some("true")>{set.title.clone()}</a>
                </th>
                {statistics_cells(&set).map(|text| view! { <td class="number">{text}</td> })}
                <td><b class="verdict" class:missed=!met>{status}</b><small>{goal(set.goal)}</small></td>
                <td class="peer">{format::nonbreaking_units(&set.peer)}</td>
            </tr>
        }
    };
    let bodies = [("Times", times), ("Memory", memory)].map(|(title, sets)| {
        view! {
            <tbody>
                <tr class="kind"><th scope="rowgroup" colspan="11">{title}</th></tr>
                {sets.into_iter().map(row).collect_view()}
            </tbody>
        }
    });
    view! {
        <div class="table-scroll" role="region" aria-label="Sets of measurements" tabindex="0">
            <table class="list sets" data-testid="accuracy-sets">
                <thead>
                    <tr>
                        <th scope="col">"Published table"</th>
                        {headings}
                        <th scope="col">"Goal"</th>
                        <th scope="col" title="The best other tool on the same rows, as published">"Best other tool"</th>
                    </tr>
                </thead>
                {bodies}
            </table>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_units_and_signed_bias() {
        let texts = statistics_cells(&super::super::tests::set("a")).map(|text| text.replace('\u{202f}', " "));
        assert_eq!(texts, ["8", "2.09 %", "0.90 %", "6.00 %", "6.43 %", "−1.34 %", "0.970", "–"]);
        assert_eq!(
            goal(AccuracyGoal { mean: 3.0, largest: Some(6.0) }).replace('\u{202f}', " "),
            "mean 3 %, largest 6 %"
        );
        assert_eq!(goal(AccuracyGoal { mean: 8.0, largest: None }).replace('\u{202f}', " "), "mean 8 %");
    }
}
