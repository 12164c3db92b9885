//! Table of published and computed values.

use api::papers::{Difference, DifferenceUnit, PaperChoice, PaperFigure, PublishedValue};
use leptos::prelude::*;

use crate::format;

#[component]
pub(crate) fn FigureTable(
    /// One row per figure.
    values: Vec<PaperFigure>,
    /// Accessible name of the table.
    label: String,
) -> impl IntoView {
    let has_spread = values.iter().any(|figure| figure.spread.is_some());
    let here = if has_spread { "Here (mean over seeds)" } else { "Here" };
    let heads = ["Figure", "Published", here, "Minimum to maximum", "Seed of the scenario", "Difference"];
    let heads = heads.map(|head| {
        let is_shown = has_spread || !["Minimum to maximum", "Seed of the scenario"].contains(&head);
        is_shown.then(|| view! { <th scope="col">{head}</th> })
    });
    let rows = values.into_iter().map(|figure| figure_row(figure, has_spread)).collect_view();
    view! {
        <div class="table-scroll" role="region" aria-label=label tabindex="0">
            <table class="figures published">
                <thead>
                    <tr>{heads}</tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
}

fn figure_row(figure: PaperFigure, has_spread: bool) -> impl IntoView {
    let seeds = has_spread.then(|| {
        let (limits, own) = seeds(&figure);
        view! {
            <td>{limits}</td>
            <td>{own}</td>
        }
    });
    let PaperFigure { label, unit, published, ours, opponent, missing, difference, is_wall_time, .. } = figure;
    let published = published.map_or_else(|| "–".to_owned(), |value| range(value, &unit));
    let ours = ours.map_or_else(|| missing.unwrap_or_else(|| "–".to_owned()), |value| with_unit(value, &unit));
    let opponent =
        opponent.map(|planner| view! { <small class="below">{format!("over {}", planner.short_title())}</small> });
    let label = if is_wall_time { format!("{label} (wall time if measured)") } else { label };
    view! {
        <tr>
            <th scope="row">{label}</th>
            <td>{published}</td>
            <td><b>{ours}</b>{opponent}</td>
            {seeds}
            <td>{difference.map(signed)}</td>
        </tr>
    }
}

/// Returns the limits over the seeds, and the value for the seed of the scenario.
fn seeds(figure: &PaperFigure) -> (String, String) {
    let Some(spread) = figure.spread else {
        let limits = if figure.ours.is_some() { "one seed" } else { "" };
        return (limits.to_owned(), String::new());
    };
    let limits = range(PublishedValue { from: spread.min, to: spread.max }, &figure.unit);
    let limits = match spread.without_value {
        0 => limits,
        without => format!("{limits}, no plan for {without} of {} seeds", spread.seeds + without),
    };
    (limits, with_unit(spread.own, &figure.unit))
}

/// Table of published and computed choices.
#[component]
pub(crate) fn ChoiceTable(
    /// One row per choice.
    choices: Vec<PaperChoice>,
    /// Accessible name of the table.
    label: String,
) -> impl IntoView {
    let row = |choice: PaperChoice| {
        view! {
            <tr>
                <th scope="row">{choice.label}</th>
                <td>{choice.published.unwrap_or_else(|| "–".to_owned())}</td>
                <td>{choice.ours}</td>
            </tr>
        }
    };
    let rows = choices.into_iter().map(row).collect_view();
    view! {
        <div class="table-scroll" role="region" aria-label=label tabindex="0">
            <table class="figures published">
                <thead>
                    <tr>
                        <th scope="col">"Choice"</th>
                        <th scope="col">"Published"</th>
                        <th scope="col">"Here"</th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
}

fn with_unit(value: f64, unit: &str) -> String {
    let number = format::three_digits(value);
    if unit.is_empty() { number } else { format!("{number}\u{202f}{unit}") }
}

fn range(value: PublishedValue, unit: &str) -> String {
    if value.from < value.to {
        format!("{} to {}", format::three_digits(value.from), with_unit(value.to, unit))
    } else {
        with_unit(value.from, unit)
    }
}

fn signed(difference: Difference) -> String {
    if difference.value == 0.0 {
        return "within".to_owned();
    }
    let sign = if difference.value < 0.0 { "−" } else { "+" };
    let number = format::three_digits(difference.value.abs());
    match difference.of {
        DifferenceUnit::Points => format!("{sign}{number} points"),
        DifferenceUnit::PerCent => format!("{sign}{number}\u{202f}%"),
    }
}

#[cfg(test)]
mod tests {
    use api::papers::Spread;

    use super::*;

    #[test]
    fn seeds_show_their_limits_and_the_missing_plans() {
        let mut figure = PaperFigure {
            label: "gain".to_owned(),
            unit: "%".to_owned(),
            published: None,
            ours: Some(12.0),
            spread: None,
            opponent: None,
            missing: None,
            difference: None,
            is_wall_time: false,
        };
        assert_eq!(seeds(&figure), ("one seed".to_owned(), String::new()));
        figure.spread = Some(Spread { seeds: 4, without_value: 1, own: 12.5, min: 10.0, max: 14.0 });
        let limits = "10.0 to 14.0\u{202f}%, no plan for 1 of 5 seeds";
        assert_eq!(seeds(&figure), (limits.to_owned(), "12.5\u{202f}%".to_owned()));
    }

    #[test]
    fn values_carry_their_unit_and_differences_their_sign() {
        assert_eq!(range(PublishedValue { from: 15.6, to: 76.2 }, "%"), "15.6 to 76.2\u{202f}%");
        assert_eq!(range(PublishedValue { from: 0.4, to: 0.4 }, ""), "0.400");
        assert_eq!(signed(Difference { value: -12.63, of: DifferenceUnit::Points }), "−12.6 points");
        assert_eq!(signed(Difference { value: 23.7, of: DifferenceUnit::PerCent }), "+23.7\u{202f}%");
        assert_eq!(signed(Difference { value: 0.0, of: DifferenceUnit::Points }), "within");
    }
}
