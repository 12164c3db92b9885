//! What the memory of each rank holds when it holds most.

use api::planner::outcome::{Planned, RankMemory, RankSummary};
use leptos::prelude::*;

use super::breakdown::{NoBreakdown, PlanName, chosen_plan};
use crate::accuracy_link::AccuracyLink;
use crate::charts::{Fill, Limit, Measure, Part, StackedBars, StackedRow};
use crate::format;

/// What memory holds, in the order in which a bar stacks it: first what stays, then what comes and goes.
const PARTS: [Part; 6] = [
    Part { name: "weights", light: "#0072b2", dark: "#2f8fd0", fill: Fill::Solid },
    Part { name: "gradients", light: "#ee6677", dark: "#ee7f8e", fill: Fill::Solid },
    Part { name: "optimizer", light: "#4a4f58", dark: "#7b828e", fill: Fill::Solid },
    Part { name: "activations", light: "#ccbb44", dark: "#d6c75e", fill: Fill::Solid },
    Part { name: "temporary", light: "#882255", dark: "#b0568a", fill: Fill::Solid },
    Part { name: "reserve", light: "#8a939e", dark: "#8a939e", fill: Fill::Hatched },
];

const fn values(memory: &RankMemory) -> [f64; 6] {
    [
        memory.weights_gib,
        memory.gradients_gib,
        memory.optimizer_gib,
        memory.activations_gib,
        memory.temporary_gib,
        memory.reserve_gib,
    ]
}

fn rows(ranks: &[RankSummary]) -> Vec<StackedRow> {
    let row =
        |rank: &RankSummary| StackedRow { label: format!("rank {}", rank.rank), values: values(&rank.memory).to_vec() };
    ranks.iter().map(row).collect()
}

/// Which rank holds most, when, and what most of it is.
fn caption(ranks: &[RankSummary]) -> Option<String> {
    let total = |rank: &RankSummary| values(&rank.memory).iter().sum::<f64>();
    // Of equals the first, as the eye takes it.
    let fullest = ranks.iter().rev().max_by(|a, b| total(a).total_cmp(&total(b)))?;
    let parts = values(&fullest.memory);
    let (part, value) = PARTS.iter().zip(parts).max_by(|a, b| a.1.total_cmp(&b.1))?;
    let RankMemory { in_flight, at_s, .. } = fullest.memory;
    Some(format!(
        "Rank {} comes closest to the limit: {} at {} into an iteration, with {} in flight. The largest part is {}, {}.",
        fullest.rank,
        format::gib(total(fullest)),
        format::seconds(at_s),
        forwards(in_flight),
        part.name,
        format::gib(value)
    ))
}

fn forwards(count: u32) -> String {
    if count == 1 { "1 forward".to_owned() } else { format!("{} forwards", format::count(count.into())) }
}

/// The memory of the device that a plan ran on: what a plan may use, and what is kept free of it.
fn device_memory(plan: &Planned) -> Option<Limit> {
    let reserve = plan.ranks.first()?.memory.reserve_gib;
    Some(Limit { value: plan.metrics.memory_limit_gib + reserve, name: "memory of the device" })
}

/// Memory at the peak of each rank.
#[component]
pub(super) fn PeakMemory() -> impl IntoView {
    let plan = chosen_plan();
    let ranks =
        Memo::new(move |_| plan.with(|plan| plan.as_ref().map(|(_, plan)| plan.ranks.clone()).unwrap_or_default()));
    let rows = Signal::derive(move || ranks.with(|ranks| rows(ranks)));
    let limit = Signal::derive(move || plan.with(|plan| plan.as_ref().and_then(|(_, plan)| device_memory(plan))));
    let words = Memo::new(move |_| ranks.with(|ranks| caption(ranks)));
    let label = Signal::derive(move || format!("Memory at the peak of each rank. {}", words.get().unwrap_or_default()));
    let is_empty = Memo::new(move |_| ranks.with(Vec::is_empty));
    view! {
        <section class="card" data-testid="card-peak">
            <header class="card-title">
                <h2>"Memory at the peak"</h2>
                <PlanName />
            </header>
            <Show when=move || !is_empty.get() fallback=|| view! { <NoBreakdown /> }>
                <StackedBars parts=&PARTS rows=rows measure=Measure::Gib limit=limit label=label />
                <p class="hint" data-testid="peak-caption">{words}</p>
                <details class="advanced" data-testid="peak-table">
                    <summary>"As a table"</summary>
                    {move || view! { <Table ranks=ranks.get() /> }}
                </details>
            </Show>
        </section>
    }
}

#[component]
fn Table(ranks: Vec<RankSummary>) -> impl IntoView {
    let lines = ranks.into_iter().map(|RankSummary { rank, memory, .. }| {
        let parts = values(&memory);
        let sum: f64 = parts.iter().sum();
        view! {
            <tr>
                <th scope="row">{format!("rank {rank}")}</th>
                {parts.map(|gib| view! { <td>{format::gib(gib)}</td> })}
                <td data-sum=sum.to_string()><b>{format::gib(sum)}</b></td>
                <td>{format::seconds(memory.at_s)}</td>
                <td>{format::count(memory.in_flight.into())}</td>
            </tr>
        }
    });
    let headings = [
        "Rank",
        "Weights",
        "Gradients",
        "Optimizer",
        "Activations",
        "Temporary",
        "Reserve",
        "Sum",
        "Reached at",
        "In flight",
    ]
    .map(|text| view! { <th scope="col">{text}</th> });
    view! {
        <p class="hint">"The largest peak of any iteration and replica, by pipeline rank. In flight are forwards whose backward has not run."</p>
        <AccuracyLink what="Peaks" />
        <div class="table-scroll" role="region" aria-label="Memory by rank" tabindex="0">
            <table class="figures" data-testid="peak-ranks">
                <thead><tr>{headings}</tr></thead>
                <tbody>{lines.collect_view()}</tbody>
            </table>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use api::planner::outcome::{Answer, RankTime};
    use api::planner::scenario::PlannerKind;

    use super::*;

    fn rank(rank: u32, activations_gib: f64) -> RankSummary {
        let memory = RankMemory {
            weights_gib: 10.0,
            gradients_gib: 5.0,
            optimizer_gib: 8.0,
            activations_gib,
            temporary_gib: 1.0,
            reserve_gib: 4.0,
            in_flight: 4,
            at_s: 3.25,
        };
        RankSummary { rank, time: RankTime::default(), memory }
    }

    #[test]
    fn the_caption_names_the_fullest_rank_and_its_largest_part() {
        let text = caption(&[rank(0, 20.0), rank(1, 20.0), rank(2, 2.0)]).unwrap().replace('\u{202f}', " ");
        assert_eq!(
            text,
            "Rank 0 comes closest to the limit: 48.0 GiB at 3.25 s into an iteration, with 4 forwards in flight. \
             The largest part is activations, 20.0 GiB."
        );
        assert_eq!(forwards(1), "1 forward");
        assert_eq!(caption(&[]), None);
    }

    #[test]
    fn the_line_stands_at_limit_and_reserve() {
        let result = super::super::breakdown::tests::planned(PlannerKind::OneFOneB, vec![rank(0, 1.0)]);
        let Answer::Planned(plan) = result.answer else { panic!("a plan") };
        assert!((device_memory(&plan).unwrap().value - 80.0).abs() < 1e-12);
        assert_eq!(rows(&plan.ranks)[0].values, [10.0, 5.0, 8.0, 1.0, 1.0, 4.0]);
    }
}
