//! A table or figure from a paper: published and computed values, links to the plans, curves.

use api::papers::{PaperChart, PaperPlan, PaperSet};
use leptos::prelude::*;

use crate::charts::{Curve, CurveChart, Dash, Form};
use crate::format;
use crate::published::{ChoiceTable, FigureTable};
use crate::results::{degrees, short_title};

#[component]
pub(super) fn Set(
    /// Paper identifier.
    paper: String,
    set: PaperSet,
) -> impl IntoView {
    let PaperSet { id, place: location, title, is_synthetic, assumptions, figures: values, choices, plans, chart } =
        set;
    let anchor = [paper, id].join("-");
    let synthetic = is_synthetic.then(|| view! { <span class="chip">"synthetic data"</span> });
    let label = format!("{location}: published and predicted values");
    let assumptions = (!assumptions.is_empty()).then(|| {
        let lines = assumptions.into_iter().map(|line| view! { <li>{line}</li> }).collect_view();
        view! {
            <details class="advanced">
                <summary>"Assumptions"</summary>
                <ul class="reasons-list">{lines}</ul>
            </details>
        }
    });
    let values = (!values.is_empty()).then(|| view! { <FigureTable values=values label=label /> });
    let choices = (!choices.is_empty()).then(|| {
        let label = format!("{location}: published and predicted choices");
        view! { <ChoiceTable choices=choices label=label /> }
    });
    let plans = (!plans.is_empty()).then(|| view! { <Plans plans=plans /> });
    let chart = chart.map(|chart| view! { <Chart chart=chart location=location.clone() /> });
    view! {
        <article class="card set" id=anchor.clone() data-testid=format!("set-{anchor}")>
            <h3>{location}" "<small>{title}</small>" "{synthetic}</h3>
            {values}
            {choices}
            {chart}
            {plans}
            {assumptions}
        </article>
    }
}

#[component]
fn Plans(plans: Vec<PaperPlan>) -> impl IntoView {
    let lines = plans.into_iter().map(plan_row).collect_view();
    let heads = ["Scenario", "Planner", "Step time", "MFU", "Bubble", "Exposed", "Above bound", "Memory"];
    view! {
        <details class="advanced">
            <summary>"Plans of these results"</summary>
            <div class="table-scroll" role="region" aria-label="Plans" tabindex="0">
                <table class="figures">
                    <thead><tr>{heads.map(|head| view! { <th scope="col">{head}</th> })}</tr></thead>
                    <tbody>{lines}</tbody>
                </table>
            </div>
        </details>
    }
}

fn plan_row(plan: PaperPlan) -> impl IntoView {
    let PaperPlan { scenario, planner, layout, binding, iteration_s, mfu, time, gap, peak_memory_gib, .. } = plan;
    let href = format!("/new?ready={scenario}");
    let link = view! { <a href=href>{scenario}</a> };
    let Some(layout) = layout else {
        let reason = binding.unwrap_or_else(|| "no plan".to_owned());
        return view! {
            <tr>
                <th scope="row">{link}</th>
                <td>{short_title(planner)}</td>
                <td colspan="6">{reason}</td>
            </tr>
        }
        .into_any();
    };
    let share = |seconds: f64| format::percent(seconds / iteration_s);
    view! {
        <tr>
            <th scope="row">{link}</th>
            <td>{short_title(planner)}<small class="below">{degrees(&layout)}</small></td>
            <td>{format::seconds(iteration_s)}</td>
            <td>{format::percent(mfu)}</td>
            <td>{share(time.bubble_s)}</td>
            <td>{share(time.exposed_s)}</td>
            <td>{format::percent(gap)}</td>
            <td>{format::gib(peak_memory_gib)}</td>
        </tr>
    }
    .into_any()
}

/// Colour and dash pattern by curve index.
const STROKES: [(&str, &str, Dash); 5] = [
    ("#882255", "#dd77aa", Dash::Solid),
    ("#0072b2", "#56a5e0", Dash::Dashed),
    ("#b8542a", "#ee8866", Dash::Dotted),
    ("#117755", "#44bb99", Dash::Long),
    ("#66707e", "#a0a8b4", Dash::Solid),
];

#[component]
fn Chart(chart: PaperChart, location: String) -> impl IntoView {
    let PaperChart { x, y, curves } = chart;
    let names = curves.iter().map(|curve| curve.label.clone()).collect::<Vec<_>>().join(", ");
    let label = format!("{location}, predicted: {y} over {x} of {names}");
    let up = if y.ends_with(", s") { String::new() } else { y };
    let curves: Vec<Curve> = curves
        .into_iter()
        .zip(STROKES.into_iter().cycle())
        .map(|(curve, (light, dark, dash))| {
            let points = curve.x.into_iter().zip(curve.y).collect();
            Curve { name: curve.label, light, dark, dash, form: Form::Marked, points }
        })
        .collect();
    view! { <CurveChart curves=Signal::stored(curves) over=Signal::stored(x) up=up label=Signal::stored(label) test_id="paper-chart" /> }
}
