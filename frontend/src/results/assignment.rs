//! Work assignment in the selected iteration: context-parallel groups, or pipelines with different
//! schemes.

mod groups;
mod pipelines;

use api::planner::outcome::IterationMetrics;
use leptos::prelude::*;

use super::ranking;
use crate::explore::use_explore;

/// Groups or pipelines from the selected planner, if its plan has any.
#[component]
pub(super) fn AssignmentCard() -> impl IntoView {
    let explore = use_explore();
    let selected = Memo::new(move |_| ranking::selected_planner(&explore.results(), explore.view.get().planner));
    let iteration_metrics = Memo::new(move |_| -> Option<IterationMetrics> {
        let iteration = explore.displayed.with(|content| content.iteration as usize);
        let metrics = explore.planned(selected.get()?)?.iterations.get(iteration)?.clone();
        (metrics.groups.is_some() || metrics.strategy.is_some()).then_some(metrics)
    });
    let title = move || {
        let kind = iteration_metrics.with(|current| current.as_ref().is_some_and(|metrics| metrics.groups.is_some()));
        let kind = if kind { "Groups" } else { "Pipelines" };
        let iteration = explore.displayed.with(|content| content.iteration);
        format!("{kind} of iteration {iteration}")
    };
    let content = move || {
        let metrics = iteration_metrics.get()?;
        match (metrics.groups, metrics.strategy) {
            (Some(iteration_groups), _) => Some(groups::show(iteration_groups).into_any()),
            (None, Some(iteration_strategy)) => Some(pipelines::show(&iteration_strategy).into_any()),
            (None, None) => None,
        }
    };
    view! {
        <Show when=move || iteration_metrics.with(Option::is_some)>
            <section class="card" data-testid="card-assignment">
                <header class="card-title">
                    <h2>{title}</h2>
                    <span class="muted">{move || selected.get().map(ranking::short_title)}</span>
                </header>
                {content}
            </section>
        </Show>
    }
}

/// Bar from the minimum to the maximum length on an axis up to `most`. A mark shows the median.
fn range(shortest: u32, median: Option<u32>, max_length: u32, axis_max: u32) -> impl IntoView + use<> {
    let at = |tokens: u32| 100.0 * f64::from(tokens) / f64::from(axis_max.max(1));
    let (from, width) = (at(shortest), (at(max_length) - at(shortest)).max(1.0));
    view! {
        <span class="length-range" aria-hidden="true">
            <i style:left=format!("{from:.1}%") style:width=format!("{width:.1}%")></i>
            {median.map(|median| view! { <u style:left=format!("{:.1}%", at(median))></u> })}
        </span>
    }
}
