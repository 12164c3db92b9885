//! Stage durations by microbatch, bubble ratio compared with equal stages, and throughput per
//! stage.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::planner::analysis::stages::{PlanStages, StageAnalysis};
use leptos::prelude::*;

use crate::charts::{Curve, CurveChart, Dash, Form, Stroke};
use crate::format;
use crate::results::short_title;

/// Maximum number of plans in a chart. More curves are unreadable.
const MAX_DRAWN: usize = 6;
const DASHES: [Dash; 4] = [Dash::Solid, Dash::Dashed, Dash::Dotted, Dash::Long];

fn curve(index: usize, plan: &PlanStages, form: Form, points: Vec<(f64, f64)>) -> Curve {
    let (light, dark) = Stroke::for_planner(plan.planner).colours();
    let dash = DASHES[index % DASHES.len()];
    Curve { name: short_title(plan.planner).to_owned(), light, dark, dash, form, points }
}

/// Returns the modules of all plans in order of first occurrence.
fn modules(plans: &[PlanStages]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let all = plans.iter().flat_map(|plan| &plan.modules).map(|module_stages| module_stages.module.clone());
    all.filter(|module| seen.insert(module.clone())).collect()
}

/// Returns the cumulative distribution of a module's stage durations, for each plan.
fn distribution(plans: &[PlanStages], module: &str) -> Vec<Curve> {
    let plan_curve = |(index, plan): (usize, &PlanStages)| {
        let plan_module = plan.modules.iter().find(|module_stages| module_stages.module == module)?;
        let all = plan_module.durations_s.len() as f64;
        let steps =
            plan_module.durations_s.iter().enumerate().map(|(below, &time)| (time * 1e3, (below + 1) as f64 / all));
        Some(curve(index, plan, Form::Steps, steps.collect()))
    };
    plans.iter().enumerate().filter_map(plan_curve).collect()
}

fn rates(plans: &[PlanStages]) -> Vec<Curve> {
    let rate_curve = |(index, plan): (usize, &PlanStages)| {
        let points: Vec<(f64, f64)> =
            plan.rates.iter().map(|rate| (f64::from(rate.stage), rate.tflops_per_device)).collect();
        (!points.is_empty()).then(|| curve(index, plan, Form::Marked, points))
    };
    plans.iter().enumerate().filter_map(rate_curve).collect()
}

/// Returns minimum and maximum throughput over the stages.
fn ends(plan: &PlanStages) -> Option<(f64, f64)> {
    let rates = || plan.rates.iter().map(|rate| rate.tflops_per_device);
    Some((rates().min_by(f64::total_cmp)?, rates().max_by(f64::total_cmp)?))
}

fn row(plan: &PlanStages) -> impl IntoView + use<> {
    let ideal = plan.ideal_bubble.map_or_else(|| "–".to_owned(), format::percent);
    let spread = plan
        .modules
        .iter()
        .map(|module_stages| {
            let text = format!(
                "{} {} ± {}",
                module_stages.module,
                format::seconds(module_stages.mean_s),
                format::percent(module_stages.variation)
            );
            view! { <div>{text}</div> }
        })
        .collect_view();
    let rates = ends(plan).map_or_else(
        || "–".to_owned(),
        |(lower, upper)| format!("{} to {}", format::three_digits(lower), format::three_digits(upper)),
    );
    view! {
        <tr>
            <th scope="row">{short_title(plan.planner)}</th>
            <td>{plan.depth}" x "{plan.microbatches}</td>
            <td>{ideal}</td>
            <td>{format::percent(plan.bubble)}</td>
            <td class="notation">{spread}</td>
            <td>{rates}</td>
        </tr>
    }
}

