//! Peak memory per rank for a plan, or for the closest infeasible layout.

mod needs;

pub(super) use needs::RankNeeds;

use api::planner::outcome::{
    Layout, NearestMiss, PlanOutcome, Planned, PlannerResult, RankMemory, RankNeed, RankSummary, memory_difference,
};
use api::planner::scenario::PlannerKind;
use leptos::prelude::*;

use super::breakdown::NoBreakdown;
use super::ranking;
use crate::accuracy_link::AccuracyLink;
use crate::charts::{Fill, Limit, Measure, Part, StackedBars, StackedRow};
use crate::explore::use_explore;
use crate::format;

/// Bar segments, model state first. The memory reserve is not a segment because it reduces the
/// limit, as in the ranking table.
pub(crate) const PARTS: [Part; 5] = [
    Part { name: "weights", light: "#0072b2", dark: "#2f8fd0", fill: Fill::Solid },
    Part { name: "gradients", light: "#ee6677", dark: "#ee7f8e", fill: Fill::Solid },
    Part { name: "optimizer", light: "#4a4f58", dark: "#7b828e", fill: Fill::Solid },
    Part { name: "activations", light: "#ccbb44", dark: "#d6c75e", fill: Fill::Solid },
    Part { name: "temporary", light: "#882255", dark: "#b0568a", fill: Fill::Solid },
];

pub(crate) const fn values(memory: &RankMemory) -> [f64; 5] {
    [memory.weights_gib, memory.gradients_gib, memory.optimizer_gib, memory.activations_gib, memory.temporary_gib]
}

/// Memory per rank for the selected planner: from its plan, or from the closest infeasible layout.
#[derive(Debug, Clone, PartialEq)]
struct RankPeaks {
    planner: PlannerKind,
    ranks: Vec<Rank>,
    /// Memory limit in GiB.
    limit_gib: f64,
    /// Number of iterations. The bars show the maximum peak over all iterations.
    iterations: usize,
    /// Closest infeasible layout, if there is no plan.
    miss: Option<Miss>,
}

#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_field_names, reason = "the number of a rank is its rank")]
struct Rank {
    rank: u32,
    layers: String,
    memory: RankMemory,
}

#[derive(Debug, Clone, PartialEq)]
struct Miss {
    layout: Layout,
    /// Maximum over ranks and batches in GiB.
    needs_gib: f64,
}

/// Returns the rank with the maximum memory. For equal memory, the first rank.
pub(crate) fn fullest<R>(ranks: &[R], memory: impl Fn(&R) -> &RankMemory) -> Option<&R> {
    ranks.iter().rev().max_by(|a, b| memory(a).resident_gib().total_cmp(&memory(b).resident_gib()))
}

impl RankPeaks {
    fn from_result(result: &PlannerResult) -> Option<Self> {
        let planner = result.planner;
        match &result.answer {
            PlanOutcome::Planned(plan) => Some(Self {
                planner,
                ranks: plan.ranks.iter().map(|rank| Rank::new(plan, rank)).collect(),
                limit_gib: plan.metrics.memory_limit_gib,
                iterations: plan.iterations.len(),
                miss: None,
            }),
            PlanOutcome::Infeasible { search, .. } => {
                let NearestMiss { layout, needs_gib, limit_gib, ranks, .. } = search.nearest.as_deref()?;
                let rank = |need: &RankNeed| Rank { rank: need.rank, layers: need.layers.clone(), memory: need.memory };
                Some(Self {
                    planner,
                    ranks: ranks.iter().map(rank).collect(),
                    limit_gib: *limit_gib,
                    iterations: 1,
                    miss: Some(Miss { layout: *layout, needs_gib: *needs_gib }),
                })
            }
        }
    }

    fn fullest(&self) -> Option<&Rank> {
        fullest(&self.ranks, |rank| &rank.memory)
    }

    fn reserve_gib(&self) -> f64 {
        self.ranks.first().map_or(0.0, |rank| rank.memory.reserve_gib)
    }

    fn limit(&self) -> Option<Limit> {
        (!self.ranks.is_empty())
            .then_some(Limit { value: self.limit_gib, name: "limit: device memory minus the reserve" })
    }

    fn rows(&self) -> Vec<StackedRow> {
        let row =
            |rank: &Rank| StackedRow { label: format!("rank {}", rank.rank), values: values(&rank.memory).to_vec() };
        self.ranks.iter().map(row).collect()
    }

    /// Describes the memory of the critical rank, and the reason for its maximum.
    fn headline(&self) -> Option<String> {
        let fullest = self.fullest()?;
        let used_gib = fullest.memory.resident_gib();
        let limit = format::gib(self.limit_gib);
        let first = match &self.miss {
            None => format!("Rank {} needs most memory: {}; {limit} available.", fullest.rank, format::gib(used_gib)),
            Some(miss) => format!(
                "{} comes closest: rank {} needs {}; {limit} available.",
                ranking::degrees(&miss.layout),
                fullest.rank,
                format::gib(used_gib)
            ),
        };
        Some([Some(first), self.difference()].into_iter().flatten().collect::<Vec<_>>().join(" "))
    }

