//! Right column on the explore page: selection, and the explanation of the plan.

use api::planner::outcome::{IterationMetrics, Loser, PlanOutcome, Search, SolverStatus};
use leptos::prelude::*;

use crate::explore::planner_at_chart;
use crate::explore::{Plan, use_explore};
use crate::format;
use crate::gantt;
use crate::gantt::describe::Details;
use crate::results::{degrees, selected_planner, settings_text, source_text};

/// Number of rejected candidates before "more".
const FIRST_LOSERS: usize = 5;

#[component]
pub(crate) fn ReasonsPanel() -> impl IntoView {
    let explore = use_explore();
    let selected_result = Memo::new(move |_| {
        let results = explore.results();
        let planner = selected_planner(&results, explore.view.get().planner)?;
        results.find_planner(planner)
    });
    let reasons = move || {
        selected_result.get().map(|result| {
            let (planner, title) = (result.planner.id(), result.title.clone());
            let refusal = match &result.answer {
                PlanOutcome::Planned(_) => None,
                PlanOutcome::Infeasible { binding, search } => Some(view! {
                    <h3>"No plan"</h3>
                    <p>{format::reason(binding)}</p>
                    <Rejected search=search.clone() best_s=None />
                }),
            };
            view! {
                <p class="reasons-planner"><span class="pill" data-planner-colour=planner></span>{title}</p>
                {refusal}
                {result.plan().map(|plan| view! { <PlanReasons plan=plan /> })}
            }
        })
    };
    view! {
        <SelectionPanel />
        <div class="reasons-panel" data-testid="reasons">{reasons}</div>
    }
}

/// Selected span, or instructions for selecting a span.
#[component]
fn SelectionPanel() -> impl IntoView {
    let explore = use_explore();
    let details = Memo::new(move |_| {
        let selection = explore.selection.get()?;
        let planner = planner_at_chart(selection.chart)?;
        let timeline = explore.displayed.with(|content| content.timeline(planner))?;
        (selection.span < timeline.len()).then(|| {
            let mut details = Details::new(&timeline, selection.span);
            let difference = gantt::selection_difference().get();
            details.rows.extend(difference.map(|text| ("Against the baseline".to_owned(), text)));
            (planner.title(), details.title, details.rows, details.spoken)
        })
    });
    let body = move || match details.get() {
        None => {
            view! { <p class="hint">"Click a bar in a chart to see its times, its shape and what it waits for."</p> }
                .into_any()
        }
        Some((planner, title, rows, _)) => {
            let rows = rows.into_iter().map(|(name, value)| view! { <div><dt>{name}</dt><dd>{value}</dd></div> });
            view! {
                <p class="selection-title"><b>{title}</b><small>{planner}</small></p>
                <dl class="details">{rows.collect_view()}</dl>
            }
            .into_any()
        }
    };
    view! {
        <section data-testid="selection">
            <h3>"Selection"</h3>
            {body}
            <p class="visually-hidden" role="status">{move || details.get().map(|(_, _, _, spoken)| spoken)}</p>
        </section>
    }
}

#[component]
fn PlanReasons(plan: Plan) -> impl IntoView {
    let explore = use_explore();
    let (metrics, provenance, decisions) = (plan.metrics.clone(), plan.provenance.clone(), plan.decisions.clone());
    let replicas = plan.layout.data;
    let status = match provenance.status {
        SolverStatus::Optimal => "Proven optimal in the search space.",
        SolverStatus::Heuristic => "Heuristic. See the gap to the lower bound below.",
    };
    let (best_s, iterations) = (metrics.iteration_s, plan.iterations.len());
    let iteration = Memo::new(move |_| explore.displayed.with(|content| content.iteration as usize));
    let choices = [source_text(&plan), settings_text(&plan).map(|settings| format!("Settings: {settings}"))];
    let plan = StoredValue::new(plan);
    let current_metrics = move || plan.with_value(|plan| plan.iterations.get(iteration.get()).cloned());
    view! {
        <h3>"Why this plan"</h3>
        <ul>
            {choices.into_iter().flatten().map(|choice| view! { <li>{format::reason(&choice)}</li> }).collect_view()}
            {decisions.into_iter().map(|decision| view! { <li>{format::reason(&decision)}</li> }).collect_view()}
            {move || current_metrics().and_then(|iteration_metrics| iteration_metrics.decision).map(|decision| view! { <li>{format::reason(&decision)}</li> })}
            <li>{format::reason(&provenance.algorithm)}" "{status}</li>
        </ul>
        <h3>"Limits"</h3>
        <ul>
            <li>{format!(
                "Lower bound with this layout and these microbatches, largest of all replicas, {}: {}; the plan is {} above it.",
                if iterations == 1 { "one iteration".to_owned() } else { format!("mean of {iterations} iterations") },
                format::seconds(metrics.lower_bound_s),
                format::percent(metrics.gap)
            )}</li>
            <li>{format!(
                "Ranks are idle for {} of the time; exposed communication takes {}.",
                format::percent(metrics.bubble),
                format::percent(metrics.exposed_communication)
            )}</li>
            {move || current_metrics().map(|metrics| view! { <IterationReasons index=iteration.get() metrics=metrics replicas=replicas /> })}
        </ul>
        <Rejected search=provenance.search best_s=Some(best_s) />
    }
}

