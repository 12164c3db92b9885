//! Best iteration time by number of rollouts or by seconds, for each search strategy.

use std::sync::Arc;

use api::planner::analysis::SearchProgress;
use api::planner::analysis::search_progress::{EndedBy, ExploredBy, ProgressColumns, StrategyProgress};
use leptos::prelude::*;

use super::{CUT, REPLICA_BOUND, location_text};
use crate::charts::{Curve, CurveChart, Dash, Form};
use crate::format;

/// Horizontal axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Rankings,
    Seconds,
}

const fn stroke(strategy: ExploredBy) -> (&'static str, &'static str, Dash) {
    match strategy {
        ExploredBy::Mcts => ("#0072b2", "#56a5e0", Dash::Solid),
        ExploredBy::Dfs => ("#b8542a", "#ee8866", Dash::Dashed),
        ExploredBy::Random => ("#117755", "#44bb99", Dash::Dotted),
    }
}

fn curves(progress: &SearchProgress, over: Over) -> Vec<Curve> {
    let last = progress.strategies.iter().filter_map(|strategy| position(&strategy.steps, over).last().copied());
    let end = last.fold(0.0, f64::max);
    let mut curves: Vec<Curve> = progress
        .strategies
        .iter()
        .map(|strategy| {
            let (light, dark, dash) = stroke(strategy.strategy);
            let points = position(&strategy.steps, over).into_iter().zip(strategy.steps.best_s.iter().copied());
            let name = strategy.strategy.title().to_owned();
            Curve { name, light, dark, dash, form: Form::Steps, points: points.collect() }
        })
        .collect();
    let level = |at: f64| vec![(0.0, at), (end, at)];
    if let Some(swapped) = progress.swapped_s {
        let name = format!("tree search after swaps {}", format::seconds(swapped));
        let points = level(swapped);
        curves.push(Curve {
            name,
            light: "#5b4a9c",
            dark: "#b9a6ff",
            dash: Dash::Alternating,
            form: Form::Level,
            points,
        });
    }
    let bound = progress.lower_bound_s;
    let points = level(bound);
    let name = format!("lower bound of this replica {}", format::seconds(bound));
    curves.push(Curve { name, light: "#b3261e", dark: "#ff8f85", dash: Dash::Long, form: Form::Level, points });
    curves
}

fn position(steps: &ProgressColumns, over: Over) -> Vec<f64> {
    match over {
        Over::Rankings => steps.rollouts.iter().map(|&rollouts| f64::from(rollouts)).collect(),
        Over::Seconds => steps.seconds.clone(),
    }
}

/// Returns the best makespan after this number of rollouts.
fn best_after(steps: &ProgressColumns, rollouts: u32) -> Option<f64> {
    let known = steps.rollouts.partition_point(|&at| at <= rollouts);
    steps.best_s.get(known.checked_sub(1)?).copied()
}

const fn ended(by: EndedBy) -> &'static str {
    match by {
        EndedBy::Optimal => "bound reached",
        EndedBy::NearBound => "within 0.1\u{202f}% of the bound",
        EndedBy::Exhausted => "all rankings tried",
        EndedBy::Rollouts => "search budget used",
        EndedBy::Time => "time limit",
    }
}

pub(super) fn show(progress: Arc<SearchProgress>) -> impl IntoView {
    let over = RwSignal::new(Over::Rankings);
    let drawn = Arc::clone(&progress);
    let curves = Signal::derive(move || curves(&drawn, over.get()));
    let axis = Signal::derive(move || match over.get() {
        Over::Rankings => "rankings tried".to_owned(),
        Over::Seconds => "seconds of search".to_owned(),
    });
    let radio_button = move |value: Over, text: &'static str| {
        view! {
            <label>
                <input type="radio" name="search-over" prop:checked=move || over.get() == value on:change=move |_| over.set(value) />
                {text}
            </label>
        }
    };
    let label = label(&progress);
    let caption = format!(
        "{}: {} microbatches split into {} sub-microbatches, {} groups to rank.",
        location_text(progress.iteration, progress.replica),
        format::count(progress.microbatches.into()),
        format::count(progress.parts.into()),
        format::count(progress.groups.into()),
    );
    view! {
        <fieldset class="switch">
            <legend class="visually-hidden">"Horizontal axis"</legend>
            {radio_button(Over::Rankings, "By rankings")}
            {radio_button(Over::Seconds, "By time")}
        </fieldset>
        <CurveChart curves=curves over=axis label=Signal::stored(label) test_id="search-chart" />
        <p class="hint" data-testid="search-caption">{caption}</p>
        <p class="hint">{REPLICA_BOUND}</p>
        {progress.is_cut.then(|| view! { <p class="hint">{CUT}</p> })}
        <details class="advanced" data-testid="search-table">
            <summary>"As a table"</summary>
            <Table progress=progress />
        </details>
    }
}