    fn difference(&self) -> Option<String> {
        let ranks: Vec<(u32, RankMemory)> = self.ranks.iter().map(|rank| (rank.rank, rank.memory)).collect();
        memory_difference(&ranks)
    }

    /// Describes the critical rank: time of the peak, and its main component.
    fn caption(&self) -> Option<String> {
        let fullest = self.fullest()?;
        let parts = values(&fullest.memory);
        let (part, value) = PARTS.iter().zip(parts).max_by(|a, b| a.1.total_cmp(&b.1))?;
        let RankMemory { in_flight, at_s, .. } = fullest.memory;
        let comes = if self.miss.is_some() { "needs most" } else { "comes closest to the limit" };
        Some(format!(
            "Rank {} {comes}: {} without the reserve at {} into an iteration, with {} in flight. Largest part: {}, {}.",
            fullest.rank,
            format::gib(fullest.memory.resident_gib()),
            format::seconds(at_s),
            forwards(in_flight),
            part.name,
            format::gib(value)
        ))
    }

    /// Explains the memory limit as a difference.
    fn limit_text(&self) -> String {
        format!(
            "A plan may use {}: {} of the device less the memory reserve of {} for fragmentation, the communication library and the \
             framework.",
            format::gib(self.limit_gib),
            format::gib(self.limit_gib + self.reserve_gib()),
            format::gib(self.reserve_gib())
        )
    }

    /// Describes the iterations covered by the bars.
    fn scope_text(&self) -> String {
        match &self.miss {
            None if self.iterations == 1 => "Bars show the iteration's largest peak of any replica.".to_owned(),
            None => format!(
                "Bars show the largest peak of all {} iterations and replicas; the chart \u{201c}Memory\u{201d} shows the selected iteration.",
                self.iterations
            ),
            Some(miss) => {
                let used_gib = self.fullest().map_or(0.0, |rank| rank.memory.resident_gib());
                let more = (miss.needs_gib > used_gib + 0.05)
                    .then(|| format!(" Another batch needs more: {}.", format::gib(miss.needs_gib)));
                format!("Bars show the representative batch that layouts are chosen on.{}", more.unwrap_or_default())
            }
        }
    }

    /// Suggests settings that reduce the main component.
    fn remedy(&self) -> Option<&'static str> {
        self.miss.as_ref()?;
        let memory = self.fullest()?.memory;
        let state = memory.weights_gib + memory.gradients_gib + memory.optimizer_gib;
        Some(if state > self.limit_gib {
            "Weights, gradients and optimizer alone exceed the limit: shard more (ZeRO stage 2 or 3), or choose devices that TP and PP divide further."
        } else if memory.temporary_gib > memory.activations_gib {
            "Less temporary memory: a smaller microbatch, more tensor parallel ranks, or context parallel ranks."
        } else {
            "Less memory for activations: recompute whole layers, a smaller microbatch, or more tensor or context parallel ranks."
        })
    }
}

impl Rank {
    fn new(plan: &Planned, summary: &RankSummary) -> Self {
        let rank_stages = plan.stages.iter().filter(|stage| stage.rank == summary.rank);
        let layers: Vec<&str> = rank_stages.map(|stage| stage.layers.as_str()).collect();
        Self { rank: summary.rank, layers: layers.join(", "), memory: summary.memory }
    }
}

fn forwards(count: u32) -> String {
    if count == 1 { "1 forward".to_owned() } else { format!("{} forwards", format::count(count.into())) }
}

/// Describes another planner's closest infeasible layout, if it needs less memory than the
/// displayed layout.
fn closer(results: &[PlannerResult], peaks: &RankPeaks) -> Option<String> {
    let current_miss = peaks.miss.as_ref()?;
    let (planner, nearest) = ranking::nearest_miss(results)?;
    (planner != peaks.planner && nearest.needs_gib < current_miss.needs_gib).then(|| {
        format!(
            "{} needs less: {} at {}.",
            ranking::short_title(planner),
            format::gib(nearest.needs_gib),
            ranking::degrees(&nearest.layout)
        )
    })
}

/// Memory for the selected planner, or `None` if its result contains none.
fn selected_peaks() -> Memo<Option<RankPeaks>> {
    let explore = use_explore();
    Memo::new(move |_| {
        let results = explore.results();
        let planner = ranking::selected_planner(&results, explore.view.get().planner)?;
        let result = results.find_planner(planner)?;
        RankPeaks::from_result(&result)
    })
}

