//! Sweep points as tables with a button per row, for keyboard users and for exact values.

use std::sync::Arc;

use api::planner::analysis::layouts::{LayoutPoint, LayoutSweep};
use leptos::prelude::*;

use super::freedom_name;
use crate::format;

/// Table with the Pareto front and the best layout of each kind. The other points are in an
/// expandable table.
#[component]
pub(super) fn PointTables(
    sweep: Arc<LayoutSweep>,
    /// Name of the selected point.
    selected: Signal<Option<String>>,
    /// Receives the name of the point to show.
    on_choose: Callback<String>,
) -> impl IntoView {
    let (first, rest) = ordered(&sweep);
    let count = rest.len();
    let lines = |places: Vec<usize>| {
        let table_line = |index: usize| line(&sweep.points[index], selected, on_choose);
        places.into_iter().map(table_line).collect_view()
    };
    let (first, rest) = (lines(first), lines(rest));
    view! {
        <Points label="Layouts that no other beats in both throughputs, and the best of every freedom" lines=first.into_any() test_id="layouts-front" />
        {(count > 0).then(|| view! {
            <details class="advanced" data-testid="layouts-others">
                <summary>{format!("{} more simulated", format::count(count as u64))}</summary>
                <Points label="Other simulated layouts, fastest first" lines=rest.into_any() test_id="layouts-table" />
            </details>
        })}
    }
}

/// Sorts simulated points by tokens/s. The first list contains the Pareto front and the best layout
/// of each kind, the second list contains the others.
fn ordered(sweep: &LayoutSweep) -> (Vec<usize>, Vec<usize>) {
    let speed = |index: &usize| sweep.points[*index].figures.map_or(0.0, |metrics| metrics.tokens_per_s);
    let mut simulated: Vec<usize> =
        (0..sweep.points.len()).filter(|&point_index| sweep.points[point_index].figures.is_some()).collect();
    simulated.sort_by(|a, b| speed(b).total_cmp(&speed(a)).then(a.cmp(b)));
    let is_best = |best_index: usize| sweep.best.iter().any(|best| best.point as usize == best_index);
    simulated.into_iter().partition(|&ranked_index| sweep.points[ranked_index].is_on_front || is_best(ranked_index))
}

#[component]
fn Points(label: &'static str, lines: AnyView, test_id: &'static str) -> impl IntoView {
    let headings =
        ["Layout", "How modules stand", "tokens/s", "TFLOP/s per device", "Time", "Idle", "Memory", "Timeline"]
            .map(|text| view! { <th scope="col">{text}</th> });
    view! {
        <div class="table-scroll tall" role="region" aria-label=label tabindex="0">
            <table class="figures assignment points" data-testid=test_id>
                <thead><tr>{headings}</tr></thead>
                <tbody>{lines}</tbody>
            </table>
        </div>
    }
}

fn line(
    point: &LayoutPoint,
    selected: Signal<Option<String>>,
    on_choose: Callback<String>,
) -> Option<impl IntoView + use<>> {
    let metrics = point.figures?;
    let (name, requested_name) = (point.name.clone(), point.name.clone());
    let is_selected = move || selected.with(|current| current.as_ref() == Some(&name));
    let pressed = is_selected.clone();
    let label = format!("Show the timeline of {}", point.title);
    let front = if point.is_on_front { ", on the front" } else { "" };
    Some(view! {
        <tr class:chosen=is_selected data-layout=point.name.clone()>
            <th scope="row">{point.title.clone()}</th>
            <td class="notation">{freedom_name(point.freedom)}{front}</td>
            <td>{format::large(metrics.tokens_per_s)}</td>
            <td>{format::three_digits(metrics.tflops_per_device)}</td>
            <td>{format::seconds(metrics.iteration_s)}</td>
            <td>{format::percent(metrics.bubble)}</td>
            <td>{format::gib(metrics.peak_memory_gib)}</td>
            <td>
                <button class="quiet" aria-label=label aria-pressed=move || pressed().to_string() on:click=move |_| on_choose.run(requested_name.clone())>
                    "Show"
                </button>
            </td>
        </tr>
    })
}

#[cfg(test)]
mod tests {
    use api::planner::analysis::layouts::{BestPoint, Freedom, PointMetrics};

    use super::*;

    fn point(tokens_per_s: Option<f64>, is_on_front: bool) -> LayoutPoint {
        let metrics = |tokens_per_s| PointMetrics {
            iteration_s: 1.0,
            tflops_per_device: 1.0,
            tokens_per_s,
            peak_memory_gib: 1.0,
            bubble: 0.0,
            exposed_communication: 0.0,
        };
        LayoutPoint {
            name: String::new(),
            freedom: Freedom::Colocated,
            title: String::new(),
            layouts: Vec::new(),
            microbatch: 1,
            devices: 8,
            reason: None,
            figures: tokens_per_s.map(metrics),
            is_on_front,
            against_best: None,
        }
    }

    #[test]
    fn front_points_come_first_and_unsimulated_are_omitted() {
        let points = vec![
            point(Some(1.0), false),
            point(Some(4.0), true),
            point(None, false),
            point(Some(3.0), false),
            point(Some(2.0), false),
        ];
        let best = vec![BestPoint { freedom: Freedom::Colocated, point: 4, gain_percent: None }];
        let sweep = LayoutSweep {
            sequences: 1,
            tokens: 1,
            points,
            best,
            simulated: 4,
            left_out: 0,
            rejections: Vec::new(),
            is_partial: false,
        };
        assert_eq!(ordered(&sweep), (vec![1, 4], vec![3, 0]));
    }
}