fn label(progress: &SearchProgress) -> String {
    let best = |strategy: &StrategyProgress| {
        let (title, best) = (strategy.strategy.title(), format::seconds(strategy.best_s));
        format!("{title} {best} after {} rankings", format::count(strategy.rollouts.into()))
    };
    let best = progress.strategies.iter().map(best).collect::<Vec<_>>().join(", ");
    format!(
        "Best iteration while searching. {best}; lower bound of this replica {}",
        format::seconds(progress.lower_bound_s)
    )
}

#[component]
fn Table(progress: Arc<SearchProgress>) -> impl IntoView {
    let (tenth, half) = (progress.rollouts / 10, progress.rollouts / 2);
    let bound = progress.lower_bound_s;
    let lines = progress.strategies.iter().map(|strategy| {
        let after = |rollouts| best_after(&strategy.steps, rollouts).map_or_else(|| "–".to_owned(), format::seconds);
        view! {
            <tr data-strategy=strategy.strategy.title()>
                <th scope="row">{strategy.strategy.title()}</th>
                <td>{after(0)}</td>
                <td>{after(tenth)}</td>
                <td>{after(half)}</td>
                <td data-value=strategy.best_s.to_string()><b>{format::seconds(strategy.best_s)}</b></td>
                <td>{format::percent(strategy.best_s / bound - 1.0)}</td>
                <td>{format::count(strategy.rollouts.into())}</td>
                <td>{format::seconds(strategy.seconds)}</td>
                <td>{ended(strategy.ended)}</td>
            </tr>
        }
    });
    let lines = lines.collect_view();
    let headings = [
        "Strategy".to_owned(),
        "First".to_owned(),
        format!("After {}", format::count(tenth.into())),
        format!("After {}", format::count(half.into())),
        "Best".to_owned(),
        "Above replica's bound".to_owned(),
        "Rankings".to_owned(),
        "Search time".to_owned(),
        "Ended".to_owned(),
    ]
    .map(|text| view! { <th scope="col">{text}</th> });
    view! {
        <p class="hint">"The best step time after each number of rankings. All three searches start with the same few orders. The plan then swaps actions on the critical path of the best order."</p>
        <div class="table-scroll" role="region" aria-label="Best iteration by strategy" tabindex="0">
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

    fn sample_progress() -> SearchProgress {
        let strategy = |strategy, last: u32| StrategyProgress {
            strategy,
            rollouts: last,
            seconds: f64::from(last) / 100.0,
            best_s: 15.0,
            ended: EndedBy::Rollouts,
            steps: ProgressColumns {
                rollouts: vec![0, 40, last],
                seconds: vec![0.0, 0.4, f64::from(last) / 100.0],
                best_s: vec![17.0, 15.0, 15.0],
            },
        };
        SearchProgress {
            planner: PlannerKind::PipeWeaver,
            iteration: 0,
            replica: 0,
            microbatches: 8,
            parts: 20,
            groups: 16,
            rollouts: 200,
            lower_bound_s: 14.0,
            strategies: vec![strategy(ExploredBy::Mcts, 200), strategy(ExploredBy::Random, 100)],
            is_cut: false,
            swapped_s: Some(14.5),
        }
    }

    #[test]
    fn curves_use_rankings_or_seconds_and_bound_spans_all() {
        let progress = sample_progress();
        let over_rankings = curves(&progress, Over::Rankings);
        assert_eq!(over_rankings[0].points, [(0.0, 17.0), (40.0, 15.0), (200.0, 15.0)]);
        assert_eq!(over_rankings[2].points, [(0.0, 14.5), (200.0, 14.5)]);
        assert_eq!(over_rankings[3].points, [(0.0, 14.0), (200.0, 14.0)]);
        assert_eq!(curves(&progress, Over::Seconds)[3].points, [(0.0, 14.0), (2.0, 14.0)]);
        let dashes: Vec<Dash> = over_rankings.iter().map(|curve| curve.dash).collect();
        assert_eq!(dashes, [Dash::Solid, Dash::Dotted, Dash::Alternating, Dash::Long], "told apart without colour");
    }

    #[test]
    fn best_known_value_is_from_the_last_earlier_step() {
        let steps = &sample_progress().strategies[0].steps;
        assert_eq!(best_after(steps, 0), Some(17.0));
        assert_eq!((best_after(steps, 39), best_after(steps, 40)), (Some(17.0), Some(15.0)));
        assert_eq!(best_after(&ProgressColumns::default(), 10), None);
    }
}