pub(super) fn show(analysis: Arc<StageAnalysis>) -> impl IntoView {
    let StageAnalysis { iteration, plans } = Arc::unwrap_or_clone(analysis);
    if plans.is_empty() {
        return view! { <p class="hint">"No plan of this iteration is a pipeline of stages."</p> }.into_any();
    }
    let drawn = &plans[..plans.len().min(MAX_DRAWN)];
    let rows = plans.iter().map(row).collect_view();
    let charts = modules(drawn).into_iter().map(|module| {
        let label = format!("{module}: share of microbatches over the time of a forward and its backward");
        view! {
            <h3>{module.clone()}</h3>
            <CurveChart
                curves=Signal::stored(distribution(drawn, &module))
                over=Signal::stored("ms of one microbatch in one stage".to_owned())
                up="share of microbatches"
                label=Signal::stored(label)
                test_id="stage-durations"
            />
        }
    });
    let charts = charts.collect_view();
    let rates = rates(drawn);
    let has_rates = !rates.is_empty();
    let rates = has_rates.then(|| {
        view! {
            <h3>"TFLOP/s per device by stage"</h3>
            <CurveChart
                curves=Signal::stored(rates)
                over=Signal::stored("stage".to_owned())
                up="TFLOP/s per device"
                label=Signal::stored("Throughput of every stage while it computes".to_owned())
                test_id="stage-rates"
            />
        }
    });
    let left_out = plans.len().saturating_sub(MAX_DRAWN);
    view! {
        <div class="table-scroll" role="region" aria-label="Bubble, durations and throughput of stages by plan" tabindex="0">
            <table class="figures">
                <thead>
                    <tr>
                        <th scope="col">"Planner"</th>
                        <th scope="col">"Ranks x microbatches"</th>
                        <th scope="col">{format!("Ideal bubble, iteration {iteration}")}</th>
                        <th scope="col">{format!("Bubble, iteration {iteration}")}</th>
                        <th scope="col">{format!("Time in a stage, mean ± variation, iteration {iteration}")}</th>
                        <th scope="col">"TFLOP/s per device, all iterations"</th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
        <p class="hint">
            "Ideal bubble: (p - 1) / (v m + p - 1), for equal stages and equal microbatches. It is not defined if modules share devices. Durations: forward and backward together, of the slowest replica in this iteration. Curves: share of microbatches whose time in the stage is at most this long."
            {(left_out > 0).then(|| format!(" The {MAX_DRAWN} fastest plans are drawn."))}
        </p>
        {below_ideal(&plans).map(|text| view! { <p class="hint" data-testid="below-ideal">{text}</p> })}
        {charts}
        {rates}
    }
    .into_any()
}

/// Explains bubble ratios below the ideal ratio. Returns `None` if there are none.
fn below_ideal(plans: &[PlanStages]) -> Option<String> {
    let is_below = |plan: &&PlanStages| plan.ideal_bubble.is_some_and(|ideal| plan.bubble < ideal);
    let below: Vec<&str> = plans.iter().filter(is_below).map(|plan| short_title(plan.planner)).collect();
    (!below.is_empty()).then(|| {
        format!(
            "Below the ideal bubble: {}. The ideal is that of the pipeline alone with whole backwards. Gradient synchronisation, \
             exposed communication and the optimizer step make the iteration longer and the idle share smaller; weight gradients that \
             run on their own fill idle time; and p and m are those of the slowest replica, while the bubble is over all replicas.",
            below.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use api::planner::scenario::PlannerKind;

    use super::*;

    /// p = 4, m = 8: the ideal bubble ratio is 3 / 11.
    fn plan(planner: PlannerKind, bubble: f64) -> PlanStages {
        PlanStages {
            planner,
            bubble,
            ideal_bubble: Some(3.0 / 11.0),
            depth: 4,
            microbatches: 8,
            modules: Vec::new(),
            rates: Vec::new(),
        }
    }

    #[test]
    fn bubble_below_ideal_is_explained() {
        let plans = [plan(PlannerKind::WaitFreeCyclic, 0.2), plan(PlannerKind::OneFOneB, 0.3)];
        let explanation = below_ideal(&plans).unwrap();
        let names = format!("Below the ideal bubble: {}. ", short_title(PlannerKind::WaitFreeCyclic));
        assert!(explanation.starts_with(&names), "{explanation}");
        assert_eq!(below_ideal(&plans[1..]), None);
        let shared = PlanStages { ideal_bubble: None, ..plan(PlannerKind::OneFOneB, 0.0) };
        assert_eq!(below_ideal(&[shared]), None, "no formula for shared devices");
    }
}
