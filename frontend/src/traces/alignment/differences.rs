//! Tables with differences between a recorded iteration and its plan.

use api::planner::timeline::SpanKind;
use api::planner::trace_alignment::{ActionName, Aligned, KindTotal, Pair};
use api::trace::Alignment;
use leptos::prelude::*;

use crate::format;
use crate::gantt::time_text;

/// Maximum number of listed pairs.
const MAX_PAIRS: usize = 50;
/// Maximum number of listed unmatched actions.
const MAX_NAMED: usize = 24;

/// Differences by action kind, actions with the largest differences, unmatched actions.
#[component]
pub(super) fn Differences(alignment: Alignment) -> impl IntoView {
    let aligned = alignment.aligned;
    let line = format!(
        "{} actions of both. The iteration took {}, the plan says {}.",
        format::count(aligned.pairs.len() as u64),
        time_text::duration(aligned.observed_makespan_ns as f64),
        time_text::duration(aligned.simulated_makespan_ns as f64),
    );
    let kinds = aligned.kinds.clone().into_iter().map(|total| view! { <KindRow total=total /> }).collect_view();
    let mut pairs = aligned.pairs.clone();
    pairs.sort_by_key(|pair| std::cmp::Reverse(pair.difference_ns.unsigned_abs()));
    let visible_count = pairs.len().min(MAX_PAIRS);
    let rows = pairs.into_iter().take(MAX_PAIRS).map(|pair| view! { <PairRow pair=pair /> }).collect_view();
    view! {
        <p data-testid="alignment-line">{line}</p>
        <div class="table-scroll" role="region" aria-label="Differences by kind" tabindex="0">
            <table class="list">
                <thead>
                    <tr>
                        <th scope="col">"Action"</th>
                        <th scope="col" class="number">"Pairs"</th>
                        <th scope="col" class="number">"Observed"</th>
                        <th scope="col" class="number">"Planned"</th>
                        <th scope="col" class="number">"Difference"</th>
                        <th scope="col" class="number">"Median ratio"</th>
                    </tr>
                </thead>
                <tbody data-testid="alignment-kinds">{kinds}</tbody>
            </table>
        </div>
        <Unmatched aligned=aligned />
        <details class="gantt-table">
            <summary>{format!("The {visible_count} actions that differ most")}</summary>
            <div class="gantt-table-scroll" tabindex="0" role="region" aria-label="Actions that differ most">
                <table>
                    <thead>
                        <tr>
                            <th scope="col">"Action"</th>
                            <th scope="col">"Rank"</th>
                            <th scope="col">"Observed"</th>
                            <th scope="col">"Planned"</th>
                            <th scope="col">"Difference"</th>
                            <th scope="col">"Starts later by"</th>
                        </tr>
                    </thead>
                    <tbody>{rows}</tbody>
                </table>
            </div>
        </details>
    }
}

#[component]
fn KindRow(total: KindTotal) -> impl IntoView {
    view! {
        <tr>
            <th scope="row">{kind_text(total.kind)}</th>
            <td class="number">{format::count(total.pairs)}</td>
            <td class="number">{time_text::duration(total.observed_ns as f64)}</td>
            <td class="number">{time_text::duration(total.simulated_ns as f64)}</td>
            <td class="number" class:slower={total.difference_ns > 0} class:faster={total.difference_ns < 0}>{signed(total.difference_ns)}</td>
            <td class="number">{total.ratio.map_or_else(|| "–".to_owned(), format::ratio)}</td>
        </tr>
    }
}

#[component]
fn PairRow(pair: Pair) -> impl IntoView {
    view! {
        <tr>
            <td>{name(&pair.action)}</td>
            <td>{pair.action.rank}</td>
            <td>{time_text::duration(pair.observed_ns as f64)}</td>
            <td>{time_text::duration(pair.simulated_ns as f64)}</td>
            <td>{signed(pair.difference_ns)}</td>
            <td>{signed(pair.delay_ns)}</td>
        </tr>
    }
}

/// Actions that exist only in the trace or only in the plan.
#[component]
fn Unmatched(aligned: Aligned) -> impl IntoView {
    let line = |count: u64, names: &[ActionName], description: &str| {
        let visible_names: Vec<String> = names.iter().take(MAX_NAMED).map(name).collect();
        let more = if count > visible_names.len() as u64 { ", …" } else { "" };
        (count > 0).then(
            || view! { <p class="hint">{format!("{} {description}: {}{more}", format::count(count), visible_names.join(", "))}</p> },
        )
    };
    view! {
        {line(aligned.only_observed, &aligned.only_observed_names, "actions were observed and are not in the plan")}
        {line(aligned.only_simulated, &aligned.only_simulated_names, "actions of the plan were not observed")}
    }
}

/// Formats an action in the torch grammar.
fn name(action: &ActionName) -> String {
    match action.kind {
        SpanKind::GradientSync | SpanKind::Optimizer => format!("{} of rank {}", action.kind.letter(), action.rank),
        kind => format!("{}{}{}", action.stage, kind.letter(), action.microbatch),
    }
}

const fn kind_text(kind: SpanKind) -> &'static str {
    match kind {
        SpanKind::Forward => "forward",
        SpanKind::Backward => "backward",
        SpanKind::InputGrad => "input gradient",
        SpanKind::WeightGrad => "weight gradient",
        SpanKind::SendForward => "send of activations",
        SpanKind::SendBackward => "send of gradients",
        SpanKind::GradientSync => "gradient synchronisation",
        SpanKind::Optimizer => "optimizer",
    }
}

/// Formats a signed difference.
fn signed(ns: i64) -> String {
    let sign = if ns < 0 { "−" } else { "+" };
    format!("{sign}{}", time_text::duration(ns.unsigned_abs() as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_and_differences_are_described_in_text() {
        let action = ActionName { rank: 2, kind: SpanKind::SendForward, stage: 1, microbatch: 7 };
        assert_eq!(name(&action), "1SEND_F7");
        assert_eq!(name(&ActionName { kind: SpanKind::Optimizer, ..action }), "OPT of rank 2");
        assert_eq!((signed(-1500), signed(0)), ("−1.50 µs".to_owned(), "+0 ns".to_owned()));
    }
}
