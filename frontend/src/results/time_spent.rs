//! Time breakdown of an iteration: by pipeline rank for a plan, or by plan.

mod explained;

pub(super) use explained::explain_difference as explained;

use api::planner::outcome::{PlanOutcome, PlannerResult, RankSummary, RankTime, StageSummary};
use leptos::prelude::*;

use super::breakdown::{NoBreakdown, PlanName, selected_plan};
use super::ranking;
use crate::charts::{Fill, Measure, Part, StackedBars, StackedRow};
use crate::explore::use_explore;
use crate::format;

/// Components in stacking order. Colours match the span kinds in Gantt charts. The two exposed
/// components add up to the exposed communication in the ranking table.
pub(crate) const PARTS: [Part; 6] = [
    Part { name: "computation", light: "#0072b2", dark: "#2f8fd0", fill: Fill::Solid },
    Part { name: "recomputed", light: "#66ccee", dark: "#8adcf7", fill: Fill::Solid },
    Part { name: "exposed communication (TP, CP, EP, sends)", light: "#882255", dark: "#b0568a", fill: Fill::Solid },
    Part { name: "exposed gradient synchronisation", light: "#ee99aa", dark: "#f2b6c2", fill: Fill::Solid },
    Part { name: "optimizer", light: "#4a4f58", dark: "#7b828e", fill: Fill::Solid },
    Part { name: "bubble", light: "#8a939e", dark: "#8a939e", fill: Fill::Hatched },
];

pub(crate) const fn values(time: &RankTime) -> [f64; 6] {
    [time.compute_s, time.recompute_s, time.exposed_s, time.sync_s, time.optimizer_s, time.bubble_s]
}

fn rank_rows(ranks: &[RankSummary]) -> Vec<StackedRow> {
    let row =
        |rank: &RankSummary| StackedRow { label: format!("rank {}", rank.rank), values: values(&rank.time).to_vec() };
    ranks.iter().map(row).collect()
}

/// Returns a bar per plan: the mean over its ranks.
fn planner_rows(results: &[PlannerResult]) -> Vec<StackedRow> {
    let row = |result: &PlannerResult| {
        let PlanOutcome::Planned(planned) = &result.answer else { return None };
        let ranks: Vec<_> = planned.ranks.iter().map(|rank| values(&rank.time)).collect();
        let mean = |part: usize| ranks.iter().map(|rank| rank[part]).sum::<f64>() / ranks.len() as f64;
        let values = (0..PARTS.len()).map(mean).collect();
        (!ranks.is_empty()).then(|| StackedRow { label: ranking::short_title(result.planner).to_owned(), values })
    };
    results.iter().filter_map(row).collect()
}

/// Subject of the bars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Ranks,
    Planners,
}

/// Time breakdown card.
#[component]
pub(super) fn TimeSpent() -> impl IntoView {
    let explore = use_explore();
    let plan = selected_plan();
    let scope = RwSignal::new(Scope::Ranks);
    let ranks = Memo::new(move |_| plan.with(|plan| plan.as_ref().map(|(_, plan)| rank_rows(&plan.ranks))));
    let planners = Memo::new(move |_| planner_rows(&explore.results()));
    let rows = Signal::derive(move || match scope.get() {
        Scope::Ranks => ranks.get().unwrap_or_default(),
        Scope::Planners => planners.get(),
    });
    let label = Signal::derive(move || {
        let rows = rows.get();
        let bar = |row: &StackedRow| {
            let shares = PARTS
                .iter()
                .zip(&row.values)
                .map(|(part, value)| format!("{} {}", part.name, format::percent(value / row.total())));
            format!("{}: {}", row.label, shares.collect::<Vec<_>>().join(", "))
        };
        format!("Where the time goes. {}", rows.iter().take(8).map(bar).collect::<Vec<_>>().join("; "))
    });
    let caption = move || {
        let waiting = "A bubble is waiting: for other stages, for the slowest replica. Exposed communication in the ranked table is the \
                       sum of both exposed parts";
        if scope.get() == Scope::Planners {
            return Some(format!("Mean of all ranks and iterations of each plan. {waiting}."));
        }
        plan.with(|plan| {
            let (_, plan) = plan.as_ref()?;
            let (count, time) = (plan.iterations.len(), format::seconds(plan.metrics.iteration_s));
            let over = if count == 1 { "One iteration of".to_owned() } else { format!("Mean of {count} iterations,") };
            let exposed = format::percent(plan.metrics.exposed_communication);
            Some(format!("{over} {time}. {waiting}, as a mean of all ranks: {exposed}."))
        })
    };
    let radio_button = move |value: Scope, text: &'static str| {
        view! {
            <label>
                <input type="radio" name="time-scope" prop:checked=move || scope.get() == value on:change=move |_| scope.set(value) />
                {text}
            </label>
        }
    };
    let is_empty = Memo::new(move |_| rows.with(Vec::is_empty));
    view! {
        <section class="card" data-testid="card-time">
            <header class="card-title">
                <h2>"Where the time goes"</h2>
                <PlanName />
                <span class="grow"></span>
                <fieldset class="switch">
                    <legend class="visually-hidden">"Bars"</legend>
                    {radio_button(Scope::Ranks, "By rank")}
                    {radio_button(Scope::Planners, "By planner")}
                </fieldset>
            </header>
            <Show when=move || !is_empty.get() fallback=|| view! { <NoBreakdown /> }>
                <StackedBars parts=&PARTS rows=rows measure=Measure::Seconds limit=Signal::stored(None) label=label />
                <p class="hint">{caption}</p>
                <Show when=move || scope.get() == Scope::Planners>
                    <explained::Explained />
                </Show>
                <details class="advanced" data-testid="time-table">
                    <summary>"As tables"</summary>
                    {move || view! {
                        <BarTable rows=ranks.get().unwrap_or_default() test_id="time-ranks" heading="Rank" caption="Mean time of an iteration by pipeline rank" />
                        <BarTable rows=planners.get() test_id="time-planners" heading="Planner" caption="Mean of all ranks by planner" />
                    }}
                    {move || plan.get().map(|(_, plan)| view! { <StageTable stages=plan.stages.clone() /> })}
                </details>
            </Show>
        </section>
    }
}