/// Summary of the critical rank below the ranking table. Without a plan, the complete card.
#[component]
pub(super) fn MemoryAtTop() -> impl IntoView {
    let peaks = selected_peaks();
    let is_miss =
        Memo::new(move |_| peaks.with(|current| current.as_ref().is_some_and(|rank_peaks| rank_peaks.miss.is_some())));
    let headline_text = Memo::new(move |_| peaks.with(|loaded| loaded.as_ref().and_then(RankPeaks::headline)));
    let name = move || peaks.with(|state| state.as_ref().map(|rank_peaks| rank_peaks.planner));
    let line = move || {
        headline_text.get().map(|text| {
            view! {
                <p class="hint memory-line" data-testid="memory-line">
                    {name().map(|planner| view! { <span class="pill" data-planner-colour=planner.id()></span>" "<b>{ranking::short_title(planner)}</b>": " })}
                    {text}
                </p>
            }
        })
    };
    view! {
        <Show when=move || is_miss.get() fallback=move || view! { {line} }>
            <PeakMemory />
        </Show>
    }
}

/// Peak memory per rank for a plan.
#[component]
pub(super) fn PlanPeak() -> impl IntoView {
    let peaks = selected_peaks();
    let is_miss =
        Memo::new(move |_| peaks.with(|current| current.as_ref().is_some_and(|rank_peaks| rank_peaks.miss.is_some())));
    view! {
        <Show when=move || !is_miss.get()>
            <PeakMemory />
        </Show>
    }
}

#[component]
fn PeakMemory() -> impl IntoView {
    let peaks = selected_peaks();
    let rows = Signal::derive(move || peaks.with(|current| current.as_ref().map(RankPeaks::rows).unwrap_or_default()));
    let limit = Signal::derive(move || peaks.with(|loaded| loaded.as_ref().and_then(RankPeaks::limit)));
    let caption_text =
        Memo::new(move |_| peaks.with(|current_value| current_value.as_ref().and_then(RankPeaks::caption)));
    let label =
        Signal::derive(move || format!("Memory at the peak of each rank. {}", caption_text.get().unwrap_or_default()));
    let is_empty =
        Memo::new(move |_| peaks.with(|current| current.as_ref().is_none_or(|rank_peaks| rank_peaks.ranks.is_empty())));
    let planner = Memo::new(move |_| peaks.with(|current| current.as_ref().map(|rank_peaks| rank_peaks.planner)));
    let layout = move || {
        peaks.with(|current| {
            current.as_ref().and_then(|rank_peaks| Some(ranking::degrees(&rank_peaks.miss.as_ref()?.layout)))
        })
    };
    let explore = use_explore();
    let more = move || {
        peaks.with(|current| {
            let rank_peaks = current.as_ref()?;
            let closer = closer(&explore.results(), rank_peaks);
            let lines = [closer, rank_peaks.difference(), Some(rank_peaks.limit_text()), Some(rank_peaks.scope_text())];
            let lines = lines.into_iter().flatten().map(|line| view! { <p class="hint">{line}</p> }).collect_view();
            let remedy = rank_peaks
                .remedy()
                .map(|remedy| view! { <p class="hint" data-testid="peak-remedy"><b>{remedy}</b></p> });
            Some(view! { {lines}{remedy} })
        })
    };
    view! {
        <section class="card" data-testid="card-peak">
            <header class="card-title">
                <h2>{move || if layout().is_some() { "Memory of the nearest miss" } else { "Memory at the peak" }}</h2>
                <span class="muted plan-name">
                    {move || planner.get().map(|planner| view! { <span class="pill" data-planner-colour=planner.id()></span>{planner.title()} })}
                    {move || layout().map(|layout| format!(" · {layout}"))}
                </span>
            </header>
            <Show when=move || !is_empty.get() fallback=|| view! { <NoBreakdown /> }>
                <StackedBars parts=&PARTS rows=rows measure=Measure::Gib limit=limit label=label />
                <p class="hint" data-testid="peak-caption">{caption_text}</p>
                {more}
                <details class="advanced" data-testid="peak-table">
                    <summary>"As a table"</summary>
                    {move || view! { <Table ranks=peaks.get().map(|displayed| displayed.ranks).unwrap_or_default() /> }}
                </details>
            </Show>
        </section>
    }
}

