//! Load balance between replicas, ranks or pipelines: minimum and maximum time per iteration.

use api::planner::outcome::Planned;
use api::planner::scenario::PlannerKind;
use leptos::prelude::*;

use super::ranking;
use crate::charts::{Curve, CurveChart, Dash, Form, Stroke};
use crate::explore::use_explore;
use crate::format;

/// Returns minimum and maximum time per iteration in seconds. Returns `None` if the engine does not
/// report them.
fn ends(planned: &Planned) -> Option<Vec<(f64, f64)>> {
    let iteration_ends = |iteration: &api::planner::outcome::IterationMetrics| {
        Some((iteration.fastest_replica_s, iteration.slowest_replica_s?))
    };
    planned.iterations.iter().map(iteration_ends).collect()
}

/// Mean over the iterations of (slowest - fastest) / slowest.
fn spread(ends: &[(f64, f64)]) -> f64 {
    let shares = ends.iter().map(|&(fastest, slowest)| if slowest > 0.0 { (slowest - fastest) / slowest } else { 0.0 });
    shares.sum::<f64>() / ends.len().max(1) as f64
}

fn curves(planner: PlannerKind, ends: &[(f64, f64)]) -> [Curve; 2] {
    let (light, dark) = Stroke::for_planner(planner).colours();
    let title = ranking::short_title(planner);
    let curve = |name: String, dash: Dash, value: fn(&(f64, f64)) -> f64| Curve {
        name,
        light,
        dark,
        dash,
        form: Form::Marked,
        points: ends.iter().enumerate().map(|(iteration, ends)| (iteration as f64, value(ends))).collect(),
    };
    [
        curve(format!("{title}, slowest"), Dash::Solid, |ends| ends.1),
        curve(format!("{title}, fastest"), Dash::Dotted, |ends| ends.0),
    ]
}

/// Minimum and maximum per iteration, for the selected planner and the baseline.
#[component]
pub(super) fn LoadBalance() -> impl IntoView {
    let explore = use_explore();
    let selected = Memo::new(move |_| ranking::selected_planner(&explore.results(), explore.view.get().planner));
    let baseline = Memo::new(move |_| ranking::baseline_planner(&explore.results(), explore.view.get().baseline));
    let drawn = Memo::new(move |_| {
        let mut planners: Vec<PlannerKind> = selected.get().into_iter().collect();
        planners.extend(baseline.get().filter(|planner| Some(*planner) != selected.get()));
        let planner_ends = |planner: PlannerKind| {
            let plan = explore.planned(planner)?;
            let ends = ends(&plan)?;
            (ends.len() > 1 && ends.iter().any(|(fastest, slowest)| fastest < slowest)).then_some((planner, ends))
        };
        planners.into_iter().filter_map(planner_ends).collect::<Vec<_>>()
    });
    let caption = move || {
        let describe = |(planner, ends): &(PlannerKind, Vec<(f64, f64)>)| {
            format!("{} {}", ranking::short_title(*planner), format::percent(spread(ends)))
        };
        drawn.with(|drawn| drawn.iter().map(describe).collect::<Vec<_>>().join(", "))
    };
    let curves = Signal::derive(move || {
        drawn.with(|drawn| drawn.iter().flat_map(|(planner, ends)| curves(*planner, ends)).collect::<Vec<_>>())
    });
    let label = Signal::derive(move || format!("Fastest and slowest replica by iteration. Mean spread: {}", caption()));
    view! {
        <Show when=move || drawn.with(|drawn| !drawn.is_empty())>
            <section class="card" data-testid="card-balance">
                <header class="card-title"><h2>"Load balance"</h2></header>
                <p class="hint">
                    "The fastest and the slowest replica, rank or pipeline of every iteration. Spread, (slowest - fastest) / slowest, on average: "
                    <span data-testid="balance-spread">{caption}</span>"."
                </p>
                <CurveChart curves=curves over=Signal::stored("iteration".to_owned()) label=label test_id="balance-chart" />
            </section>
        </Show>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (2 - 1) / 2 and (4 - 3) / 4. An iteration without work has no imbalance.
    #[test]
    fn spread_is_the_mean_share_that_the_slowest_is_behind() {
        assert!((spread(&[(1.0, 2.0), (3.0, 4.0)]) - 0.375).abs() < 1e-12);
        assert!((spread(&[(0.0, 0.0)])).abs() < 1e-12);
    }
}