/// Bar values as a table.
#[component]
fn BarTable(
    rows: Vec<StackedRow>,
    test_id: &'static str,
    /// Heading of the first column.
    heading: &'static str,
    caption: &'static str,
) -> impl IntoView {
    let lines = rows.into_iter().map(|row| {
        let sum = row.total();
        let cells = row.values.into_iter().map(|seconds| view! { <td>{format::seconds(seconds)}</td> });
        view! {
            <tr>
                <th scope="row">{row.label}</th>
                {cells.collect_view()}
                <td data-sum=sum.to_string()><b>{format::seconds(sum)}</b></td>
            </tr>
        }
    });
    let headings = [
        heading,
        "Computation",
        "Recomputed",
        "Exposed in actions",
        "Exposed gradient sync.",
        "Optimizer",
        "Bubble",
        "Sum",
    ]
    .map(|text| view! { <th scope="col">{text}</th> });
    view! {
        <p class="hint">{caption}</p>
        <div class="table-scroll" role="region" aria-label=caption tabindex="0">
            <table class="figures" data-testid=test_id>
                <thead><tr>{headings}</tr></thead>
                <tbody>{lines.collect_view()}</tbody>
            </table>
        </div>
    }
}

#[component]
fn StageTable(stages: Vec<StageSummary>) -> impl IntoView {
    let lines = stages.into_iter().map(|summary| {
        let times = [
            summary.compute_ms,
            summary.recompute_ms,
            summary.exposed_ms,
            summary.communication_ms,
            summary.forward_ms,
            summary.backward_ms,
        ];
        view! {
            <tr>
                <th scope="row">
                    {format!("stage {}", summary.stage)}
                    <small class="below">{format!("rank {} · {}", summary.rank, summary.layers)}</small>
                </th>
                {times.map(|ms| view! { <td>{format::three_digits(ms)}</td> })}
            </tr>
        }
    });
    let headings = ["Stage", "Computation", "Recomputed", "Exposed in actions", "All comm.", "Forward", "Backward"]
        .map(|text| view! { <th scope="col">{text}</th> });
    view! {
        <p class="hint">
            "Mean time of a microbatch by stage over all iterations, in ms. Forward and backward consist of computation, recomputation and exposed communication in actions; gradient synchronisation belongs to no microbatch."
        </p>
        <div class="table-scroll tall" role="region" aria-label="Mean time of a microbatch by stage, in ms" tabindex="0">
            <table class="figures" data-testid="time-stages">
                <thead><tr>{headings}</tr></thead>
                <tbody>{lines.collect_view()}</tbody>
            </table>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use api::planner::outcome::{RankMemory, Search};
    use api::planner::scenario::PlannerKind;

    use super::*;

    fn rank(rank: u32, compute_s: f64, bubble_s: f64) -> RankSummary {
        let time = RankTime { compute_s, bubble_s, ..RankTime::default() };
        RankSummary { rank, time, memory: RankMemory::default() }
    }

    #[test]
    fn rank_bar_contains_every_part_exactly_once() {
        let time =
            RankTime { compute_s: 1.0, recompute_s: 2.0, exposed_s: 3.0, sync_s: 4.0, optimizer_s: 5.0, bubble_s: 6.0 };
        let rows = rank_rows(&[RankSummary { rank: 7, time, memory: RankMemory::default() }]);
        assert_eq!(rows[0], StackedRow { label: "rank 7".into(), values: vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0] });
        assert!((rows[0].total() - 21.0).abs() < 1e-12);
    }

    /// 3 s in actions plus 4 s for gradients in 21 s: one third is exposed communication
    /// (docs/models.md, section 8).
    #[test]
    fn both_exposed_parts_are_the_exposed_communication() {
        let time =
            RankTime { compute_s: 1.0, recompute_s: 2.0, exposed_s: 3.0, sync_s: 4.0, optimizer_s: 5.0, bubble_s: 6.0 };
        let exposed = PARTS.iter().zip(values(&time)).filter(|(part, _)| part.name.starts_with("exposed "));
        let exposed: f64 = exposed.map(|(_, seconds)| seconds).sum();
        assert!((exposed / values(&time).iter().sum::<f64>() - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn planner_bar_is_mean_over_ranks_and_skips_missing_breakdowns() {
        let planned = super::super::breakdown::tests::planned;
        let infeasible = PlannerResult {
            planner: PlannerKind::Gpipe,
            title: String::new(),
            answer: PlanOutcome::Infeasible { binding: String::new(), search: Search::default() },
        };
        let results = [
            planned(PlannerKind::OneFOneB, vec![rank(0, 4.0, 0.0), rank(1, 2.0, 2.0)]),
            planned(PlannerKind::Interleaved, vec![]),
            infeasible,
        ];
        let rows = planner_rows(&results);
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0], StackedRow { label: "1F1B".into(), values: vec![3.0, 0.0, 0.0, 0.0, 0.0, 1.0] });
    }
}
