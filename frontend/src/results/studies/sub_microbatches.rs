//! Best and worst order of actions by sub-microbatch size.

use std::sync::Arc;

use api::planner::analysis::SubMicrobatches;
use api::planner::analysis::sub_microbatches::{SizeEnds, SizePoint};
use leptos::prelude::*;

use super::{CUT, REPLICA_BOUND, location_text};
use crate::charts::{Curve, CurveChart, Dash, Form};
use crate::format;

fn curves(analysis: &SubMicrobatches) -> Vec<Curve> {
    let end_points = |end: fn(&SizeEnds) -> f64| -> Vec<(f64, f64)> {
        analysis.points.iter().filter_map(|point| Some((f64::from(point.size), end(point.ends.as_ref()?)))).collect()
    };
    let best = end_points(|ends| ends.best_s);
    let selected: Vec<(f64, f64)> =
        best.iter().copied().filter(|(size, _)| (size - f64::from(analysis.chosen)).abs() < 0.5).collect();
    let mut curves = vec![
        curve("slowest order", ("#b8542a", "#ee8866"), Dash::Dashed, Form::Marked, end_points(|ends| ends.worst_s)),
        curve("fastest order", ("#0072b2", "#56a5e0"), Dash::Solid, Form::Marked, best),
        curve(
            "lower bound at this size",
            ("#b3261e", "#ff8f85"),
            Dash::Long,
            Form::Level,
            end_points(|ends| ends.lower_bound_s),
        ),
    ];
    if !selected.is_empty() {
        let name = format!("size of the plan, {}", analysis.chosen);
        curves.push(curve(&name, ("#1a2028", "#e6e9ed"), Dash::Solid, Form::Rings, selected));
    }
    curves
}

fn curve(
    name: &str,
    (light, dark): (&'static str, &'static str),
    dash: Dash,
    form: Form,
    points: Vec<(f64, f64)>,
) -> Curve {
    Curve { name: name.to_owned(), light, dark, dash, form, points }
}

/// Relative slowdown of the worst order.
fn spread(ends: &SizeEnds) -> f64 {
    ends.worst_s / ends.best_s - 1.0
}

fn caption(analysis: &SubMicrobatches) -> String {
    let by = if analysis.is_fixed { "The scenario fixes" } else { "The partitioner chose" };
    let selected_point = analysis.points.iter().find(|point| point.size == analysis.chosen);
    let ends = selected_point.and_then(|point| Some((point, point.ends.as_ref()?)));
    let details = ends.map_or_else(String::new, |(point, ends)| {
        format!(
            ": {} of the best efficiency, and the slowest order {} slower than the fastest",
            format::percent(point.efficiency),
            format::percent(spread(ends))
        )
    });
    let location = location_text(analysis.iteration, analysis.replica);
    format!("{location}. {by} at most {} items of {} in a part{details}.", analysis.chosen, analysis.module)
}

pub(super) fn show(analysis: Arc<SubMicrobatches>) -> impl IntoView {
    if analysis.points.is_empty() {
        return view! { <p class="hint">"The server's time limit was reached before any size was searched. Try again later."</p> }
            .into_any();
    }
    let caption_text = caption(&analysis);
    let label = format!("Step time of the fastest and the slowest order by size. {caption_text}");
    let curves = Signal::stored(curves(&analysis));
    view! {
        <CurveChart curves=curves over=Signal::stored("most items of a sub-microbatch".to_owned()) label=Signal::stored(label) test_id="sizes-chart" />
        <p class="hint" data-testid="sizes-caption">{caption_text}</p>
        {analysis.is_cut.then(|| view! { <p class="hint">{CUT}</p> })}
        <details class="advanced" data-testid="sizes-table">
            <summary>"As a table"</summary>
            <Table analysis=analysis />
        </details>
    }
    .into_any()
}

#[component]
fn Table(analysis: Arc<SubMicrobatches>) -> impl IntoView {
    let selected_size = analysis.chosen;
    let lines = analysis.points.iter().map(|point| {
        let SizePoint { size, parts, segments, efficiency, ends, misfit: infeasibility } = point.clone();
        let time = |end: fn(&SizeEnds) -> f64| ends.as_ref().map_or_else(|| "–".to_owned(), |ends| format::seconds(end(ends)));
        let name = if size == selected_size { format!("{size}, the plan's") } else { size.to_string() };
        view! {
            <tr data-size=size>
                <th scope="row">{name}{infeasibility.map(|reason| { let title = reason.clone(); view! { <small class="below" title=title>{reason}</small> } })}</th>
                <td>{format::count(parts.into())}</td>
                <td>{segments}</td>
                <td>{format::percent(efficiency)}</td>
                <td>{time(|ends| ends.best_s)}</td>
                <td>{time(|ends| ends.worst_s)}</td>
                <td>{ends.as_ref().map_or_else(|| "–".to_owned(), |ends| format::percent(spread(ends)))}</td>
                <td>{time(|ends| ends.lower_bound_s)}</td>
            </tr>
        }
    });
    let lines = lines.collect_view();
    let headings = [
        "Size",
        "Parts",
        "Segments",
        "Efficiency",
        "Fastest",
        "Slowest",
        "Slowest against fastest",
        "Lower bound at this size",
    ]
    .map(|text| view! { <th scope="col">{text}</th> });
    view! {
        <p class="hint">"Parts are the sub-microbatches of the module in this replica; efficiency is relative to the module's best."</p>
        <p class="hint">{REPLICA_BOUND}</p>
        <div class="table-scroll tall" role="region" aria-label="Step time by size of sub-microbatches" tabindex="0">
            <table class="figures">
                <thead><tr>{headings}</tr></thead>
                <tbody>{lines}</tbody>
            </table>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use api::planner::scenario::PlannerKind;

    use super::*;

    fn sample_analysis(selected: u32, is_fixed: bool) -> SubMicrobatches {
        let point =
            |size: u32, ends| SizePoint { size, parts: 48 / size, segments: 2, efficiency: 0.95, ends, misfit: None };
        let ends = |best_s, worst_s| Some(SizeEnds { best_s, worst_s, lower_bound_s: 9.0 });
        SubMicrobatches {
            planner: PlannerKind::PipeWeaver,
            iteration: 3,
            replica: 1,
            module: "ViT 5B".into(),
            most_items: 24,
            chosen: selected,
            is_fixed,
            rollouts: 200,
            points: vec![point(4, ends(12.0, 12.6)), point(12, ends(10.0, 11.0)), point(24, None)],
            is_cut: false,
        }
    }

    #[test]
    fn sizes_without_order_leave_gaps_and_plan_size_is_ringed() {
        let drawn = curves(&sample_analysis(12, false));
        assert_eq!(drawn[1].points, [(4.0, 12.0), (12.0, 10.0)]);
        assert_eq!((drawn[3].form, drawn[3].points.as_slice()), (Form::Rings, &[(12.0, 10.0)][..]));
        assert_eq!(curves(&sample_analysis(24, false)).len(), 3, "nothing to ring");
    }

    #[test]
    fn caption_names_who_selected_the_size_and_its_cost() {
        let text = caption(&sample_analysis(12, false)).replace('\u{202f}', " ");
        assert_eq!(
            text,
            "Iteration 3, its slowest replica (1). The partitioner chose at most 12 items of ViT 5B in a part: 95.0 % of \
             the best efficiency, and the slowest order 10.0 % slower than the fastest."
        );
        assert!(
            caption(&sample_analysis(24, true)).ends_with("The scenario fixes at most 24 items of ViT 5B in a part.")
        );
    }
}