#[component]
fn Table(ranks: Vec<Rank>) -> impl IntoView {
    let lines = ranks.into_iter().map(|Rank { rank, layers, memory }| {
        let parts = values(&memory);
        let sum: f64 = parts.iter().sum();
        view! {
            <tr>
                <th scope="row">{format!("rank {rank}")}<small class="below">{layers}</small></th>
                {parts.map(|gib| view! { <td>{format::gib(gib)}</td> })}
                <td data-sum=sum.to_string()><b>{format::gib(sum)}</b></td>
                <td>{format::seconds(memory.at_s)}</td>
                <td>{format::count(memory.in_flight.into())}</td>
            </tr>
        }
    });
    let headings =
        ["Rank", "Weights", "Gradients", "Optimizer", "Activations", "Temporary", "Sum", "Reached at", "In flight"]
            .map(|text| view! { <th scope="col">{text}</th> });
    view! {
        <p class="hint">"By pipeline rank, for one device of it, the memory reserve not counted. In flight are forwards whose backward has not run. Logits are activations; gradients of activations and recomputed activations are temporary."</p>
        <AccuracyLink subject="Peaks" />
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
    use api::planner::outcome::{RankTime, Search};

    use super::*;

    pub(super) const fn memory(activations_gib: f64) -> RankMemory {
        RankMemory {
            weights_gib: 10.0,
            gradients_gib: 5.0,
            optimizer_gib: 8.0,
            activations_gib,
            temporary_gib: 1.0,
            reserve_gib: 4.0,
            in_flight: 4,
            at_s: 3.25,
        }
    }

    fn plan_peaks(ranks: &[RankMemory]) -> RankPeaks {
        let rank = |(rank, memory): (usize, &RankMemory)| RankSummary {
            rank: rank as u32,
            time: RankTime::default(),
            memory: *memory,
        };
        let ranks = ranks.iter().enumerate().map(rank).collect();
        RankPeaks::from_result(&super::super::breakdown::tests::planned(PlannerKind::OneFOneB, ranks)).unwrap()
    }

    pub(super) fn plain(text: &str) -> String {
        text.replace('\u{202f}', " ")
    }

    #[test]
    fn caption_names_fullest_rank_and_its_biggest_part() {
        let peaks = plan_peaks(&[memory(20.0), memory(20.0), memory(2.0)]);
        assert_eq!(
            plain(&peaks.caption().unwrap()),
            "Rank 0 comes closest to the limit: 44.0 GiB without the reserve at 3.25 s into an iteration, with 4 forwards in flight. \
             Largest part: activations, 20.0 GiB."
        );
        assert_eq!(
            plain(&peaks.headline().unwrap()),
            "Rank 0 needs most memory: 44.0 GiB; 76.0 GiB available. Rank 0 needs 18.0 GiB more than rank 2: activations 18.0 GiB."
        );
        assert_eq!(forwards(1), "1 forward");
        assert_eq!(plan_peaks(&[]).caption(), None);
    }

    #[test]
    fn bars_table_and_limit_leave_the_reserve_out() {
        let peaks = plan_peaks(&[memory(1.0)]);
        assert_eq!(
            peaks.limit(),
            Some(Limit { value: 76.0, name: "limit: device memory minus the reserve" }),
            "80 GiB less 4 GiB"
        );
        assert_eq!(peaks.rows()[0].values, [10.0, 5.0, 8.0, 1.0, 1.0]);
        assert!((peaks.rows()[0].total() - peaks.ranks[0].memory.resident_gib()).abs() < 1e-12);
        assert_eq!(plan_peaks(&[]).limit(), None);
        assert!(
            plain(&peaks.limit_text())
                .starts_with("A plan may use 76.0 GiB: 80.0 GiB of the device less the memory reserve of 4.00 GiB")
        );
    }

    #[test]
    fn a_miss_shows_its_layout_its_need_and_a_remedy() {
        let layout = Layout { tensor: 8, pipeline: 2, data: 1, chunks: 1, microbatch: 1, group: None };
        let needs = [memory(70.0), memory(40.0)];
        let ranks = needs.iter().zip(0..).map(|(memory, rank)| RankNeed {
            rank,
            layers: "Llama 0-39".to_owned(),
            memory: *memory,
        });
        let nearest = NearestMiss { layout, rank: 0, needs_gib: 94.0, limit_gib: 76.0, ranks: ranks.collect() };
        let search = Search { nearest: Some(Box::new(nearest)), ..Search::default() };
        let infeasible = PlanOutcome::Infeasible { binding: String::new(), search };
        let result = PlannerResult { planner: PlannerKind::Gpipe, title: String::new(), answer: infeasible };
        let peaks = RankPeaks::from_result(&result).unwrap();
        assert_eq!(
            plain(&peaks.headline().unwrap()),
            "TP 8 · PP 2 · DP 1 · mb 1 comes closest: rank 0 needs 94.0 GiB; 76.0 GiB available. \
             Rank 0 needs 30.0 GiB more than rank 1: activations 30.0 GiB."
        );
        assert!(peaks.remedy().unwrap().starts_with("Less memory for activations"));
        assert_eq!(peaks.scope_text(), "Bars show the representative batch that layouts are chosen on.");
    }
}
