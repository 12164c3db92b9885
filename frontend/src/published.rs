//! Table of published and computed values.

use api::papers::{Difference, DifferenceUnit, PaperFigure, PublishedValue};
use leptos::prelude::*;

use crate::format;

#[component]
pub(crate) fn FigureTable(
    /// One row per figure.
    values: Vec<PaperFigure>,
    /// Accessible name of the table.
    label: String,
) -> impl IntoView {
    let rows = values.into_iter().map(figure_row).collect_view();
    view! {
        <div class="table-scroll" role="region" aria-label=label tabindex="0">
            <table class="figures">
                <thead>
                    <tr>
                        <th scope="col">"Figure"</th>
                        <th scope="col">"Published"</th>
                        <th scope="col">"Here"</th>
                        <th scope="col">"Difference"</th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
}

fn figure_row(figure: PaperFigure) -> impl IntoView {
    let PaperFigure { label, unit, published, ours, missing, difference, is_wall_time } = figure;
    let published = published.map_or_else(|| "–".to_owned(), |value| range(value, &unit));
    let ours = ours.map_or_else(|| missing.unwrap_or_else(|| "–".to_owned()), |value| with_unit(value, &unit));
    let label = if is_wall_time { format!("{label} (wall time if measured)") } else { label };
    view! {
        <tr>
            <th scope="row">{label}</th>
            <td>{published}</td>
            <td><b>{ours}</b></td>
            <td>{difference.map(signed)}</td>
        </tr>
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
    use super::*;

    #[test]
    fn values_carry_their_unit_and_differences_their_sign() {
        assert_eq!(range(PublishedValue { from: 15.6, to: 76.2 }, "%"), "15.6 to 76.2\u{202f}%");
        assert_eq!(range(PublishedValue { from: 0.4, to: 0.4 }, ""), "0.400");
        assert_eq!(signed(Difference { value: -12.63, of: DifferenceUnit::Points }), "−12.6 points");
        assert_eq!(signed(Difference { value: 23.7, of: DifferenceUnit::PerCent }), "+23.7\u{202f}%");
        assert_eq!(signed(Difference { value: 0.0, of: DifferenceUnit::Points }), "within");
    }
}