#[component]
fn IterationReasons(index: usize, metrics: IterationMetrics, replicas: u32) -> impl IntoView {
    let path = metrics.critical_path;
    view! {
        <li>
            {format!(
                "Critical path of iteration {index}: {} compute, {} communication, {} optimizer.",
                format::percent(path.compute),
                format::percent(path.communication),
                format::percent(path.optimizer),
            )}
        </li>
        {(replicas > 1).then(|| view! {
            <li>
                {format!(
                    "The slowest replica is number {}, with {}; the fastest takes {}.",
                    metrics.slowest_replica,
                    microbatches(metrics.microbatches),
                    format::seconds(metrics.fastest_replica_s),
                )}
            </li>
        })}
    }
}

fn microbatches(count: u32) -> String {
    format!("{count} {}", if count == 1 { "microbatch" } else { "microbatches" })
}

/// Describes what the search did with its candidates. Counts of 0 are left out.
fn search_counts(simulated: u32, pruned: u32, rejected: u32) -> String {
    let counts = [
        (simulated, "simulated"),
        (pruned, "not simulated, because they cannot be faster"),
        (rejected, "invalid or too large for memory"),
    ];
    let named = counts.into_iter().filter(|(count, _)| *count > 0);
    let texts: Vec<String> = named.map(|(count, text)| format!("{} {text}", format::count(count.into()))).collect();
    if texts.is_empty() { String::new() } else { format!(": {}", texts.join("; ")) }
}

/// Candidates of the search, and the reasons for their rejection.
#[component]
fn Rejected(search: Search, best_s: Option<f64>) -> impl IntoView {
    let Search { candidates, simulated, pruned, rejected, losers, rejections, .. } = search;
    let line = |loser: Loser| view! { <li><b>{degrees(&loser.layout)}</b>": "{format::gib_in(&loser.reason)}</li> };
    let mut losers = losers.into_iter();
    let first: Vec<_> = losers.by_ref().take(FIRST_LOSERS).map(line).collect();
    let rest: Vec<_> = losers.map(line).collect();
    let more = rest.len();
    let title = if best_s.is_some() { "Layouts searched" } else { "Nearest misses" };
    view! {
        <h3>{title}</h3>
        <p class="hint">
            {format!(
                "{}{}.",
                format::counted(candidates.into(), "layout", "layouts"),
                search_counts(simulated, pruned, rejected)
            )}
        </p>
        <ul>{first}</ul>
        {(more > 0).then(|| view! { <details class="advanced"><summary>{format!("{more} more")}</summary><ul>{rest}</ul></details> })}
        {(!rejections.is_empty()).then(|| {
            let rejections = rejections.into_iter().map(|rejection| view! { <li>{format!("{} × ", format::count(rejection.count.into()))}{format::gib_in(&rejection.reason)}</li> });
            view! { <details class="advanced"><summary>"Rejected layouts, by reason"</summary><ul>{rejections.collect_view()}</ul></details> }
        })}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_zero_are_left_out() {
        assert_eq!(search_counts(1, 0, 0), ": 1 simulated");
        assert_eq!(search_counts(2, 0, 1200), ": 2 simulated; 1,200 invalid or too large for memory");
        assert_eq!(search_counts(0, 0, 0), "");
    }
}
