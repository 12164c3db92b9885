//! Iteration time and peak memory of all plans, and their Pareto front.

use api::planner::outcome::{PlanOutcome, PlannerResult};
use leptos::prelude::*;

use super::ranking;
use crate::accuracy_link::AccuracyLink;
use crate::charts::{Cloud, Mark, ScatterChart};
use crate::explore::use_explore;
use crate::format;

/// Plan: peak memory in GiB, iteration time in s, name.
type Point = (f64, f64, String);

fn points(results: &[PlannerResult]) -> Vec<Point> {
    let point = |result: &PlannerResult| match &result.answer {
        PlanOutcome::Planned(planned) => {
            let name = ranking::short_title(result.planner).to_owned();
            Some((planned.metrics.peak_memory_gib, planned.metrics.iteration_s, name))
        }
        PlanOutcome::Infeasible { .. } => None,
    };
    results.iter().filter_map(point).collect()
}

/// Returns the Pareto front in time and memory, in ascending order of memory.
fn front(points: &[Point]) -> Vec<Point> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut best = f64::INFINITY;
    sorted.retain(|point| {
        let is_better = point.1 < best;
        best = best.min(point.1);
        is_better
    });
    sorted
}

/// Scatter chart card. Hidden for fewer than two plans.
#[component]
pub(super) fn TimeAndMemory() -> impl IntoView {
    let explore = use_explore();
    let plans = Memo::new(move |_| points(&explore.results()));
    let clouds = Signal::derive(move || {
        let (on_front, others): (Vec<Point>, Vec<Point>) = {
            let all = plans.get();
            let best = front(&all);
            all.into_iter().partition(|point| best.contains(point))
        };
        let names = |points: &[Point]| points.iter().map(|(_, _, name)| name.clone()).collect::<Vec<_>>();
        let labelled_points = |points: Vec<Point>| {
            let say = |(gib, seconds, name): Point| {
                let text = format!("{name}: {}, {}", format::seconds(seconds), format::gib(gib));
                (gib, seconds, text)
            };
            points.into_iter().map(say).collect::<Vec<_>>()
        };
        let clouds = [
            Cloud {
                name: "Pareto-optimal".to_owned(),
                light: "#0072b2",
                dark: "#5aa9e0",
                mark: Mark::Disc,
                names: names(&on_front),
                points: labelled_points(on_front),
            },
            Cloud {
                name: "not Pareto-optimal".to_owned(),
                light: "#8a939e",
                dark: "#8a939e",
                mark: Mark::Diamond,
                names: names(&others),
                points: labelled_points(others),
            },
        ];
        clouds.into_iter().filter(|cloud| !cloud.points.is_empty()).collect::<Vec<_>>()
    });
    let line = Signal::derive(move || {
        front(&plans.get()).into_iter().map(|(gib, seconds, _)| (gib, seconds)).collect::<Vec<_>>()
    });
    let label = Signal::derive(move || {
        let best: Vec<String> = front(&plans.get())
            .into_iter()
            .map(|(gib, seconds, name)| format!("{name} {} with {}", format::seconds(seconds), format::gib(gib)))
            .collect();
        format!("Time of an iteration against peak memory. Pareto-optimal: {}", best.join("; "))
    });
    let several = Memo::new(move |_| plans.with(|plans| plans.len() > 1));
    let best = move || {
        let best: Vec<String> = front(&plans.get()).into_iter().map(|(_, _, name)| name).collect();
        format!("Pareto-optimal in time and memory: {}.", best.join(", "))
    };
    view! {
        <Show when=move || several.get()>
            <section class="card" data-testid="card-pareto">
                <header class="card-title"><h2>"Time against memory"</h2></header>
                <ScatterChart clouds=clouds front=line axes=("Peak memory of a device (GiB)", "Step time (s)") label=label test_id="chart-pareto" />
                <p class="hint">{best}</p>
                <AccuracyLink subject="Times and peaks" />
            </section>
        </Show>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_contains_only_undominated_plans() {
        let point = |gib: f64, seconds: f64, name: &str| (gib, seconds, name.to_owned());
        let all = [point(40.0, 1.0, "a"), point(30.0, 2.0, "b"), point(35.0, 2.5, "c"), point(50.0, 1.0, "d")];
        let names: Vec<String> = front(&all).into_iter().map(|(_, _, name)| name).collect();
        assert_eq!(names, ["b", "a"], "c needs more time and memory than b, d more memory than a");
        assert!(front(&[]).is_empty());
    }
}
