//! Table of the choices of a layout by prediction.

use api::accuracy::AccuracyChoice;
use leptos::prelude::*;

use crate::format;

/// Formats a rank correlation with its sign.
pub(super) fn rank_text(rank: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", rank.abs());
    if rank < 0.0 && text.contains(|digit| ('1'..='9').contains(&digit)) { format!("−{text}") } else { text }
}

/// Median of some values. `None` if there are none.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        count if count % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

/// Median rank correlation inside the groups, and median regret in percent. `None` without groups.
pub(super) fn medians(choices: &[AccuracyChoice]) -> Option<(Option<f64>, f64)> {
    let ranks = choices.iter().filter_map(|choice| choice.spearman).collect();
    let regrets = choices.iter().map(|choice| choice.regret_pct).collect();
    Some((median(ranks), median(regrets)?))
}

/// For each model and number of devices: how well predictions order the measured layouts, and what the predicted best
/// layout loses.
#[component]
pub(super) fn Choices(choices: Vec<AccuracyChoice>) -> impl IntoView {
    (!choices.is_empty()).then(|| {
        let lines = choices.into_iter().map(|choice| {
            let AccuracyChoice { devices, layers, hidden, layouts, spearman, regret_pct } = choice;
            view! {
                <tr>
                    <th scope="row">{format!("{layers} layers of width {hidden}")}</th>
                    <td>{format::count(devices.into())}</td>
                    <td>{format::count(layouts.into())}</td>
                    <td>{spearman.map_or_else(|| "–".to_owned(), |rank| rank_text(rank, 2))}</td>
                    <td>{format::percent(regret_pct / 100.0)}</td>
                </tr>
            }
        });
        view! {
            <h3>"Choosing a layout by prediction"</h3>
            <p class="hint">
                "Layouts of one model on one cluster. Regret: how much slower the layout with the shortest predicted time is than the fastest measured layout."
            </p>
            <div class="table-scroll tall" role="region" aria-label="Choosing a layout by prediction" tabindex="0">
                <table class="figures" data-testid="accuracy-choices">
                    <thead>
                        <tr>
                            <th scope="col">"Model"</th>
                            <th scope="col">"Devices"</th>
                            <th scope="col">"Layouts"</th>
                            <th scope="col" title="Spearman's rank correlation of predicted and measured times">"Rank corr."</th>
                            <th scope="col">"Regret"</th>
                        </tr>
                    </thead>
                    <tbody>{lines.collect_view()}</tbody>
                </table>
            </div>
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_of_the_groups() {
        let choice = |spearman, regret_pct| AccuracyChoice {
            devices: 8,
            layers: 4,
            hidden: 64,
            layouts: 9,
            spearman,
            regret_pct,
        };
        assert_eq!(medians(&[]), None);
        let groups = [choice(Some(0.9), 0.0), choice(Some(-0.4), 1240.0), choice(None, 2.0), choice(Some(0.5), 4.0)];
        assert_eq!(medians(&groups), Some((Some(0.5), 3.0)));
    }

    #[test]
    fn rank_correlations_have_a_minus_sign() {
        assert_eq!([-0.4, 0.912, -0.001].map(|rank| rank_text(rank, 2)), ["−0.40", "0.91", "0.00"]);
    }
}
