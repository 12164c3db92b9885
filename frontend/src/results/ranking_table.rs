//! Ranking table.

use api::job::StoredOutcome;
use api::planner::certainty::RISK;
use api::planner::scenario::PlannerKind;
use leptos::prelude::*;

use super::ranking::{self, COLUMNS, Cell, Row, RowMetrics};
use crate::accuracy_link::AccuracyLink;
use crate::explore::use_explore;

/// Ranking table. A row selects its planner; its radio button selects the baseline.
#[component]
pub(super) fn RankingTable() -> impl IntoView {
    let explore = use_explore();
    let baseline = Memo::new(move |_| ranking::baseline_planner(&explore.results(), explore.view.get().baseline));
    let selected = Memo::new(move |_| ranking::selected_planner(&explore.results(), explore.view.get().planner));
    let rows = Memo::new(move |_| {
        explore.result.with(|result| {
            explore.stored.with(|stored| {
                let rows = |result: &StoredOutcome| {
                    // A preview is the outcome of another scenario than the stored one.
                    let stored = stored.as_ref().filter(|stored| stored.id == result.outcome.scenario);
                    ranking::rows(result, baseline.get(), stored.map(|stored| &stored.scenario))
                };
                result.as_ref().map(|result| rows(result)).unwrap_or_default()
            })
        })
    });
    let headings = COLUMNS.into_iter().map(
        |(metric, heading, explanation)| view! { <th scope="col" title=explanation data-heading=metric>{heading}</th> },
    ).collect_view();
    view! {
        <div id="results" class="table-scroll" role="region" aria-label="Planners, fastest first" tabindex="0">
            <table class="ranking" data-testid="ranking">
                <thead>
                    <tr><th scope="col">"Planner"</th>{headings}</tr>
                </thead>
                <tbody>
                    {move || {
                        rows.get().into_iter().map(|row| view! { <RankingRow row=row baseline=baseline selected=selected /> }).collect_view()
                    }}
                </tbody>
            </table>
        </div>
        <AccuracyLink subject="Times, utilisation and memory" />
    }
}

#[component]
fn RankingRow(row: Row, baseline: Memo<Option<PlannerKind>>, selected: Memo<Option<PlannerKind>>) -> impl IntoView {
    let explore = use_explore();
    let Row { planner, title, metrics } = row;
    let select = move || explore.view.update(|view| view.planner = Some(planner));
    let is_selected = move || selected.get() == Some(planner);
    let is_baseline = move || baseline.get() == Some(planner);
    let (cells, details) = match metrics {
        Ok(metrics) => {
            let views = metrics.cells.iter().map(|cell| cell_view(cell, planner, &title, baseline)).collect_view();
            (views.into_any(), Some(metrics))
        }
        Err(binding) => {
            let columns = COLUMNS.len().to_string();
            let reason = view! { <td class="binding" colspan=columns data-metric="binding"><div><b>"No plan: "</b>{binding}</div></td> };
            (reason.into_any(), None)
        }
    };
    let has_details = details.is_some();
    let details = details.map(|metrics| {
        let columns = (COLUMNS.len() + 1).to_string();
        view! {
            <tr class="plan-details" data-details=planner.id() class:chosen=is_selected on:click=move |_| select()>
                <td colspan=columns><div><PlanDetails planner=planner metrics=metrics /></div></td>
            </tr>
        }
    });
    view! {
        <tr
            data-planner=planner.id()
            class:chosen=is_selected
            class:baseline=is_baseline
            class:has-details=has_details
            on:click=move |_| select()
        >
            <th scope="row">
                <button class="row-button" aria-pressed=move || is_selected().to_string()>
                    <span class="pill" data-planner-colour=planner.id()></span>
                    {title}
                </button>
            </th>
            {cells}
        </tr>
        {details}
    }
}

/// Degrees, layers per stage and chosen settings, below the row of the planner.
#[component]
fn PlanDetails(planner: PlannerKind, metrics: RowMetrics) -> impl IntoView {
    let is_at_risk = metrics.cells.iter().any(|cell| cell.is_at_risk);
    let RowMetrics { layout, layers, source, settings, unclear, overrides, .. } = metrics;
    // Allow line breaks only between degrees.
    let degrees = layout.replace(' ', "\u{a0}").replace("\u{a0}·\u{a0}", " · ");
    let title = format!("Layers of each pipeline stage, modules separated by |\n{}", layers.full);
    view! {
        <span
            class="layout"
            title="TP, PP and DP degrees, model chunks per rank (VPP), sequences per microbatch (mb)"
            data-metric="layout"
            data-value=layout
        >
            {degrees}
        </span>
        <span class="layout" title=title data-metric="layers" data-value=layers.short.clone()>
            {format!("layers {}", layers.short)}
        </span>
        {settings.map(|text| text_line("settings", "Settings that the planner chose", text))}
        {overrides.map(|text| text_line("overrides", "The method of the planner has no place for these values", text))}
        {unclear.map(|text| text_line("unclear", "The error of the prediction is larger than the difference between the plans", text))}
        {source.map(|text| text_line("source", "The fastest plan of all planners", text))}
        {(is_at_risk && planner == PlannerKind::Best).then(|| view! { <LimitRisk /> })}
    }
}

/// Plans again with the risk that the check page calls safe.
#[component]
fn LimitRisk() -> impl IntoView {
    let explore = use_explore();
    let limit = move |event: leptos::ev::MouseEvent| {
        event.stop_propagation();
        explore.set("/max_memory_risk", RISK.into());
    };
    view! {
        <button type="button" class="link" data-testid="limit-risk" on:click=limit>
            {format!("Find the fastest plan with at most {:.0}\u{202f}% risk", 100.0 * RISK)}
        </button>
    }
}

fn text_line(metric: &'static str, title: &'static str, text: String) -> impl IntoView {
    let value = text.clone();
    view! { <span class="layout" title=title data-metric=metric data-value=value>{text}</span> }
}

fn cell_view(
    cell: &Cell,
    planner: PlannerKind,
    title: &str,
    baseline: Memo<Option<PlannerKind>>,
) -> impl IntoView + use<> {
    let is_baseline = move || baseline.get() == Some(planner);
    let explore = use_explore();
    let radio = (cell.metric == "speedup").then(|| {
        let label = format!("Compare against {title}");
        view! {
            <input
                type="radio"
                name="baseline"
                value=planner.id()
                title=label.clone()
                aria-label=label
                prop:checked=is_baseline
                on:click=|event| event.stop_propagation()
                on:change=move |_| explore.view.update(|view| view.baseline = Some(planner))
            />
        }
    });
    let raw = cell.value.map(|value| value.to_string());
    let is_at_risk = cell.is_at_risk;
    let uncertainty = cell.uncertainty.clone().map(|text| {
        let title = match cell.metric {
            "iteration_s" => "80 % interval: 8 of 10 measured times of similar published runs are inside",
            _ => "Probability of running out of the memory of the device",
        };
        view! { <span class="uncertainty" class:slower=is_at_risk title=title>{text}</span> }
    });
    let faster = cell.metric == "speedup" && cell.value.is_some_and(|value| value > 1.0005);
    view! { <td data-metric=cell.metric data-value=raw class:faster=faster>{radio}{cell.text.clone()}{uncertainty}</td> }
}
