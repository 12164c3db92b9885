//! Heat map for a metric over two axes. It is a table with coloured cells, so screen readers and
//! keyboard navigation work.

use api::sweep::{Cell, LabelledAxis, Metric, Picture};
use leptos::prelude::*;

use crate::format;
use crate::sweeps::risk_text;

/// Callback that opens a point.
#[derive(Clone, Copy)]
pub(super) struct Pick(pub(super) Callback<u32>);

/// Maps a value from the range `least..=most` to 0..=1.
fn share(value: f64, (lower, upper): (f64, f64)) -> f64 {
    if upper > lower { (value - lower) / (upper - lower) } else { 0.5 }
}

/// Formats a value of a metric. Times have their unit, as in the table of the points.
fn value_text(metric: Metric, value: f64) -> String {
    if metric == Metric::IterationS { format::seconds(value) } else { format::three_digits(value) }
}

/// Returns the minimum and maximum value.
fn extent(cells: &[Vec<Cell>]) -> Option<(f64, f64)> {
    let values = || cells.iter().flatten().filter_map(|cell| cell.value);
    Some((values().min_by(f64::total_cmp)?, values().max_by(f64::total_cmp)?))
}

#[component]
pub(super) fn HeatMap(picture: Picture, axes: Vec<LabelledAxis>, on_pick: Pick) -> impl IntoView {
    let layer = picture.layers.into_iter().next();
    let (across, down) = (axes.get(picture.x).cloned(), picture.y.and_then(|y| axes.get(y).cloned()));
    let (Some(layer), Some(across), Some(down)) = (layer, across, down) else { return ().into_any() };
    let extent = extent(&layer.cells);
    let metric = picture.metric;
    let at_risk = layer.cells.iter().flatten().any(|cell| cell.risk.is_some());
    let at_risk = at_risk.then_some(" !: at risk of running out of memory.");
    let heads = across.labels.iter().map(|label| view! { <th scope="col">{label.clone()}</th> }).collect_view();
    let cell = |cell: Cell| {
        let point = cell.point;
        if let (Some(value), Some(extent)) = (cell.value, extent) {
            let heat = format!("--heat: {:.3}", share(value, extent));
            let risk = cell.risk.map(|risk| format!("{} of running out of memory", risk_text(risk)));
            let title = risk.clone().unwrap_or_else(|| "Open this point's scenario".to_owned());
            let mark = risk.map(|risk| view! { <span class="slower" aria-hidden="true">" !"</span><span class="visually-hidden">{risk}</span> });
            return view! {
                <td class="heat" style=heat>
                    <button title=title on:click=move |_| on_pick.0.run(point)>{value_text(metric, value)}{mark}</button>
                </td>
            }
            .into_any();
        }
        let (mark, text) = match cell.reason {
            Some(reason) => ("×", reason),
            None => ("·", "not planned yet".to_owned()),
        };
        let title = text.clone();
        view! {
            <td class="heat none" title=title><span aria-hidden="true">{mark}</span><span class="visually-hidden">{text}</span></td>
        }
        .into_any()
    };
    let rows = layer
        .cells
        .into_iter()
        .zip(&down.labels)
        .map(|(line, label)| {
            let cells = line.into_iter().map(cell).collect_view();
            view! { <tr><th scope="row">{label.clone()}</th>{cells}</tr> }
        })
        .collect_view();
    let caption = format!("{}, {}: {} down, {} across", picture.title, layer.planner.title, down.title, across.title);
    let label = caption.clone();
    let scale = extent.map(|(lower, upper)| {
        view! {
            <p class="heat-scale">
                <span>{value_text(metric, lower)}</span><span class="ramp" aria-hidden="true"></span><span>{value_text(metric, upper)}</span>
                <span class="muted">"×: no plan (reason in the table below). ·: not planned yet. Click a point to open its scenario."{at_risk}</span>
            </p>
        }
    });
    view! {
        <div class="table-scroll" role="region" aria-label=label tabindex="0">
            <table class="heat-map" data-testid="heat-map">
                <caption>{caption}</caption>
                <thead><tr><th scope="col">{down.title.clone()}" \\ "{across.title.clone()}</th>{heads}</tr></thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
        {scale}
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_unit_of_the_table() {
        assert_eq!(value_text(Metric::IterationS, 0.823), "823\u{202f}ms");
        assert_eq!(value_text(Metric::Mfu, 41.234), "41.2");
    }

    #[test]
    fn heat_goes_from_the_lowest_value_to_the_highest() {
        let cell = |value| Cell { point: 0, value, reason: None, risk: None };
        let cells = vec![vec![cell(Some(3.0)), cell(None)], vec![cell(Some(1.0)), cell(Some(2.0))]];
        assert_eq!(extent(&cells), Some((1.0, 3.0)));
        assert!((share(1.5, (1.0, 3.0)) - 0.25).abs() < 1e-12);
        assert!((share(4.0, (4.0, 4.0)) - 0.5).abs() < 1e-12, "all the same");
        assert_eq!(extent(&[vec![cell(None)]]), None);
    }
}
